/** Sharing between processes: changes are visible to all, and one of two writers wins. @module */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { RunRecord } from '../../events.js'
import type { RunStore } from '../../store.js'
import { sampleRun } from '../sample-records.js'
import {
  add,
  ALL,
  assertOneConflict,
  fold,
  listAll,
  ownedBy,
  rejectsWith,
  type Suite,
} from './suite.js'

/** `connect` opens another store on the same data, as another process would. */
export function testSharing(
  suite: Suite,
  connect: (store: RunStore, t: TestContext) => Promise<RunStore>,
): void {
  const test = (title: string, body: (one: RunStore, other: RunStore) => Promise<void>): void =>
    suite.test(title, async (store, t) => {
      const other = await connect(store, t)
      try {
        await body(store, other)
      } finally {
        await other.close()
      }
    })

  test('records appended by one process are visible to another at once', async (one, other) => {
    const records = sampleRun('a', { records: 5, key: 'k' })
    await one.append('a', records.slice(0, 3))
    assert.deepEqual(await other.read('a', 0, ALL), records.slice(0, 3))
    assert.deepEqual(await other.head('a'), fold(records.slice(0, 3)))
    await one.append('a', records.slice(3))
    assert.deepEqual(await other.read('a', 3, ALL), records.slice(3))
    assert.deepEqual(await other.head('a'), fold(records))
    assert.deepEqual(await listAll(other, { limit: 10 }), ['a'])
    assert.deepEqual(await other.counts(), await one.counts())
    assert.equal((await other.findByKey(ownedBy(null), 'k', 0))?.details.run_id, 'a')
  })

  test('a run is written by one process and then by another', async (one, other) => {
    const records = sampleRun('a', { records: 9 })
    await one.append('a', records.slice(0, 3))
    await other.append('a', records.slice(3, 6))
    await one.append('a', records.slice(6))
    for (const store of [one, other]) assert.deepEqual(await store.read('a', 0, ALL), records)
  })

  test('of two processes that append the same record, one is refused', async (one, other) => {
    const [created, ...rest] = sampleRun('a', { records: 20 }) as [RunRecord, ...RunRecord[]]
    await one.append('a', [created])
    for (const record of rest) {
      const appends = [one, other].map((store) => store.append('a', [record]))
      assertOneConflict(await Promise.allSettled(appends))
    }
    for (const store of [one, other]) {
      assert.deepEqual(await store.read('a', 0, ALL), [created, ...rest])
    }
  })

  test('of two processes that create the same run, one is refused', async (one, other) => {
    const records = sampleRun('a')
    const outcomes = await Promise.allSettled(
      [one, other].map((store) => store.append('a', records)),
    )
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    assert.deepEqual(await one.read('a', 0, ALL), records)
  })

  test('a run deleted by one process is gone for another', async (one, other) => {
    const records = await add(one, 'a', { status: 'running', records: 3 })
    assert.equal((await other.head('a'))?.details.last_seq, 3)
    await one.delete('a')
    assert.equal(await other.head('a'), null)
    assert.deepEqual(await other.read('a', 0, ALL), [])
    const next = { ...records[2], seq: 4 } as RunRecord
    await assert.rejects(other.append('a', [next]), rejectsWith('ERR_AGENT_SEQ_CONFLICT'))
  })

  test('a cursor from one process is valid in another', async (one, other) => {
    for (let i = 0; i < 6; i++) await add(one, `run-${i}`, { createdAt: 1_700_000_000 + i })
    const { next } = await one.list({ limit: 3 })
    const page = await other.list({ limit: 3, cursor: next ?? '' })
    assert.deepEqual(page.heads.map(({ details }) => details.run_id), ['run-2', 'run-1', 'run-0'])
  })

  test('concurrent appends of two processes to many runs do not interfere', async (one, other) => {
    const logs = Array.from({ length: 30 }, (_, i) => sampleRun(`run-${i}`, { records: 12 }))
    await Promise.all(
      logs.map(async (records, i) => {
        for (const record of records) await (i % 2 === 0 ? one : other).append(`run-${i}`, [record])
      }),
    )
    for (const [i, records] of logs.entries()) {
      for (const store of [one, other]) {
        assert.deepEqual(await store.read(`run-${i}`, 0, ALL), records)
      }
    }
  })

  test('after one process closes its store, another can still append', async (one, other) => {
    const records = sampleRun('a', { records: 6 })
    await one.append('a', records.slice(0, 3))
    await one.close()
    await other.append('a', records.slice(3))
    assert.deepEqual(await other.read('a', 0, ALL), records)
  })
}
