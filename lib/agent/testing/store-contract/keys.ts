/** Idempotency keys. @module */
import assert from 'node:assert/strict'
import { add, ownedBy, type Suite } from './suite.js'

export function testKeys({ test }: Suite): void {
  const T = 1_700_000_000

  test('a run is found by its owner and idempotency key', async (store) => {
    await add(store, 'a', { ownerId: 'me', key: 'k' })
    await add(store, 'b', { ownerId: null, key: 'k' })
    await add(store, 'c', { ownerId: 'me', key: 'other' })
    assert.deepEqual(await store.findByKey(ownedBy('me'), 'k', 0), await store.head('a'))
    assert.deepEqual(await store.findByKey(ownedBy(null), 'k', 0), await store.head('b'))
    assert.equal(await store.findByKey(ownedBy('you'), 'k', 0), null)
    assert.equal(await store.findByKey(ownedBy('me'), 'none', 0), null)
    assert.equal(await store.findByKey({ id: 'me', tenant: 'other' }, 'k', 0), null)
  })

  test('a run created before `since` is not found by its key', async (store) => {
    await add(store, 'a', { createdAt: T, key: 'k' })
    assert.equal((await store.findByKey(ownedBy(null), 'k', T))?.details.run_id, 'a')
    assert.equal(await store.findByKey(ownedBy(null), 'k', T + 1), null)
  })

  test('of two runs with the same key, the one created since `since` is found', async (store) => {
    await add(store, 'old', { createdAt: T, key: 'k' })
    await add(store, 'new', { createdAt: T + 100, key: 'k' })
    assert.equal((await store.findByKey(ownedBy(null), 'k', T + 50))?.details.run_id, 'new')
    await store.delete('new')
    assert.equal(await store.findByKey(ownedBy(null), 'k', T + 50), null)
    assert.equal((await store.findByKey(ownedBy(null), 'k', T))?.details.run_id, 'old')
  })
}
