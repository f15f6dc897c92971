import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { test } from 'node:test'
import { pipeline } from 'node:stream/promises'
import { inspect } from 'node:util'
import { createGzip } from 'node:zlib'
import {
  anthropicAdapter,
  createHttpProvider,
  HttpModel,
  ModelError,
  openAiChatAdapter,
  retryDelay,
  type HttpModelOptions,
} from 'runwright/agent'
import { encodeJson } from '../../../lib/agent/models/http-calls.js'
import { rawServer } from '../../helpers/raw-peer.js'
import { listen, serve } from '../../helpers/serve.js'
import { modelRequest, recording } from './exchange.js'

const KEY = 'secret-key-123456'
type Handler = (
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
) => void | Promise<void>

/** Starts a provider that answers with `handler`, and creates a model for it. */
async function provider(handler: Handler, options: Partial<HttpModelOptions> = {}) {
  const served = await serve((request, response) => {
    void (async () => {
      let body = ''
      for await (const chunk of request) body += chunk
      await handler(request, response, body)
    })()
  })
  const model = new HttpModel(openAiChatAdapter(), {
    model: 'gpt-5-mini',
    apiKey: KEY,
    baseUrl: `${served.origin}/v1`,
    ...options,
  })
  return {
    model,
    served,
    async [Symbol.asyncDispose]() {
      await model.close()
      await served.close()
    },
  }
}

function answer(response: ServerResponse, name: string): void {
  const { status, headers, body } = recording(name).response
  response.writeHead(status, headers)
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}

async function failure(work: Promise<unknown>): Promise<ModelError> {
  const error = await work.then(
    () => assert.fail('it answered'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof ModelError, inspect(error))
  return error
}

test('a streamed call sends the key and returns the turn and its visible text', async () => {
  const seen: { url: string; key: string; type: string; body: string }[] = []
  await using world = await provider((request, response, body) => {
    const { authorization = '', 'content-type': type = '' } = request.headers
    seen.push({ url: `${request.method} ${request.url}`, key: authorization, type, body })
    answer(response, 'openai-chat-stream-parallel-tools')
  })
  const turn = await world.model.complete(modelRequest())
  assert.equal(turn.message.calls.length, 2)
  assert.equal(seen[0]!.url, 'POST /v1/chat/completions')
  assert.equal(seen[0]!.key, `Bearer ${KEY}`)
  assert.equal(seen[0]!.type, 'application/json')
  const body = JSON.parse(seen[0]!.body) as { stream: boolean; model: string }
  assert.deepEqual([body.stream, body.model], [true, 'gpt-5-mini'])
  assert.equal(world.model.name, 'openai:gpt-5-mini')
})

test('visible text is emitted piece by piece, thinking is not', async () => {
  const adapter = anthropicAdapter()
  await using served = await serve((_, response) => answer(response, 'anthropic-stream-thinking'))
  await using model = new HttpModel(adapter, {
    model: 'claude-sonnet-4-0',
    baseUrl: served.origin,
    apiKey: KEY,
  })
  const pieces: string[] = []
  const turn = await model.complete(modelRequest({ onDelta: (text) => void pieces.push(text) }))
  assert.ok(pieces.length > 10)
  assert.equal(pieces.join(''), turn.message.text)
})

test('connections are reused from turn to turn, streamed or not', async () => {
  for (const stream of [true, false]) {
    const name = stream ? 'openai-chat-stream-parallel-tools' : 'openai-chat-tool-call'
    await using world = await provider((_, response) => answer(response, name), { stream })
    for (let i = 0; i < 3; i++) await world.model.complete(modelRequest())
    assert.equal(world.served.accepted, 1)
  }
})

test('a complete answer to a request for a stream is accepted', async () => {
  await using world = await provider((_, response) => answer(response, 'openai-chat-tool-call'))
  const turn = await world.model.complete(modelRequest())
  assert.deepEqual(turn.message.calls[0]!.args, { city: 'Paris' })
})

test('a stream with the wrong type and without its last blank line is accepted', async () => {
  const { body } = recording('openai-chat-stream-parallel-tools').response
  for (const type of ['text/plain', 'text/event-stream']) {
    await using world = await provider((_, response) => {
      response.writeHead(200, { 'content-type': type })
      response.end(String(body).trimEnd())
    })
    assert.equal((await world.model.complete(modelRequest())).message.calls.length, 2)
  }
})

test('any other answer is an error that suggests checking the base URL', async () => {
  await using world = await provider((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' })
    response.end('<html></html>')
  })
  const error = await failure(world.model.complete(modelRequest()))
  assert.deepEqual([error.code, error.retryable], ['ERR_AGENT_MODEL_PROTOCOL', false])
  assert.match(error.message, /text\/html and not JSON; is the base URL right/)
})

test('retries get an answer after a rate limit, an overload and a lost connection', async () => {
  let calls = 0
  await using world = await provider((request, response) => {
    calls += 1
    if (calls === 1)
      response.writeHead(429, { 'retry-after-ms': '1' }).end('{"error":{"message":"slow down"}}')
    else if (calls === 2)
      response.writeHead(529).end('{"type":"error","error":{"type":"overloaded_error"}}')
    else if (calls === 3) request.socket.destroy()
    else answer(response, 'openai-chat-tool-call')
  })
  const waits: (number | null)[] = []
  for (let attempt = 1; ; attempt++) {
    try {
      await world.model.complete(modelRequest())
      break
    } catch (error) {
      const wait = retryDelay(attempt, error, () => 0)
      waits.push(wait)
      assert.notEqual(wait, null)
    }
  }
  assert.deepEqual(waits, [1, 0, 0])
  assert.equal(calls, 4)
})

test('text is emitted as it arrives, even from a compressed stream', async () => {
  let emitted: (() => void) | undefined
  const first = new Promise<void>((resolve) => (emitted = resolve))
  const event = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ choices: [{ delta, finish_reason }] })}\n\n`
  await using world = await provider(async (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' })
    const gzip = createGzip()
    gzip.pipe(response)
    gzip.write(event({ content: 'First' }))
    gzip.flush()
    await first
    gzip.end(event({ content: ', second' }, 'stop') + 'data: [DONE]\n\n')
  })
  const turn = await world.model.complete(modelRequest({ onDelta: () => emitted?.() }))
  assert.equal(turn.message.text, 'First, second')
})

test('an empty answer is retryable', async () => {
  await using world = await provider((_, response) => void response.writeHead(200).end())
  const error = await failure(world.model.complete(modelRequest()))
  assert.deepEqual([error.code, error.retryable], ['ERR_AGENT_MODEL_PROTOCOL', true])
})

test('an endless event fails the call instead of being buffered', async () => {
  await using world = await provider(async (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const endless = function* (): Generator<Buffer> {
      yield Buffer.from('data: ')
      for (;;) yield Buffer.alloc(256 * 1024, 'x')
    }
    await pipeline(endless, response).catch(() => {})
  })
  const error = await failure(world.model.complete(modelRequest()))
  assert.equal(error.code, 'ERR_AGENT_MODEL_PROTOCOL')
  assert.match(error.message, /longer than/)
})

test('an untrusted certificate is not retryable', async () => {
  const file = (name: string) =>
    readFileSync(new URL(`../../fixtures/http/certs/${name}.pem`, import.meta.url))
  const server = createTlsServer({ cert: file('server'), key: file('server-key') })
  await using served = await listen(server, 'https')
  await using model = new HttpModel(openAiChatAdapter(), { model: 'm', baseUrl: served.origin })
  const error = await failure(model.complete(modelRequest()))
  assert.deepEqual([error.code, error.retryable], ['ERR_AGENT_MODEL', false])
})

test('an exhausted quota is not retried', async () => {
  await using world = await provider((_, response) => {
    response.writeHead(429, { 'content-type': 'application/json', 'retry-after': '1' })
    response.end(
      '{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}',
    )
  })
  const error = await failure(world.model.complete(modelRequest()))
  assert.deepEqual([error.code, retryDelay(1, error)], ['ERR_AGENT_MODEL_QUOTA', null])
})

test('a refused connection is retryable', async () => {
  const served = await serve(() => {})
  await served.close()
  await using model = new HttpModel(openAiChatAdapter(), { model: 'm', baseUrl: served.origin })
  const error = await failure(model.complete(modelRequest()))
  assert.deepEqual([error.code, error.retryable], ['ERR_AGENT_MODEL', true])
})

test('a stream that is cut off is retryable', async () => {
  const { body } = recording('openai-chat-stream-parallel-tools').response
  await using world = await provider((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(String(body).slice(0, 900), () => response.destroy())
  })
  const error = await failure(world.model.complete(modelRequest()))
  assert.equal(error.retryable, true)
})

test('the signal ends a call with its reason: at the start, waiting and streaming', async () => {
  const early = new AbortController()
  early.abort(new Error('too late'))
  const { body } = recording('openai-chat-stream-parallel-tools').response
  let reached: (() => void) | undefined
  let streams = false
  await using world = await provider((_, response) => {
    if (streams)
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write(String(body).slice(0, 900))
    reached?.()
  })
  await assert.rejects(world.model.complete(modelRequest({ signal: early.signal })), /too late/)
  for (streams of [false, true]) {
    const controller = new AbortController()
    const arrived = new Promise<void>((resolve) => (reached = resolve))
    const call = world.model.complete(modelRequest({ signal: controller.signal }))
    const ended = assert.rejects(call, (error) => error === controller.signal.reason)
    await arrived
    const closed = Promise.all([...world.served.sockets].map((socket) => once(socket, 'close')))
    controller.abort(new Error('no more'))
    await ended
    await closed
  }
})

test('silence fails the call after the idle timeout, before the answer and within it', async () => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: wait\n\n'
  for (const says of ['', head]) {
    await using silent = await rawServer(async (peer) => {
      await peer.takeUntil('\r\n\r\n')
      peer.write(says)
      await peer.ended()
    })
    await using model = new HttpModel(openAiChatAdapter(), {
      model: 'm',
      baseUrl: silent.origin,
      idleTimeoutMs: 40,
    })
    const error = await failure(model.complete(modelRequest()))
    assert.deepEqual([error.code, error.retryable], ['ERR_AGENT_MODEL', true])
  }
})

test('comments keep a slow stream alive until the total timeout, which is final', async () => {
  await using chatty = await rawServer(async (peer) => {
    await peer.takeUntil('\r\n\r\n')
    peer.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n')
    const timer = setInterval(() => peer.write(': PROCESSING\n\n'), 5)
    await peer.ended()
    clearInterval(timer)
  })
  await using model = new HttpModel(openAiChatAdapter(), {
    model: 'm',
    baseUrl: chatty.origin,
    idleTimeoutMs: 30_000,
    totalTimeoutMs: 60,
  })
  const error = await failure(model.complete(modelRequest()))
  assert.equal(error.retryable, false)
})

test('a complete answer is returned although the server keeps the connection open', async () => {
  const { body } = recording('openai-chat-stream-parallel-tools').response
  await using world = await provider((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(String(body))
  })
  assert.equal((await world.model.complete(modelRequest())).message.calls.length, 2)
})

test('redirects are not followed, so that no key is sent elsewhere', async () => {
  let elsewhere = 0
  await using other = await serve((_, response) => {
    elsewhere += 1
    response.end()
  })
  await using world = await provider((_, response) => {
    response.writeHead(307, { location: other.origin }).end()
  })
  const error = await failure(world.model.complete(modelRequest()))
  assert.deepEqual([error.statusCode, error.retryable, elsewhere], [307, false, 0])
})

test('no error and no inspected object shows the key', async () => {
  await using world = await provider(
    (request, response) => {
      const { authorization, 'x-gateway-token': token } = request.headers
      response
        .writeHead(401)
        .end(JSON.stringify({ error: { message: `wrong: ${authorization} ${token}` } }))
    },
    { headers: { 'x-gateway-token': 'gateway-secret-99' } },
  )
  const refused = await failure(world.model.complete(modelRequest()))
  await world.served.close()
  const unreachable = await failure(world.model.complete(modelRequest()))
  for (const thing of [
    refused,
    unreachable,
    world.model,
    createHttpProvider(openAiChatAdapter(), { id: 'x', apiKey: KEY }),
  ]) {
    const printed =
      inspect(thing, { depth: 12, showHidden: true }) + JSON.stringify(thing) + String(thing)
    assert.doesNotMatch(printed, /secret-key-123456|gateway-secret-99/)
  }
})

test('no key is sent if there is none, and the host’s headers win', async () => {
  let headers: IncomingMessage['headers'] = {}
  await using world = await provider(
    (request, response) => {
      headers = request.headers
      answer(response, 'openai-chat-tool-call')
    },
    { apiKey: undefined, headers: { 'api-key': 'other' } },
  )
  await world.model.complete(modelRequest())
  assert.equal(headers.authorization, undefined)
  assert.equal(headers['api-key'], 'other')
})

test('a base URL keeps its path and query', async () => {
  let url = ''
  await using world = await provider((request, response) => {
    url = request.url ?? ''
    answer(response, 'openai-chat-tool-call')
  })
  const baseUrl = `${world.served.origin}/deployments/a/?api-version=2024-10-21`
  await using model = new HttpModel(openAiChatAdapter(), { model: 'm', baseUrl })
  await model.complete(modelRequest())
  assert.equal(url, '/deployments/a/chat/completions?api-version=2024-10-21')
})

test('prices are known at the provider’s address; Anthropic’s include cache writes', async () => {
  await using own = new HttpModel(openAiChatAdapter(), { model: 'gpt-5-mini' })
  await using elsewhere = new HttpModel(openAiChatAdapter(), {
    model: 'gpt-5-mini',
    baseUrl: 'http://gateway.test/v1',
  })
  await using claude = new HttpModel(anthropicAdapter(), { model: 'claude-haiku-4-5' })
  await using uncached = new HttpModel(anthropicAdapter({ promptCaching: false }), {
    model: 'claude-haiku-4-5',
  })
  assert.equal(own.prices?.input, 0.25)
  assert.equal(elsewhere.prices, null)
  assert.deepEqual(
    [claude.prices?.input, claude.prices?.cached, uncached.prices?.input],
    [1.25, 0.1, 1],
  )
  assert.deepEqual([own.contextWindow, claude.contextWindow], [272_000, 200_000])
})

for (const { options, says } of [
  { options: { model: ' ' }, says: /model must be the name/ },
  { options: { model: 'm', baseUrl: 'ftp://x' }, says: /baseUrl must be an http/ },
  { options: { model: 'm', apiKey: 'two words' }, says: /the API key for openai must be/ },
  { options: { model: 'm', idleTimeoutMs: 0 }, says: /idleTimeoutMs must be a positive/ },
  { options: { model: 'm', totalTimeoutMs: -1 }, says: /totalTimeoutMs must be a positive/ },
]) {
  test(`an invalid option throws: ${says.source}`, () => {
    assert.throws(() => new HttpModel(openAiChatAdapter(), options), says)
  })
}

test('a lone surrogate, which providers refuse, is sent as a replacement character', () => {
  const text = 'a\ud83d b\ude00 😀 \\ud83d \\\\ud83d'
  assert.equal(JSON.parse(encodeJson(text)), 'a\ufffd b\ufffd 😀 \\ud83d \\\\ud83d')
})

test('a provider keeps its models and their connections until it is closed', async () => {
  const models = createHttpProvider(openAiChatAdapter(), {
    id: 'gate',
    baseUrl: 'http://gateway.test/v1',
    suggestions: ['a'],
  })
  const model = models.create('a')
  assert.equal(models.create('a'), model)
  assert.deepEqual([model.name, models.description], ['gate:a', 'gate (gateway.test)'])
  for (let i = 0; i < 70; i++) models.create(`m${i}`)
  assert.notEqual(models.create('a'), model)
  await models.close()
})
