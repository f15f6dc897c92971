/** What calls over HTTP have used that gave no turn. */
import assert from 'node:assert/strict'
import { createServer as createNetServer } from 'node:net'
import { test } from 'node:test'
import type { ServerResponse } from 'node:http'
import {
  anthropicAdapter,
  geminiAdapter,
  HttpModel,
  ModelError,
  NO_USAGE,
  openAiChatAdapter,
  openAiResponsesAdapter,
  type CallUsage,
  type HttpModelOptions,
  type ModelAdapter,
} from 'runwright/agent'
import { listen, serve } from '../../helpers/serve.js'
import { modelRequest } from './exchange.js'

const events = (...list: readonly unknown[]): string =>
  list.map((data) => `data: ${JSON.stringify(data)}\n\n`).join('')
/** 90 characters: 30 tokens, estimated. */
const TEXT = 'x'.repeat(90)
/** `modelRequest()` as the estimator counts it: no instructions, and one short message. */
const INPUT = 8 + 9

type Answer = (response: ServerResponse) => void
/** Begins a stream, then drops the connection. */
const breaksAfter = (text: string): Answer => (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(text, () => response.destroy())
  if (text === '') response.flushHeaders()
}
const ends = (text: string): Answer => (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end(text)
}

async function usedBy(
  adapter: ModelAdapter,
  answer: Answer,
  options: Partial<HttpModelOptions> = {},
): Promise<CallUsage | undefined> {
  await using served = await serve((request, response) => {
    request.resume().on('end', () => answer(response))
  })
  const model = new HttpModel(adapter, { model: 'm', baseUrl: served.origin, ...options })
  const error = await model.complete(modelRequest()).then(
    () => assert.fail('it answered'),
    (reason: unknown) => reason,
  )
  await model.close()
  assert.ok(error instanceof ModelError, String(error))
  return error.usage
}

const chat = openAiChatAdapter()
const anthropic = anthropicAdapter()
const gemini = geminiAdapter()
const responses = openAiResponsesAdapter()
const messageStart = {
  type: 'message_start',
  message: { usage: { input_tokens: 25, output_tokens: 1 } },
}
const saysText = {
  type: 'content_block_delta',
  index: 0,
  delta: { type: 'text_delta', text: TEXT },
}
const geminiChunk = {
  candidates: [{ content: { parts: [{ text: TEXT }] } }],
  usageMetadata: { promptTokenCount: 25, candidatesTokenCount: 40 },
}
const failed = {
  type: 'response.failed',
  response: { error: { code: 'server_error' }, usage: { input_tokens: 25, output_tokens: 7 } },
}

for (const [title, adapter, answer, input, output, estimated] of [
  ['Anthropic told the input', anthropic, breaksAfter(events(messageStart, saysText)), 25, 30, 29],
  [
    'Anthropic told the whole answer',
    anthropic,
    breaksAfter(
      events(messageStart, saysText, {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: { output_tokens: 22 },
      }, { type: 'error', error: { type: 'api_error' } }),
    ),
    25, 22, undefined,
  ],
  ['Gemini counts in each chunk', gemini, breaksAfter(events(geminiChunk)), 25, 40, 0],
  [
    'Chat Completions count at the end',
    chat,
    breaksAfter(events({ choices: [{ index: 0, delta: { content: 'y' } }] })),
    INPUT, 12, INPUT + 12,
  ],
  [
    'Chat Completions that have counted',
    chat,
    ends(
      events(
        { choices: [{ index: 0, delta: {}, finish_reason: 'error' }] },
        { choices: [], usage: { prompt_tokens: 25, completion_tokens: 4 } },
      ),
    ),
    25, 4, undefined,
  ],
  [
    'Responses count at the end',
    responses,
    breaksAfter(events({ type: 'response.output_text.delta', delta: TEXT })),
    INPUT, 30, INPUT + 30,
  ],
  ['Responses that failed', responses, ends(events(failed)), 25, 7, undefined],
  ['a head without an answer', chat, breaksAfter(''), INPUT, 0, INPUT],
] as const) {
  test(`a stream that breaks off is counted: ${title}`, async () => {
    const used = await usedBy(adapter, answer)
    assert.equal(used?.input_tokens, input)
    assert.equal(used?.output_tokens, output)
    assert.equal(used?.estimated_tokens, estimated)
  })
}

for (const [title, answer] of [
  ['400', (response) => response.writeHead(400).end('{"error":{"message":"no"}}')],
  ['401', (response) => response.writeHead(401).end('no')],
  ['429', (response) => response.writeHead(429).end('later')],
  ['503', (response) => response.writeHead(503).end('later')],
  ['an error before anything of a stream', ends(events({ error: { message: 'overloaded' } }))],
  ['a page that is no answer', (response) => response.end('<html></html>')],
  ['an error in place of a whole answer', (response) => response.end('{"error":{"code":429}}')],
] satisfies [string, Answer][]) {
  test(`a call that was refused costs nothing: ${title}`, async () => {
    assert.equal(await usedBy(chat, answer), undefined)
  })
}

test('a call that its provider never got costs nothing', async () => {
  const closed = await listen(createNetServer())
  await closed.close()
  const model = new HttpModel(chat, { model: 'm', baseUrl: `http://127.0.0.1:${closed.port}` })
  const error = await model.complete(modelRequest()).catch((reason: unknown) => reason)
  assert.ok(error instanceof ModelError && error.retryable)
  assert.equal(error.usage, undefined)
  await model.close()
})

test('silence after the request costs what was sent', async () => {
  const used = await usedBy(chat, () => undefined, { idleTimeoutMs: 30 })
  assert.deepEqual([used?.input_tokens, used?.estimated_tokens], [INPUT, INPUT])
})

test('a whole answer that breaks off costs what was announced of it', async () => {
  const used = await usedBy(
    chat,
    (response) => {
      response.writeHead(200, { 'content-length': 300 })
      response.write('{"choices":', () => response.destroy())
    },
    { stream: false },
  )
  assert.equal(used?.output_tokens, 100)
})

test('a call tells what it has used so far: nothing before its request is sent', async () => {
  let begun: () => void = () => undefined
  const told = new Promise<void>((resolve) => (begun = resolve))
  await using served = await serve((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(events(messageStart, saysText))
    })
  })
  const model = new HttpModel(anthropic, { model: 'm', baseUrl: served.origin })
  const stop = new AbortController()
  let used: () => CallUsage | null = () => assert.fail('it is not told')
  const call = model.complete(
    modelRequest({
      signal: stop.signal,
      onUsage: (read) => (used = read),
      onDelta: () => begun(),
    }),
  )
  assert.equal(used(), null)
  await told
  stop.abort(new Error('enough'))
  assert.deepEqual([used()?.input_tokens, used()?.output_tokens], [25, 30])
  await assert.rejects(call, /enough/)
  await model.close()
})

const part = { type: 'output_text', text: TEXT }
for (const [name, adapter, body, told] of [
  ['chat', chat, { choices: [{ message: { content: TEXT }, finish_reason: 'stop' }] }, {}],
  ['responses', responses,
    { status: 'completed', output: [{ type: 'message', role: 'assistant', content: [part] }] }, {}],
  ['anthropic', anthropic,
    { content: [{ type: 'text', text: TEXT }], stop_reason: 'end_turn',
      usage: { input_tokens: 25 } },
    { input_tokens: 25, estimated_tokens: 30 }],
  ['gemini', gemini,
    { candidates: [{ content: { parts: [{ text: TEXT }] }, finishReason: 'STOP' }] }, {}],
] as const) {
  test(`what a whole answer does not count is estimated: ${name}`, async () => {
    await using served = await serve((request, response) => {
      request.resume().on('end', () => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify(body))
      })
    })
    const options = { model: 'm', baseUrl: served.origin, stream: false }
    await using model = new HttpModel(adapter, options)
    const { message, usage } = await model.complete(modelRequest())
    assert.equal(message.text, TEXT)
    const estimate = { input_tokens: INPUT, output_tokens: 30, estimated_tokens: INPUT + 30 }
    const expected = { ...NO_USAGE, ...estimate, ...told }
    assert.deepEqual(usage, expected)
  })
}
