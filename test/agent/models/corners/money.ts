/** What is counted, and at which cost. */
import assert from 'node:assert/strict'
import { modelRequest, seeded } from '../exchange.js'
import { sse, STREAMS, whole, type Dialect } from './dialects.js'
import { corner, run, withModel, type Corner, type How, type Reply, type Row } from './table.js'

const TEXT = 'Überall x'.repeat(12)
/** The request of these tests as it is estimated: no instructions, and one short message. */
const INPUT = 8 + 9

/** Tokens of input that a format tells before its answer ends. */
const TOLD_EARLY: Readonly<Record<Dialect, number>> = {
  'openai-chat': 0, 'openai-responses': 0, anthropic: 25, gemini: 25,
}

/** A stream that says the text, and where its last event begins. */
function longStream(dialect: Dialect): { readonly text: string; readonly end: number } {
  const text = STREAMS[dialect](whole(dialect, { text: TEXT, usage: [25, 150] }))
  return { text, end: Buffer.byteLength(text.slice(0, text.trimEnd().lastIndexOf('data:'))) }
}

/** Calls that break off at 16 places, in order. */
async function breaksOff(_: Row, how: How): Promise<unknown> {
  const { text, end } = longStream(how.dialect)
  const random = seeded(5)
  const places = [0, 1, end, ...Array.from({ length: 13 }, () => Math.floor(random() * end))]
  const sorted = places.sort((a, b) => a - b)
  const replies = sorted.map((breaksAfter) => ({ stream: text, breaksAfter }))
  return await withModel(how, replies, 'm', async (call) => {
    const list = []
    let most = 0
    for (const place of sorted) {
      const { error, used } = await call(modelRequest())
      assert.equal(error?.retryable, true, `${place}`)
      assert.ok(used !== null, `${place} ${String(error)}`)
      const told = TOLD_EARLY[how.dialect]
      assert.ok([INPUT, told, 25].includes(used.input_tokens), `${place}`)
      assert.ok(used.output_tokens >= most, `${place}: more was received`)
      most = used.output_tokens
      const toldInput = used.input_tokens === told ? told : 0
      // What is told of the output by then is told as the count of the first token, or not at all.
      const estimated = used.estimated_tokens ?? 0
      if (place < end) assert.ok(estimated >= used.input_tokens - toldInput, `${place}`)
      assert.ok(estimated <= used.input_tokens + used.output_tokens - toldInput, `${place}`)
      list.push([place, used])
    }
    assert.ok(most >= TEXT.length / 3, `${most} tokens at the end`)
    return list
  })
}

const inAllFormats = (rows: readonly Row[]): Readonly<Record<Dialect, readonly Row[]>> => ({
  'openai-chat': rows, 'openai-responses': rows, anthropic: rows, gemini: rows,
})
const ONLY_STREAMED = 'a stream that breaks off'

async function isEstimated(_: Row, how: How): Promise<unknown> {
  const { text, end } = longStream(how.dialect)
  const reply = { stream: text, breaksAfter: Math.floor(end * 0.9) }
  const outcome = await run(how, [{ replies: [reply] }], { max_cost_usd: 0.04 })
  assert.equal(outcome.end_reason, 'cost_budget')
  assert.equal(outcome.cost_known, false)
  assert.equal(outcome.usage.model_calls, 1, 'one attempt was too much already')
  const [used] = outcome.usages
  assert.equal(used?.failed, true)
  assert.ok(outcome.usage.estimated_tokens > 20)
  assert.equal(outcome.usage.estimated_tokens, used?.estimated_tokens)
  return outcome
}

async function spendsTokens(_: Row, how: How): Promise<unknown> {
  const { text, end } = longStream(how.dialect)
  const reply = { stream: text, breaksAfter: Math.floor(end * 0.9) }
  const outcome = await run(how, [{ replies: [reply] }], { max_total_tokens: 40 })
  assert.equal(outcome.end_reason, 'token_budget')
  assert.equal(outcome.usage.model_calls, 1)
  return outcome
}

interface Failing extends Row {
  readonly reply: Reply
  /** Input and output tokens; null for none. */
  readonly used: readonly [number, number] | null
  readonly estimated?: number
}

async function fails({ reply, used, estimated }: Failing, how: How): Promise<unknown> {
  return await withModel(how, [reply], 'm', async (call) => {
    const outcome = await call(modelRequest())
    assert.equal(outcome.error?.retryable, true)
    if (used === null) assert.equal(outcome.used, null)
    else {
      assert.deepEqual([outcome.used?.input_tokens, outcome.used?.output_tokens], used)
      assert.equal(outcome.used?.estimated_tokens, estimated)
    }
    return outcome
  })
}

const chunk = (delta: object, finish_reason: string | null = null): object => ({
  choices: [{ index: 0, delta, finish_reason }],
})
const stream = (...events: readonly object[]): Reply => ({
  stream: sse(JSON.parse(JSON.stringify(events)) as never[], true),
})
const busy = (body: object): Failing => ({
  title: 'a refusal is free', once: true, used: null, reply: { status: 503, body },
})
const UNAVAILABLE = { error: { message: 'Service unavailable', code: 503 } }

const FAILING: Readonly<Record<Dialect, readonly Failing[]>> = {
  'openai-chat': [
    busy(UNAVAILABLE),
    {
      title: 'OpenRouter: an error ends the stream, with the usage', once: true,
      reply: stream(chunk({ content: TEXT }), {
        ...chunk({ content: '' }, 'error'), error: { code: 502, message: 'Provider disconnected' },
        usage: { prompt_tokens: 25, completion_tokens: 7 },
      }),
      used: [25, 7],
    },
    {
      title: 'an answer without a choice',
      reply: { status: 200, body: { choices: [], usage: { prompt_tokens: 25 } } }, used: [25, 0],
    },
  ],
  'openai-responses': [
    busy(UNAVAILABLE),
    {
      title: 'a response that fails after a text',
      reply: {
        whole: {
          status: 'failed', output: [],
          error: { code: 'server_error', message: 'The model had an error.' },
          usage: { input_tokens: 25, output_tokens: 7 },
        },
      },
      used: [25, 7],
    },
  ],
  anthropic: [
    busy({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
    {
      title: 'an error after the counts', once: true,
      reply: stream(
        { type: 'message_start', message: { usage: { input_tokens: 25, output_tokens: 1 } } },
        {
          type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 7 },
        },
        { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      ),
      used: [25, 7],
    },
  ],
  gemini: [
    busy({ error: { code: 503, status: 'UNAVAILABLE', message: 'The model is overloaded.' } }),
    {
      title: 'an error after the counts so far', once: true,
      reply: stream(
        {
          candidates: [{ content: { parts: [{ text: 'x' }] } }],
          usageMetadata: { promptTokenCount: 25, candidatesTokenCount: 7 },
        },
        { error: { code: 503, status: 'UNAVAILABLE', message: 'The model is overloaded.' } },
      ),
      used: [25, 7], estimated: 0,
    },
    {
      title: 'an answer without a candidate',
      reply: { status: 200, body: { candidates: [], usageMetadata: { promptTokenCount: 25 } } },
      used: [25, 0],
    },
  ],
}

interface Telling extends Row {
  readonly more: object
  readonly cost: number
}

/** Both turns of a run for a result cost what they are told to. */
async function tells({ more, cost }: Telling, how: How): Promise<unknown> {
  const id = 'call_aaaaaaaaa1'
  const given = { id, name: 'give_result', args: { total: 3 } }
  const replies = [{ text: 'It is 3.' }, { calls: [given] }].map((saying) => {
    const said = whole(how.dialect, { ...saying, usage: [25, 7] })
    return { whole: { ...said, usage: { ...(said['usage'] as object), ...more } } }
  })
  const outcome = await run(how, [{ replies, options: { prices: null } }])
  assert.equal(outcome.status, 'achieved', outcome.message)
  assert.deepEqual([outcome.cost, outcome.cost_known], [2 * cost, true])
  return outcome
}

const TELLING: readonly Telling[] = [
  { title: 'OpenRouter tells the cost', more: { cost: 0.25 }, cost: 0.25 },
  {
    title: 'OpenRouter tells the cost of a key of one’s own', cost: 0.75,
    more: { cost: 0.25, is_byok: true, cost_details: { upstream_inference_cost: 0.5 } },
  },
]

export const MONEY: readonly Corner[] = [
  corner('what is used when a stream breaks off', breaksOff, inAllFormats([
    { title: `${ONLY_STREAMED} anywhere`, once: true },
  ])),
  corner('budgets when a stream breaks off', isEstimated, inAllFormats([
    { title: `${ONLY_STREAMED} spends dollars, which are estimated`, once: true },
  ])),
  corner('token budgets when a stream breaks off', spendsTokens, inAllFormats([
    { title: `${ONLY_STREAMED} spends tokens`, once: true },
  ])),
  corner('what a failed attempt costs', fails, FAILING),
  corner('the cost that a provider tells', tells, {
    'openai-chat': TELLING,
    'openai-responses': TELLING,
    anthropic: TELLING,
    gemini: 'the format has no field for it, and no gateway that tells costs speaks it',
  }),
]
