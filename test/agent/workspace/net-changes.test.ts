import { atOnce } from '../../../lib/internal/time.js'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LeftOut } from '../../../lib/agent/tree.js'
import { comparePaths, netChanges } from '../../../lib/agent/workspace/net-changes.js'
import { bytesOfName } from '../../../lib/internal/bytes.js'
import { Random } from '../../helpers/random.js'
import {
  file, link, randomEdits, randomModel, treeOf, type ModelFile,
} from '../../helpers/tree-model.js'

type Files = Readonly<Record<string, ModelFile>>

/** The changes, each in one line. */
function changes(
  before: Files,
  after: Files,
  leftOut: readonly (readonly LeftOut[])[] = [],
): readonly string[] {
  const trees = [before, after].map((it, i) => treeOf(new Map(Object.entries(it)), leftOut[i]))
  return atOnce(netChanges(trees[0]!, trees[1]!)).map(({ status, path, oldPath }) =>
    oldPath === null ? `${status} ${path}` : `${status} ${oldPath} -> ${path}`,
  )
}

const left = (reason: LeftOut['reason'], ...paths: string[]): LeftOut => ({
  reason,
  count: paths.length,
  paths,
})
const [x, y] = [file('x'), file('y')]

const CASES: Readonly<Record<string, readonly [Files, Files, readonly string[]]>> = {
  'equal trees': [{ a: x }, { a: x }, []],
  'content, mode and kind': [
    { a: x, b: x, c: x },
    { a: y, b: file('x', 0o755), c: link('x') },
    ['modified a', 'modified b', 'modified c'],
  ],
  'new and gone': [{ a: x }, { b: y }, ['deleted a', 'added b']],
  'a file that moved': [{ a: x }, { 'b/a': x }, ['renamed a -> b/a']],
  'a file that moved and got another mode': [{ a: x }, { b: file('x', 0o755) }, ['renamed a -> b']],
  'a copy is no renamed file': [{ a: x }, { a: x, b: x }, ['added b']],
  'a link is no renamed file': [{ a: x }, { b: link('x') }, ['deleted a', 'added b']],
  'a folder that moved, with files of the same content': [
    { 'a/x/i': x, 'a/y/i': x, 'b/x/i': x },
    { 'c/y/i': x, 'c/x/i': x, 'b/x/i': x },
    ['renamed a/x/i -> c/x/i', 'renamed a/y/i -> c/y/i'],
  ],
  'the same name counts more than the same folder': [
    { 'a/x': x, 'b/y': x }, { 'a/y': x }, ['deleted a/x', 'renamed b/y -> a/y'],
  ],
  'the same folder counts more than another': [
    { 'a/x': x, 'b/x': x }, { 'b/z': x }, ['deleted a/x', 'renamed b/x -> b/z'],
  ],
  'by the bytes of the path': [
    {}, { '\ue000': x, '😀': x, 'a/b': x, 'a-b': x, '\udcff': x },
    ['added a-b', 'added a/b', 'added \ue000', 'added 😀', 'added \udcff'],
  ],
}

for (const [name, [before, after, expected]] of Object.entries(CASES)) {
  test(`net changes: ${name}`, () => assert.deepEqual(changes(before, after), expected))
}

test('net changes are in the order of their paths, and those in the order of their bytes', () => {
  const random = new Random(5)
  for (let round = 0; round < 50; round++) {
    const before = randomModel(random, 10)
    const after = randomEdits(random, before, 10)
    const paths = atOnce(netChanges(treeOf(before), treeOf(after))).map(({ path }) => path)
    assert.deepEqual(paths, paths.toSorted(comparePaths))
    const byBytes = (a: string, b: string) => Buffer.compare(bytesOfName(a), bytesOfName(b))
    assert.deepEqual(paths, paths.toSorted(byBytes))
  }
})

test('what is left out of one tree is no change', () => {
  const all = { a: x, 'b/c': x, d: x }
  const one = { d: y }
  const out = [left('size', 'a'), left('unreadable', 'b')]
  assert.deepEqual(changes(all, one, [[], out]), ['modified d'])
  assert.deepEqual(changes(one, all, [out, []]), ['modified d'])
  const unnamed = [{ reason: 'count', count: 2_000, paths: ['z'] } as const]
  assert.deepEqual(changes(all, one, [[], unnamed]), ['modified d'])
  assert.deepEqual(changes(one, all, [unnamed, []]), ['added a', 'added b/c', 'modified d'])
  const budget = [left('budget', 'a', 'b/c')]
  assert.deepEqual(changes(all, one, [budget, budget]), ['deleted a', 'deleted b/c', 'modified d'])
})

test('net changes and their reverse mirror each other, and lead from one tree to the other', () => {
  const random = new Random(11)
  for (let round = 0; round < 100; round++) {
    const before = randomModel(random, random.integer(0, 14))
    const after = randomEdits(random, before, random.integer(0, 10))
    const [a, b] = [treeOf(before), treeOf(after)]
    const result = new Map(a.entries)
    const forth = atOnce(netChanges(a, b))
    for (const { path, oldPath, status } of forth) {
      if (status === 'deleted') result.delete(path)
      if (oldPath !== null) result.delete(oldPath)
    }
    for (const { path, after } of forth) if (after !== null) result.set(path, after)
    assert.deepEqual([...result].sort(), [...b.entries].sort())
    assert.equal(atOnce(netChanges(b, a)).length, forth.length)
  }
})

