/** Another model takes over from one that cannot go on, whatever format it speaks. */
import assert from 'node:assert/strict'
import type { EventPayloads } from 'runwright/agent'
import { DIALECTS, STREAMS, whole, type Dialect } from './dialects.js'
import { corner, run, type Corner, type How, type Reply, type Row } from './table.js'

interface Takeover extends Row {
  readonly reply: (dialect: Dialect) => Reply
  readonly cause: EventPayloads['model_switched']['cause']
  readonly attempts: number
  /** Are the tokens of the first model told? */
  readonly isTold: boolean
}

/** The word with which a format says that a filter has stopped the answer. */
const FILTERED: Readonly<Record<Dialect, string>> = {
  'openai-chat': 'content_filter', 'openai-responses': 'content_filter',
  anthropic: 'refusal', gemini: 'SAFETY',
}

const TAKEOVERS: readonly Takeover[] = [
  {
    title: 'when its streams break off', once: true, cause: 'retries', attempts: 5, isTold: false,
    reply: (dialect) => {
      const stream = STREAMS[dialect](whole(dialect, { text: 'It is 3, I think, or so.' }))
      return { stream, breaksAfter: Math.floor(stream.length * 0.6) }
    },
  },
  {
    title: 'when it is refused', once: true, cause: 'error', attempts: 1, isTold: true,
    reply: () => ({ status: 401, body: { error: { message: 'no such key' } } }),
  },
  {
    title: 'when it would have to wait too long', once: true, cause: 'retries', attempts: 1,
    isTold: true,
    reply: () => ({
      status: 429, headers: { 'retry-after': '900' }, body: { error: { message: 'Slow down' } },
    }),
  },
  {
    title: 'when a filter stops it', cause: 'refusal', attempts: 1, isTold: true,
    reply: (dialect) => ({ whole: whole(dialect, { text: 'Half', stop: FILTERED[dialect] }) }),
  },
]

async function takesOver(row: Takeover, how: How): Promise<unknown> {
  const { dialect } = how
  const next = DIALECTS[(DIALECTS.indexOf(dialect) + 1) % DIALECTS.length]!
  const given = [{ id: 'call_aaaaaaaaa1', name: 'give_result', args: { total: 3 } }]
  const outcome = await run(how, [
    { replies: [row.reply(dialect)] },
    {
      dialect: next,
      replies: [{ text: 'It is 3.' }, { calls: given }].map((saying) => ({
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
  assert.equal(outcome.cost_known, row.isTold)
  const ofFirst = outcome.usages.filter((one) => one.model_name === 'p0:m')
  assert.ok(ofFirst.every(({ failed }) => failed === true))
  if (row.cause === 'refusal' || !row.isTold) assert.equal(ofFirst.length, row.attempts)
  return outcome
}

export const TAKEOVER: readonly Corner[] = [
  corner('another model takes over', takesOver, {
    'openai-chat': TAKEOVERS, 'openai-responses': TAKEOVERS, anthropic: TAKEOVERS,
    gemini: TAKEOVERS,
  }),
]
