import { OrderedRuns, type SortKey } from './ordered-runs.js'

/**
 * Lists of runs by keys that few hosts ask for: made when one is asked for first, and kept up to
 * date from then on.
 */
export class LazyLists<R extends SortKey> {
  readonly #keysOf: (run: R) => readonly string[]
  #lists: Map<string, OrderedRuns<R>> | null = null

  constructor(keysOf: (run: R) => readonly string[]) {
    this.#keysOf = keysOf
  }

  /** The list of a key; `all` are the runs, oldest first. */
  get(key: string, all: OrderedRuns<R>): OrderedRuns<R> | undefined {
    if (this.#lists === null) {
      this.#lists = new Map()
      for (const run of all.all()) this.add(run)
    }
    return this.#lists.get(key)
  }

  add(run: R): void {
    if (this.#lists === null) return
    for (const key of this.#keysOf(run)) {
      const list = this.#lists.get(key) ?? new OrderedRuns()
      if (list.size === 0) this.#lists.set(key, list)
      list.add(run)
    }
  }

  /** Removes a run whose keys are those with which it was added. */
  remove(run: R): void {
    for (const key of this.#lists === null ? [] : this.#keysOf(run)) {
      const list = this.#lists?.get(key)
      list?.remove(run)
      if (list?.size === 0) this.#lists?.delete(key)
    }
  }
}
