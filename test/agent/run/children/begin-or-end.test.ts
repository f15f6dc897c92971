/** A child that is about to end does not begin: its parent has said how it ended. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ChildRuns } from '../../../../lib/agent/run/children/child-runs.js'
import { RunChildren } from '../../../../lib/agent/run/children/run-children.js'
import type { RecordDraft } from '../../../../lib/agent/events.js'
import type { LogWriter } from '../../../../lib/agent/log/writer.js'
import type { ChildState } from '../../../../lib/agent/log/run-state.js'
import { StoreError } from 'runwright/agent'
import { systemClock } from '../../../../lib/internal/time.js'

const CHILD = {
  runId: 'child', role: 'delegate', callId: 'call', number: 1, end: null, merged: null,
} as unknown as ChildState

/** The children of a run whose appends wait for `stored`; `begun` are the runs that exist. */
function open(stored: Promise<void> = Promise.resolve()) {
  const begun = new Set<string>()
  const ended: string[] = []
  const lost = new AbortController()
  const children = new Map([[CHILD.runId, CHILD]])
  const head = { details: { attempts: null, iteration: 0 } }
  const log = {
    state: { children, head, abortRequested: true },
    idleWhile: <T>(work: Promise<T>) => work,
    append: async (drafts: readonly RecordDraft[]) => {
      await stored
      for (const { payload } of drafts) {
        const { run_id, status } = payload as { run_id: string; status: string }
        ended.push(`${run_id} ${status}, ${begun.has(run_id) ? 'begun' : 'not begun'}`)
      }
    },
  } as unknown as LogWriter
  const runs: Partial<ChildRuns> = {
    head: () => Promise.resolve(null),
    follow: () => Promise.resolve(),
    abort: () => Promise.resolve(),
  }
  const run = new RunChildren({
    runs: runs as ChildRuns,
    clock: systemClock,
    log: () => log,
    slot: { pause: () => undefined, enter: () => Promise.resolve() },
    lost: lost.signal,
  })
  const begin = (): Promise<void> => run.begin(CHILD, async () => void begun.add(CHILD.runId))
  return { begin, begun, ended, lost, run }
}

const signal = new AbortController().signal

test('a child whose end is being recorded does not begin any more', async () => {
  let store = (): void => undefined
  const { begin, begun, ended, run } = open(new Promise((resolve) => (store = resolve)))
  // Its call was stopped while what is asked of the child was still being looked at.
  const ending = run.awaitChildren([CHILD], true, signal)
  await new Promise((resolve) => setImmediate(resolve))
  await begin()
  store()
  await ending
  assert.deepEqual([...begun], [])
  assert.deepEqual(ended, ['child failed, not begun'])
})

test('the end of a child that is beginning waits until it has', async () => {
  const { begun, ended, run } = open()
  let answer = (): void => undefined
  const answered = new Promise<void>((resolve) => (answer = resolve))
  const beginning = run.begin(CHILD, async () => {
    await answered
    begun.add(CHILD.runId)
  })
  const ending = run.awaitChildren([CHILD], true, signal)
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(ended, [])
  answer()
  await Promise.all([beginning, ending])
  assert.deepEqual(ended, ['child failed, begun'])
})

test('a run that this process has lost begins no child, however often it asks', async () => {
  const { begin, begun, lost, run } = open()
  let asked = 0
  const unavailable = new StoreError('ERR_AGENT_STORE_UNAVAILABLE', 'it is away')
  const reason = new Error('another process holds it')
  const repeated = run.begin(CHILD, async () => {
    asked += 1
    lost.abort(reason)
    throw unavailable
  })
  await assert.rejects(repeated, reason)
  assert.equal(asked, 1)
  await assert.rejects(begin(), reason)
  assert.deepEqual([...begun], [])
})
