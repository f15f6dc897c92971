import type { ObjectStore } from '../object-store.js'
import { raceAbort } from '../../internal/time.js'

/** Blobs that one capture has stored or found. */
type Used = Set<string>

/**
 * Keeps blobs from being removed between the moment at which a capture stores or finds them and the
 * moment at which an event refers to them durably. In a store that other processes share, the store
 * does that by time; in an exclusive one, this does.
 *
 * 1. What a capture stores or finds is held until the capture ends; and if a sweep is under way
 *    then, until that ends, because it may have looked at the run too early.
 * 2. Blobs are removed in small batches. Nothing is stored or found during one.
 */
export class ObjectUse {
  /** For reading; what stores goes through {@link capturing}. */
  readonly objects: ObjectStore
  readonly #isExclusive: boolean
  readonly #captures = new Set<Used>()
  /** Those of captures that have ended since the sweep began; null without a sweep. */
  #ended: Set<Used> | null = null
  #removing: Promise<void> | null = null

  /** @param isShared - do other processes refer to the blobs? */
  constructor(objects: ObjectStore, isShared: boolean) {
    this.objects = objects
    this.#isExclusive = objects.exclusive === true && !isShared
  }

  /** Does only this process refer to the blobs? */
  get isExclusive(): boolean {
    return this.#isExclusive
  }

  /**
   * Calls `work` with the store to use in it. `work` must not resolve before an event that refers
   * to the blobs is durable.
   */
  async capturing<T>(work: (objects: ObjectStore) => Promise<T>): Promise<T> {
    if (!this.#isExclusive) return await work(this.objects)
    const used: Used = new Set()
    this.#captures.add(used)
    try {
      return await work(this.#holding(used))
    } finally {
      this.#captures.delete(used)
      this.#ended?.add(used)
    }
  }

  /** Calls `work`, during which {@link remove} may be called; one sweep at a time. */
  async sweeping<T>(work: () => Promise<T>): Promise<T> {
    this.#ended = new Set()
    try {
      return await work()
    } finally {
      this.#ended = null
    }
  }

  /** Removes those of these blobs that nothing holds, and returns how many that may have been. */
  async remove(hashes: readonly string[], unusedMs: number): Promise<number> {
    const holders = [...this.#captures, ...(this.#ended ?? [])]
    const free = hashes.filter((hash) => !holders.some((used) => used.has(hash)))
    if (free.length === 0) return 0
    const removing = this.objects.delete(free, this.#isExclusive ? 0 : unusedMs)
    this.#removing = removing.catch(() => undefined)
    try {
      await removing
    } finally {
      this.#removing = null
    }
    return free.length
  }

  #holding(used: Used): ObjectStore {
    const { objects } = this
    const hold = async (hashes: readonly string[]): Promise<void> => {
      for (const hash of hashes) used.add(hash)
      while (this.#removing !== null) await this.#removing
    }
    return {
      exclusive: objects.exclusive,
      put: async (blobs) => {
        await hold(blobs.map(({ hash }) => hash))
        await objects.put(blobs)
      },
      has: async (hashes) => {
        await hold(hashes)
        return await objects.has(hashes)
      },
      get: (hash) => objects.get(hash),
      list: (after, limit) => objects.list(after, limit),
      delete: (hashes, unusedMs) => objects.delete(hashes, unusedMs),
    }
  }
}

/** Wraps a store: each call rejects with the signal's reason if the signal aborts first. */
export function boundedObjects(objects: ObjectStore, signal: AbortSignal): ObjectStore {
  const bounded = <T>(work: () => Promise<T>): Promise<T> =>
    raceAbort(Promise.resolve().then(work), signal)
  const { claimSweep } = objects
  return {
    exclusive: objects.exclusive,
    put: (blobs) => bounded(() => objects.put(blobs)),
    get: (hash) => bounded(() => objects.get(hash)),
    has: (hashes) => bounded(() => objects.has(hashes)),
    list: (after, limit) => bounded(() => objects.list(after, limit)),
    delete: (hashes, unusedMs) => bounded(() => objects.delete(hashes, unusedMs)),
    ...(claimSweep && { claimSweep: (ms) => bounded(() => claimSweep.call(objects, ms)) }),
  }
}
