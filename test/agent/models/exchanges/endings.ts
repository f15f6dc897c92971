/** How a run continues and ends, depending on what its provider answers. */
import assert from 'node:assert/strict'
import type { EventPayloads, JsonObject, JsonValue } from 'runwright/agent'
import { DIALECTS, object, STREAMS, whole, type Dialect } from './dialects.js'
import { FILTERED, FILTERS } from './filters.js'
import type { Refusal } from './refusal.js'
import { REFUSALS, waitsUntil } from './refusals.js'
import { RESULT_SCHEMA, run, type How, type Reply, type RunOutcome } from './runs.js'
import { formsOf, type Exchange } from './table.js'

/** A run in one format. */
export interface Ending {
  readonly title: string
  readonly dialect: Dialect
  /** False if the answer is the same whether it is asked for as a stream or not. */
  readonly isInBothForms?: boolean
  /** True if the fast tier leaves it out: it has another one of its kind. */
  readonly isRepetition?: boolean
  /** Plays the run, asserts its end, and returns what must not depend on the delivery. */
  readonly play: (how: How) => Promise<unknown>
}

const ID = 'call_aaaaaaaaa1'
const GIVEN = [{ id: ID, name: 'give_result', args: { total: 3 } }]

/** Returns what a provider answers in an exchange. */
function replyOf(dialect: Dialect, row: Exchange): Reply {
  if (row.whole !== undefined) return { whole: row.whole }
  const [form] = formsOf(dialect, row, true)
  assert.ok(form !== undefined && form.kind !== 'whole')
  if (form.kind === 'streamed') return { body: form.text }
  return { ...form.refused, status: form.refused.status ?? 200 }
}

const numbers = (text: string): readonly string[] => text.match(/\d+/g) ?? []

/** Asserts that the run ended in the provider's words, without any other number. */
function assertTooLong(outcome: RunOutcome, words: string, status: number): void {
  assert.equal(outcome.end_reason, 'context_exhausted', outcome.message)
  assert.ok(outcome.message.includes(words), outcome.message)
  const known = [...numbers(words), String(status), '0']
  const found = numbers(outcome.message.replace('p0:m', ''))
  const invented = found.filter((one) => !known.includes(one))
  assert.deepEqual(invented, [], outcome.message)
}

function assertFiltered(outcome: RunOutcome, code: string | undefined, words: string): void {
  const { end_reason, message, status } = outcome
  assert.deepEqual([status, end_reason], ['failed', 'content_filter'], message)
  assert.equal(outcome.code, code)
  assert.ok(message.includes(words), message)
  assert.equal(outcome.requests[0]!.length, 1, 'it is not asked again')
}

async function endsRefused(row: Refusal, how: How): Promise<unknown> {
  const outcome = await run(how, [{ replies: [replyOf(how.dialect, row)] }])
  const { words = '', fails: { code } } = row
  if (code === 'ERR_AGENT_MODEL_RATE_LIMIT') {
    assert.deepEqual([outcome.end_reason, outcome.code], ['provider_error', code])
    assert.match(outcome.message, words as RegExp)
    // Until a fixed time, the wait gets shorter.
    return { ...outcome, message: outcome.message.replace(/wait \d+/, 'wait') }
  }
  if (code === 'ERR_AGENT_MODEL_FILTER') assertFiltered(outcome, code, String(words))
  else assertTooLong(outcome, String(words), row.refused?.status ?? 400)
  return outcome
}

/** Returns the refusals that a run repeats. Their times are in the future, unlike the table's. */
function refusalsOf(dialect: Dialect): readonly Ending[] {
  const waiting = waitsUntil(Date.now())[dialect]
  const titles = waiting.map(({ title }) => title)
  const rows = REFUSALS[dialect].filter(
    ({ words, title }) => words !== undefined && !titles.includes(title),
  )
  const seen = new Set<string>()
  return [...rows, ...waiting].map((row) => {
    const { code } = row.fails
    const isRepetition = seen.has(code)
    seen.add(code)
    return {
      title: `a run says why it was refused: ${row.title}`, dialect, isRepetition,
      isInBothForms: row.whole !== undefined, play: (how) => endsRefused(row, how),
    }
  })
}

function filtersOf(dialect: Dialect): readonly Ending[] {
  return FILTERS[dialect].map((row, i) => ({
    title: `a run ends with its answer: ${row.title}`, dialect, isRepetition: i > 0,
    isInBothForms: true,
    play: async (how) => {
      const outcome = await run(how, [{ replies: [replyOf(dialect, row)] }])
      assertFiltered(outcome, undefined, '')
      assert.deepEqual(outcome.texts, [row.gives!.text])
      return outcome
    },
  }))
}

const TEXT = 'Überall x'.repeat(12)

/** A stream that breaks off shortly before its end. */
function breaksOff(dialect: Dialect): Reply {
  const text = STREAMS[dialect](whole(dialect, { text: TEXT, usage: [25, 150] }))
  const end = Buffer.byteLength(text.slice(0, text.trimEnd().lastIndexOf('data:')))
  return { body: text, breaksAfter: Math.floor(end * 0.9) }
}

const budgetsOf = (dialect: Dialect): readonly Ending[] => [
  {
    title: 'a stream that breaks off spends dollars, which are estimated', dialect,
    play: async (how) => {
      const outcome = await run(how, [{ replies: [breaksOff(dialect)] }], { max_cost_usd: 0.04 })
      assert.equal(outcome.end_reason, 'cost_budget')
      assert.equal(outcome.cost_known, false)
      assert.equal(outcome.usage.model_calls, 1, 'one attempt was too much already')
      const [used] = outcome.usages
      assert.equal(used?.failed, true)
      assert.ok(outcome.usage.estimated_tokens > 20)
      assert.equal(outcome.usage.estimated_tokens, used?.estimated_tokens)
      return outcome
    },
  },
  {
    title: 'a stream that breaks off spends tokens', dialect,
    play: async (how) => {
      const outcome = await run(how, [{ replies: [breaksOff(dialect)] }], { max_total_tokens: 40 })
      assert.equal(outcome.end_reason, 'token_budget')
      assert.equal(outcome.usage.model_calls, 1)
      return outcome
    },
  },
]

/** OpenRouter reports costs, and does not speak the format of Gemini. */
const costsOf = (dialect: Dialect): readonly Ending[] =>
  dialect === 'gemini'
    ? []
    : (
        [
          ['OpenRouter', { cost: 0.25 }, 0.25],
          [
            'OpenRouter for a key of one’s own',
            { cost: 0.25, is_byok: true, cost_details: { upstream_inference_cost: 0.5 } }, 0.75,
          ],
        ] as const
      ).map(([server, more, cost]) => ({
        title: `a run costs what its provider reports: ${server}`, dialect, isInBothForms: true,
        play: async (how) => {
          const replies = [{ text: 'It is 3.' }, { calls: GIVEN }].map((saying) => {
            const said = whole(dialect, { ...saying, usage: [25, 7] })
            return { whole: { ...said, usage: { ...object(said['usage']), ...more } as JsonValue } }
          })
          const outcome = await run(how, [{ replies, options: { prices: null } }])
          assert.equal(outcome.status, 'achieved', outcome.message)
          assert.deepEqual([outcome.cost, outcome.cost_known], [2 * cost, true])
          return outcome
        },
      }))

interface Takeover {
  readonly when: string
  readonly isInBothForms?: boolean
  readonly reply: (dialect: Dialect) => Reply
  readonly cause: EventPayloads['model_switched']['cause']
  readonly attempts: number
  /** True if the first model reports its tokens. */
  readonly isCounted: boolean
}

const TAKEOVERS: readonly Takeover[] = [
  {
    when: 'its streams break off', cause: 'retries', attempts: 5, isCounted: false,
    reply: (dialect) => {
      const body = STREAMS[dialect](whole(dialect, { text: 'It is 3, I think, or so.' }))
      return { body, breaksAfter: Math.floor(body.length * 0.6) }
    },
  },
  {
    when: 'it is refused', cause: 'error', attempts: 1, isCounted: true,
    reply: () => ({ status: 401, body: { error: { message: 'no such key' } } }),
  },
  {
    when: 'it would have to wait too long', cause: 'retries', attempts: 1, isCounted: true,
    reply: () => ({
      status: 429, headers: { 'retry-after': '900' }, body: { error: { message: 'Slow down' } },
    }),
  },
  {
    when: 'a filter stops it', cause: 'refusal', attempts: 1, isCounted: true, isInBothForms: true,
    reply: (dialect) => ({ whole: whole(dialect, { text: 'Half', stop: FILTERED[dialect] }) }),
  },
]

async function takesOver(row: Takeover, how: How): Promise<unknown> {
  const { dialect } = how
  const next = DIALECTS[(DIALECTS.indexOf(dialect) + 1) % DIALECTS.length]!
  const outcome = await run(how, [
    { replies: [row.reply(dialect)] },
    {
      dialect: next,
      replies: [{ text: 'It is 3.' }, { calls: GIVEN }].map((saying) => ({
        whole: whole(next, saying),
      })),
    },
  ])
  assert.equal(outcome.status, 'achieved', outcome.message)
  assert.deepEqual(outcome.result, { total: 3 })
  assert.deepEqual(outcome.switches.map(({ from, to, cause }) => [from, to, cause]), [
    ['p0:m', 'p1:m', row.cause],
  ])
  assert.deepEqual(outcome.requests.map((sent) => sent.length), [row.attempts, 2])
  assert.deepEqual(outcome.texts, ['It is 3.', ''], 'nothing of the first model')
  assert.equal(outcome.cost_known, row.isCounted)
  const ofFirst = outcome.usages.filter((one) => one.model_name === 'p0:m')
  assert.ok(ofFirst.every(({ failed }) => failed === true))
  if (row.cause === 'refusal' || !row.isCounted) assert.equal(ofFirst.length, row.attempts)
  return outcome
}

const takeoversOf = (dialect: Dialect): readonly Ending[] =>
  TAKEOVERS.map((row) => ({
    title: `another model takes over when ${row.when}`, dialect,
    isInBothForms: row.isInBothForms === true, play: (how) => takesOver(row, how),
  }))

interface Resulting {
  readonly form: string
  readonly model: string
  readonly isNative: boolean
  /** True if the format is refused at first. */
  readonly isRefused?: boolean
}

/** The field of a request in which a format is asked for its result. */
const FORMATS: Readonly<Record<Dialect, (body: JsonObject) => unknown>> = {
  'openai-chat': (body) => object(object(body['response_format'])['json_schema'])['schema'],
  'openai-responses': (body) => object(object(body['text'])['format'])['schema'],
  anthropic: (body) => object(object(body['output_config'])['format'])['schema'],
  gemini: (body) => object(body['generationConfig'])['responseJsonSchema'],
}
const MODELS: Readonly<Record<Dialect, readonly [native: string, other: string]>> = {
  'openai-chat': ['gpt-5.2', 'llama3.3'],
  'openai-responses': ['gpt-5.2', 'gpt-4-turbo'],
  anthropic: ['claude-sonnet-4-5', 'claude-3-7-sonnet-latest'],
  gemini: ['gemini-2.5-flash', 'gemini-1.5-pro'],
}

async function givesResult({ model, isNative, isRefused }: Resulting, how: How): Promise<unknown> {
  const { dialect } = how
  const isText = isNative && isRefused !== true
  const refusal: Reply = { status: 400, body: { error: { message: 'The grammar is too large.' } } }
  const outcome = await run(how, [{
    model,
    replies: [
      { whole: whole(dialect, { text: 'It is 3.' }) },
      ...(isRefused === true ? [refusal] : []),
      { whole: whole(dialect, isText ? { text: '{"total":3}' } : { calls: GIVEN }) },
    ],
  }])
  assert.equal(outcome.status, 'achieved', outcome.message)
  assert.deepEqual(outcome.result, { total: 3 })
  const [worked, asked, again] = outcome.requests[0]!
  assert.equal(FORMATS[dialect](worked!), undefined)
  assert.deepEqual(FORMATS[dialect](asked!), isNative ? RESULT_SCHEMA : undefined)
  const last = again ?? asked!
  const names = JSON.stringify([last['tool_choice'], last['toolConfig']])
  assert.equal(names.includes('give_result'), !isText)
  return outcome
}

const resultsOf = (dialect: Dialect): readonly Ending[] => {
  const [native, other] = MODELS[dialect]
  const rows: readonly Resulting[] = [
    { form: 'in the form that the provider enforces', model: native, isNative: true },
    { form: 'by a call that is forced', model: other, isNative: false },
    { form: 'by a call when the form is refused', model: native, isNative: true, isRefused: true },
  ]
  return rows.map((row) => ({
    title: `a run gets its result ${row.form}`, dialect, isInBothForms: true,
    play: (how) => givesResult(row, how),
  }))
}

export const ENDINGS: readonly Ending[] = DIALECTS.flatMap((dialect) => [
  ...refusalsOf(dialect), ...filtersOf(dialect), ...budgetsOf(dialect), ...costsOf(dialect),
  ...takeoversOf(dialect), ...resultsOf(dialect),
])
