/** Several processes on the same blobs. @module */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { ObjectStore } from '../../object-store.js'
import { assertHolds, blob, listAll, sampleBlobs, type ObjectSuite } from './suite.js'

export function testObjectSharing(
  { test }: ObjectSuite,
  connect: (objects: ObjectStore, t: TestContext) => Promise<ObjectStore>,
): void {
  test('a store that others share does not claim to be exclusive', async (objects) => {
    assert.ok(objects.exclusive !== true)
  })

  test('what one process stores or removes, another one finds or misses', async (one, t) => {
    const other = await connect(one, t)
    try {
      const blobs = sampleBlobs()
      await one.put(blobs)
      for (const each of blobs) await assertHolds(other, each)
      const hashes = blobs.map(({ hash }) => hash)
      assert.equal((await other.has(hashes)).size, hashes.length)
      await other.delete(hashes.slice(3), 0)
      assert.deepEqual(await listAll(one), hashes.slice(0, 3).sort())
    } finally {
      await other.close?.()
    }
  })

  test('processes that store and remove the same blobs do not interfere', async (one, t) => {
    const other = await connect(one, t)
    try {
      const blobs = [...sampleBlobs(), ...Array.from({ length: 50 }, (_, i) => blob(`${i}`))]
      const hashes = blobs.map(({ hash }) => hash)
      await Promise.all([
        one.put(blobs), other.put(blobs.toReversed()),
        one.delete(hashes, 0), other.delete(hashes.toReversed(), 0),
        other.put(blobs), one.has(hashes), one.put(blobs.toReversed()),
      ])
      // Whole or not at all.
      for (const { hash } of blobs) await one.get(hash)
      await Promise.all([one.put(blobs), other.put(blobs.toReversed())])
      for (const each of blobs) await assertHolds(other, each)
    } finally {
      await other.close?.()
    }
  })
}
