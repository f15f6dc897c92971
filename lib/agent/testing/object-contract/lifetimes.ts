/** What is removed, what stays, and what a restart leaves. @module */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { StoreError } from '../../errors.js'
import type { ObjectStore } from '../../object-store.js'
import {
  assertHolds, blob, HOUR_MS, listAll, sampleBlobs, type ObjectSuite,
} from './suite.js'

export function testObjectLifetimes(
  { test }: ObjectSuite,
  reopen: ((objects: ObjectStore, t: TestContext) => Promise<ObjectStore>) | undefined,
): void {
  test('removed blobs are gone, others stay, and they can be stored again', async (objects) => {
    const blobs = sampleBlobs()
    const [kept, removed] = [blobs.slice(0, 4), blobs.slice(4)]
    await objects.put(blobs)
    const hashes = removed.map(({ hash }) => hash)
    await objects.delete([...hashes, ...hashes, blob('unknown').hash], 0)
    await objects.delete(hashes, 0)
    assert.equal((await objects.has(hashes)).size, 0)
    for (const { hash } of removed) assert.equal(await objects.get(hash), null)
    assert.deepEqual(await listAll(objects), kept.map(({ hash }) => hash).sort())
    await objects.put(removed)
    for (const one of blobs) await assertHolds(objects, one)
  })

  test('blobs that were used a moment ago are not removed', async (objects) => {
    const blobs = sampleBlobs()
    const hashes = blobs.map(({ hash }) => hash)
    await objects.put(blobs)
    await objects.delete(hashes, HOUR_MS)
    for (const one of blobs) await assertHolds(objects, one)
  })

  test('a closed store rejects every call, and may be closed twice', async (objects) => {
    if (objects.close === undefined) return
    const late = objects.put([blob('late')]).catch((error: unknown) => error)
    await objects.close()
    await objects.close()
    assert.equal(await late, undefined, 'close waits for blobs that are being stored')
    const closed = (error: unknown): boolean => {
      assert.ok(error instanceof StoreError, String(error))
      return true
    }
    const { hash } = blob('a')
    await assert.rejects(objects.put([blob('a')]), closed)
    await assert.rejects(objects.get(hash), closed)
    await assert.rejects(objects.has([hash]), closed)
    await assert.rejects(objects.list(null, 1), closed)
    await assert.rejects(objects.delete([hash], 0), closed)
  })

  if (reopen === undefined) return
  test('blobs survive a restart, and removed ones stay away', async (objects, t) => {
    const blobs = sampleBlobs()
    const removed = blobs.slice(0, 2).map(({ hash }) => hash)
    await objects.put(blobs)
    await objects.delete(removed, 0)
    const again = await reopen(objects, t)
    try {
      for (const one of blobs.slice(2)) await assertHolds(again, one)
      const hashes = blobs.map(({ hash }) => hash).sort()
      const rest = hashes.filter((hash) => !removed.includes(hash))
      assert.deepEqual(await listAll(again), rest)
      assert.deepEqual([...(await again.has(hashes))].sort(), rest)
    } finally {
      await again.close?.()
    }
  })
}
