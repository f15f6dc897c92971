import assert from 'node:assert/strict'
import { test } from 'node:test'
import { transition, type RunStatus, type Trigger } from 'runwright/agent'
import { statusAfter } from '../../../lib/agent/log/head.js'
import type { RunRecord } from 'runwright/agent'

const statuses: readonly RunStatus[] = [
  'pending',
  'running',
  'awaiting_human',
  'achieved',
  'failed',
  'aborted',
]
const triggers: readonly Trigger[] = [
  'start',
  'gate',
  'respond',
  'achieve',
  'fail',
  'abort',
  'recover',
]

/** The whole table as documented: everything else must be refused. */
const allowed: Readonly<Record<string, RunStatus>> = {
  'pending start': 'running',
  'pending fail': 'failed',
  'pending abort': 'aborted',
  'pending recover': 'pending',
  'running gate': 'awaiting_human',
  'running achieve': 'achieved',
  'running fail': 'failed',
  'running abort': 'aborted',
  'running recover': 'running',
  'awaiting_human respond': 'running',
  'awaiting_human fail': 'failed',
  'awaiting_human abort': 'aborted',
  'awaiting_human recover': 'awaiting_human',
}

for (const status of statuses) {
  for (const trigger of triggers) {
    const expected = allowed[`${status} ${trigger}`] ?? null
    test(`${status} + ${trigger} → ${expected ?? 'refused'}`, () => {
      assert.equal(transition(status, trigger), expected)
    })
  }
}

for (const status of ['achieved', 'failed', 'aborted'] as const) {
  test(`no record may follow once a run is ${status}`, () => {
    const record: RunRecord = {
      v: 1,
      seq: 9,
      run_id: 'r',
      kind: 'log',
      iteration: 1,
      ts: 1,
      payload: { level: 'info', message: 'late' },
    }
    assert.throws(() => statusAfter(status, record), { code: 'ERR_AGENT_ILLEGAL_TRANSITION' })
  })
}
