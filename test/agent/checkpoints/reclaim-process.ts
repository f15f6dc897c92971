/**
 * Runs that store trees, fork, and are deleted, on stores whose calls interleave in any order and
 * may be the last ones of their process; with a model of what must be stored.
 */
import type { ObjectStore, RunRecord, RunStore, StoredObject } from 'runwright/agent'
import { ObjectUse } from '../../../lib/agent/checkpoints/object-use.js'
import { Reclaimer } from '../../../lib/agent/checkpoints/reclaim.js'
import { useTree } from '../../../lib/agent/checkpoints/fork-files.js'
import { blob } from '../../../lib/agent/testing/object-contract/suite.js'
import { sampleRun } from '../../../lib/agent/testing/sample-records.js'
import { encodeFolder, type FolderEntry } from '../../../lib/agent/workspace/tree-objects.js'
import type { Random } from '../../helpers/random.js'

/** Contents of files by path, all of them in folders one level deep. */
export type Files = ReadonlyMap<string, string>

/** The objects of a tree: contents and folders, the top last. */
export function objectsOfFiles(files: Files): StoredObject[] {
  const folders = new Map<string, FolderEntry[]>()
  const objects: StoredObject[] = []
  for (const [path, text] of files) {
    const [folder, name] = path.split('/') as [string, string]
    const content = blob(text)
    objects.push(content)
    const entry = { name, kind: 'file', mode: 0o644, size: text.length, isStored: true } as const
    const entries = folders.get(folder) ?? []
    entries.push({ ...entry, sha256: content.hash })
    folders.set(folder, entries)
  }
  const top = [...folders].map(([name, entries]): FolderEntry => {
    const object = blob(encodeFolder(entries))
    objects.push(object)
    return { name, kind: 'folder', mode: 0o755, sha256: object.hash }
  })
  objects.push(blob(encodeFolder(top, [])))
  return objects
}

/** The process has died: whatever it still wants to do has no effect. */
export class Died extends Error {}

/** One process with its engine's parts, on stores that outlive it. */
export class TestProcess {
  readonly use: ObjectUse
  readonly store: RunStore
  readonly objects: ObjectStore
  readonly reclaimer: Reclaimer
  isDead = false
  /** Calls until it dies. */
  #left: number
  readonly #random: Random

  constructor(store: RunStore, objects: ObjectStore, random: Random, left: number = Infinity) {
    this.#random = random
    this.#left = left
    this.store = this.#interleaved(store)
    this.objects = this.#interleaved(objects)
    this.use = new ObjectUse(this.objects, false)
    const onProblem = (problem: Error): void => {
      throw problem
    }
    this.reclaimer = new Reclaimer({ store: this.store, use: this.use, onProblem })
  }

  /** Stores files as a run's next checkpoint. */
  async checkpoint(runId: string, files: Files): Promise<void> {
    const blobs = objectsOfFiles(files)
    await this.use.capturing(async (objects) => {
      const known = await objects.has(blobs.map(({ hash }) => hash))
      const unknown = blobs.filter(({ hash }) => !known.has(hash))
      const half = unknown.length >> 1
      await Promise.all([objects.put(unknown.slice(0, half)), objects.put(unknown.slice(half))])
      await this.#append(runId, blobs.at(-1)?.hash ?? '')
    })
  }

  async fork(runId: string, base: string): Promise<void> {
    await this.use.capturing(async (objects) => {
      await useTree(objects, base)
      const [created] = sampleRun(runId, { status: 'pending' }) as [RunRecord]
      const fork = { checkpoint_id: base, messages: [], baseline: { files: {} } }
      const payload = { ...created.payload, forked_from: { run_id: 'any', seq: 1 } }
      const record = { ...created, payload, private: { ...privateOf(created), fork } }
      await this.store.append(runId, [record as unknown as RunRecord])
    })
  }

  async #append(runId: string, checkpointId: string): Promise<void> {
    const head = await this.store.head(runId)
    if (head === null) return
    const seq = head.details.last_seq + 1
    const payload = { checkpoint_id: checkpointId, reason: 'iteration' }
    const record = {
      v: 1, run_id: runId, seq, iteration: 1, ts: 1_700_000_000 + seq, kind: 'checkpoint',
      payload: { ...payload, files: 1, bytes: 1, new_bytes: 1, left_out: [] },
      private: { previous: head.checkpointSeq },
    }
    await this.store.append(runId, [record as unknown as RunRecord]).catch((error: unknown) => {
      // It was deleted meanwhile.
      if ((error as { code?: string }).code !== 'ERR_AGENT_SEQ_CONFLICT') throw error
    })
  }

  /** The same, each call between other ones. */
  #interleaved<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        return async (...values: unknown[]): Promise<unknown> => {
          await this.#step()
          const result: unknown = await Reflect.apply(value, target, values)
          await this.#step()
          return result
        }
      },
    })
  }

  async #step(): Promise<void> {
    if (--this.#left <= 0) this.isDead = true
    for (let turns = this.#random.integer(0, 3); turns > 0; turns--) await nextTick()
    // A dead process does nothing more, and nobody hears of it.
    if (this.isDead) throw new Died()
  }
}

function privateOf(record: RunRecord): object {
  return 'private' in record ? (record.private ?? {}) : {}
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
