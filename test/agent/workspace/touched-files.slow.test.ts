import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, statSync, symlinkSync,
  utimesSync, writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { WorkspaceError } from '../../../lib/agent/errors.js'
import { copyTree, removeFolder } from '../../../lib/agent/workspace/copy.js'
import {
  findTouched, type FileSystemTime, type TouchedFiles,
} from '../../../lib/agent/workspace/find-touched.js'
import { fileSystemTime, touchedFiles } from '../../../lib/agent/workspace/touched-files.js'
import { Children } from '../../helpers/kill.js'
import { Random } from '../../helpers/random.js'

const children = new Children<typeof import('./touched-child.js')>(
  new URL('touched-child.ts', import.meta.url),
)

/** Folders in which access times may be kept in different ways. */
const PLACES = [tmpdir(), '/dev/shm']
const placeOf = (parent: string): string => (parent === '/dev/shm' ? 'memory' : 'a folder')

/** A folder, and a copy of it in which everything is unread. */
class Watched {
  readonly top: string
  readonly original: string
  readonly copy: string
  since: FileSystemTime = { ms: 0, keepsAccessTimes: true }

  constructor(t: TestContext, parent: string) {
    this.top = realpathSync(mkdtempSync(join(parent, 'touched-')))
    t.after(() => removeFolder(this.top))
    this.original = join(this.top, 'original')
    this.copy = join(this.top, 'copy')
    mkdirSync(this.original)
  }

  write(...paths: string[]): this {
    for (const path of paths) {
      mkdirSync(dirname(join(this.original, path)), { recursive: true })
      writeFileSync(join(this.original, path), `content of ${path}\n`)
    }
    return this
  }

  async watch(): Promise<this> {
    await copyTree(this.original, this.copy, { unread: true })
    this.since = await fileSystemTime(this.copy)
    return this
  }

  run(command: string): string {
    return execFileSync('sh', ['-c', command], { cwd: this.copy, encoding: 'utf8' })
  }

  async touched(): Promise<TouchedFiles> {
    return await touchedFiles(this.copy, this.since)
  }
}

interface Way {
  readonly command: string
  readonly read?: readonly string[]
  readonly changed?: readonly string[]
  readonly listed?: readonly string[]
}

const ways: readonly Way[] = [
  { command: 'true' },
  { command: 'cat a.txt', read: ['a.txt'] },
  { command: 'cat empty', read: ['empty'] },
  { command: 'head -c 1 in/b.txt', read: ['in/b.txt'] },
  { command: 'cp a.txt ../elsewhere', read: ['a.txt'] },
  { command: 'cat < a.txt | cat', read: ['a.txt'] },
  { command: 'wc -l a.txt in/b.txt', read: ['a.txt', 'in/b.txt'] },
  { command: './run.sh', read: ['run.sh'] },
  { command: 'sh run.sh', read: ['run.sh'] },
  { command: 'node m.js', read: ['m.js', 'm2.js'] },
  { command: `node -e 'fs.readFileSync("a.txt")'`, read: ['a.txt'] },
  { command: `node -e 'fs.createReadStream("a.txt").pipe(process.stdout)'`, read: ['a.txt'] },
  { command: `node -e 'fs.copyFileSync("a.txt", "../elsewhere")'`, read: ['a.txt'] },
  { command: `python3 -I -c 'open("a.txt").read()'`, read: ['a.txt'] },
  {
    command: `python3 -I -c 'import mmap; f = open("a.txt", "rb")
mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)[0]'`,
    read: ['a.txt'],
  },
  {
    command: `python3 -I -c 'import os; a = os.open("a.txt", 0); b = os.open("../elsewhere", 577)
os.sendfile(b, a, 0, 9)'`,
    read: ['a.txt'],
  },
  {
    command: `python3 -I -c 'import os; a = os.open("a.txt", 0); b = os.open("../elsewhere", 577)
os.copy_file_range(a, b, 9)'`,
    read: ['a.txt'],
  },
  { command: 'cat link', read: ['a.txt', 'link'] },
  { command: 'readlink link', read: ['link'] },
  { command: 'cat folder/b.txt', read: ['folder', 'in/b.txt'] },
  {
    command: 'grep -r content in',
    read: ['in/b.txt', 'in/deep/c.txt'], listed: ['in', 'in/deep', 'in/none'],
  },
  { command: 'ls', listed: ['.'] },
  { command: 'ls in in/none', listed: ['in', 'in/none'] },
  { command: 'stat a.txt in; test -f a.txt; test -d in/deep' },
  { command: `find in -name 'c*'`, listed: ['in', 'in/deep', 'in/none'] },
  { command: 'chmod 600 a.txt', changed: ['a.txt'] },
  { command: 'echo x > in/b.txt', changed: ['in/b.txt'] },
  { command: 'echo x >> in/b.txt', changed: ['in/b.txt'] },
  { command: 'mv a.txt in/moved.txt', changed: ['in/moved.txt'] },
  { command: 'rm a.txt' },
  { command: 'ln a.txt in/hard', changed: ['a.txt', 'in/hard'] },
  { command: 'touch -d 2001-01-01 a.txt', changed: ['a.txt'], read: ['a.txt'] },
  {
    command: `python3 -I -c 'import mmap; f = open("a.txt", "r+b")
m = mmap.mmap(f.fileno(), 0); m[0:1] = b"x"; m.flush()'`,
    changed: ['a.txt'], read: ['a.txt'],
  },
  { command: 'cat a.txt; echo x > a.txt', changed: ['a.txt'], read: ['a.txt'] },
  {
    command: 'echo x > new; mkdir made; ln -s a.txt in/l',
    changed: ['in/l', 'new'], read: ['in/l', 'new'], listed: ['made'],
  },
  {
    command: 'cat node_modules/p/i.js .git/HEAD __pycache__/x.pyc; ls node_modules; echo > .git/x',
  },
]

for (const parent of PLACES) {
  test(`what commands read, list and change is told apart in ${placeOf(parent)}`, async (t) => {
    const watched = new Watched(t, parent).write(
      'a.txt', 'empty', 'in/b.txt', 'in/deep/c.txt', 'run.sh', 'm.js', 'm2.js',
      'node_modules/p/i.js', '.git/HEAD', '__pycache__/x.pyc',
    )
    const { original } = watched
    writeFileSync(join(original, 'empty'), '')
    writeFileSync(join(original, 'run.sh'), '#!/bin/sh\ntrue\n')
    chmodSync(join(original, 'run.sh'), 0o755)
    writeFileSync(join(original, 'm.js'), 'require("./m2.js")')
    writeFileSync(join(original, 'm2.js'), '')
    mkdirSync(join(original, 'in/none'))
    symlinkSync('a.txt', join(original, 'link'))
    symlinkSync('in', join(original, 'folder'))
    for (const { command, read = [], changed = [], listed = [] } of ways) {
      await watched.watch()
      watched.run(command)
      // In this thread, which is faster.
      const found = findTouched(watched.copy, watched.since, () => false)
      assert.deepEqual(found, { read, changed, listed, observes: true }, command)
      assert.deepEqual(findTouched(watched.copy, watched.since, () => false), found, 'once more')
      await removeFolder(watched.copy)
    }
  })
}

test('a copy keeps the times of changes, and its times of access are 0', async (t) => {
  const watched = new Watched(t, tmpdir()).write('a.txt', 'in/b.txt')
  // Its text is changed for the copy.
  mkdirSync(join(watched.original, '.venv/bin'), { recursive: true })
  writeFileSync(join(watched.original, '.venv/bin/x'), `#!${watched.original}/.venv/bin/python\n`)
  writeFileSync(join(watched.original, 'large'), Buffer.alloc(3_000_000, 1))
  const paths = ['a.txt', 'in/b.txt', 'in', '', 'large', '.venv/bin/x', '.venv']
  for (const path of paths) utimesSync(join(watched.original, path), 1_000, 2_000)
  await copyTree(watched.original, watched.copy, { unread: true })
  assert.match(readFileSync(join(watched.copy, '.venv/bin/x'), 'utf8'), /\/copy\//)
  for (const path of paths) {
    const { atimeMs, mtimeMs } = statSync(join(watched.copy, path))
    if (path === '.venv/bin/x') assert.ok(mtimeMs > 2_000_000, path)
    else assert.equal(atimeMs + mtimeMs, 2_000_000, path)
  }
})

for (const parent of PLACES) {
  test(`only a write right after a copy counts as a change in ${placeOf(parent)}`, async (t) => {
    const { copy } = new Watched(t, parent)
    for (let round = 0; round < 60; round++) {
      await removeFolder(copy)
      mkdirSync(copy)
      writeFileSync(join(copy, 'before'), 'x')
      const since = await fileSystemTime(copy)
      writeFileSync(join(copy, 'after'), 'x')
      const { changed } = findTouched(copy, since, () => false)
      assert.deepEqual(changed, ['after'], `round ${round}`)
      assert.deepEqual(readdirSync(copy).sort(), ['after', 'before'])
    }
  })
}

test('a change in the very moment that is asked for counts, and none before', (t) => {
  const { original } = new Watched(t, tmpdir()).write('a.txt')
  const { ctimeMs } = statSync(join(original, 'a.txt'))
  const at = (ms: number): FileSystemTime => ({ ms, keepsAccessTimes: true })
  assert.deepEqual(findTouched(original, at(ctimeMs), () => false).changed, ['a.txt'])
  assert.deepEqual(findTouched(original, at(ctimeMs + 1), () => false).changed, [])
})

test('names that are no UTF-8 are passed over, with what is below them', async (t) => {
  const watched = new Watched(t, tmpdir()).write('ü.txt')
  const raw = (name: number): Buffer =>
    Buffer.concat([Buffer.from(`${watched.original}/`), Buffer.of(name)])
  writeFileSync(raw(0xff), 'x')
  mkdirSync(raw(0xfe))
  writeFileSync(Buffer.concat([raw(0xfe), Buffer.from('/b')]), 'x')
  await watched.watch()
  watched.run('cat ü.txt; grep -r x .')
  assert.deepEqual((await watched.touched()).read, ['ü.txt'])
})

const MOUNT = 'mount -t tmpfs -o noatime none /mnt'
const NOATIME = ['unshare', '-Urm', 'sh', '-c', `${MOUNT} && exec "$@"`, 'sh']
const skip = spawnSync('unshare', ['-Urm', 'sh', '-c', MOUNT]).status === 0
  ? false
  : 'this kernel does not let ordinary users mount a file system (unshare -Urm)'

test('a file system that keeps no access times is known as one', { skip }, async () => {
  const { lines } = await children.run('touch', { folder: '/mnt' }, { under: NOATIME })
  assert.deepEqual(JSON.parse(lines[0]!), {
    read: [], changed: ['b.txt'], listed: [], observes: false,
  })
})

test('an abort ends the look, and a folder that is gone is told', async (t) => {
  const watched = await new Watched(t, tmpdir()).write('a.txt').watch()
  const reason = new Error('enough')
  const aborted = touchedFiles(watched.copy, watched.since, AbortSignal.abort(reason))
  await assert.rejects(aborted, reason)
  const abort = new AbortController()
  const looking = touchedFiles(watched.copy, watched.since, abort.signal)
  abort.abort(reason)
  await assert.rejects(looking, reason)
  const late = new AbortController()
  const done = touchedFiles(watched.copy, watched.since, late.signal)
  // The thread is done meanwhile, and this one has not heard of that.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
  late.abort(reason)
  await assert.rejects(done, reason)
  await assert.rejects(touchedFiles(join(watched.top, 'gone'), watched.since), WorkspaceError)
  await assert.rejects(fileSystemTime(join(watched.top, 'gone')), WorkspaceError)
})

/** Ways of one file, in a child process. */
const READS: readonly ((file: string) => string)[] = [
  (file) => `cat ${file}`,
  (file) => `head -c 1 ${file} >&2`,
  (file) => `cp ${file} ../elsewhere`,
  (file) => `grep -c x ${file}`,
  (file) => `node -e 'fs.readFileSync("${file}")'`,
  (file) => `python3 -I -c 'open("${file}").read()'`,
  (file) => `python3 -I -c 'import mmap; f = open("${file}", "rb")
mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)[0]'`,
]
const WRITES: readonly ((file: string) => string)[] = [
  (file) => `echo x > ${file}`,
  (file) => `echo x >> ${file}`,
  (file) => `chmod 640 ${file}`,
  (file) => `node -e 'fs.appendFileSync("${file}", "x")'`,
  (file) => `python3 -I -c 'open("${file}", "w").write("x")'`,
]

test('random reads and writes of random trees by real processes are told exactly', async (t) => {
  for (let seed = 1; seed <= 8; seed++) {
    const random = new Random(seed)
    const watched = new Watched(t, random.pick(PLACES))
    const folders = ['.', 'a', 'b', 'a/c', 'a/c/d', 'e']
    const files = Array.from({ length: random.integer(5, 30) }, (_, i) =>
      join(random.pick(folders), `f${i}.txt`))
    await watched.write(...files).watch()
    const read = new Set<string>()
    const changed = new Set<string>()
    const listed = new Set<string>()
    for (let i = random.integer(0, 14); i > 0; i--) {
      const file = random.pick(files)
      const dice = random.integer(0, 9)
      if (dice < 4) {
        watched.run(random.pick(READS)(file) + '; true')
        read.add(file)
      } else if (dice < 7) {
        watched.run(random.pick(WRITES)(file))
        changed.add(file)
      } else if (dice === 7) {
        watched.run(`ls ${dirname(file)}`)
        listed.add(dirname(file))
      } else if (dice === 8) watched.run(`stat ${file} ${dirname(file)}`)
      else {
        const name = `new${i}`
        watched.run(`echo > ${name}`)
        changed.add(name)
        read.add(name)
      }
    }
    const sorted = (paths: ReadonlySet<string> | readonly string[]): string[] => [...paths].sort()
    const found = await watched.touched()
    const told = `seed ${seed}`
    assert.deepEqual(sorted(found.read), sorted(read), told)
    assert.deepEqual(sorted(found.changed), sorted(changed), told)
    assert.deepEqual(sorted(found.listed), sorted(listed), told)
  }
})
