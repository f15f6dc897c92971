import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FileGroup } from 'runwright/agent'
import { deliveredTree, groupsOf } from '../../../lib/agent/checkpoints/delivered.js'
import { groupFiles } from '../../../lib/agent/goals/sealed/checked-files.js'
import { OWNERS, type Rule } from '../../../lib/agent/goals/sealed/owners.js'
import type { OwnedFile } from '../../../lib/agent/goals/sealed/put-back.js'
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

const owned = (path: string, rule: Rule, more: Partial<OwnedFile> = {}): OwnedFile => ({
  path, rule, isNew: false, isGone: false, keys: [], canBeAllowed: false,
  isRuns: OWNERS[rule][0] === 'run', ...more,
})

test('who owns a file and whether it was read decide about its group', () => {
  const isNew = true
  const expected: readonly (readonly [OwnedFile, FileGroup])[] = [
    [owned('src/read.js', 'code'), 'verified'],
    [owned('src/other.js', 'code'), 'not_read'],
    [owned('a.test.js', 'test', { isNew }), 'added'],
    [owned('edited.test.js', 'test'), 'added'],
    [owned('gone.test.js', 'test', { isGone: true }), 'not_read'],
    [owned('test/new.json', 'test', { isNew }), 'added'],
    [owned('test/read.json', 'test'), 'held_back'],
    [owned('test/other.json', 'test'), 'not_read'],
    [owned('mine.test.js', 'test', { isNew, isRuns: true }), 'not_read'],
    [owned('cases.json', 'fixture'), 'held_back'],
    [owned('conftest.py', 'settings', { isNew }), 'held_back'],
    [owned('new.json', 'rest', { isNew }), 'not_read'],
  ]
  const read = ['src/read.js', 'test/read.json', 'cases.json']
  const files = groupFiles(expected.map(([file]) => file), read)
  const groupOf = groupsOf(files)
  const found = expected.map(([{ path }]) => [path, groupOf(path, null)])
  assert.deepEqual(found, expected.map(([{ path }, group]) => [path, group]))
  assert.equal(groupOf('new name', 'cases.json'), 'held_back')
  assert.deepEqual(groupsOf(null)('b.js', null), null)
  // Where nobody knows what was read, everything may have been.
  const unknown = groupFiles(expected.map(([file]) => file), null)
  assert.deepEqual([unknown.verified, unknown.held_back.includes('test/other.json')], [null, true])
})

test('of very many files, only those that are held back are told', () => {
  const many = Array.from({ length: 10_000 }, (_, at) => `f${at}`)
  const back = owned('cases.json', 'fixture')
  const files = groupFiles([...many.map((path) => owned(path, 'code')), back], [...many, back.path])
  assert.equal(files.verified?.length, 10_000)
  const all = [...many, 'g'].map((path) => owned(path, 'code'))
  const more = groupFiles([...all, back], [...many, 'g', back.path])
  assert.deepEqual(more, { verified: null, added: [], held_back: ['cases.json'] })
  assert.equal(groupsOf(more)('f8', null), null)
})
