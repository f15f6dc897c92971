import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { createModelRegistry, providersFromEnvironment } from 'runwright/agent'
import { AsyncResponse, MockTransport } from 'runwright/http'
import { serve } from '../../helpers/serve.js'
import { modelRequest, recording } from './exchange.js'

const ids = (env: Record<string, string>) => providersFromEnvironment(env).map(({ id }) => id)

test('an empty environment gives no providers, and blank variables count as unset', () => {
  assert.deepEqual(ids({}), [])
  assert.deepEqual(ids({ OPENAI_API_KEY: ' ', ANTHROPIC_API_KEY: '', OLLAMA_HOST: '' }), [])
})

test('each variable enables its provider', () => {
  assert.deepEqual(ids({ OPENAI_API_KEY: 'sk-1' }), ['openai'])
  assert.deepEqual(ids({ OPENAI_BASE_URL: 'http://127.0.0.1:8080/v1' }), ['openai'])
  assert.deepEqual(ids({ ANTHROPIC_API_KEY: 'sk-2' }), ['anthropic'])
  assert.deepEqual(ids({ GEMINI_API_KEY: 'g-1' }), ['gemini'])
  assert.deepEqual(ids({ OLLAMA_HOST: '127.0.0.1' }), ['ollama'])
})

test('a key makes the bare names of its family known, but never becomes the default', () => {
  const env = { OPENAI_API_KEY: 'sk-1', ANTHROPIC_API_KEY: 'sk-2', GEMINI_API_KEY: 'g-1' }
  const registry = createModelRegistry({ providers: providersFromEnvironment(env) })
  assert.equal(registry.resolve('gpt-4.1').name, 'openai:gpt-4.1')
  assert.equal(registry.resolve('o3').name, 'openai:o3')
  assert.equal(registry.resolve('o4-mini').name, 'openai:o4-mini')
  assert.equal(registry.resolve('gpt-5.3-codex').name, 'openai:gpt-5.3-codex')
  assert.equal(registry.resolve('gemini-2.5-flash').name, 'gemini:gemini-2.5-flash')
  assert.equal(registry.resolve('claude-haiku-4-5').name, 'anthropic:claude-haiku-4-5')
  assert.throws(() => registry.resolve(undefined), /has no default model/)
  assert.throws(() => registry.resolve('opus'))
})

for (const { env, model, url } of [
  { env: {}, model: 'gpt-5.4', url: 'https://api.openai.com/v1/responses' },
  { env: {}, model: 'o4-mini', url: 'https://api.openai.com/v1/responses' },
  { env: {}, model: 'gpt-4.1', url: 'https://api.openai.com/v1/chat/completions' },
  { env: {}, model: 'gpt-5-chat-latest', url: 'https://api.openai.com/v1/chat/completions' },
  {
    env: { OPENAI_BASE_URL: 'http://gate.test/v1' },
    model: 'gpt-5.4',
    url: 'http://gate.test/v1/chat/completions',
  },
]) {
  test(`${model} is called at ${url}`, async () => {
    const transport = new MockTransport(() => new AsyncResponse(401, { text: '' }))
    const [openai] = providersFromEnvironment({ OPENAI_API_KEY: 'sk-1', ...env }, { transport })
    await assert.rejects(openai!.create(model).complete(modelRequest()), { statusCode: 401 })
    assert.equal(transport.requests[0]!.url.href, url)
    await openai!.close()
  })
}

for (const { host, address } of [
  { host: '127.0.0.1', address: '127.0.0.1:11434' },
  { host: '0.0.0.0', address: '127.0.0.1:11434' },
  { host: 'gpu.test:8000', address: 'gpu.test:8000' },
  { host: 'http://gpu.test:8000/', address: 'gpu.test:8000' },
  { host: 'https://gpu.test', address: 'gpu.test' },
]) {
  test(`OLLAMA_HOST=${host} is ${address}`, () => {
    assert.equal(
      providersFromEnvironment({ OLLAMA_HOST: host })[0]!.description,
      `Ollama at ${address}`,
    )
  })
}

test('Ollama is called under /v1 without a key, at no cost, with its context length', async () => {
  let url = ''
  let key: string | undefined
  await using served = await serve((request, response) => {
    url = request.url ?? ''
    key = request.headers.authorization
    const { headers, body } = recording('openai-chat-tool-call').response
    response.writeHead(200, headers).end(JSON.stringify(body))
  })
  const env = { OLLAMA_HOST: `127.0.0.1:${served.port}`, OLLAMA_CONTEXT_LENGTH: '8192' }
  await using provider = providersFromEnvironment(env)[0]!
  const model = provider.create('llama3.1:8b')
  await model.complete(modelRequest())
  assert.deepEqual(
    [url, key, model.contextWindow, model.prices?.input],
    ['/v1/chat/completions', undefined, 8192, 0],
  )
})

for (const { env, says } of [
  {
    env: { OPENAI_BASE_URL: 'localhost:1234' },
    says: /OPENAI_BASE_URL must be an http or https URL/,
  },
  { env: { OLLAMA_HOST: 'http://' }, says: /OLLAMA_HOST must be host:port or a URL/ },
  {
    env: { OLLAMA_HOST: 'a', OLLAMA_CONTEXT_LENGTH: '8k' },
    says: /OLLAMA_CONTEXT_LENGTH must be a number/,
  },
  { env: { ANTHROPIC_API_KEY: 'sk-very secret' }, says: /ANTHROPIC_API_KEY must be a key/ },
]) {
  test(`an invalid variable is named, without showing keys: ${says.source}`, () => {
    assert.throws(
      () => providersFromEnvironment(env),
      (error) => {
        assert.ok(error instanceof TypeError)
        assert.match(error.message, says)
        assert.doesNotMatch(error.message, /very secret/)
        return true
      },
    )
  })
}

test('inspecting a provider does not show its key', () => {
  const providers = providersFromEnvironment({
    OPENAI_API_KEY: 'sk-hidden-1',
    ANTHROPIC_API_KEY: 'sk-hidden-2',
  })
  assert.doesNotMatch(inspect(providers, { depth: 9, showHidden: true }), /hidden/)
})
