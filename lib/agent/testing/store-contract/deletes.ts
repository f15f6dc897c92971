/** Deletions. @module */
import assert from 'node:assert/strict'
import type { RunRecord } from '../../events.js'
import { add, ALL, listAll, ownedBy, rejectsWith, type Suite } from './suite.js'

/** Defines the tests of how runs are deleted. */
export function testDeletes({ test }: Suite): void {
  test('a deleted run is gone from everywhere, and others stay', async (store) => {
    await add(store, 'a', { key: 'k' })
    const records = await add(store, 'b', { status: 'running' })
    await store.delete('a')
    assert.deepEqual(await store.read('a', 0, ALL), [])
    assert.equal(await store.head('a'), null)
    assert.equal(await store.findByKey(ownedBy(null), 'k', 0), null)
    assert.deepEqual(await listAll(store, { limit: 10 }), ['b'])
    const counts = await store.counts()
    assert.deepEqual([counts.achieved, counts.running], [0, 1])
    assert.deepEqual(await store.read('b', 0, ALL), records)
  })

  test('deleting an unknown run, or twice, is no error', async (store) => {
    await store.delete('nobody')
    await add(store, 'a')
    await store.delete('a')
    await store.delete('a')
  })

  test('a deleted run takes no more records', async (store) => {
    const records = await add(store, 'a', { status: 'running', records: 3 })
    await store.delete('a')
    const next = { ...records[2], seq: 4 } as RunRecord
    await assert.rejects(store.append('a', [next]), rejectsWith('ERR_AGENT_SEQ_CONFLICT'))
    assert.equal(await store.head('a'), null)
  })
}
