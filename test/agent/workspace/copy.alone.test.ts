/** Acts as another user for a while, so it has a process of its own. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs, { chmodSync, mkdirSync, readdirSync, readlinkSync, symlinkSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { WorkspaceError } from '../../../lib/agent/errors.js'
import { onOwnFiles } from '../../../lib/agent/exhaustion.js'
import { copyTree } from '../../../lib/agent/workspace/copy.js'
import { performTask } from '../../../lib/agent/workspace/folder-tasks.js'
import { TreeCopy } from '../../../lib/agent/workspace/tree-copy.js'
import { wholeTree } from '../../helpers/whole-tree.js'
import { Place, asOrdinaryUser } from './copied-place.js'

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

test('a folder that cannot be copied is an error that names it', async (t) => {
  const place = new Place(t)
  const missing = join(place.from, 'missing')
  await assert.rejects(copyTree(missing, place.to), (error: Error) => {
    assert.ok(error instanceof WorkspaceError)
    assert.ok(error.message.includes(missing), error.message)
    return true
  })
})

for (const [name, code, whose] of [
  ['openSync', 'ENOTCONN', 'original'],
  ['fstatSync', 'EIO', 'original'],
  ['readlinkSync', 'ETIMEDOUT', 'original'],
  ['openSync', 'EMFILE', 'machine'],
  ['mkdirSync', 'EROFS', 'copy'],
  ['writeSync', 'ENOSPC', 'copy'],
  ['symlinkSync', 'EIO', 'copy'],
  ['fchmodSync', 'EIO', 'copy'],
] as const) {
  test(`${code} of ${name} is told as a fault of the ${whose}`, async (t) => {
    const place = new Place(t)
    place.write('a', 'text')
    symlinkSync('a', join(place.from, 'link'))
    const original = fs[name] as (...args: unknown[]) => unknown
    const restore = (): void => {
      Object.assign(fs, { [name]: original })
      syncBuiltinESMExports()
    }
    t.after(restore)
    Object.assign(fs, {
      [name]: () => {
        throw Object.assign(new Error(`${code}: injected`), { code, syscall: name })
      },
    })
    syncBuiltinESMExports()
    // Small folders are copied by the caller itself, which works on files of its own.
    const report = await onOwnFiles('no copy', async () =>
      performTask({ t: 'copy', folder: place.from, job: place.job }, () => false),
    )
    restore()
    assert.ok('error' in report && report.error.startsWith(code), JSON.stringify(report))
    // Without the code, the caller cannot take it for a fault of a disk of the engine.
    assert.equal(report.code, whose === 'original' ? undefined : code)
  })
}

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
