import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  appendFileSync, chmodSync, existsSync, linkSync, lutimesSync, mkdirSync, mkdtempSync,
  readdirSync, readFileSync,
  readlinkSync, realpathSync, statSync, symlinkSync, truncateSync, utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { WorkspaceError, WorkspaceTooLargeError } from '../../../lib/agent/errors.js'
import { copyTree, removeFolder, type CopyPolicy } from '../../../lib/agent/workspace/copy.js'
import { removeTree } from '../../../lib/agent/workspace/remove-tree.js'
import type { CopyJob, CopyResult } from '../../../lib/agent/workspace/copy-job.js'
import { TreeCopy } from '../../../lib/agent/workspace/tree-copy.js'
import { Random } from '../../helpers/random.js'
import { wholeTree } from '../../helpers/whole-tree.js'

/** A folder to be copied, and where its copies go. */
class Place {
  readonly top: string
  readonly from: string
  readonly to: string

  constructor(t: TestContext) {
    this.top = realpathSync(mkdtempSync(join(tmpdir(), 'copy-')))
    t.after(() => removeFolder(this.top))
    this.from = join(this.top, 'original')
    this.to = join(this.top, 'copies', 'original')
    mkdirSync(this.from)
    mkdirSync(join(this.top, 'copies'))
  }

  /** What a copy is made with when it is made without a worker. */
  get job(): CopyJob {
    const { from, to } = this
    return { from, to, copies: [{ from, to }], closed: [], maxBytes: Infinity, mounts: false }
  }

  write(path: string, content: string | Uint8Array = path, mode = 0o644): void {
    const file = join(this.from, path)
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, content)
    chmodSync(file, mode)
  }

  link(path: string, target: string): void {
    mkdirSync(join(this.from, path, '..'), { recursive: true })
    symlinkSync(target, join(this.from, path))
  }

  /** Copies in this thread, which is faster, unless there is a policy. */
  async copy(policy?: CopyPolicy): Promise<CopyResult> {
    const before = wholeTree(this.from)
    const result =
      policy === undefined
        ? new TreeCopy(this.job, () => false).run()
        : await copyTree(this.from, this.to, policy)
    assert.deepEqual(wholeTree(this.from), before, 'the original is as it was')
    return result
  }

  inCopy(path: string): string {
    return readFileSync(join(this.to, path), 'utf8')
  }
}

test('a copy has everything: kinds, contents, permissions, times, names in any encoding', async (t) => {
  for (let seed = 1; seed <= 12; seed++) {
    const place = new Place(t)
    plant(place.from, new Random(seed))
    const { files, notes } = await place.copy()
    assert.deepEqual(wholeTree(place.to), wholeTree(place.from), `seed ${seed}`)
    assert.deepEqual(notes, [], `seed ${seed}`)
    const entries = Object.values(wholeTree(place.from))
    assert.equal(files, entries.filter((line) => !line.startsWith('folder')).length)
  }
})

/** Fills a folder with what may be in one. */
function plant(root: string, random: Random): void {
  const folders = [Buffer.from(root)]
  const files: Buffer[] = []
  const names = ['a', 'b c', 'ünï', '.env', 'x\ny', '-f', '%', '"', 'node_modules', '.git', 'venv']
  const at = (folder: Buffer, i: number): Buffer<ArrayBuffer> => {
    const name = random.chance(0.2)
      ? Buffer.from([0x61 + random.integer(0, 20), 0x80 + random.integer(0, 127), 0xff])
      : Buffer.from(random.pick(names))
    return Buffer.concat([folder, Buffer.from('/'), name, Buffer.from(String(i))])
  }
  for (let i = 0; i < 60; i++) {
    const path = at(random.pick(folders), i)
    switch (random.integer(0, 5)) {
      case 0:
        mkdirSync(path)
        folders.push(path)
        break
      case 1: {
        // From the top, these would lead out.
        const isTop = path.lastIndexOf('/') === root.length
        symlinkSync(random.pick(['a', '.', './b c', ...(isTop ? [] : ['..', '../x'])]), path)
        lutimesSync(path, 1, random.integer(0, 2e9))
        break
      }
      case 2:
        if (files.length > 0) linkSync(random.pick(files), path)
        break
      default: {
        const size = random.pick([0, 1, 100, 65_536, 262_144, 262_145, 1_500_000])
        writeFileSync(path, Buffer.alloc(size, random.integer(1, 255)))
        chmodSync(path, random.pick([0o644, 0o755, 0o600, 0o444, 0o400, 0o000, 0o777]))
        // Halves of seconds have no rounding.
        utimesSync(path, 5, random.integer(0, 2e9) + 0.5)
        files.push(path)
      }
    }
  }
  for (const folder of folders.toReversed()) {
    chmodSync(folder, random.pick([0o755, 0o700, 0o555, 0o1777]))
    utimesSync(folder, 5, random.integer(0, 2e9))
  }
}

test('times are those of the original to two microseconds', async (t) => {
  const place = new Place(t)
  for (let i = 0; i < 50; i++) place.write(`f${i}`)
  await place.copy()
  for (const name of ['', ...readdirSync(place.from)]) {
    const [before, after] = [place.from, place.to].map(
      (root) => statSync(join(root, name), { bigint: true }).mtimeNs,
    )
    const difference = before! - after!
    assert.ok(difference > -2_000n && difference < 2_000n, `${name}: ${difference} ns`)
  }
})

test('holes stay holes', async (t) => {
  const place = new Place(t)
  place.write('sparse', 'begin')
  truncateSync(join(place.from, 'sparse'), 64 * 1024 * 1024)
  writeFileSync(join(place.from, 'sparse'), 'end', { flag: 'a' })
  // Whole seconds have no rounding.
  for (const path of ['sparse', '.']) utimesSync(join(place.from, path), 5, 5)
  await place.copy()
  assert.deepEqual(wholeTree(place.to), wholeTree(place.from))
  assert.ok(statSync(join(place.to, 'sparse')).blocks * 512 < 1024 * 1024)
})

test('sockets and pipes are left out and named', async (t) => {
  const place = new Place(t)
  place.write('a')
  execFileSync('mkfifo', [join(place.from, 'pipe')])
  const server = createServer().listen(join(place.from, 'socket'))
  t.after(() => server.close())
  await once(server, 'listening')
  const { notes } = await place.copy()
  assert.deepEqual(readdirSync(place.to), ['a'])
  assert.equal(notes.length, 1)
  assert.match(notes[0]!, /^Sockets, pipes and devices were left out: (pipe, socket|socket, pipe)\.$/)
})

test('what cannot be read is left out and named', async (t) => {
  const place = new Place(t)
  place.write('secret', 'x', 0o000)
  place.write('folder/x')
  chmodSync(join(place.from, 'folder'), 0o000)
  const { notes } = asOrdinaryUser(place, () => new TreeCopy(place.job, () => false).run())
  assert.deepEqual(readdirSync(place.to), [])
  assert.match(notes.join(), /^What cannot be read was left out: (folder, secret|secret, folder)\.$/)
})

/** Does something as a user with bounds, in this thread. */
function asOrdinaryUser<T>(place: Place, work: () => T): T {
  if (process.geteuid!() !== 0) return work()
  execFileSync('chown', ['-R', '65534', place.top])
  process.seteuid!(65534)
  try {
    return work()
  } finally {
    process.seteuid!(0)
  }
}

test('closed folders are not copied, nor is a copy into itself', async (t) => {
  const place = new Place(t)
  place.write('a')
  place.write('data/runs/1.jsonl')
  place.write('other/b')
  mkdirSync(join(place.from, 'other/copies'))
  const to = join(place.from, 'other/copies/1')
  await copyTree(place.from, to, { closed: [join(place.from, 'data')] })
  assert.deepEqual(readdirSync(to).sort(), ['a', 'other'])
  assert.deepEqual(readdirSync(join(to, 'other', 'copies')), [])
})

test('a copy beyond the limit is refused, and nothing is left of it', async (t) => {
  const place = new Place(t)
  place.write('deep/node_modules/x/a', Buffer.alloc(700_000))
  place.write('deep/b', Buffer.alloc(700_000))
  await assert.rejects(place.copy({ maxBytes: 1_000_000 }), WorkspaceTooLargeError)
  assert.deepEqual(readdirSync(join(place.to, '..')), [])
  linkSync(join(place.from, 'deep/b'), join(place.from, 'deep/c'))
  const { bytes } = await place.copy({ maxBytes: 1_500_000 })
  assert.equal(bytes, 1_400_000 + 6 * 256, 'one file with two names counts once')
})

test('an aborted copy rejects with the reason, and nothing is left of it', async (t) => {
  const place = new Place(t)
  for (let i = 0; i < 200; i++) place.write(`f${i}/x`)
  const reason = new Error('enough')
  await assert.rejects(place.copy({ signal: AbortSignal.abort(reason) }), reason)
  const stop = new AbortController()
  const copying = place.copy({ signal: stop.signal })
  stop.abort(reason)
  await assert.rejects(copying, reason)
  assert.deepEqual(readdirSync(join(place.to, '..')), [])
})

test('a folder that cannot be copied is an error that names it', async (t) => {
  const place = new Place(t)
  const missing = join(place.from, 'missing')
  await assert.rejects(copyTree(missing, place.to), (error: Error) => {
    assert.ok(error instanceof WorkspaceError)
    assert.ok(error.message.includes(missing), error.message)
    return true
  })
})

interface LinkCase {
  readonly name: string
  readonly path: string
  /** `@` stands for the original, `^` for the folder above it. */
  readonly target: string
  readonly copied: string
  readonly note?: RegExp
}

const linkCases: readonly LinkCase[] = [
  { name: 'inside', path: 'l', target: 'a/b', copied: 'a/b' },
  { name: 'inside, by a folder above', path: 'd/l', target: '../a/./b', copied: '../a/./b' },
  { name: 'to nothing', path: 'l', target: 'a/nothing', copied: 'a/nothing' },
  { name: 'to itself', path: 'l', target: 'l', copied: 'l' },
  { name: 'absolute', path: 'l', target: '@/a/b', copied: 'a/b' },
  { name: 'absolute, deep', path: 'd/e/l', target: '@/a', copied: '../../a' },
  { name: 'absolute, to the root', path: 'd/l', target: '@', copied: '..' },
  { name: 'absolute, to nothing', path: 'l', target: '@/new/x', copied: 'new/x' },
  { name: 'absolute, by another name', path: 'l', target: '^/alias/a', copied: 'a' },
  { name: 'out and in again', path: 'l', target: '../original/a', copied: 'a' },
  { name: 'out and in, by another name', path: 'd/l', target: '../../alias/a', copied: '../a' },
  { name: 'out of it', path: 'l', target: '../beside', copied: '^/beside', note: /lead out.*: l\.$/ },
  { name: 'absolute, out', path: 'l', target: '^/beside/', copied: '^/beside/', note: /: l\.$/ },
  { name: 'a folder with a longer name', path: 'l', target: '@2/x', copied: '@2/x', note: /: l\.$/ },
  { name: 'to the system', path: 'l', target: '/usr/bin/env', copied: '/usr/bin/env' },
  { name: 'through a link out', path: 'l', target: 'out/x', copied: 'out/x', note: /: (l|out)/ },
  { name: 'through a link out and back', path: 'l', target: 'out/../original/a', copied: 'a' },
]

for (const { name, path, target, copied, note } of linkCases) {
  test(`a link that leads ${name}`, async (t) => {
    const place = new Place(t)
    const spelled = (text: string): string =>
      text.replace('@', () => place.from).replace('^', () => place.top)
    place.write('a/b')
    mkdirSync(join(place.top, 'beside'))
    symlinkSync('original', join(place.top, 'alias'))
    if (target.startsWith('out/')) place.link('out', '../beside')
    place.link(path, spelled(target))
    const { notes } = await place.copy()
    assert.equal(readlinkSync(join(place.to, path)), spelled(copied))
    if (note !== undefined) assert.match(notes.join(' '), note)
    else if (!target.startsWith('out/')) assert.deepEqual(notes, [])
  })
}

test('a program in a copy gets from no link into the original', async (t) => {
  const place = new Place(t)
  const random = new Random(7)
  symlinkSync('original', join(place.top, 'alias'))
  const folders = ['', 'a', 'a/b', 'a/b/c', 'd']
  for (const folder of folders) place.write(join(folder, 'file'), 'original')
  const parts = ['..', 'a', 'b', 'c', 'd', 'original', 'alias', 'file', 'l0', 'l1', 'l2', 'l3']
  for (let i = 0; i < 120; i++) {
    const words = Array.from({ length: random.integer(1, 5) }, () => random.pick(parts))
    const start = random.pick(['', '', `${place.from}/`, `${place.top}/alias/`, `${place.top}/`])
    place.link(join(random.pick(folders), `l${i}`), start + words.join('/'))
  }
  await place.copy()
  for (const folder of folders) {
    for (const name of readdirSync(join(place.from, folder))) {
      const [before, after] = [place.from, place.to].map((root) => {
        try {
          return realpathSync(join(root, folder, name))
        } catch {
          return null
        }
      })
      // What leads nowhere may lead to what is there in the copy, where a way is shorter.
      if (before === null) {
        assert.ok(!`${after}/`.startsWith(`${place.from}/`), join(folder, name))
        continue
      }
      const leadsIn = before != null && `${before}/`.startsWith(`${place.from}/`)
      const expected = leadsIn ? place.to + before.slice(place.from.length) : before
      assert.equal(after, expected, join(folder, name))
    }
  }
})

test('files that name the original are named, and stay as they are', async (t) => {
  const place = new Place(t)
  place.write('.env', `DATABASE=${place.from}/db.sqlite\n`)
  place.write('build/Makefile', `cd ${place.from}/build && cc -I${place.from} x.c\n`)
  place.write('other', `${place.from}2 ${place.top}/x${place.from}`)
  const { notes } = await place.copy()
  const exact = { times: false }
  assert.deepEqual(wholeTree(place.to, exact), wholeTree(place.from, exact))
  assert.equal(notes.length, 1)
  assert.match(notes[0]!, /name the original folder.*: (\.env, build\/Makefile|build\/Makefile, \.env)\.$/)
})

test('a file that goes on changing is copied, and named', (t) => {
  const place = new Place(t)
  const log = join(place.from, 'log')
  place.write('log', Buffer.alloc(8_000_000, 'x'))
  const job: CopyJob = {
    from: place.from, to: place.to, copies: [{ from: place.from, to: place.to }],
    closed: [], maxBytes: Infinity, mounts: false,
  }
  // Asked for at every part of a large file.
  const isAborted = (): boolean => {
    appendFileSync(log, 'y')
    return false
  }
  const { notes } = new TreeCopy(job, isAborted).run()
  assert.deepEqual(notes, ['These files were being changed while they were copied: log.'])
  assert.ok(statSync(join(place.to, 'log')).size >= 8_000_000)
})

const swaps: Readonly<Record<string, { command: string; notes: RegExp }>> = {
  'a file that becomes a pipe': { command: 'rm x; mkfifo x', notes: /^Sockets, pipes .*: x\.$/ },
  'a file that becomes a device': {
    command: 'rm x; mknod x c 1 5 2>/dev/null || mkfifo x', notes: /^Sockets, pipes .*: x\.$/,
  },
  'a file that vanishes': { command: 'rm x', notes: /^$/ },
  'a folder that vanishes': { command: 'rm -r d', notes: /^$/ },
  'a link that vanishes': { command: 'rm l', notes: /^$/ },
}

for (const [name, { command, notes }] of Object.entries(swaps)) {
  test(`${name} while its folder is copied is left out`, (t) => {
    const place = new Place(t)
    for (const path of ['x', 'd/y', 'kept', '../secret/y']) place.write(path)
    place.link('l', 'kept')
    let looks = 0
    const swap = (): boolean => {
      // The folder was read; what is in it is not copied yet.
      if ((looks += 1) === 1) execFileSync('sh', ['-c', command], { cwd: place.from })
      return false
    }
    const result = new TreeCopy(place.job, swap).run()
    assert.match(result.notes.join(), notes)
    const [changed] = /\b[xdl]\b/.exec(command)!
    const left = ['d', 'd/y', 'kept', 'l', 'x'].filter((path) => !path.startsWith(changed))
    assert.deepEqual(Object.keys(wholeTree(place.to)).filter((path) => path !== '').sort(), left)
  })
}

test('a folder of any depth, without permissions, and with links is removed', async (t) => {
  const place = new Place(t)
  mkdirSync(join(place.top, 'beside'))
  writeFileSync(join(place.top, 'beside/kept'), '')
  place.link('l', '../beside')
  place.write('locked/x/y', '', 0o000)
  chmodSync(join(place.from, 'locked/x'), 0o000)
  chmodSync(join(place.from, 'locked'), 0o500)
  const made = spawnSync('sh', ['-c', `i=0; while [ $i -lt 100 ]; do
    mkdir ${'d'.repeat(100)} && cd -P ${'d'.repeat(100)} || exit 1; i=$((i+1)); done; : > end`], {
    cwd: place.from,
  })
  if (made.status !== 0) t.diagnostic(String(made.stderr))
  asOrdinaryUser(place, () => removeTree(place.from))
  assert.ok(!existsSync(place.from))
  assert.deepEqual(readdirSync(join(place.top, 'beside')), ['kept'])
  await removeFolder(place.from)
})
