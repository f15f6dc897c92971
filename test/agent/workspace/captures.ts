import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { LeftOut, ObjectStore } from 'runwright/agent'
import { MemoryObjects } from '../../../lib/agent/stores/memory-store.js'
import type { TreeRules } from '../../../lib/agent/workspace/left-out.js'
import {
  manifestOf, TrackedFolder, type Captured,
} from '../../../lib/agent/workspace/tracked-folder.js'
import { objectsOf, readContent, readTree } from '../../../lib/agent/workspace/read-tree.js'
import { scratch } from '../../helpers/engine.js'
import { Random } from '../../helpers/random.js'
import { EditedFolder } from './edited-folder.js'

/** A run that captures a folder again and again. */
export class Captures {
  readonly root: string
  readonly objects: MemoryObjects = new MemoryObjects()
  #tracked: TrackedFolder
  readonly #rules: TreeRules
  previous: string | null = null

  constructor(t: TestContext, rules: TreeRules = {}, root: string = scratch(t)) {
    this.root = root
    this.#rules = rules
    this.#tracked = new TrackedFolder(rules)
    t.after(() => this.#tracked[Symbol.asyncDispose]())
  }

  write(path: string, content: string | Uint8Array = path): void {
    const at = join(this.root, path)
    fs.mkdirSync(join(at, '..'), { recursive: true })
    fs.writeFileSync(at, content)
  }

  async capture(objects: ObjectStore = this.objects, signal?: AbortSignal): Promise<Captured> {
    const options = { previous: this.previous, signal }
    const captured = await this.#tracked.capture(this.root, objects, options)
    this.previous = captured.checkpoint_id
    return captured
  }

  /** As another process does that takes the run over. */
  async restart(): Promise<void> {
    await this.#tracked[Symbol.asyncDispose]()
    this.#tracked = new TrackedFolder(this.#rules)
  }

  /** Paths of the newest checkpoint; those that are not stored have a star. */
  async paths(): Promise<readonly string[]> {
    const { entries } = await readTree(this.objects, this.previous!)
    return [...entries].map(([path, { stored }]) => (stored === false ? `${path}*` : path))
  }

  /** Paths that were left out, by reason. */
  async leftOut(): Promise<Readonly<Record<string, readonly string[]>>> {
    return byReason((await readTree(this.objects, this.previous!)).leftOut)
  }
}

export const byReason = (leftOut: readonly LeftOut[]): Record<string, readonly string[]> =>
  Object.fromEntries(leftOut.map(({ reason, paths }) => [reason, paths]))

/** Counts the calls of a store, and lets them fail. */
export function watched(
  objects: ObjectStore,
  before: (call: string, hashes: readonly string[]) => void | Promise<void>,
): ObjectStore {
  return {
    put: async (blobs) => {
      await before('put', blobs.map(({ hash }) => hash))
      await objects.put(blobs)
    },
    has: async (hashes) => {
      await before('has', hashes)
      return await objects.has(hashes)
    },
    get: (hash) => objects.get(hash),
    list: (after, limit) => objects.list(after, limit),
    delete: (hashes, unusedMs) => objects.delete(hashes, unusedMs),
  }
}

export async function playEdits(t: TestContext, seed: number, rounds: number): Promise<void> {
  t.diagnostic(`seed ${seed}`)
  const random = new Random(seed)
  const captures = new Captures(t)
  const folder = new EditedFolder(captures.root, random)
  const kept = new Map<string, ReturnType<EditedFolder['entries']>>()
  for (let round = 0; round < rounds; round++) {
    for (let edits = random.integer(0, 20); edits > 0; edits--) folder.edit()
    if (random.chance(0.1)) await captures.restart()
    const { checkpoint_id, files, bytes, left_out } = await captures.capture()
    const expected = folder.entries()
    kept.set(checkpoint_id, expected)
    assert.equal(files, expected.length)
    const sizes = expected.map(([, { kind, size }]) => (kind === 'file' ? size : 0))
    assert.equal(bytes, sum(sizes))
    assert.deepEqual(left_out, [])
    const { entries } = await readTree(captures.objects, checkpoint_id)
    assert.deepEqual([...entries], expected)
    for (const [path, { content }] of folder.files) {
      const stored = await readContent(captures.objects, entries.get(path)!)
      assert.deepEqual(Buffer.from(stored), content)
    }
    if (random.chance(0.2)) {
      assert.deepEqual([...(await manifestOf(captures.root)).entries], expected)
    }
  }
  // Whatever was captured since, all earlier checkpoints are whole, and nothing else is stored.
  const seen = new Set<string>()
  for (const [id, expected] of kept) {
    assert.deepEqual([...(await readTree(captures.objects, id)).entries], expected)
    for await (const one of objectsOf(captures.objects, id, seen)) assert.match(one, /^\w{64}$/)
  }
  const referred = [...seen].filter((key) => !key.endsWith('/')).sort()
  assert.deepEqual(await captures.objects.list(null, 1e6), referred)
}

export const sum = (numbers: readonly number[]): number =>
  numbers.reduce((total, one) => total + one, 0)
