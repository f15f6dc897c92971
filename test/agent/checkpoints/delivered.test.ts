import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FileGroup } from 'runwright/agent'
import { deliveredTree, groupsOf } from '../../../lib/agent/checkpoints/delivered.js'
import { groupFiles } from '../../../lib/agent/goals/sealed/checked-files.js'
import type { Tree } from '../../../lib/agent/tree.js'
import { file, treeOf } from '../../helpers/tree-model.js'

/** Files with their content, and all folders above them or named with a slash at their end. */
function tree(files: Readonly<Record<string, string>>): Tree {
  const named = Object.keys(files)
  const folders = new Map<string, number>()
  for (const path of named)
    for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1))
      folders.set(path.slice(0, at), 0o755)
  const model = named.filter((path) => !path.endsWith('/'))
  return { ...treeOf(new Map(model.map((path) => [path, file(files[path]!)]))), folders }
}

/** The same in the order of paths. */
function facts({ entries, folders }: Tree): unknown {
  const sha = [...entries].map(([path, { sha256 }]) => `${path} ${sha256}`).sort()
  return [sha, [...folders!.keys()].sort()]
}

for (const [name, held, before, after, delivered] of [
  ['a changed file', ['a'], { a: '1', b: '1' }, { a: '2', b: '2' }, { a: '1', b: '2' }],
  ['a new file', ['a'], { b: '1' }, { a: '2', b: '2' }, { b: '2' }],
  ['a deleted file', ['a'], { a: '1', b: '1' }, { b: '1' }, { a: '1', b: '1' }],
  ['a new file in a new folder', ['x/y/a'], {}, { 'x/y/a': '1' }, {}],
  [
    'one of two new files in a new folder', ['x/y/a'], {}, { 'x/y/a': '1', 'x/b': '1' },
    { 'x/b': '1' },
  ],
  ['the last file of a folder', ['x/a'], { 'x/a': '1' }, {}, { 'x/a': '1' }],
  ['an old folder stays', ['x/a'], { 'x/': '' }, { 'x/a': '1' }, { 'x/': '' }],
  ['a file in place of a folder', ['x/a'], { 'x/a': '1' }, { x: '2' }, { 'x/a': '1' }],
  [
    'a folder in place of a file', ['x'], { x: '1' }, { 'x/a': '2', 'x/b/c': '2', y: '2' },
    { x: '1', y: '2' },
  ],
] as const) {
  test(`what is held back is as before: ${name}`, () => {
    const result = deliveredTree(tree(before), tree(after), held)
    assert.deepEqual(facts(result), facts(tree(delivered)))
  })
}

test('a file that is left out with its folder is held back, and one that is not listed is unread', () => {
  const left = new Map([['plugins', 'plugin'], ['a.test.js', 'new test']] as const)
  const files = groupFiles(['a.test.js', 'b.js', 'c.js', 'cases.json', 'plugins/x/y.js'], {
    read: ['b.js', 'cases.json'], left, restored: ['cases.json'],
  })
  const groupOf = groupsOf(files)
  const groups = [...files.held_back, ...files.added, ...files.verified!, 'c.js']
  const expected: FileGroup[] = ['held_back', 'held_back', 'added', 'verified', 'not_read']
  assert.deepEqual(groups.map((path) => groupOf(path, null)), expected)
  assert.equal(groupOf('new name', 'cases.json'), 'held_back')
  assert.deepEqual(groupsOf(null)('b.js', null), null)
})

test('of very many files, only those that are held back are told', () => {
  const many = Array.from({ length: 10_001 }, (_, at) => `f${at}`)
  const files = groupFiles(many, { read: many, left: new Map(), restored: ['f7'] })
  assert.equal(files.verified?.length, 10_000)
  const more = groupFiles([...many, 'g'], { read: [...many, 'g'], left: new Map(), restored: ['f7'] })
  assert.deepEqual(more, { verified: null, added: [], held_back: ['f7'] })
  assert.equal(groupsOf(more)('f8', null), null)
})
