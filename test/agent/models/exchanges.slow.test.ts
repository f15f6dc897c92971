/**
 * Every exchange of the table, however it arrives: cut anywhere, in random pieces, from a server
 * byte by byte, ended too early, and damaged.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ModelError, type ModelTurn } from 'runwright/agent'
import { SseParser } from 'runwright/http'
import { providerError } from '../../../lib/agent/models/provider-errors.js'
import { DELIVERIES } from '../../helpers/deliveries.js'
import { context, cutsInTwo, prefixes, randomPieces, recording, seeded } from './exchange.js'
import { DIALECTS, type Dialect } from './exchanges/dialects.js'
import { EXCHANGES } from './exchanges/index.js'
import { RECORDINGS } from './exchanges/recordings.js'
import {
  assertOutcome, decode, fetchForm, formsOf, sentBack, startOfEnd, type Exchange, type Form,
} from './exchanges/table.js'

const SEED = Number(process.env['RUNWRIGHT_SEED'] ?? Date.now() % 1_000_000)
/** Answers that are damaged, per format and form. */
const DAMAGES = Number(process.env['RUNWRIGHT_DAMAGES'] ?? 1_200)

/** Length of a stream that takes too long to be cut at every byte. */
const LONG = 13_000

const recorded: ReadonlySet<Exchange> = new Set(RECORDINGS)

type Played = readonly [Dialect, Exchange, Form]
const FORMS: readonly Played[] = EXCHANGES.flatMap(([dialect, row]) =>
  formsOf(dialect, row).map((form): Played => [dialect, row, form]),
)

for (const dialect of DIALECTS) {
  const played = FORMS.filter(([one]) => one === dialect)
  const streams = played.filter(([, , form]) => form.kind === 'streamed')
  const lengths = streams.map(([, , form]) => (form.kind === 'streamed' ? form.text.length : 0))
  const longest = Math.max(...lengths.filter((length) => length < LONG))

  /** Every byte of the longest stream is a place to cut it, and every fifth one of the others. */
  const step = (length: number): number => (length > LONG ? 31 : length === longest ? 1 : 5)

  test(`${dialect}: streams give the same wherever they are cut in two`, () => {
    for (const [, row, form] of streams) {
      if (form.kind !== 'streamed') continue
      const outcome = decode(dialect, row, form)
      for (const pieces of cutsInTwo(form.text, step(form.text.length)))
        assert.deepEqual(decode(dialect, row, form, () => pieces), outcome, row.title)
    }
  })

  test(`${dialect}: streams give the same in random pieces (seed ${SEED})`, () => {
    const random = seeded(SEED)
    for (const [, row, form] of streams) {
      const outcome = decode(dialect, row, form)
      for (let i = 0; i < 30; i++) {
        const split = (text: string): Uint8Array[] => randomPieces(text, random)
        assert.deepEqual(decode(dialect, row, form, split), outcome, row.title)
      }
    }
  })

  test(`${dialect}: streams that end before their answer does are a retryable error`, () => {
    for (const [, row, form] of streams) {
      if (form.kind !== 'streamed' || row.gives === undefined) continue
      const last = startOfEnd(dialect, form.text)
      if (last === -1) continue
      const end = last + form.text.slice(last).search(/\n\r?\n/) + 1
      for (const prefix of prefixes(form.text.slice(0, end), step(form.text.length))) {
        const { error } = decode(dialect, row, form, () => [prefix])
        const which = `${row.title}, ${prefix.length} bytes`
        assert.ok(error?.retryable === true, `${which}: ${String(error)}`)
      }
    }
  })

  test(`${dialect}: a server's answers give the same at once and byte by byte`, async () => {
    for (const [, row, form] of played) {
      // The other refusals depend on the time, or end runs in `provider-runs.slow.test.ts`.
      if (form.kind === 'refused' && !recorded.has(row)) continue
      // What a provider does not count is estimated.
      const { usage, ...gives } = row.gives ?? {}
      const isCounted = usage !== undefined && usage[0] > 0 && usage[1] > 0
      const expected = isCounted ? row : { ...row, gives }
      const outcomes = []
      for (const delivery of DELIVERIES) {
        const outcome = await fetchForm(dialect, row, form, delivery)
        assertOutcome(dialect, expected, form, outcome)
        outcomes.push(outcome)
      }
      assert.deepEqual(outcomes[1], outcomes[0], row.title)
    }
  })

  test(`${dialect}: damaged answers give a sound turn or a ModelError (seed ${SEED})`, () => {
    const random = seeded(SEED)
    const bodies = played.flatMap(([, row, form]) =>
      form.kind === 'whole' ? [[row, form] as const] : [],
    )
    for (let i = 0; i < DAMAGES; i++) {
      const [row, form] = bodies[Math.floor(random() * bodies.length)]!
      const body = damage(damage(form.body, random), random)
      assertSoundOrError(dialect, row, { kind: 'whole', body })
    }
  })

  test(`${dialect}: damaged streams give a sound turn or a ModelError (seed ${SEED})`, () => {
    const random = seeded(SEED)
    for (let i = 0; i < DAMAGES; i++) {
      const [, row, form] = streams[Math.floor(random() * streams.length)]!
      if (form.kind !== 'streamed') continue
      const events = new SseParser().feed(form.text).map(({ data }) => data)
      // A long stream is one like any other.
      const short = events.length > 40 ? [...events.slice(0, 8), ...events.slice(-8)] : events
      const text = damagedEvents(short, random).map((data) => `data: ${data}\n\n`).join('')
      assertSoundOrError(dialect, row, { kind: 'streamed', text })
    }
  })
}

test(`damaged error responses become a ModelError with a message (seed ${SEED})`, () => {
  const random = seeded(SEED)
  const bodies = [
    recording('groq-tool-use-failed-400').response.body,
    { error: { code: 429, status: 'X', message: 'm', details: [{ retryDelay: '1s' }] } },
    { type: 'error', error: { type: 'overloaded_error', message: 'm' } },
    { detail: [{ msg: 'x' }] },
  ]
  for (let i = 0; i < 2 * DAMAGES; i++) {
    const body = damage(damage(bodies[i % bodies.length], random), random)
    const failure = { status: 400 + (i % 130), header: () => null, body, now: 0 }
    const error = providerError(failure, context)
    assert.ok(error.message.startsWith('test:model answered '))
    assert.equal(typeof error.retryable, 'boolean')
  }
})

/** Values that may replace any other. */
const REPLACEMENTS = [
  null, 0, -1, 1e400, '', 'x', '{', true, [], {}, [[]], { error: 1 }, ['a', null],
]

/** Returns a copy of `value` with one random part replaced or removed. */
function damage(value: unknown, random: () => number): unknown {
  const copy = structuredClone(value)
  const places: (() => void)[] = []
  const visit = (at: unknown): void => {
    if (typeof at !== 'object' || at === null) return
    const holder = at as Record<string, unknown>
    for (const key of Object.keys(holder)) {
      places.push(() => {
        const replacement = REPLACEMENTS[Math.floor(random() * (REPLACEMENTS.length + 1))]
        if (replacement === undefined && Array.isArray(at)) at.splice(Number(key), 1)
        else if (replacement === undefined) delete holder[key]
        else holder[key] = structuredClone(replacement)
      })
      visit(holder[key])
    }
  }
  visit(copy)
  places[Math.floor(random() * places.length)]?.()
  return copy
}

/** Returns these events with one removed, repeated, swapped with the next, or damaged. */
function damagedEvents(events: readonly string[], random: () => number): readonly string[] {
  const list = [...events]
  const at = Math.floor(random() * list.length)
  const hit = list[at]!
  const kind = Math.floor(random() * 4)
  if (kind === 0) list.splice(at, 1)
  else if (kind === 1) list.splice(at, 0, hit)
  else if (kind === 2) list.splice(at, 2, list[at + 1] ?? hit, hit)
  else if (hit.startsWith('{')) list[at] = JSON.stringify(damage(JSON.parse(hit), random))
  return list
}

function assertSoundOrError(dialect: Dialect, row: Exchange, form: Form): void {
  // Throws whatever is not a ModelError.
  const { turn, error } = decode(dialect, row, form)
  if (turn !== null) assertSound(dialect, turn)
  else assert.ok(error instanceof ModelError)
}

function assertSound(dialect: Dialect, turn: ModelTurn): void {
  const { message, usage } = turn
  assert.equal(typeof message.text, 'string')
  assert.equal(typeof turn.reasoning, 'string')
  const { input_tokens, output_tokens, cached_tokens, reasoning_tokens } = usage
  for (const count of [input_tokens, output_tokens, cached_tokens, reasoning_tokens])
    assert.ok(Number.isSafeInteger(count) && count >= 0)
  assert.ok(cached_tokens <= input_tokens && reasoning_tokens <= output_tokens)
  const ids = message.calls.map(({ call_id }) => call_id)
  assert.equal(new Set(ids).size, ids.length)
  for (const { args, tool, call_id } of message.calls) {
    assert.ok(typeof args === 'object' && args !== null && !Array.isArray(args))
    assert.ok(typeof tool === 'string' && call_id !== '')
  }
  assert.equal(typeof JSON.stringify(sentBack(dialect, turn)), 'string')
}
