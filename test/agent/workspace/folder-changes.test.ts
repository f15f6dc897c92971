import assert from 'node:assert/strict'
import { chmod, mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { openWorkspace, type FileChange } from 'runwright/agent'
import { confine } from '../../../lib/agent/workspace/paths.js'
import {
  CHANGE_LIMITS,
  FolderChanges,
  type ChangeLimits,
} from '../../../lib/agent/workspace/folder-changes.js'

class Bench {
  readonly root: string
  readonly snapshot: FolderChanges

  private constructor(root: string, snapshot: FolderChanges) {
    this.root = root
    this.snapshot = snapshot
  }

  /** A workspace with these files, scanned once. */
  static async open(
    t: TestContext,
    files: Readonly<Record<string, string>>,
    limits: Partial<ChangeLimits> = {},
    closed: readonly string[] = [],
  ): Promise<Bench> {
    const root = await mkdtemp(join(tmpdir(), 'snapshot-'))
    t.after(() => rm(root, { recursive: true, force: true }))
    const confinement = await confine(
      root,
      undefined,
      closed.map((name) => join(root, name)),
    )
    const bench = new Bench(
      root,
      new FolderChanges(confinement, { ...CHANGE_LIMITS, ...limits }),
    )
    for (const [path, content] of Object.entries(files)) await bench.write(path, content)
    assert.deepEqual(await bench.snapshot.changes(), [])
    return bench
  }

  path(name: string): string {
    return join(this.root, name)
  }

  async write(path: string, content: string | Uint8Array): Promise<void> {
    await mkdir(dirname(this.path(path)), { recursive: true })
    await writeFile(this.path(path), content)
  }

  /** Each change in one line: kind, path, numbers of lines, and whether it has a diff. */
  async summary(): Promise<readonly string[]> {
    return (await this.snapshot.changes()).map(
      ({ change, path, from, added_lines, removed_lines, diff }) => {
        const paths = from === undefined ? path : `${from} -> ${path}`
        const lines = `+${added_lines} -${removed_lines}`
        return `${change} ${paths} ${lines}${diff === '' ? '' : ' diff'}`
      },
    )
  }
}

test('created, modified and deleted files are reported once, with their diffs', async (t) => {
  const bench = await Bench.open(t, { 'a.txt': 'one\ntwo\n', 'b/c.txt': 'gone\n', same: 'x' })
  await bench.write('a.txt', 'one\n2\n')
  await rm(bench.path('b'), { recursive: true })
  await bench.write('new/deep/d.txt', 'fresh')
  const changes = await bench.snapshot.changes()
  assert.deepEqual(
    changes.map(({ change, path, added_lines, removed_lines }) => [
      change,
      path,
      added_lines,
      removed_lines,
    ]),
    [
      ['modified', 'a.txt', 1, 1],
      ['deleted', 'b/c.txt', 0, 1],
      ['created', 'new/deep/d.txt', 1, 0],
    ],
  )
  assert.equal(changes[0]!.diff, '--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n')
  assert.match(changes[1]!.diff, /^--- a\/b\/c\.txt\n\+\+\+ \/dev\/null\n/)
  assert.ok(changes.every(({ before_sha256, after_sha256 }) => before_sha256 !== after_sha256))
  assert.deepEqual(await bench.summary(), [])
})

test('a moved file is one change, with or without a change of mode', async (t) => {
  const bench = await Bench.open(t, { 'a.sh': 'echo\n', 'b.txt': 'x\n' })
  await rename(bench.path('a.sh'), bench.path('c.sh'))
  await chmod(bench.path('c.sh'), 0o755)
  const [change] = await bench.snapshot.changes()
  assert.deepEqual([change?.change, change?.from, change?.path], ['renamed', 'a.sh', 'c.sh'])
  assert.equal(change?.diff, 'old mode 100644\nnew mode 100755\nrename from a.sh\nrename to c.sh\n')
  assert.equal(change?.before_sha256, change?.after_sha256)
})

test('a new mode is a change; new times are not', async (t) => {
  const bench = await Bench.open(t, { a: 'x\n', b: 'y\n' })
  await chmod(bench.path('a'), 0o755)
  await utimes(bench.path('b'), 1, 1)
  const changes = await bench.snapshot.changes()
  assert.deepEqual(changes.map(({ path, diff }) => [path, diff]), [
    ['a', 'old mode 100644\nnew mode 100755\n'],
  ])
})

test('binary files are reported without a diff, too large ones also without a hash', async (t) => {
  const bench = await Bench.open(t, { bin: 'a\0b', big: 'x'.repeat(300) }, { fileBytes: 200 })
  await bench.write('bin', 'a\0c')
  // The size differs too, since two writes may fall into one tick of the file system's clock.
  await bench.write('big', 'y'.repeat(301))
  const changes = await bench.snapshot.changes()
  assert.deepEqual(changes.map(({ path, change, diff }) => [path, change, diff]), [
    ['big', 'modified', ''],
    ['bin', 'modified', ''],
  ])
  assert.ok(!('after_sha256' in changes[0]!))
  assert.match(String(changes[1]!.after_sha256), /^[0-9a-f]{64}$/)
  await rm(bench.path('big'))
  assert.deepEqual(await bench.summary(), ['deleted big +0 -0'])
})

test('new content of the same length is found, even with its old modification time', async (t) => {
  const bench = await Bench.open(t, { a: 'one\n' })
  await utimes(bench.path('a'), 5, 5)
  assert.deepEqual(await bench.summary(), [])
  await bench.write('a', 'two\n')
  await utimes(bench.path('a'), 5, 5)
  assert.deepEqual(await bench.summary(), ['modified a +1 -1 diff'])
})

test('links are reported by their target, and never followed', async (t) => {
  const outside = await Bench.open(t, { secret: 'top secret\n' })
  const bench = await Bench.open(t, { a: 'x\n' })
  await symlink(join(outside.root, 'secret'), bench.path('link'))
  await symlink(outside.root, bench.path('folder'))
  const changes = await bench.snapshot.changes()
  assert.deepEqual(
    changes.map(({ path }) => path),
    ['folder', 'link'],
  )
  assert.ok(
    changes.every(({ diff }) => diff.includes(outside.root) && !diff.includes('top secret')),
  )
  await rm(bench.path('a'))
  await symlink('link', bench.path('a'))
  const [replaced] = await bench.snapshot.changes()
  assert.match(replaced!.diff, /^old mode 100644\nnew mode 120000\n/)
})

test('version control, dependencies, caches and closed folders are skipped', async (t) => {
  const bench = await Bench.open(t, { a: '1', 'data/x': '1' }, {}, ['data'])
  for (const folder of [
    '.git',
    'node_modules/x',
    'sub/node_modules',
    '__pycache__',
    '.venv',
    'data',
  ]) {
    await bench.write(`${folder}/file`, 'x')
  }
  assert.deepEqual(await bench.summary(), [])
})

test('beyond the bound on entries no false changes are reported', async (t) => {
  const files = Object.fromEntries(
    Array.from({ length: 20 }, (_, i) => [`f${String(i).padStart(2, '0')}`, `${i}`]),
  )
  const bench = await Bench.open(t, files, { entries: 10 })
  await rm(bench.path('f00')) // f10 comes within the bound, and is not new
  const summary = await bench.summary()
  assert.ok(summary.includes('deleted f00 +0 -1 diff'), summary.join())
  const isNew = (line: string): boolean => line.startsWith('created') && !line.includes('f10')
  assert.ok(!summary.some(isNew), summary.join())
  await bench.write('a', 'new') // f10 is beyond the bound again, and is not deleted
  assert.deepEqual(await bench.summary(), ['created a +1 -0 diff'])
})

test('beyond that bound, a new file is reported although the time of day was set back', async (t) => {
  const files = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`f${i}`, `${i}`]))
  const { now } = Date
  const ahead = t.mock.method(Date, 'now', () => now() + 5 * 3_600_000)
  const bench = await Bench.open(t, files, { entries: 10 })
  ahead.mock.restore()
  await bench.write('a', 'new')
  assert.ok((await bench.summary()).includes('created a +1 -0 diff'))
})

test('the number of changes and the size of their diffs are bounded', async (t) => {
  const bench = await Bench.open(t, {}, { changes: 5, diffBytes: 400 })
  for (let i = 0; i < 9; i++) await bench.write(`f${i}`, `${'line\n'.repeat(20)}`)
  const changes = await bench.snapshot.changes()
  assert.equal(changes.length, 5)
  const shown = changes.filter(({ diff }) => diff !== '')
  assert.ok(shown.length > 0 && shown.length < 5, `${shown.length} shown`)
  assert.deepEqual(await bench.summary(), [], 'changes beyond the bound are not reported later')
})

test('a file whose content was not kept is reported without a diff', async (t) => {
  const bench = await Bench.open(t, { a: 'x'.repeat(60), b: 'y'.repeat(60) }, { keptBytes: 100 })
  await bench.write('a', 'z'.repeat(60))
  await bench.write('b', 'z'.repeat(60))
  assert.deepEqual(await bench.summary(), ['modified a +1 -1 diff', 'modified b +0 -0'])
})

test('kept content never exceeds its bound, whatever is created and deleted', async (t) => {
  const bench = await Bench.open(t, {}, { keptBytes: 1_000 })
  for (let round = 0; round < 30; round++) {
    await bench.write(`f${round % 7}`, 'x'.repeat(100 + 13 * round))
    if (round % 3 === 0) await rm(bench.path(`f${(round + 3) % 7}`), { force: true })
    await bench.snapshot.changes()
  }
  for (let i = 0; i < 7; i++) await rm(bench.path(`f${i}`), { force: true })
  await bench.snapshot.changes()
  await bench.write('last', 'y'.repeat(900))
  await bench.snapshot.changes()
  await bench.write('last', 'z'.repeat(900))
  const expected = ['modified last +1 -1 diff']
  assert.deepEqual(await bench.summary(), expected, 'deleted content does not count')
})

test('changes() includes own writes; concurrent calls do not overlap', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'snapshot-'))
  t.after(() => rm(root, { recursive: true, force: true }))
  const workspace = await openWorkspace(root)
  await workspace.changes()
  await workspace.writeFile('a', 'x\n')
  const [first, second] = await Promise.all([workspace.changes(), workspace.changes()])
  assert.deepEqual([first.map(({ path }: FileChange) => path), second], [['a'], []])
})

test('other work is done between the diffs of many files', async (t) => {
  const names = Array.from({ length: 60 }, (_, i) => `${i}.txt`)
  const bench = await Bench.open(t, Object.fromEntries(names.map((name) => [name, 'one\n'])))
  for (const name of names) await bench.write(name, 'two\n')
  let turns = 0
  let timer = setImmediate(function count() {
    turns += 1
    timer = setImmediate(count)
  })
  const changes = await bench.snapshot.changes()
  clearImmediate(timer)
  assert.equal(changes.length, names.length)
  assert.ok(turns >= names.length, `${turns} turns`)
})
