import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTree } from '../../../lib/agent/workspace/read-tree.js'
import type { FolderEntry } from '../../../lib/agent/workspace/tree-objects.js'
import { Objects, all, corrupt } from './hashed-objects.js'

test('a tree with too many entries is refused, however few objects it has', async () => {
  const objects = new Objects()
  let folder = objects.folder('x', objects.file('a'), objects.file('b'))
  const twice = (one: FolderEntry): FolderEntry[] => [{ ...one, name: 'l' }, { ...one, name: 'r' }]
  for (let depth = 0; depth < 50; depth++) folder = objects.folder('x', ...twice(folder))
  const bomb = objects.top(folder)
  await assert.rejects(readTree(objects, bomb), corrupt(bomb, /too many/))
  assert.equal((await all(objects, bomb)).length, 54)
})
