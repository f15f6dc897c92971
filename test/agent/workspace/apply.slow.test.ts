import { atOnce } from '../../../lib/internal/time.js'
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { applySteps, planRestore, type PathStep } from '../../../lib/agent/workspace/apply.js'
import { comparePaths } from '../../../lib/agent/workspace/net-changes.js'
import { killedAt } from '../../helpers/failing-disk.js'
import { Random } from '../../helpers/random.js'
import {
  contentsOf,
  entryOf,
  file,
  link,
  put,
  randomEdits,
  randomModel,
  treeOf,
  type Model,
} from '../../helpers/tree-model.js'
import { Disk, same, steps, filesOf, many } from './work-folders.js'

const NAMES = ['a', 'b', 'c', 'd e', '\udcffraw', 'ümläut']

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
      const apply = (again: boolean): Promise<unknown> =>
        applySteps(disk.folder, steps, contentsOf(target), { key: 'key', again })
      hasEnded = (await killedAt(at, () => apply(false))) < at
      if (seed % 3 === 0) await killedAt(1 + (at % 40), () => apply(true))
      await apply(true)
      disk.check(model, `seed ${seed}, killed at ${at}`)
      kills += 1
    }
  }
  assert.ok(kills > 50, `${kills} kills`)
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

test('several lanes make the same folders, and the files in them', async () => {
  using disk = new Disk(filesOf({}))
  const { skipped } = await applySteps(disk.folder, steps(filesOf({}), many), contentsOf(many))
  assert.deepEqual(skipped, [])
  disk.check(many, '')
  const back = await applySteps(disk.folder, steps(many, filesOf({})), contentsOf())
  assert.deepEqual(back.skipped, [])
  assert.deepEqual(readdirSync(disk.folder), [])
})
