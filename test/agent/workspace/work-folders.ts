import { atOnce } from '../../../lib/internal/time.js'
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { planRestore, type PathStep } from '../../../lib/agent/workspace/apply.js'
import {
  diskPath,
  entryOf,
  file,
  listing,
  readModel,
  treeOf,
  writeModel,
  type Model,
  type ModelFile,
} from '../../helpers/tree-model.js'

/** Temporary folders: one that is worked in, and one outside that nothing may touch. */
export class Disk implements Disposable {
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

export const same = (a: ModelFile | undefined, entry: PathStep['before']): boolean =>
  a === undefined
    ? entry === null
    : entry !== null && JSON.stringify(entryOf(a)) === JSON.stringify({ ...entry })

export const steps = (before: Model, target: Model): readonly PathStep[] =>
  atOnce(planRestore(treeOf(before), treeOf(target)))
export const filesOf = (files: Readonly<Record<string, ModelFile>>): Model =>
  new Map(Object.entries(files))

/** Files in folders that do not exist yet, so many that several lanes work. */
export const many: Model = filesOf(
  Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`a/b/f${i}`, file(`${i}`)])),
)
