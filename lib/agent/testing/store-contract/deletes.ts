/** Deletions. @module */
import assert from 'node:assert/strict'
import { within } from '../../../internal/time.js'
import type { RunRecord } from '../../events.js'
import { add, ALL, listAll, ownedBy, rejectsWith, type Suite } from './suite.js'

/** Milliseconds in which a store must tell. */
const TOLD_MS = 10_000

export function testDeletes({ test }: Suite): void {
  test('a deleted run is gone from every read, and other runs stay', async (store) => {
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

  test('deleting an unknown run, or one run twice, is not an error', async (store) => {
    await store.delete('unknown')
    await add(store, 'a')
    await store.delete('a')
    await store.delete('a')
  })

  test('a store that tells of removed runs tells of a deletion', async (store) => {
    await add(store, 'a')
    if (store.onRemoved === undefined) return
    const told = new Promise<boolean>((resolve) => store.onRemoved!(resolve))
    await store.delete('a')
    const here = await within(TOLD_MS, told)
    assert.equal(here, true, '`here` is true in the process that deletes')
  })

  test('an append that continues a deleted run is refused', async (store) => {
    const records = await add(store, 'a', { status: 'running', records: 3 })
    await store.delete('a')
    const next = { ...records[2], seq: 4 } as RunRecord
    await assert.rejects(store.append('a', [next]), rejectsWith('ERR_AGENT_SEQ_CONFLICT'))
    assert.equal(await store.head('a'), null)
  })
}
