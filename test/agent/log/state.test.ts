import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunRecord } from 'runwright/agent'
import { completeHead, type StoredHead } from '../../../lib/agent/log/head.js'
import { foldState } from '../../../lib/agent/log/state.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'

type Check = Extract<RunRecord, { kind: 'goal_check' }>

/** Whether a check must run again, according to the fold of a log that ends with it. */
function isStale(reason: string, undecided?: boolean): boolean | undefined {
  const [created] = sampleRun('01999999-0000-7000-8000-000000000001')
  assert.ok(created !== undefined)
  const { run_id, ts } = created
  const check: Check = {
    v: 1,
    seq: 2,
    run_id,
    ts,
    kind: 'goal_check',
    iteration: 0,
    payload: {
      achieved: false,
      reason,
      verified_by: 'judge',
      cached: false,
      counts: null,
      duration_ms: 1,
    },
    private: { output: '', tests: null, ...(undecided !== undefined && { undecided }) },
  }
  return foldState(foldState(null, created), check).lastCheck?.stale
}

test('a check without a verdict must run again, whatever its reason says', () => {
  assert.equal(isStale('the provider is busy', true), true)
  assert.equal(isStale('not judged: the file is empty', false), false)
})

test('a check without a verdict is recognised by its reason in logs of older versions', () => {
  assert.equal(isStale('not judged: the provider is busy'), true)
  assert.equal(isStale('the file is empty'), false)
})

test('tests of the first check are late in a fork, and not in an attempt', () => {
  const [created] = sampleRun('01999999-0000-7000-8000-000000000001')
  assert.ok(created?.kind === 'run_created')
  const { run_id, ts, payload } = created
  const base = {
    messages: [], baseline: null, baselineTests: null, checkpoint_id: null, adopts: false,
  }
  const hidden = { ...created.private!, fork: base }
  const check: Check = {
    v: 1, seq: 2, run_id, ts, kind: 'goal_check', iteration: 0,
    payload: {
      achieved: false, reason: '1 of 1 tests fail', verified_by: 'command', cached: false,
      counts: null, duration_ms: 1,
    },
    private: { output: '', tests: { 'a.test.js > adds': 'fail' } },
  }
  const origin = { forked_from: { run_id, seq: 1 } }
  for (const [more, isLate] of [[{}, false], [origin, true]] as const) {
    const begun = { ...created, payload: { ...payload, ...more }, private: hidden } as RunRecord
    assert.equal(foldState(foldState(null, begun), check).areTestsLate, isLate)
  }
})

test('a kind of a later version changes nothing but the position, whatever its name', () => {
  const [created, started] = sampleRun('01999999-0000-7000-8000-000000000001')
  assert.ok(created !== undefined && started !== undefined)
  for (const kind of ['future_kind', 'constructor', '__proto__']) {
    const state = foldState(foldState(null, created), started)
    const before = structuredClone(state.head)
    const unknown = { ...started, kind, seq: 3, ts: started.ts + 1, iteration: 1 } as RunRecord
    const { head } = foldState(state, unknown)
    assert.deepEqual(head, {
      ...before,
      last_ts: started.ts + 1,
      details: {
        ...before.details,
        last_seq: 3,
        iteration: 1,
        final_state: { ...before.details.final_state, iteration: 1 },
      },
    })
  }
})

test('a stored head gets the fields of later versions, and none that every version had', () => {
  const details = { run_id: 'r', model_name: 'm', usage: {} }
  const head = completeHead({ details } as unknown as StoredHead)
  assert.equal(head.details.role, 'root')
  assert.equal(head.details.active_model, 'm')
  for (const field of ['status', 'created_at', 'last_seq', 'cwd'] as const)
    assert.equal(head.details[field], undefined, field)
})
