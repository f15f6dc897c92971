import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { applySteps, planRestore, type PathStep } from '../../../lib/agent/workspace/apply.js'
import { comparePaths } from '../../../lib/agent/workspace/net-changes.js'
import { killedAt } from '../../helpers/failing-disk.js'
import { Random } from '../../helpers/random.js'
import {
  contentsOf, diskPath, entryOf, file, link, listing, put, randomEdits, randomModel, readModel,
  treeOf, writeModel, type Model, type ModelFile,
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
      if (old !== undefined && listing(new Map([['', old]]))[0] === listing(new Map([['', value]]))[0]) {
        continue
      }
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
  for (let seed = 1; seed <= Number(process.env['ROUNDS'] ?? 60); seed++) {
    const { before, found, target } = scenario(seed)
    using disk = new Disk(before, OUTSIDE)
    disk.change(before, found)
    const steps = planRestore(treeOf(before), treeOf(target))
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
    const steps = planRestore(treeOf(before), treeOf(target))
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
