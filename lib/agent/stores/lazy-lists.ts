import { OrderedRuns, type SortKey } from './ordered-runs.js'

/**
 * Lists of runs by keys that few hosts ask for: made when one is asked for first, and kept up to
 * date from then on.
 */
export class LazyLists<R extends SortKey> {
  readonly #keysOf: (run: R) => readonly string[]
  #lists: Map<string, OrderedRuns<R>> | null = null
  /** Sorted; null until they are asked for, and after they have changed. */
  #keys: string[] | null = null

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

  /**
   * The keys in the order of `compare`, from `from` on where it is not null, backwards with a
   * `step` of -1. `all` as in {@link LazyLists.get}.
   */
  *keys(
    all: OrderedRuns<R>,
    from: string | null,
    step: 1 | -1,
    compare: (a: string, b: string) => number,
  ): Generator<string> {
    this.get('', all)
    const keys = (this.#keys ??= [...(this.#lists?.keys() ?? [])].sort(compare))
    let low = 0
    let high = keys.length
    while (from !== null && low < high) {
      const middle = (low + high) >>> 1
      // Going up, the first that is not before `from`; going down, the first behind it.
      const order = compare(keys[middle] as string, from)
      if (order < 0 || (step === -1 && order === 0)) low = middle + 1
      else high = middle
    }
    const start = step === 1 ? low : (from === null ? keys.length : low) - 1
    for (let i = start; i >= 0 && i < keys.length; i += step) yield keys[i] as string
  }

  add(run: R): void {
    if (this.#lists === null) return
    for (const key of this.#keysOf(run)) {
      const list = this.#lists.get(key) ?? new OrderedRuns()
      if (list.size === 0) {
        this.#lists.set(key, list)
        this.#keys = null
      }
      list.add(run)
    }
  }

  /** Removes a run whose keys are those with which it was added. */
  remove(run: R): void {
    for (const key of this.#lists === null ? [] : this.#keysOf(run)) {
      const list = this.#lists?.get(key)
      list?.remove(run)
      if (list?.size !== 0) continue
      this.#lists?.delete(key)
      this.#keys = null
    }
  }
}
