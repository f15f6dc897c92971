import { lowerBound } from '../../internal/queues.js'
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
    let start = step === 1 ? 0 : keys.length - 1
    if (from !== null) {
      // Going up, the first that is not before `from`; going down, the one before the first behind.
      const bound = step === 1 ? 0 : 1
      start = lowerBound(keys.length, (at) => compare(keys[at] as string, from) < bound)
      if (step === -1) start -= 1
    }
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
