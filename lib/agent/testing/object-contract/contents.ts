/** What is stored comes back, and nothing else. @module */
import assert from 'node:assert/strict'
import { StoreError } from '../../errors.js'
import type { ObjectStore } from '../../object-store.js'
import { assertHolds, blob, listAll, sampleBlobs, type ObjectSuite } from './suite.js'

const NO_HASHES = [
  '', 'a', '../../../../etc/passwd', '0'.repeat(63), '0'.repeat(65), 'A'.repeat(64),
  `${'0'.repeat(63)}/`, `${'0'.repeat(63)}\n`,
]

export function testObjectContents({ test }: ObjectSuite): void {
  test('blobs come back byte for byte', async (objects) => {
    const blobs = sampleBlobs()
    await objects.put(blobs)
    for (const one of blobs) await assertHolds(objects, one)
  })

  test('a buffer may be changed once it is stored', async (objects) => {
    const content = Buffer.from('content')
    const { hash } = blob(content)
    await objects.put([{ hash, content }])
    content.fill(0)
    await assertHolds(objects, blob('content'))
  })

  test('what was never stored is neither found nor read', async (objects) => {
    const [known, unknown] = [blob('known'), blob('unknown')]
    await objects.put([known])
    assert.equal(await objects.get(unknown.hash), null)
    assert.deepEqual([...(await objects.has([unknown.hash, known.hash]))], [known.hash])
    assert.deepEqual([...(await objects.has([]))], [])
  })

  test('a blob that is stored again stays as it is', async (objects) => {
    const blobs = sampleBlobs()
    await objects.put([])
    await objects.put([...blobs, ...blobs])
    await objects.put(blobs)
    for (const one of blobs) await assertHolds(objects, one)
    assert.deepEqual(await listAll(objects), blobs.map(({ hash }) => hash).sort())
  })

  test('blobs that are stored at the same time do not interfere', async (objects) => {
    const blobs = Array.from({ length: 60 }, (_, i) => blob(`content ${i}`.repeat(1 + i * 40)))
    await Promise.all(
      blobs.map(async (_, i) => {
        const some = blobs.slice(i, i + 7)
        await objects.put(i % 2 === 0 ? some : some.reverse())
        const hashes = some.map(({ hash }) => hash)
        assert.deepEqual([...(await objects.has(hashes))].sort(), hashes.sort())
        for (const one of some) await assertHolds(objects, one)
      }),
    )
    assert.equal((await listAll(objects)).length, blobs.length)
  })

  test('hashes are listed in order, page by page, from any place', async (objects) => {
    const blobs = Array.from({ length: 40 }, (_, i) => blob(`${i}`))
    const sorted = blobs.map(({ hash }) => hash).sort()
    await objects.put(blobs)
    for (const limit of [1, 6, 40, 1_000]) assert.deepEqual(await listAll(objects, limit), sorted)
    for (const after of ['0'.repeat(64), blob('x').hash, sorted[17] ?? '', 'f'.repeat(64)]) {
      const rest = sorted.filter((hash) => hash > after)
      assert.deepEqual(await objects.list(after, 5), rest.slice(0, 5))
    }
  })

  test('what is no hash, and no limit, is refused', async (objects) => {
    const content = Buffer.from('a')
    for (const hash of NO_HASHES) {
      await assert.rejects(objects.put([blob('b'), { hash, content }]), TypeError, hash)
      await assert.rejects(objects.get(hash), TypeError, hash)
      await assert.rejects(objects.has([hash]), TypeError, hash)
      await assert.rejects(objects.delete([hash], 0), TypeError, hash)
      await assert.rejects(objects.list(hash, 1), TypeError, hash)
    }
    await assert.rejects(objects.list(null, 0), RangeError)
    assert.deepEqual(await listAll(objects), [])
  })
}

export function testObjectDamage(
  { test }: ObjectSuite,
  damage: (objects: ObjectStore, hash: string) => Promise<void> | void,
): void {
  test('a damaged blob is named, others are not affected, and it can be stored again', async (
    objects,
  ) => {
    const [bad, good, ...rest] = [blob('bad'.repeat(500)), blob('good'), ...sampleBlobs()]
    await objects.put([bad, good, ...rest])
    await damage(objects, bad.hash)
    await assert.rejects(objects.get(bad.hash), (error: unknown) => {
      assert.ok(error instanceof StoreError, String(error))
      assert.equal(error.code, 'ERR_AGENT_STORE_CORRUPT')
      assert.ok(error.message.includes(bad.hash), error.message)
      return true
    })
    for (const one of [good, ...rest]) await assertHolds(objects, one)
    await objects.put([bad, good])
    await assertHolds(objects, bad)
  })
}
