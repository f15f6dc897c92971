/** Heads and counts: folds of the records. @module */
import assert from 'node:assert/strict'
import { sampleRun } from '../sample-records.js'
import { add, fold, type Suite } from './suite.js'

export function testHeads({ test }: Suite): void {
  test('an unknown run has no head', async (store) => {
    assert.equal(await store.head('unknown'), null)
  })

  test('the head is the fold of the records after each append', async (store) => {
    const records = sampleRun('a', { records: 6, ownerId: 'me', tenant: 't', key: 'k' })
    for (const [i, record] of records.entries()) {
      await store.append('a', [record])
      assert.deepEqual(await store.head('a'), fold(records.slice(0, i + 1)))
    }
  })

  test('a returned head does not change with later appends', async (store) => {
    const records = sampleRun('a')
    await store.append('a', records.slice(0, 2))
    const head = await store.head('a')
    const { heads } = await store.list({ limit: 1 })
    await store.append('a', records.slice(2))
    assert.deepEqual(head, fold(records.slice(0, 2)))
    assert.deepEqual(heads, [fold(records.slice(0, 2))])
  })

  test('runs are counted by status', async (store) => {
    const none = { pending: 0, running: 0, awaiting_human: 0, achieved: 0, failed: 0, aborted: 0 }
    assert.deepEqual(await store.counts(), none)
    const statuses = [
      'pending',
      'running',
      'running',
      'awaiting_human',
      'failed',
      'aborted',
    ] as const
    for (const [i, status] of statuses.entries()) await add(store, `run-${i}`, { status })
    const moving = sampleRun('moving')
    await store.append('moving', moving.slice(0, 2))
    const before = { ...none, pending: 1, running: 3, awaiting_human: 1, failed: 1, aborted: 1 }
    assert.deepEqual(await store.counts(), before)
    await store.append('moving', moving.slice(2))
    assert.deepEqual(await store.counts(), { ...before, running: 2, achieved: 1 })
  })
}
