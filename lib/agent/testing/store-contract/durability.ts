/** What must survive a restart. @module */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { RunRecord, RunStatus } from '../../events.js'
import type { RunStore } from '../../store.js'
import { sampleRun } from '../sample-records.js'
import { add, ALL, fold, ownedBy, rejectsWith, type Suite } from './suite.js'

export function testDurability(
  { test }: Suite,
  reopen: (store: RunStore, t: TestContext) => Promise<RunStore>,
): void {
  test('records, heads, lists, counts and keys survive a restart', async (store, t) => {
    const runs: (readonly [string, RunRecord[]])[] = []
    const statuses = Object.keys(await store.counts()) as RunStatus[]
    for (let i = 0; i < 30; i++) {
      const status = statuses[i % statuses.length]
      const runId = `run-${i}`
      runs.push([runId, await add(store, runId, { status, key: `k${i}`, records: 3 + i })])
    }
    await store.delete('run-7')
    const [counts, list] = [await store.counts(), await store.list({ limit: 100 })]
    const again = await reopen(store, t)
    try {
      assert.deepEqual(await again.counts(), counts)
      assert.deepEqual(await again.list({ limit: 100 }), list)
      for (const [runId, records] of runs) {
        const expected = runId === 'run-7' ? [] : records
        assert.deepEqual(await again.read(runId, 0, ALL), expected)
        assert.deepEqual(await again.head(runId), runId === 'run-7' ? null : fold(records))
      }
      assert.equal((await again.findByKey(ownedBy(null), 'k3', 0))?.details.run_id, 'run-3')
      assert.equal(await again.findByKey(ownedBy(null), 'k7', 0), null)
    } finally {
      await again.close()
    }
  })

  test('a run continues after a restart where it stopped', async (store, t) => {
    const records = sampleRun('a', { records: 20 })
    await store.append('a', records.slice(0, 9))
    const again = await reopen(store, t)
    try {
      const conflict = rejectsWith('ERR_AGENT_SEQ_CONFLICT')
      await assert.rejects(again.append('a', records.slice(8)), conflict)
      await again.append('a', records.slice(9))
      assert.deepEqual(await again.read('a', 0, ALL), records)
      assert.deepEqual(await again.head('a'), fold(records))
    } finally {
      await again.close()
    }
  })

  test('a cursor remains valid after a restart', async (store, t) => {
    for (let i = 0; i < 6; i++) await add(store, `run-${i}`, { createdAt: 1_700_000_000 + i })
    const { next } = await store.list({ limit: 3 })
    const again = await reopen(store, t)
    try {
      const page = await again.list({ limit: 3, cursor: next ?? '' })
      assert.deepEqual(page.heads.map(({ details }) => details.run_id), ['run-2', 'run-1', 'run-0'])
    } finally {
      await again.close()
    }
  })
}
