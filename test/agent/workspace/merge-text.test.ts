import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { atOnce } from '../../../lib/internal/next-turn.js'
import { mergeTexts } from '../../../lib/agent/workspace/merge-text.js'
import { Random } from '../../helpers/random.js'

/** Merges texts; null for a conflict. */
function merge(base: string, ours: string, theirs: string): string | null {
  const [o, a, b] = [base, ours, theirs].map((text) => Buffer.from(text, 'latin1'))
  return atOnce(mergeTexts(o!, a!, b!))?.toString('latin1') ?? null
}

const CASES: Readonly<Record<string, readonly [string, string, string, string | null]>> = {
  'nothing changed': ['1\n', '1\n', '1\n', '1\n'],
  'one side changed': ['1\n2\n', '1\n2\n', '1\ntwo\n', '1\ntwo\n'],
  'both changed other lines': ['1\n2\n3\n', 'x\n2\n3\n', '1\n2\ny\n', 'x\n2\ny\n'],
  'both made the same change': ['1\n2\n3\n', '1\nx\n3\n', '1\nx\n3\n', '1\nx\n3\n'],
  'both made the same change and each another': [
    '1\n2\n3\n4\n5\n', '1\n2\nx\n4\n5\n6\n', '0\n1\n2\nx\n4\n5\n', '0\n1\n2\nx\n4\n5\n6\n',
  ],
  'the same line': ['1\n2\n3\n', '1\nx\n3\n', '1\ny\n3\n', null],
  'neighbouring lines': ['1\n2\n3\n4\n', '1\nx\n3\n4\n', '1\n2\ny\n4\n', null],
  'insertions at one place': ['1\n2\n', '1\nx\n2\n', '1\ny\n2\n', null],
  'equal insertions': ['1\n2\n', '1\nx\n2\n', '1\nx\n2\n', '1\nx\n2\n'],
  'an insertion where lines were deleted': ['1\n2\n3\n', '1\n3\n', '1\nx\n2\n3\n', null],
  'deletions that overlap': ['1\n2\n3\n4\n', '1\n4\n', '1\n2\n4\n', null],
  'no newline at the end on one side': ['1\n2\n3\n', '1\n2\n3', 'x\n2\n3\n', 'x\n2\n3'],
  'no newline at the end on any side': ['1\n2\n3', '1\n2\n3', 'x\n2\n3', 'x\n2\n3'],
  'CRLF of one side': ['1\r\n2\r\n3\r\n', 'x\r\n2\r\n3\r\n', '1\r\n2\r\ny\r\n', 'x\r\n2\r\ny\r\n'],
  'other line ends and other content': ['1\n2\n', '1\r\n2\r\n', '1\nx\n', null],
  'an empty base': ['', 'x\n', 'y\n', null],
  'an emptied side': ['1\n2\n', '', '1\n2\n', ''],
  'NUL bytes': ['1\n2\n3\n', '1\n2\n3\n', '\0\n2\n3\n', null],
  'bytes that are not UTF-8': ['\xff\n2\n3\n', '\xff\n2\n\xfe\n', '\xe9\n2\n3\n', '\xe9\n2\n\xfe\n'],
}

for (const [name, [base, ours, theirs, merged]] of Object.entries(CASES)) {
  test(`merging texts: ${name}`, () => {
    assert.equal(merge(base, ours, theirs), merged)
    assert.equal(merge(base, theirs, ours), merged, 'the other way round')
  })
}

/** A random edit of some lines; `word` gives new lines. */
function edited(random: Random, lines: readonly string[], word: () => string): string[] {
  const result = [...lines]
  for (let i = random.integer(0, 3); i > 0; i--) {
    const added = Array.from({ length: random.integer(0, 2) }, word)
    result.splice(random.integer(0, result.length), random.integer(0, 2), ...added)
  }
  return result
}

function randomTriple(random: Random, distinct: boolean): [string, string, string] {
  let serial = 0
  const word = (): string => (distinct ? `${serial++}` : random.pick(['a', 'b', '', '}']))
  const base = Array.from({ length: random.integer(0, 14) }, word)
  const shared = random.chance(0.4) ? edited(random, base, word) : base
  const text = (lines: readonly string[]): string =>
    lines.join('\n') + (random.chance(0.8) && lines.length > 0 ? '\n' : '')
  return [text(base), text(edited(random, shared, word)), text(edited(random, shared, word))]
}

test('one side that changed nothing, and two that are equal, merge to the other one', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = new Random(Math.imul(seed, 0x9e3779b1))
    const [base, ours, theirs] = randomTriple(random, seed % 2 === 0)
    assert.equal(merge(base, ours, base), ours)
    assert.equal(merge(base, base, theirs), theirs)
    assert.equal(merge(base, ours, ours), ours)
    assert.equal(merge(base, ours, theirs), merge(base, theirs, ours))
  }
})

const hasGit = spawnSync('git', ['--version']).error === undefined

test('what git merges cleanly is the same here, or a conflict', { skip: !hasGit }, (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'merge-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const found = { merged: 0, conflicts: 0, onlyGit: 0, onlyHere: 0, otherwise: 0 }
  const rounds = Number(process.env['ROUNDS'] ?? 1_000)
  for (let seed = 1; seed <= rounds; seed++) {
    const isDistinct = seed % 4 !== 0
    const texts = randomTriple(new Random(Math.imul(seed, 0x9e3779b1)), isDistinct)
    const [o, a, b] = ['base', 'ours', 'theirs'].map((name, i) => {
      writeFileSync(join(folder, name), texts[i]!, 'latin1')
      return join(folder, name)
    })
    const args = ['merge-file', '-p', a!, o!, b!]
    const git = spawnSync('git', args, { encoding: 'latin1', cwd: folder })
    const theirs = git.status === 0 ? git.stdout : null
    const ours = merge(...texts)
    if (ours === theirs) found[ours === null ? 'conflicts' : 'merged'] += 1
    else {
      found[ours === null ? 'onlyGit' : theirs === null ? 'onlyHere' : 'otherwise'] += 1
      // Where lines repeat, there are several shortest diffs, and each has its own conflicts.
      if (isDistinct) assert.equal(ours, theirs, `seed ${seed}: ${JSON.stringify(texts)}`)
    }
  }
  t.diagnostic(JSON.stringify(found))
  assert.ok(found.otherwise <= rounds / 50, JSON.stringify(found))
})
