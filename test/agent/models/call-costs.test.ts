/** The usage of calls over HTTP that gave no turn, or whose provider did not count it. */
import assert from 'node:assert/strict'
import { createServer as createNetServer } from 'node:net'
import { test } from 'node:test'
import {
  HttpModel, ModelError, NO_USAGE,
  type CallUsage, type HttpModelOptions, type JsonObject, type JsonValue,
} from 'runwright/agent'
import { answering, DELIVERIES, type Answer, type Delivery } from '../../helpers/deliveries.js'
import { listen, serve } from '../../helpers/serve.js'
import { modelRequest } from './exchange.js'
import { ADAPTERS, DIALECTS, sse, whole, type Dialect } from './exchanges/dialects.js'

/** 90 characters: 30 tokens, estimated. */
const TEXT = 'x'.repeat(90)
/** `modelRequest()` as the estimator counts it: no instructions, and one short message. */
const INPUT = 8 + 9

const ends = (...events: readonly unknown[]): Answer => ({ body: sse(events as JsonValue[], true) })
/** Begins a stream, then drops the connection. */
const breaks = (...events: readonly unknown[]): Answer => {
  const body = sse(events as JsonValue[], true)
  return { body, breaksAfter: Buffer.byteLength(body) }
}

async function usedBy(
  dialect: Dialect,
  answer: Answer,
  delivery: Delivery,
  options: Partial<HttpModelOptions> = {},
): Promise<ModelError> {
  await using server = await answering([answer], delivery)
  await using model = new HttpModel(ADAPTERS[dialect], {
    model: 'm', baseUrl: server.origin, transport: server.transport, ...options,
  })
  const error = await model.complete(modelRequest()).then(
    () => assert.fail('it answered'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof ModelError, String(error))
  return error
}

const messageStart = {
  type: 'message_start', message: { usage: { input_tokens: 25, output_tokens: 1 } },
}
const saysText = {
  type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: TEXT },
}
const messageDelta = {
  type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 22 },
}
const chunk = (delta: object, finish_reason: string | null = null, more: object = {}): object => ({
  choices: [{ index: 0, delta, finish_reason }], ...more,
})
const candidate = {
  candidates: [{ content: { parts: [{ text: TEXT }] } }],
  usageMetadata: { promptTokenCount: 25, candidatesTokenCount: 40 },
}
const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
const unavailable = { error: { code: 503, status: 'UNAVAILABLE', message: 'It is overloaded.' } }
const failed = { error: { code: 'server_error' }, usage: { input_tokens: 25, output_tokens: 7 } }

/** The answer, and the tokens of input and output that are used, and those that are estimated. */
type Row = readonly [string, Dialect, Answer, readonly [number, number] | null, estimated?: number]

const STREAMS: readonly Row[] = [
  ['Anthropic told the input', 'anthropic', breaks(messageStart, saysText), [25, 30], 29],
  [
    'Anthropic told the whole answer', 'anthropic',
    breaks(messageStart, saysText, messageDelta, { type: 'error', error: { type: 'api_error' } }),
    [25, 22],
  ],
  [
    'Anthropic counted before an error', 'anthropic',
    ends(messageStart, messageDelta, overloaded), [25, 22],
  ],
  ['Gemini counts in each chunk', 'gemini', breaks(candidate), [25, 40], 0],
  ['Gemini counted before an error', 'gemini', ends(candidate, unavailable), [25, 40], 0],
  [
    'Gemini has no candidate', 'gemini',
    { body: { candidates: [], usageMetadata: { promptTokenCount: 25 } } }, [25, 0],
  ],
  [
    'Chat Completions count at the end', 'openai-chat', breaks(chunk({ content: 'y' })),
    [INPUT, 12], INPUT + 12,
  ],
  [
    'Chat Completions count in each chunk', 'openai-chat',
    breaks(chunk({ content: 'y' }, null, { usage: { prompt_tokens: 43, completion_tokens: 13 } })),
    [43, 13], 0,
  ],
  [
    'Chat Completions that have counted', 'openai-chat',
    ends(
      chunk({}, 'error'), { choices: [], usage: { prompt_tokens: 25, completion_tokens: 4 } },
    ),
    [25, 4],
  ],
  [
    'OpenRouter ends the stream with an error and the counts', 'openai-chat',
    ends(chunk({ content: TEXT }), chunk({ content: '' }, 'error', {
      error: { code: 502, message: 'Provider disconnected' },
      usage: { prompt_tokens: 25, completion_tokens: 7 },
    })),
    [25, 7],
  ],
  [
    'Chat Completions have no choice', 'openai-chat',
    { body: { choices: [], usage: { prompt_tokens: 25 } } }, [25, 0],
  ],
  [
    'Responses count at the end', 'openai-responses',
    breaks({ type: 'response.output_text.delta', delta: TEXT }), [INPUT, 30], INPUT + 30,
  ],
  [
    'Responses that failed, streamed', 'openai-responses',
    ends({ type: 'response.failed', response: failed }), [25, 7],
  ],
  [
    'Responses that failed', 'openai-responses',
    { body: { status: 'failed', output: [], ...failed } }, [25, 7],
  ],
  ['a head without an answer', 'openai-chat', breaks(), [INPUT, 0], INPUT],
]

const FREE: readonly Row[] = [
  ['400', 'openai-chat', { status: 400, body: { error: { message: 'no' } } }, null],
  ['401', 'openai-chat', { status: 401, body: 'no' }, null],
  ['429', 'openai-chat', { status: 429, body: 'later' }, null],
  ...DIALECTS.map((dialect): Row => [
    `503 of ${dialect}`, dialect,
    { status: 503, body: dialect === 'anthropic' ? overloaded : unavailable }, null,
  ]),
  [
    'an error before anything of a stream', 'openai-chat',
    ends({ error: { message: 'overloaded' } }), null,
  ],
  [
    'a page that is no answer', 'openai-chat',
    { headers: { 'content-type': 'text/html' }, body: '<html></html>' }, null,
  ],
  ['an error in place of a whole answer', 'openai-chat', { body: { error: { code: 429 } } }, null],
]

for (const [rows, what] of [
  [STREAMS, 'a call that fails is counted'], [FREE, 'a call that is refused costs nothing'],
] as const)
  for (const [title, dialect, answer, used, estimated] of rows)
    test(`${what}: ${title}`, async () => {
      for (const delivery of DELIVERIES) {
        const { usage } = await usedBy(dialect, answer, delivery)
        const tokens = usage === undefined ? null : [usage.input_tokens, usage.output_tokens]
        assert.deepEqual(tokens, used, delivery)
        assert.equal(usage?.estimated_tokens, estimated, delivery)
      }
    })

test('a call that never reaches its provider costs nothing', async () => {
  const closed = await listen(createNetServer())
  await closed.close()
  await using model = new HttpModel(ADAPTERS['openai-chat'], {
    model: 'm', baseUrl: `http://127.0.0.1:${closed.port}`,
  })
  const error = await model.complete(modelRequest()).catch((reason: unknown) => reason)
  assert.ok(error instanceof ModelError && error.retryable)
  assert.equal(error.usage, undefined)
})

test('silence after the request costs what was sent', async () => {
  await using served = await serve((request) => void request.resume())
  await using model = new HttpModel(ADAPTERS['openai-chat'], {
    model: 'm', baseUrl: served.origin, idleTimeoutMs: 30,
  })
  const error = await model.complete(modelRequest()).catch((reason: unknown) => reason)
  assert.ok(error instanceof ModelError)
  const { usage } = error
  assert.deepEqual([usage?.input_tokens, usage?.estimated_tokens], [INPUT, INPUT])
})

test('a whole answer that breaks off costs what was announced of it', async () => {
  const answer = {
    headers: { 'content-type': 'application/json', 'content-length': '300' },
    body: '{"choices":', breaksAfter: 11,
  }
  const { usage } = await usedBy('openai-chat', answer, 'at once', { stream: false })
  assert.equal(usage?.output_tokens, 100)
})

test('a call reports what it has used so far: nothing before its request is sent', async () => {
  let begun: () => void = () => undefined
  const hasBegun = new Promise<void>((resolve) => (begun = resolve))
  await using served = await serve((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(ends(messageStart, saysText).body)
    })
  })
  await using model = new HttpModel(ADAPTERS.anthropic, { model: 'm', baseUrl: served.origin })
  const stop = new AbortController()
  let used: () => CallUsage | null = () => assert.fail('onUsage was not called')
  const call = model.complete(
    modelRequest({
      signal: stop.signal, onUsage: (read) => (used = read), onDelta: () => begun(),
    }),
  )
  assert.equal(used(), null)
  await hasBegun
  stop.abort(new Error('enough'))
  assert.deepEqual([used()?.input_tokens, used()?.output_tokens], [25, 30])
  await assert.rejects(call, /enough/)
})

/** Anthropic alone has counted the input. */
const PARTLY: Readonly<Partial<Record<Dialect, JsonObject>>> = {
  anthropic: { usage: { input_tokens: 25 } },
}

for (const dialect of DIALECTS) {
  test(`what a whole answer does not count is estimated: ${dialect}`, async () => {
    const { usage: _, usageMetadata: __, ...said } = whole(dialect, { text: TEXT })
    await using server = await answering([{ body: { ...said, ...PARTLY[dialect] } }], 'at once')
    await using model = new HttpModel(ADAPTERS[dialect], {
      model: 'm', baseUrl: server.origin, stream: false,
    })
    const { message, usage } = await model.complete(modelRequest())
    assert.equal(message.text, TEXT)
    const counted = dialect === 'anthropic' ? 25 : 0
    assert.deepEqual(usage, {
      ...NO_USAGE, input_tokens: counted || INPUT, output_tokens: 30,
      estimated_tokens: (counted > 0 ? 0 : INPUT) + 30,
    })
  })
}
