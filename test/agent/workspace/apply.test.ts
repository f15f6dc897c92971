import { atOnce } from '../../../lib/internal/next-turn.js'
import assert from 'node:assert/strict'
import {
  existsSync, linkSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmdirSync, rmSync,
  statSync, symlinkSync, writeFileSync,
} from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { test } from 'node:test'
import { applySteps, planRestore, type PathStep } from '../../../lib/agent/workspace/apply.js'
import { nextTurn } from '../../../lib/internal/next-turn.js'
import { comparePaths } from '../../../lib/agent/workspace/net-changes.js'
import { killedAt } from '../../helpers/failing-disk.js'
import { Random } from '../../helpers/random.js'
import {
  contentsOf, diskPath, entryOf, file, foldersOf, link, listing, put, randomEdits, randomModel,
  readModel, treeOf, writeModel, type Model, type ModelFile,
} from '../../helpers/tree-model.js'

const NAMES = ['a', 'b', 'c', 'd e', '\udcffraw', 'ümläut']

/** Temporary folders: one that is worked in, and one outside that nothing may touch. */
class Disk implements Disposable {
  readonly #top = mkdtempSync(join(tmpdir(), 'apply-'))
  readonly folder: string = join(this.#top, 'work')
  readonly outside: string = join(this.#top, 'outside')
  readonly #outside: readonly string[]

  constructor(model: Model, outside: Model = new Map()) {
    mkdirSync(this.folder)
    mkdirSync(this.outside)
    writeModel(this.folder, model)
    writeModel(this.outside, outside)
    this.#outside = listing(readModel(this.outside))
  }

  /** Makes the folder what a stranger made of it. */
  change(before: Model, after: Model): void {
    for (const path of before.keys()) {
      if (after.has(path)) continue
      rmSync(diskPath(this.folder, path))
      for (let above = dirname(path); above !== '.'; above = dirname(above)) {
        try {
          rmdirSync(diskPath(this.folder, above))
        } catch {
          break
        }
      }
    }
    for (const [path, value] of after) {
      const old = before.get(path)
      if (old !== undefined && same(old, entryOf(value))) continue
      rmSync(diskPath(this.folder, path), { force: true })
      writeModel(this.folder, new Map([[path, value]]))
    }
  }

  check(expected: Model, hint: string): void {
    assert.deepEqual(listing(readModel(this.folder)), listing(expected), hint)
    assert.deepEqual(listing(readModel(this.outside)), this.#outside, `outside: ${hint}`)
  }

  [Symbol.dispose](): void {
    rmSync(this.#top, { recursive: true })
  }
}

const same = (a: ModelFile | undefined, entry: PathStep['before']): boolean =>
  a === undefined
    ? entry === null
    : entry !== null && JSON.stringify(entryOf(a)) === JSON.stringify({ ...entry })

/** What the folder must have after the steps, if it had `found` before. */
function expectedOf(
  found: Model,
  target: Model,
  steps: readonly PathStep[],
): { readonly model: Model; readonly skipped: readonly string[] } {
  const model = new Map(found)
  const skipped: string[] = []
  const isFolder = (path: string): boolean =>
    [...model.keys()].some((other) => other.startsWith(`${path}/`))
  const leadsThroughFile = (path: string): boolean =>
    [...model.keys()].some((other) => path.startsWith(`${other}/`))
  for (const { path, before } of steps.filter(({ after }) => after === null)) {
    const now = model.get(path)
    if (now === undefined) continue
    if (same(now, before)) model.delete(path)
    else skipped.push(path)
  }
  for (const { path, before, after } of steps) {
    if (after === null) continue
    const now = model.get(path)
    if (now !== undefined && same(now, after)) continue
    if (same(now, before) && !isFolder(path) && !leadsThroughFile(path)) {
      model.set(path, target.get(path)!)
    } else skipped.push(path)
  }
  return { model, skipped: skipped.sort(comparePaths) }
}

/** Trees of a run and what a stranger made of the first one, with links that lead outside. */
function scenario(seed: number): { before: Model; found: Model; target: Model } {
  const random = new Random(Math.imul(seed, 0x9e3779b1))
  const before = randomModel(random, random.integer(0, 10), NAMES)
  const target = randomEdits(random, before, random.integer(1, 8), NAMES)
  const found = random.chance(0.4) ? new Map(before) : randomEdits(random, before, 3, NAMES)
  if (random.chance(0.3)) {
    const path = random.pick([...before.keys(), 'a'])
    put(found, path.includes('/') ? dirname(path) : path, link('../outside'))
  }
  return { before, found, target }
}

const OUTSIDE = new Map(['a', 'b', 'c'].map((name) => [name, file(`outside ${name}\n`)]))

test('a folder gets what the steps say; what others changed is left alone and named', async () => {
  for (let seed = 1; seed <= Number(process.env['ROUNDS'] ?? 100); seed++) {
    const { before, found, target } = scenario(seed)
    using disk = new Disk(before, OUTSIDE)
    disk.change(before, found)
    const steps = atOnce(planRestore(treeOf(before), treeOf(target)))
    const { model, skipped } = expectedOf(found, target, steps)
    const applied = await applySteps(disk.folder, steps, contentsOf(target))
    disk.check(model, `seed ${seed}`)
    assert.deepEqual(applied.skipped, skipped, `seed ${seed}`)
    const again = await applySteps(disk.folder, steps, contentsOf(target))
    disk.check(model, `seed ${seed}, again`)
    assert.deepEqual(again.skipped, skipped, `seed ${seed}, again`)
  }
})

test('steps that are killed at any change can be done again', async () => {
  let kills = 0
  for (let seed = 1; seed <= Number(process.env['ROUNDS'] ?? 12); seed++) {
    const { before, found, target } = scenario(seed)
    const steps = atOnce(planRestore(treeOf(before), treeOf(target)))
    const { model } = expectedOf(found, target, steps)
    for (let at = 1, hasEnded = false; !hasEnded; at++) {
      using disk = new Disk(before, OUTSIDE)
      disk.change(before, found)
      const apply = (): Promise<unknown> => applySteps(disk.folder, steps, contentsOf(target))
      hasEnded = (await killedAt(at, apply)) < at
      if (seed % 3 === 0) await killedAt(1 + (at % 4), apply)
      await apply()
      disk.check(model, `seed ${seed}, killed at ${at}`)
      kills += 1
    }
  }
  assert.ok(kills > 50, `${kills} kills`)
})

const steps = (before: Model, target: Model): readonly PathStep[] =>
  atOnce(planRestore(treeOf(before), treeOf(target)))
const filesOf = (files: Readonly<Record<string, ModelFile>>): Model =>
  new Map(Object.entries(files))

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

test('what belongs to git, lies in closed folders or leads out of the folder is never written', async () => {
  const kept = filesOf({ '.git/config': file('x'), 'sub/.git/config': file('x'), 'data/log': file('x'), 'bare/HEAD': file('x'), 'bare/objects/o': file('x'), 'bare/refs/r': file('x') })
  using disk = new Disk(kept)
  const paths = [
    '.git/config', '.git/hooks/post-checkout', '.GIT/x', 'sub/.git/config', 'data/log', 'data/new', 'bare/config',
    'bare/HEAD', '../outside/x', '/etc/x', 'a/../../outside/x', './a', 'a//b', '', '.', 'a/', 'a\0b',
  ]
  const [x, y] = [entryOf(file('x')), entryOf(file('y'))]
  const all = paths.flatMap((path) => [
    { path, before: x, after: null },
    { path, before: x, after: y },
    { path, before: null, after: y },
  ])
  const contentOf = contentsOf(filesOf({ y: file('y') }))
  const closed = [join(disk.folder, 'data')]
  for (const step of all) {
    const { done } = await applySteps(disk.folder, [step], contentOf, { closed })
    const isAbsent = step.path === 'bare/config' && step.after === null
    assert.deepEqual(done, isAbsent ? done : [], JSON.stringify(step))
  }
  disk.check(kept, '')
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
    }, filesOf({ a: link('b'), 'b/new': file('new'), 'b/old': file('old'), 'b/z': file('old') }), ['a/old', 'a/z']],
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

/** Files in folders that do not exist yet, so many that several lanes work. */
const many = filesOf(
  Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`a/b/f${i}`, file(`${i}`)])),
)

test('several lanes make the same folders, and the files in them', async () => {
  using disk = new Disk(filesOf({}))
  const { skipped } = await applySteps(disk.folder, steps(filesOf({}), many), contentsOf(many))
  assert.deepEqual(skipped, [])
  disk.check(many, '')
  const back = await applySteps(disk.folder, steps(many, filesOf({})), contentsOf())
  assert.deepEqual(back.skipped, [])
  assert.deepEqual(readdirSync(disk.folder), [])
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
  const written = readdirSync(join(disk.folder, 'a/b'))
  assert.ok(written.length <= 3 && written.every((name) => /^f\d+$/.test(name)), `${written}`)
})

test('a file is on the disk before it gets its name, and its folder before the end', async () => {
  const before = filesOf({ 'a/x': file('x'), 'a/y': file('x') })
  const after = filesOf({ 'a/x': file('y', 0o755), 'a/z': file('z') })
  using disk = new Disk(before)
  const changes: string[] = []
  const work = () => applySteps(disk.folder, steps(before, after), contentsOf(after))
  await killedAt(Infinity, work, (name) => changes.push(name))
  assert.deepEqual(changes.filter((name) => !['chmod', 'open'].includes(name)), [
    'unlink', 'unlink', 'sync',
    'unlink', 'writeFile', 'datasync', 'rename',
    'unlink', 'writeFile', 'datasync', 'link', 'unlink', 'sync',
  ])
})
