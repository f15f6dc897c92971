import assert from 'node:assert/strict'
import { chmod, mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { openWorkspace, type FileChange } from 'runwright/agent'
import { confine } from '../../../lib/agent/workspace/paths.js'
import {
  SNAPSHOT_LIMITS,
  WorkspaceSnapshot,
  type SnapshotLimits,
} from '../../../lib/agent/workspace/snapshot.js'

class Bench {
  readonly root: string
  readonly snapshot: WorkspaceSnapshot

  private constructor(root: string, snapshot: WorkspaceSnapshot) {
    this.root = root
    this.snapshot = snapshot
  }

  /** A workspace that was looked at once. */
  static async open(
    t: TestContext,
    files: Readonly<Record<string, string>>,
    limits: Partial<SnapshotLimits> = {},
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
      new WorkspaceSnapshot(confinement, { ...SNAPSHOT_LIMITS, ...limits }),
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

  /** Changes in short: what, path, lines and the first words of the diff. */
  async told(): Promise<readonly string[]> {
    return (await this.snapshot.changes()).map(
      ({ change, path, from, added_lines, removed_lines, diff }) =>
        `${change} ${from === undefined ? '' : `${from} -> `}${path} +${added_lines} -${removed_lines}${diff === '' ? '' : ' diff'}`,
    )
  }
}

test('created, modified and deleted files show their diffs, and only once', async (t) => {
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
  assert.deepEqual(await bench.told(), [])
})

test('a file that was moved is one change, with or without another mode', async (t) => {
  const bench = await Bench.open(t, { 'a.sh': 'echo\n', 'b.txt': 'x\n' })
  await rename(bench.path('a.sh'), bench.path('c.sh'))
  await chmod(bench.path('c.sh'), 0o755)
  const [change] = await bench.snapshot.changes()
  assert.deepEqual([change?.change, change?.from, change?.path], ['renamed', 'a.sh', 'c.sh'])
  assert.equal(change?.diff, 'old mode 100644\nnew mode 100755\nrename from a.sh\nrename to c.sh\n')
  assert.equal(change?.before_sha256, change?.after_sha256)
})

test('a change of mode is a change, a touch is none', async (t) => {
  const bench = await Bench.open(t, { a: 'x\n', b: 'y\n' })
  await chmod(bench.path('a'), 0o755)
  await utimes(bench.path('b'), 1, 1)
  const changes = await bench.snapshot.changes()
  assert.deepEqual(changes.map(({ path, diff }) => [path, diff]), [
    ['a', 'old mode 100644\nnew mode 100755\n'],
  ])
})

test('binary files are told without a diff, files that are too large without a hash as well', async (t) => {
  const bench = await Bench.open(t, { bin: 'a\0b', big: 'x'.repeat(300) }, { fileBytes: 200 })
  await bench.write('bin', 'a\0c')
  // Of another size: two writes may fall into one tick of the file system's clock.
  await bench.write('big', 'y'.repeat(301))
  const changes = await bench.snapshot.changes()
  assert.deepEqual(changes.map(({ path, change, diff }) => [path, change, diff]), [
    ['big', 'modified', ''],
    ['bin', 'modified', ''],
  ])
  assert.ok(!('after_sha256' in changes[0]!))
  assert.match(String(changes[1]!.after_sha256), /^[0-9a-f]{64}$/)
  await rm(bench.path('big'))
  assert.deepEqual(await bench.told(), ['deleted big +0 -0'])
})

test('content of the same length with its time of modification set back is seen', async (t) => {
  const bench = await Bench.open(t, { a: 'one\n' })
  await utimes(bench.path('a'), 5, 5)
  assert.deepEqual(await bench.told(), [])
  await bench.write('a', 'two\n')
  await utimes(bench.path('a'), 5, 5)
  assert.deepEqual(await bench.told(), ['modified a +1 -1 diff'])
})

test('links are told by where they lead, and never followed', async (t) => {
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

test('version control, dependencies, caches and closed folders are passed over', async (t) => {
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
  assert.deepEqual(await bench.told(), [])
})

test('beyond the number of entries nothing is told wrongly', async (t) => {
  const files = Object.fromEntries(
    Array.from({ length: 20 }, (_, i) => [`f${String(i).padStart(2, '0')}`, `${i}`]),
  )
  const bench = await Bench.open(t, files, { entries: 10 })
  await rm(bench.path('f00')) // f10 comes into view, and was there before
  const told = await bench.told()
  assert.ok(told.includes('deleted f00 +0 -1 diff'), told.join())
  assert.ok(told.every((line) => !line.startsWith('created') || line.includes('f10')), told.join())
  await bench.write('a', 'new') // f10 goes out of view again, and is still there
  assert.deepEqual(await bench.told(), ['created a +1 -0 diff'])
})

test('the number of changes and the size of their diffs are bounded', async (t) => {
  const bench = await Bench.open(t, {}, { changes: 5, diffBytes: 400 })
  for (let i = 0; i < 9; i++) await bench.write(`f${i}`, `${'line\n'.repeat(20)}`)
  const changes = await bench.snapshot.changes()
  assert.equal(changes.length, 5)
  const shown = changes.filter(({ diff }) => diff !== '')
  assert.ok(shown.length > 0 && shown.length < 5, `${shown.length} shown`)
  assert.deepEqual(await bench.told(), [], 'what was not told is not told later')
})

test('text beyond what is kept is told without its diff', async (t) => {
  const bench = await Bench.open(t, { a: 'x'.repeat(60), b: 'y'.repeat(60) }, { keptBytes: 100 })
  await bench.write('a', 'z'.repeat(60))
  await bench.write('b', 'z'.repeat(60))
  assert.deepEqual(await bench.told(), ['modified a +1 -1 diff', 'modified b +0 -0'])
})

test('what is kept never exceeds its bound, whatever comes and goes', async (t) => {
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
  assert.deepEqual(await bench.told(), ['modified last +1 -1 diff'], 'what is gone takes no room')
})

test("a run's own writes and those of others are told by the workspace", async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'snapshot-'))
  t.after(() => rm(root, { recursive: true, force: true }))
  const workspace = await openWorkspace(root)
  await workspace.changes()
  await workspace.writeFile('a', 'x\n')
  const [first, second] = await Promise.all([workspace.changes(), workspace.changes()])
  assert.deepEqual([first.map(({ path }: FileChange) => path), second], [['a'], []])
})
