import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { FileStore } from 'runwright/agent'
import { SystemDisk } from '../../../lib/agent/stores/file/disk.js'
import { encodePack, Pack } from '../../../lib/agent/stores/file/object-pack.js'
import { pack } from '../../../lib/agent/stores/packed.js'
import { assertHolds, blob, listAll } from '../../../lib/agent/testing/object-contract/suite.js'
import { scratch } from '../../helpers/engine.js'
import { damagePacked, packFiles } from './store-files.js'

async function open(directory: string): Promise<FileStore> {
  const store = new FileStore({ directory, sync: 'none', onWarning: () => {} })
  await store.open()
  return store
}

const blobs = Array.from({ length: 120 }, (_, i) => blob(`object ${i} `.repeat(1 + (i % 9) * 10)))
const hashes = blobs.map(({ hash }) => hash)
const sorted = hashes.toSorted()
const sizeOf = (folder: string): number =>
  packFiles(folder).reduce((sum, path) => sum + readFileSync(path).length, 0)

test('objects stored one by one lie in few files, and are found after a restart', async (t) => {
  const directory = scratch(t, 'in memory')
  const folder = join(directory, 'objects')
  let store = await open(directory)
  for (const one of blobs) await store.objects.put([one])
  await store.close()
  assert.ok(packFiles(folder).length < 25, `${packFiles(folder).length} packs`)
  store = await open(directory)
  for (const one of blobs) await assertHolds(store.objects, one)
  assert.deepEqual(await listAll(store.objects, 33), sorted)
  assert.equal((await store.objects.has(hashes)).size, hashes.length)
  await store.close()
})

test('a pack shrinks as its objects are removed, and goes with the last one', async (t) => {
  const directory = scratch(t, 'in memory')
  const folder = join(directory, 'objects')
  const store = await open(directory)
  await store.objects.put(blobs)
  const [path] = packFiles(folder)
  const before = sizeOf(folder)
  await store.objects.delete(hashes.slice(0, 30), 0)
  assert.deepEqual(packFiles(folder), [path], 'most of it is used')
  await store.objects.delete(hashes.slice(30, 90), 0)
  assert.notEqual(packFiles(folder)[0], path)
  assert.ok(sizeOf(folder) < before / 2)
  for (const one of blobs.slice(90)) await assertHolds(store.objects, one)
  assert.deepEqual(await listAll(store.objects), hashes.slice(90).sort())
  await store.objects.delete(hashes, 0)
  assert.deepEqual(packFiles(folder), [])
  assert.equal(await store.objects.get(hashes[119]!), null)
  await store.close()
})

const afterClosing = async (t: TestContext, change: (path: string) => void): Promise<FileStore> => {
  const directory = scratch(t, 'in memory')
  const store = await open(directory)
  await store.objects.put(blobs.slice(0, 40))
  const [path = ''] = packFiles(join(directory, 'objects'))
  await store.objects.put(blobs.slice(40, 80))
  await store.objects.delete([hashes[7]!], 0)
  await store.close()
  change(path)
  return await open(directory)
}

const flip = (path: string, at: number): void => {
  const content = readFileSync(path)
  content[content.length + at]! ^= 1
  writeFileSync(path, content)
}

test('a torn pack is named, and no object of another one is lost', async (t) => {
  for (const tear of [0, 5, 12, 500, 3_000] as const) {
    let torn = ''
    const store = await afterClosing(t, (path) => {
      torn = path
      truncateSync(path, tear === 0 ? 0 : readFileSync(path).length - tear)
    })
    for (const one of blobs.slice(40, 80)) await assertHolds(store.objects, one)
    assert.equal(await store.objects.get(hashes[0]!), null)
    const { files } = store.damage()
    assert.ok(files.length === 1 && files[0]?.includes(torn), `${tear}: ${files.join()}`)
    await store.objects.put(blobs.slice(0, 40))
    for (const one of blobs.slice(0, 80)) await assertHolds(store.objects, one)
    await store.close()
  }
})

test('a flipped bit in the index of a pack costs nothing', async (t) => {
  // All of the trailer, and bytes of the index: of a hash, of a place and of a length.
  const index = 12 + 40 * 45
  const places = [...Array.from({ length: 12 }, (_, i) => -1 - i), -index, -index + 37, -index + 43]
  for (const at of places) {
    const store = await afterClosing(t, (path) => flip(path, at))
    for (const one of blobs.slice(0, 80).toSpliced(7, 1)) await assertHolds(store.objects, one)
    assert.equal(await store.objects.get(hashes[7]!), null, 'it was removed')
    assert.deepEqual(store.damage().files, [], `${at}`)
    await store.close()
  }
})

test('a pack with a damaged index and a damaged blob is named', async (t) => {
  const store = await afterClosing(t, (path) => {
    flip(path, -8)
    const content = readFileSync(path)
    content[20]! ^= 1 // the hash of the first blob
    writeFileSync(path, content)
  })
  assert.equal(store.damage().files.length, 0, 'nothing was asked for yet')
  assert.equal(await store.objects.get(hashes[0]!), null)
  assert.equal(store.damage().files.length, 1)
  await store.close()
})

test('an object that was stored again after damage outlives the rewriting of both', async (t) => {
  const directory = scratch(t, 'in memory')
  const folder = join(directory, 'objects')
  const [bad, ...others] = blobs
  let store = await open(directory)
  await store.objects.put([bad!])
  await damagePacked(folder, bad!.hash)
  await assert.rejects(store.objects.get(bad!.hash), { code: 'ERR_AGENT_STORE_CORRUPT' })
  assert.equal((await store.objects.has([bad!.hash])).size, 0)
  await store.objects.put([bad!])
  for (const one of others.slice(0, 40)) await store.objects.put([one])
  for (let opening = 0; opening < 2; opening++) {
    await assertHolds(store.objects, bad!)
    assert.equal((await listAll(store.objects)).length, 41)
    await store.close()
    store = await open(directory)
  }
  await store.objects.delete([bad!.hash], 0)
  assert.equal(await store.objects.get(bad!.hash), null)
  await store.close()
})

test('objects in files of their own, as earlier versions stored them, are used', async (t) => {
  const directory = scratch(t, 'in memory')
  const folder = join(directory, 'objects')
  const loose = blobs.slice(0, 20)
  const pathOf = (hash: string): string => join(folder, hash.slice(0, 2), hash.slice(2))
  for (const { hash, content } of loose) {
    mkdirSync(join(folder, hash.slice(0, 2)), { recursive: true })
    writeFileSync(pathOf(hash), await pack(content))
  }
  const store = await open(directory)
  await store.objects.put(blobs.slice(10, 40))
  const [, one, two, three] = hashes
  for (const each of blobs.slice(0, 40)) await assertHolds(store.objects, each)
  assert.deepEqual(await listAll(store.objects), hashes.slice(0, 40).sort())
  assert.equal((await store.objects.has(hashes)).size, 40)
  await store.objects.delete([one!], 3_600_000)
  assert.equal((await store.objects.has([one!])).size, 1, 'it was used a moment ago')
  await store.objects.delete([one!, hashes[15]!, hashes[30]!], 0)
  assert.deepEqual([...(await store.objects.has([one!, hashes[15]!, hashes[30]!]))], [])
  writeFileSync(pathOf(two!), 'OB')
  await assert.rejects(store.objects.get(two!), (error: Error) => error.message.includes(two!))
  await store.objects.put([blobs[2]!])
  await assertHolds(store.objects, blobs[2]!)
  // Removed by hand: it is missing, and others are not.
  rmSync(pathOf(three!))
  assert.equal(await store.objects.get(three!), null)
  await store.close()
})

test('hashes that begin alike are told apart', async (t) => {
  const path = join(scratch(t, 'in memory'), 'one.pack')
  const alike = Array.from({ length: 9 }, (_, i) => ({
    hash: `${i < 3 ? 'aaaaaaa9' : 'aaaaaaaa'}${`${i}`.repeat(56)}`, data: Buffer.from(`${i}`),
  }))
  const { parts } = await encodePack(alike.toReversed())
  writeFileSync(path, Buffer.concat(parts))
  const disk = new SystemDisk(false)
  const found = (await Pack.read(disk, path, 0))!
  const fd = disk.open(path, 'r+')
  for (const { hash, data } of alike) {
    const place = found.locate(disk, fd, hash)!
    assert.deepEqual(disk.readNow(fd, place.bytes, place.at), data)
  }
  found.mark(disk, fd, found.locate(disk, fd, alike[4]!.hash)!)
  assert.equal(found.locate(disk, fd, alike[4]!.hash), null)
  assert.equal(found.locate(disk, fd, 'a'.repeat(64)), null)
  assert.equal(found.mayHold('b'.repeat(64)), false)
  const rest = alike.filter((_, i) => i !== 4).map(({ hash }) => hash)
  assert.deepEqual(found.hashes(disk, fd, 0xaa), rest)
  assert.deepEqual([found.mayHoldAny(0xaa), found.mayHoldAny(0xab), found.mayHoldAny(0xa9)], [
    true, false, false,
  ])
  disk.close(fd)
  const again = (await Pack.read(disk, path, 0))!
  assert.deepEqual((await again.blobs(disk)).map(({ hash }) => hash), rest)
})
