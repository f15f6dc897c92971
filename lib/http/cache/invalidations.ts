/** Invalidated keys that are remembered. */
const MAX_KEYS = 1000

/**
 * What was invalidated lately. A response that was requested before its URL was changed may arrive
 * after that, and must not be stored then.
 */
export class Invalidations {
  /** The number of the last invalidation of a key, oldest first. */
  readonly #keys = new Map<string, number>()
  #count = 0
  /** The number of the last invalidation that was forgotten. */
  #forgotten = 0

  /** The number of the last invalidation, to pass to {@link Invalidations.since} later. */
  get now(): number {
    return this.#count
  }

  add(key: string): void {
    this.#keys.delete(key)
    this.#keys.set(key, ++this.#count)
    if (this.#keys.size <= MAX_KEYS) return
    const [oldest, at] = this.#keys.entries().next().value!
    this.#keys.delete(oldest)
    this.#forgotten = at
  }

  /** Whether `key` was, or may have been, invalidated after `start`. */
  since(start: number, key: string): boolean {
    return start < this.#forgotten || (this.#keys.get(key) ?? 0) > start
  }
}
