/** Replaces functions of node:fs, so it has a process of its own. */
import { atOnce, nextTurn } from '../../../lib/internal/time.js'
import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { applySteps, planRestore } from '../../../lib/agent/workspace/apply.js'
import { planFolders } from '../../../lib/agent/workspace/tree-folders.js'
import { killedAt } from '../../helpers/failing-disk.js'
import { contentsOf, file, foldersOf, link, treeOf, type Model } from '../../helpers/tree-model.js'
import { Disk, steps, filesOf, many } from './work-folders.js'

test('folders that become empty are removed, others stay, and missing ones are made', async () => {
  const before = filesOf({ 'a/b/c': file('x'), 'd/e': file('x'), 'd/f': file('x'), 'g/h': file('x') })
  using disk = new Disk(before)
  mkdirSync(join(disk.folder, 'empty/one'), { recursive: true })
  mkdirSync(join(disk.folder, 'g/empty'))
  const target = filesOf({ 'd/f': file('x'), 'i/j/k': file('y', 0o755), 'd/e2': file('x') })
  await applySteps(disk.folder, steps(before, target), contentsOf(target))
  disk.check(target, '')
  const folders = readdirSync(disk.folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ parentPath, name }) => `${parentPath}/${name}`.slice(disk.folder.length + 1))
  assert.deepEqual(folders.sort(), ['d', 'empty', 'empty/one', 'g', 'g/empty', 'i', 'i/j'])
})

/** The folders with their permissions. */
const modesOf = (folder: string): readonly string[] =>
  foldersOf(folder).map((path) => {
    const { mode } = statSync(join(folder, path))
    return `${path} ${(mode & 0o7777).toString(8)}`
  })

test('folders get the permissions of the target, and empty ones are made and removed', async () => {
  const before = filesOf({ 'a/f': file('x'), 'gone/f': file('x'), 'kept/f': file('x') })
  const after = filesOf({ 'a/f': file('y'), 'new/deep/f': file('z') })
  const now = new Map([['a', 0o755], ['gone', 0o755], ['kept', 0o755], ['old', 0o755], ['old/x', 0o700], ['left', 0o755]])
  const then = new Map([['a', 0o500], ['e', 0o755], ['e/f', 0o711], ['kept', 0o700], ['new', 0o700], ['new/deep', 0o750]])
  using disk = new Disk(before)
  for (const path of ['old/x', 'left']) mkdirSync(join(disk.folder, path), { recursive: true })
  chmodSync(join(disk.folder, 'a'), 0o2755)
  writeFileSync(join(disk.folder, 'left/.env'), 'S=1')
  const [current, target] = [treeOf(before), treeOf(after)]
  const trees = [{ ...current, folders: now }, { ...target, folders: then }] as const
  const folders = atOnce(planFolders(...trees))
  await applySteps(disk.folder, steps(before, after), contentsOf(after), { folders })
  const expected = ['a 2500', 'e 755', 'e/f 711', 'kept 700', 'left 755', 'new 700', 'new/deep 750']
  assert.deepEqual(modesOf(disk.folder), expected)
  disk.check(new Map([...after, ['left/.env', file('S=1')]]), '')
})

test('permissions that others have changed meanwhile stay', async () => {
  using disk = new Disk(filesOf({ 'a/f': file('x') }))
  chmodSync(join(disk.folder, 'a'), 0o711)
  const [now, then] = [new Map([['a', 0o755]]), new Map([['a', 0o700]])]
  const folders = { steps: [{ path: 'a', before: 0o755, after: 0o700 }], kept: then, known: now }
  await applySteps(disk.folder, [], contentsOf(), { folders })
  assert.deepEqual(modesOf(disk.folder), ['a 711'])
})

test('a fault while empty folders are made leaves the folder as it was', async (t) => {
  const before = filesOf({ a: file('x') })
  const after = filesOf({ a: file('y'), 'n/f': file('z') })
  const then = new Map([['e', 0o755], ['e/f', 0o755], ['n', 0o755]])
  using disk = new Disk(before)
  const trees = [
    { ...treeOf(before), folders: new Map<string, number>() },
    { ...treeOf(after), folders: then },
  ] as const
  const folders = atOnce(planFolders(...trees))
  const { mkdir } = promises
  const functions = promises as unknown as { mkdir: unknown }
  t.after(() => {
    functions.mkdir = mkdir
    syncBuiltinESMExports()
  })
  functions.mkdir = (path: string) =>
    basename(path) === 'f'
      ? Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC', syscall: 'mkdir' }))
      : mkdir(path)
  syncBuiltinESMExports()
  await assert.rejects(
    applySteps(disk.folder, steps(before, after), contentsOf(after), { folders }), /full/,
  )
  disk.check(before, '')
  assert.deepEqual(foldersOf(disk.folder), [])
})

test('a folder that can be entered no more is finished after a kill at any change', async () => {
  const isRoot = process.getuid!() === 0
  const [before, after] = [filesOf({ 'a/f': file('x') }), filesOf({ 'a/f': file('y') })]
  const now = { ...treeOf(before), folders: new Map([['a', 0o755]]) }
  const then = { ...treeOf(after), folders: new Map([['a', 0o500], ['a/e', 0]]) }
  const folders = atOnce(planFolders(now, then))
  let at = 0
  for (let isMore = true; isMore; ) {
    at += 1
    using disk = new Disk(before)
    if (isRoot) {
      for (const path of ['..', '', 'a', 'a/f']) {
        chownSync(join(disk.folder, path), 65_534, 65_534)
      }
      process.seteuid!(65_534)
    }
    const work = (again: boolean) => () =>
      applySteps(disk.folder, steps(before, after), contentsOf(after), { folders, key: 'k', again })
    try {
      isMore = (await killedAt(at, work(false))) >= at
      await work(true)()
    } finally {
      if (isRoot) process.seteuid!(0)
    }
    chmodSync(join(disk.folder, 'a/e'), statSync(join(disk.folder, 'a/e')).mode | 0o700)
    assert.deepEqual(modesOf(disk.folder), ['a 500', 'a/e 700'], `killed at ${at}`)
    disk.check(after, `killed at ${at}`)
    chmodSync(join(disk.folder, 'a'), 0o700)
  }
  assert.ok(at > 8, `${at}`)
})

test('zeros of a large file take no room on the disk', async () => {
  const content = Buffer.alloc(8 * 1024 * 1024)
  content.write('begin')
  content.write('middle', 3_000_000)
  const after = filesOf({ sparse: file(content), zeros: file(Buffer.alloc(300_000)) })
  using disk = new Disk(new Map())
  await applySteps(disk.folder, steps(new Map(), after), contentsOf(after))
  disk.check(after, '')
  const { blocks } = statSync(join(disk.folder, 'sparse'))
  assert.ok(blocks * 512 <= 512 * 1024, `${blocks} blocks`)
})

test('a file takes the place of empty folders, but not of what somebody has put there', async () => {
  const after: Model = new Map([['a', file('a\n')], ['b', file('b\n')]])
  using disk = new Disk(new Map())
  for (const folder of ['a/x/y', 'a/z', 'b/.git']) {
    mkdirSync(join(disk.folder, folder), { recursive: true })
  }
  const steps = atOnce(planRestore(treeOf(new Map()), treeOf(after)))
  const { done, skipped } = await applySteps(disk.folder, steps, contentsOf(after))
  assert.deepEqual([done, skipped], [['a'], ['b']])
  assert.deepEqual(foldersOf(disk.folder), ['b', 'b/.git'])
})

test('a folder whose files are all others afterwards stays the same folder', async () => {
  const [before, target] = [filesOf({ 'd/e/x': file('x') }), filesOf({ 'd/e/y': file('y') })]
  using disk = new Disk(before)
  const { ino } = statSync(join(disk.folder, 'd/e'))
  await applySteps(disk.folder, steps(before, target), contentsOf(target))
  disk.check(target, '')
  assert.equal(statSync(join(disk.folder, 'd/e')).ino, ino)
})

test('no folder is made for a file that somebody has removed with its folder', async () => {
  const [before, target] = [filesOf({ 'd/e/x': file('x') }), filesOf({ 'd/e/x': file('y') })]
  using disk = new Disk(filesOf({ kept: file('k') }))
  const { done, skipped } = await applySteps(disk.folder, steps(before, target), contentsOf(target))
  assert.deepEqual([done, skipped], [[], ['d/e/x']])
  assert.ok(!existsSync(join(disk.folder, 'd')))
})

test('a mode is changed without touching a hard link to the file elsewhere', async () => {
  const before = filesOf({ a: file('x') })
  using disk = new Disk(before, filesOf({ kept: file('y') }))
  rmSync(join(disk.folder, 'a'))
  linkSync(join(disk.outside, 'kept'), join(disk.folder, 'a'))
  const [was, now] = [filesOf({ a: file('y') }), filesOf({ a: file('y', 0o755) })]
  // The content is there, so that nothing needs to be stored.
  await applySteps(disk.folder, steps(was, now), contentsOf())
  disk.check(now, '')
})

test('what somebody does while content is read is not lost, and not followed out of the folder', async () => {
  const before = filesOf({ 'a/old': file('old'), 'a/z': file('old') })
  const target = filesOf({ 'a/new': file('new'), 'a/old': file('new 2'), 'a/z': file('new 3') })
  const contents = contentsOf(target)
  type Trick = readonly [during: string, (disk: Disk) => void, Model, skipped: readonly string[]]
  const tricks: readonly Trick[] = [
    ['new', (disk) => writeFileSync(join(disk.folder, 'a/new'), 'mine'), filesOf({ ...Object.fromEntries(target), 'a/new': file('mine') }), ['a/new']],
    ['new 2', (disk) => writeFileSync(join(disk.folder, 'a/old'), 'old', { mode: 0o644 }), filesOf({ ...Object.fromEntries(target), 'a/old': file('old') }), ['a/old']],
    ['new 2', (disk) => rmSync(join(disk.folder, 'a/old')), filesOf({ 'a/new': file('new'), 'a/z': file('new 3') }), ['a/old']],
    ['new', (disk) => renameSync(join(disk.folder, 'a'), join(disk.folder, 'b')), filesOf({ 'b/old': file('old'), 'b/z': file('old') }), ['a/new', 'a/old', 'a/z']],
    ['new 2', (disk) => {
      renameSync(join(disk.folder, 'a'), join(disk.folder, 'b'))
      symlinkSync('b', join(disk.folder, 'a'))
    }, filesOf({ a: link('b'), 'b/old': file('old'), 'b/z': file('old') }), ['a/new', 'a/old', 'a/z']],
  ]
  for (const [during, trick, expected, skipped] of tricks) {
    using disk = new Disk(before)
    const result = await applySteps(disk.folder, steps(before, target), async (entry) => {
      const content = await contents(entry)
      if (String(content) === during) trick(disk)
      return content
    })
    disk.check(expected, during)
    assert.deepEqual(result.skipped, skipped)
  }
})

test('what somebody puts in the place of a file that is about to be removed stays', async (t) => {
  const before = filesOf({ 'a/gone': file('old'), 'a/left': link('old') })
  const functions = promises as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>
  for (const [name, replaced] of [['open', 'a/gone'], ['readlink', 'a/left']] as const) {
    using disk = new Disk(before)
    const at = join(disk.folder, replaced)
    const original = functions[name]!
    t.after(() => {
      functions[name] = original
      syncBuiltinESMExports()
    })
    functions[name] = async (...args) => {
      const result = await original(...args)
      if (basename(String(args[0])) === basename(replaced)) {
        writeFileSync(`${at}.new`, 'mine')
        renameSync(`${at}.new`, at)
      }
      return result
    }
    syncBuiltinESMExports()
    const { skipped } = await applySteps(disk.folder, steps(before, filesOf({})), contentsOf())
    functions[name] = original
    syncBuiltinESMExports()
    assert.deepEqual(skipped, [replaced])
    disk.check(filesOf({ [replaced]: file('mine') }), replaced)
  }
})

test('an error of the object store is thrown as it is, one of the system names the path', async () => {
  using disk = new Disk(filesOf({}))
  const target = filesOf({ 'a/b': file('x') })
  const gone = new Error('the store is away')
  const failing = () => Promise.reject(gone)
  await assert.rejects(applySteps(disk.folder, steps(filesOf({}), target), failing), gone)
  await applySteps(disk.folder, steps(filesOf({}), target), contentsOf(target))
  disk.check(target, '')
  const long = filesOf({ [`a/${'n'.repeat(300)}`]: file('x') })
  await assert.rejects(applySteps(disk.folder, steps(filesOf({}), long), contentsOf(long)), {
    code: 'ERR_AGENT_WORKSPACE',
    message: /too long/,
  })
  assert.ok(existsSync(join(disk.folder, 'a/b')) && statSync(disk.folder).isDirectory())
})

test('a step that fails ends the others before it is thrown', async () => {
  using disk = new Disk(filesOf({}))
  const contents = contentsOf(many)
  const gone = new Error('the store is away')
  const held: (() => void)[] = []
  let isOver = false
  const applied = applySteps(disk.folder, steps(filesOf({}), many), async (entry) => {
    if (held.length === 3) throw gone
    await new Promise<void>((resolve) => held.push(resolve))
    return await contents(entry)
  }).finally(() => (isOver = true))
  applied.catch(() => undefined)
  while (held.length < 3) await nextTurn()
  for (let turns = 0; turns < 50; turns++) await nextTurn()
  assert.equal(isOver, false)
  for (const release of held) release()
  await assert.rejects(applied, gone)
  assert.deepEqual(readdirSync(disk.folder), [])
})

test('a file is on the disk before it gets its name, and its folder before the end', async () => {
  const before = filesOf({ 'a/x': file('x'), 'a/y': file('x') })
  const after = filesOf({ 'a/x': file('y', 0o755), 'a/z': file('z') })
  using disk = new Disk(before)
  const changes: string[] = []
  const work = () => applySteps(disk.folder, steps(before, after), contentsOf(after))
  await killedAt(Infinity, work, (name) => changes.push(name))
  assert.deepEqual(changes.filter((name) => !['chmod', 'open'].includes(name)), [
    'link', 'write', 'datasync', 'write', 'datasync',
    'rename', 'sync',
    'rename', 'link', 'unlink', 'sync',
    'unlink', 'unlink',
  ])
})
