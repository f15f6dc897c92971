import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import type { TreeEntry } from 'runwright/agent'
import { readContent, readTree } from '../../../lib/agent/workspace/read-tree.js'
import { encodeFolder, type FolderEntry } from '../../../lib/agent/workspace/tree-objects.js'
import { Objects, all, corrupt } from './hashed-objects.js'

test('an object that is missing or damaged is named', async () => {
  for (const what of ['missing', 'changed', 'no folder', 'out of place', 'old'] as const) {
    for (const isTop of [true, false]) {
      const objects = new Objects()
      const inner = objects.folder('b', objects.file('c'))
      const bad =
        what === 'no folder' ? objects.add('text')
        : what === 'out of place' ? (isTop ? inner.sha256 : objects.top(objects.file('x')))
        : what === 'old' ? objects.add(Buffer.from(isTop ? '0146' : '015400', 'hex'))
        : isTop ? objects.top(inner) : inner.sha256
      const id = isTop ? bad : objects.top({ name: 'b', kind: 'folder', mode: 0o755, sha256: bad })
      if (what === 'missing') objects.blobs.delete(bad)
      if (what === 'changed') objects.blobs.set(bad, encodeFolder([objects.file('d')], isTop ? [] : undefined))
      await assert.rejects(readTree(objects, id), corrupt(bad, /missing|hash|version|place|empty/))
      await assert.rejects(all(objects, id), corrupt(bad, /missing|hash|version|place|empty/))
    }
  }
})

test('content that is missing, damaged or was not stored is named', async () => {
  const objects = new Objects()
  const { sha256 } = objects.file('a')
  const entry: TreeEntry = { kind: 'file', mode: 0o644, size: 1, sha256 }
  assert.equal(String(await readContent(objects, entry)), 'a')
  await assert.rejects(readContent(objects, { ...entry, stored: false }, 'x/a'), {
    code: 'ERR_AGENT_CHECKPOINT', problem: 'not_kept', paths: ['x/a'],
  })
  for (const length of [1, 5_000_000]) {
    objects.blobs.set(sha256, Buffer.alloc(length))
    await assert.rejects(readContent(objects, entry, 'x/a'), corrupt(sha256, /x\/a/))
  }
  objects.blobs.delete(sha256)
  await assert.rejects(readContent(objects, entry, 'x/a'), corrupt(sha256, /missing.*x\/a/))
  const large = objects.add('y'.repeat(5_000_000))
  assert.equal((await readContent(objects, { ...entry, sha256: large })).length, 5_000_000)
})

test('a tree is in the order of the bytes of its paths', async () => {
  const objects = new Objects()
  const id = objects.top(
    objects.folder('a', objects.file('z'), objects.folder('b', objects.file('x'))),
    objects.file('a-b'), objects.file('a0'), objects.file('\uffee'), objects.file('\u{1f600}'),
  )
  const { entries } = await readTree(objects, id)
  assert.deepEqual([...entries.keys()], ['a-b', 'a/b/x', 'a/z', 'a0', '\uffee', '\u{1f600}'])
})

test('what refers to one folder many times reads it once', async () => {
  const objects = new Objects()
  let folder = objects.folder('x', objects.file('a'), objects.file('b'))
  const twice = (one: FolderEntry): FolderEntry[] => [{ ...one, name: 'l' }, { ...one, name: 'r' }]
  for (let depth = 0; depth < 10; depth++) folder = objects.folder('x', ...twice(folder))
  const id = objects.top(folder)
  objects.gets = 0
  assert.equal((await readTree(objects, id)).entries.size, 2 * 2 ** 10)
  assert.equal(objects.gets, 12)
  assert.equal((await all(objects, id)).length, 14)
})

test('folders that are too deep are refused, also where a shallow one leads to them', async () => {
  const objects = new Objects()
  let folder = objects.folder('x', objects.file('a'))
  const levels = [folder]
  for (let depth = 1; depth < 64; depth++) levels.push((folder = objects.folder('x', folder)))
  assert.equal((await readTree(objects, objects.top(folder))).entries.size, 1)
  folder = objects.folder('x', folder)
  const shallow = levels.map((one, i) => ({ ...one, name: `${i}` }))
  for (const id of [objects.top(folder), objects.top(...shallow, folder)]) {
    await assert.rejects(readTree(objects, id), /too deep/)
  }
})

test('objects of several trees are reported once, and what they share is read once', async () => {
  const objects = new Objects()
  const shared = objects.folder('shared', objects.file('a'), objects.file('b'))
  const file = objects.file('c') as FolderEntry & { readonly kind: 'file' }
  const unstored: FolderEntry = { ...file, isStored: false }
  const [one, other] = [objects.top(shared, unstored), objects.top(shared, objects.file('d'))]
  const seen = new Set<string>()
  assert.deepEqual((await all(objects, one, seen)).length, 4)
  objects.gets = 0
  assert.deepEqual(await all(objects, other, seen), [other, hash('sha256', 'd')])
  assert.equal(objects.gets, 1)
  assert.deepEqual(await all(objects, one, seen), [])
})

test('a file with the content of a folder hides nothing of that folder', async () => {
  const objects = new Objects()
  const folder = objects.folder('folder', objects.file('a'))
  const copy: FolderEntry = { ...objects.file('copy'), sha256: folder.sha256 }
  const [first, second] = [objects.top(copy), objects.top(folder)]
  const seen = new Set<string>()
  await all(objects, first, seen)
  assert.deepEqual(await all(objects, second, seen), [second, hash('sha256', 'a')])
})

/** The object of a folder as version 1 had it. */
function oldFolder(objects: Objects, kind: '46' | '5400', ...entries: string[]): string {
  return objects.add(Buffer.from(`01${kind}${entries.join('')}`, 'hex'))
}

const HEX_A = '0161'

test('a tree of version 1 says nothing about folders', async () => {
  const objects = new Objects()
  const { sha256 } = objects.file('a')
  const inner = oldFolder(objects, '46', `01${HEX_A}a40301${sha256}`)
  const id = oldFolder(objects, '5400', `00${HEX_A}${inner}`)
  const { entries, folders, leftOut } = await readTree(objects, id)
  const entry = { kind: 'file', mode: 0o644, sha256, size: 1 }
  assert.deepEqual([[...entries], folders, leftOut], [[['a/a', entry]], undefined, []])
  assert.deepEqual(await all(objects, id), [id, inner, sha256])
})

test('an empty folder of version 1, and folders of two versions in one tree, are refused', async () => {
  const objects = new Objects()
  const empty = oldFolder(objects, '46')
  const top = oldFolder(objects, '5400', `00${HEX_A}${empty}`)
  await assert.rejects(readTree(objects, top), corrupt(empty, /empty/))
  const full = oldFolder(objects, '46', `01${HEX_A}a40301${objects.file('a').sha256}`)
  const mixed = objects.top({ name: 'a', kind: 'folder', mode: 0o755, sha256: full })
  await assert.rejects(readTree(objects, mixed), corrupt(full, /version/))
})

test('folders in folders without any file are bounded as files are', async () => {
  const objects = new Objects()
  let folder = objects.folder('x')
  const many = (one: FolderEntry): FolderEntry[] =>
    Array.from({ length: 64 }, (_, i) => ({ ...one, name: `${i}` }))
  for (let depth = 0; depth < 3; depth++) folder = objects.folder('x', ...many(folder))
  const id = objects.top(folder)
  await assert.rejects(readTree(objects, id), corrupt(id, /too many entries/))
})

test('a tree has the permissions of its folders, empty ones included', async () => {
  const objects = new Objects()
  const secret = { ...objects.folder('b', objects.file('c')), mode: 0o700 } as FolderEntry
  const id = objects.top(objects.folder('a', objects.folder('empty')), secret)
  const { entries, folders } = await readTree(objects, id)
  assert.deepEqual([...entries.keys()], ['b/c'])
  assert.deepEqual([...folders!], [['a', 0o755], ['a/empty', 0o755], ['b', 0o700]])
})
