import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { diffText, fileChange } from '../../../lib/agent/workspace/diff.js'

const names = { before: 'a/x', after: 'b/x' }
const bytes = (text: string): Uint8Array => Buffer.from(text)

test('a changed line is shown between three lines of context', () => {
  const before = '1\n2\n3\n4\n5\n6\n7\n8\n9\n'
  assert.deepEqual(diffText(before, before.replace('5', 'five'), names), {
    diff: '--- a/x\n+++ b/x\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n',
    added_lines: 1,
    removed_lines: 1,
  })
})

test('equal texts have an empty diff', () => {
  assert.deepEqual(diffText('a\n', 'a\n', names), { diff: '', added_lines: 0, removed_lines: 0 })
})

test('a missing newline at the end is a change, and is marked', () => {
  assert.equal(
    diffText('a', 'a\n', names).diff,
    '--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n',
  )
})

test('a created file has no lines before, a deleted file none after', async () => {
  assert.deepEqual(await fileChange('x', null, bytes('a\nb\n')), {
    path: 'x',
    change: 'created',
    added_lines: 2,
    removed_lines: 0,
    diff: '--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n',
    before_sha256: null,
    after_sha256: hash('sha256', 'a\nb\n'),
  })
  const deleted = await fileChange('x', bytes('a\n'), null)
  assert.equal(deleted.change, 'deleted')
  assert.equal(deleted.diff, '--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n')
})

for (const [name, content] of [
  ['a NUL byte', Buffer.from([97, 0, 98])],
  ['invalid UTF-8', Buffer.from([0xff, 0xfe])],
] as const) {
  test(`content with ${name} has no diff`, async () => {
    assert.deepEqual(await fileChange('x', bytes('a\n'), content), {
      path: 'x',
      change: 'modified',
      added_lines: 0,
      removed_lines: 0,
      diff: '',
      before_sha256: hash('sha256', 'a\n'),
      after_sha256: hash('sha256', content),
    })
  })
}

test('a file name with a line break cannot forge lines of the diff', async () => {
  const { diff } = await fileChange('x\n+++ b/y', null, bytes('a\n'))
  assert.equal(diff.split('\n').filter((line) => line.startsWith('+++')).length, 1)
})

test('a long diff is cut between lines and says how many are missing', () => {
  const many = Array.from({ length: 5_000 }, (_, i) => `line ${i}\n`).join('')
  const { diff, added_lines } = diffText('', many, names, 1_024)
  assert.equal(added_lines, 5_000)
  assert.ok(Buffer.byteLength(diff) <= 1_024)
  assert.match(diff, /\n… \d+ more lines of this diff\n$/)
})

test('texts that share nothing are one block replaced by another, in bounded time', () => {
  const text = (word: string): string =>
    Array.from({ length: 40_000 }, (_, i) => `${word} ${i}\n`).join('')
  const { added_lines, removed_lines } = diffText(text('old'), text('new'), names)
  assert.deepEqual([added_lines, removed_lines], [40_000, 40_000])
})

/** A seeded generator, so that a failure can be reproduced. */
function random(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** Applies a unified diff to a text, strictly by its line numbers. */
function apply(text: string, diff: string): string {
  const lines = text.match(/[^\n]*\n|[^\n]+/g) ?? []
  const result: string[] = []
  let at = 0
  const rows = diff.match(/[^\n]*\n/g) ?? []
  for (let i = 2; i < rows.length; i++) {
    const header = /^@@ -(\d+)(?:,(\d+))? /.exec(rows[i]!)
    if (header !== null) {
      const start = Number(header[1]) - (header[2] === '0' ? 0 : 1)
      while (at < start) result.push(lines[at++]!)
      continue
    }
    const bare = rows[i + 1]?.startsWith('\\') === true
    const line = bare ? rows[i]!.slice(1, -1) : rows[i]!.slice(1)
    const mark = rows[i]![0]
    if (mark === '\\') continue
    if (mark !== '+') assert.equal(lines[at++], line)
    if (mark !== '-') result.push(line)
  }
  return [...result, ...lines.slice(at)].join('')
}

test('a diff applied to the old text gives the new text, and is as short as possible', () => {
  const pick = random(7)
  for (let round = 0; round < 400; round++) {
    const make = (): string =>
      Array.from({ length: pick(30) }, () => 'abcd'[pick(4)]).join('\n') + (pick(2) ? '\n' : '')
    const [before, after] = [make(), make()]
    const { diff, added_lines, removed_lines } = diffText(before, after, names, 1e6)
    assert.equal(apply(before, diff), after, `round ${round}`)
    assert.equal(added_lines + removed_lines, shortest(before, after), `round ${round}`)
  }
})

/** The length of the shortest edit script, by the plain quadratic table. */
function shortest(before: string, after: string): number {
  const split = (text: string): string[] => text.match(/[^\n]*\n|[^\n]+/g) ?? []
  const [a, b] = [split(before), split(after)]
  const common = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0))
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      common[i]![j] =
        a[i - 1] === b[j - 1]
          ? common[i - 1]![j - 1]! + 1
          : Math.max(common[i - 1]![j]!, common[i]![j - 1]!)
    }
  }
  return a.length + b.length - 2 * common[a.length]![b.length]!
}

test('the patch program applies our diffs', async (t) => {
  if (spawnSync('patch', ['--version']).error !== undefined) return t.skip('patch is not installed')
  const folder = mkdtempSync(join(tmpdir(), 'runwright-diff-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const before = Array.from({ length: 60 }, (_, i) => `line ${i}\n`).join('')
  const after = before.replace('line 3\n', '').replace('line 30\n', 'thirty\nand more\n') + 'end'
  writeFileSync(join(folder, 'x'), before)
  const input = (await fileChange('x', bytes(before), bytes(after))).diff
  const result = spawnSync('patch', ['-p1'], { cwd: folder, input, encoding: 'utf8' })
  assert.equal(result.status, 0, result.stdout + result.stderr)
  assert.equal(readFileSync(join(folder, 'x'), 'utf8'), after)
})
