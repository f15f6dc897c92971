import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { FileStore, type MemoryStore } from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/time.js'
import { Random } from '../../helpers/random.js'
import {
  file, link, listing, put, randomModel, readModel, writeModel, type Model, type ModelFile,
} from '../../helpers/tree-model.js'
import { wholeTree } from '../../helpers/whole-tree.js'
import type { World } from '../../helpers/world.js'
import type { Place, Plan } from './model-known.js'
import {
  differing, edited, editFolders, editsBetween, isHidden, NAMES, perform, swapped,
} from './model-rules.js'

/** The folders of a world that runs and a stranger change, and what each must have. */
export class Folders {
  protected random: Random
  protected readonly plan: Plan
  protected readonly world: World
  readonly #canary: string
  #canaryBefore: Record<string, string>
  protected readonly original: Place
  protected disk: FileStore | MemoryStore
  protected readonly places: Map<string, Place> = new Map()
  protected context = ''
  readonly counts: Record<string, number> = {}
  /** What was done, for people. */
  readonly script: string[] = []

  constructor(plan: Plan, world: World) {
    this.plan = plan
    this.random = new Random(plan.seed)
    this.world = world
    this.#canary = join(world.top, 'canary')
    const canary = randomModel(this.random, 12, NAMES)
    for (const name of NAMES) put(canary, name, file(`canary ${name}\n`))
    writeModel(this.#canary, canary)
    this.#canaryBefore = wholeTree(this.#canary)
    const folder = randomModel(this.random, 7, NAMES)
    folder.set('.env', file('TOKEN=1\n'))
    folder.set('k.pem', file('key\n', 0o600))
    put(folder, 'node_modules/m/i.js', file('1\n'))
    put(folder, 'a/.env', file('TOKEN=2\n'))
    put(folder, 'out', link(this.#canary))
    this.original = { path: world.cwd, owner: '', now: folder }
    writeModel(this.original.path, folder)
    this.disk = plan.seed % 2 === 0 ? world.store : this.openDisk()
  }

  protected openDisk(): FileStore {
    return new FileStore({ directory: this.world.data })
  }

  protected get folder(): Model {
    return this.original.now!
  }

  protected count(name: string): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1
  }

  protected tell(facts: object): void {
    this.context += ` ${JSON.stringify(facts)}`
  }

  /** @param leavesEmpty may folders become empty and stay? */
  protected edit(place: Place, sly: boolean, leavesEmpty = true): void {
    const after = edited(this.random, place.now!, this.#canary, this.plan.bigBytes)
    for (const path of after.keys()) {
      // To a tree, a folder that has nothing else is empty.
      if (!leavesEmpty && isHidden(path) && !place.now!.has(path)) after.delete(path)
    }
    perform(place.path, editsBetween(this.random, place.now!, after), sly)
    editFolders(this.random, place.path, leavesEmpty)
    place.now = after
  }

  protected stranger(): void {
    this.edit(this.original, this.random.chance(0.5))
  }

  /** Edits a folder while somebody else changes it; notes what came of which path. */
  protected meet(
    place: Place,
    changed: Map<string, ModelFile | undefined>,
    steps: readonly string[],
  ): void {
    this.count('met')
    const isOwn = (path: string): boolean => !/\.runwright-\w+\.tmp/.test(path)
    const now = new Map([...readModel(place.path)].filter(([path]) => isOwn(path)))
    const outside = join(this.#canary, `outside ${this.counts['met']}`)
    const after = steps.length > 0 && this.random.chance(0.7)
      ? swapped(this.random, now, steps, outside)
      : edited(this.random, now, this.#canary, this.plan.bigBytes)
    this.#canaryBefore = wholeTree(this.#canary)
    perform(place.path, editsBetween(this.random, now, after), this.random.chance(0.3))
    for (const path of differing(now, after)) changed.set(path, after.get(path))
  }

  protected same(found: Model, wanted: Model, what: string): void {
    assert.deepEqual(listing(found), listing(wanted), `${this.context}: ${what}`)
  }

  protected async compareDisk(): Promise<void> {
    this.same(readModel(this.original.path), this.folder, 'the folder')
    assert.deepEqual(wholeTree(this.#canary), this.#canaryBefore, `${this.context}: outside`)
    for (const { now, owner, path } of this.places.values()) {
      if (now !== null) this.same(readModel(path), now, `the copy of ${owner}`)
      else assert.equal(existsSync(path), false, `${this.context}: a copy of ${owner} is left`)
    }
    // A run that has ended gives its folder back a moment after its last event.
    for (let turn = 0; turn < 100; turn++) await nextTurn()
  }
}
