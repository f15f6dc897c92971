/** The pure parts of the list of runs: why runs ended, and which runs the address asks for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { END_REASONS } from '../../lib/server/describe/schemas.js'

const folder = fileURLToPath(new URL('../../lib/server/dashboard/static/', import.meta.url))

interface Spent {
  end_reason: string | null
  iteration: number
  max_iterations: number
  estimated_cost_usd: number
  cost_known: boolean
  started_at: string | null
  ended_at: string | null
  attempts: number
}

const reasons = (await import(`${folder}end-reasons.js`)) as {
  END_REASONS: Record<string, readonly [string, unknown?]>
  endReason(reason: string): string
  whyEnded(run: Spent): string
  workingMs(run: Pick<Spent, 'started_at' | 'ended_at'>, now: number): number | null
}
const queries = (await import(`${folder}run-query.js`)) as {
  LIVE: string[]
  ENDED: string[]
  filterFrom(hash: string): URLSearchParams | null
  listAddress(filter: URLSearchParams): string
  isNarrowed(filter: URLSearchParams): boolean
  listPath(filter: URLSearchParams, part: { limit: number; statuses: string[] }): string | null
  shortFolder(path: string): string
}

const RUN: Spent = {
  end_reason: null,
  iteration: 20,
  max_iterations: 20,
  estimated_cost_usd: 1.5,
  cost_known: true,
  started_at: '2026-01-01T00:00:00.000Z',
  ended_at: '2026-01-01T00:01:30.000Z',
  attempts: 3,
}

const NOTHING: Spent = {
  ...RUN, iteration: 0, max_iterations: 0, estimated_cost_usd: 0, started_at: null, attempts: 0,
}

/** What the list says of a run with the numbers above. */
const WHY: Readonly<Record<(typeof END_REASONS)[number], string>> = {
  goal_achieved: 'the goal was met in 20 iterations',
  max_iterations: '20 of 20 iterations used',
  token_budget: 'the token budget is spent',
  cost_budget: 'its budget is spent: $1.50',
  time_budget: 'its time is spent: 1 min 30 s',
  tool_call_budget: 'the tool call budget is spent',
  setup_failed: 'the setup failed',
  holdout_exhausted: 'the held-out tests failed too often',
  stuck: 'the model repeated itself',
  content_filter: 'the provider’s content filter stopped it',
  context_exhausted: 'the conversation outgrew the model',
  provider_error: 'the model provider failed',
  goal_check_error: 'the goal could not be checked',
  internal_error: 'an internal error occurred',
  recovery_failed: 'it could not be resumed after a restart',
  human_abort: 'stopped by a human at a gate',
  cancelled: 'stopped before it was done',
  gate_timeout: 'the gate was not answered in time',
  attempts_failed: 'none of 3 attempts met the goal',
  result_invalid: 'no valid result was given',
}

test('the list says in words why a run ended, for every reason that there is', () => {
  assert.deepEqual(Object.keys(reasons.END_REASONS).sort(), [...END_REASONS].sort())
  for (const end_reason of END_REASONS) {
    assert.equal(reasons.whyEnded({ ...RUN, end_reason }), WHY[end_reason])
    // Without numbers, as in runs of earlier versions, it says the same without them.
    const plain = reasons.whyEnded({ ...NOTHING, end_reason })
    assert.equal(plain, reasons.endReason(end_reason))
    assert.doesNotMatch(plain, /\d|_|null|undefined/)
  }
})

test('a reason of a newer service, and none at all, are no errors', () => {
  assert.equal(reasons.whyEnded({ ...RUN, end_reason: 'out_of_luck' }), 'out of luck')
  assert.equal(reasons.whyEnded({ ...RUN, end_reason: 'constructor' }), 'constructor')
  assert.equal(reasons.whyEnded(RUN), '')
})

test('the duration of a run that goes on is the time until now', () => {
  const now = Date.parse('2026-01-01T00:00:05.000Z')
  assert.equal(reasons.workingMs(RUN, now), 90_000)
  assert.equal(reasons.workingMs({ ...RUN, ended_at: null }, now), 5_000)
  // Clocks differ.
  assert.equal(reasons.workingMs({ ...RUN, ended_at: null }, 0), 0)
  assert.equal(reasons.workingMs({ ...RUN, started_at: null }, now), null)
})

for (const [hash, address, narrowed] of [
  ['', '#/', false],
  ['#/', '#/', false],
  ['#/?', '#/', false],
  ['#/?status=failed&search=a+b', '#/?status=failed&search=a+b', true],
  ['#/?search=%20&status=', '#/', false],
  ['#/?sort=created_at', '#/?sort=created_at', false],
  ['#/?cwd=', '#/?cwd=', true],
  ['#/?limit=1&cursor=x&tenant=blue&role=root', '#/', false],
  ['#/?metadata.team=red&cwd=%2Fw', '#/?cwd=%2Fw&metadata.team=red', true],
  ['#/?status=failed&status=aborted', '#/?status=failed&status=aborted', true],
] as const) {
  test(`the filter of ${hash || 'no address'} is kept as ${address}`, () => {
    const filter = queries.filterFrom(hash)!
    assert.equal(queries.listAddress(filter), address)
    assert.equal(queries.isNarrowed(filter), narrowed)
  })
}

for (const hash of ['#/new', '#/runs/x', '#nothing', '#/x?status=failed']) {
  test(`${hash} is no address of the list`, () => assert.equal(queries.filterFrom(hash), null))
}

for (const [filter, live, ended] of [
  [
    '',
    'limit=9&status=awaiting_human&status=running&status=pending&role=root',
    'limit=9&status=achieved&status=failed&status=aborted&role=root',
  ],
  ['status=failed', null, 'limit=9&status=failed'],
  ['status=pending', 'limit=9&status=pending', null],
  ['end_reason=stuck', null, 'limit=9&status=achieved&status=failed&status=aborted&end_reason=stuck'],
  ['status=running&end_reason=stuck', null, null],
  // The service says what is wrong with it.
  ['status=lost', 'limit=9&status=lost', 'limit=9&status=lost'],
] as const) {
  test(`the list asks for the runs of "${filter}" in two parts`, () => {
    for (const [statuses, expected] of [[queries.LIVE, live], [queries.ENDED, ended]] as const) {
      const path = queries.listPath(new URLSearchParams(filter), { limit: 9, statuses })
      assert.equal(path, expected === null ? null : `api/runs?${expected}`)
    }
  })
}

for (const [path, short] of [
  ['/srv', '/srv'],
  ['/srv/shop', '/srv/shop'],
  ['/home/ann/code/shop', '…/code/shop'],
  ['', ''],
]) {
  test(`the folder "${path}" is shown as "${short}"`, () =>
    assert.equal(queries.shortFolder(path!), short))
}
