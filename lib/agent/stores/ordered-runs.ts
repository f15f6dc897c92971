/** What {@link OrderedRuns} orders by. */
export interface Dated {
  readonly runId: string
  /** Epoch milliseconds. */
  readonly createdMs: number
}

/**
 * Runs in the order of their creation, oldest first, by (`createdMs`, `runId`). New runs nearly
 * always go to the end; anything else is found by bisection.
 */
export class OrderedRuns<R extends Dated> {
  readonly #runs: R[] = []

  get size(): number {
    return this.#runs.length
  }

  at(index: number): R | undefined {
    return this.#runs[index]
  }

  /** A copy. */
  all(): R[] {
    return this.#runs.slice()
  }

  add(run: R): void {
    const last = this.#runs.at(-1)
    if (last === undefined || compareRuns(last, run) < 0) this.#runs.push(run)
    else this.#runs.splice(this.place(run), 0, run)
  }

  /** Takes out a run that is there. */
  remove(run: R): void {
    this.#runs.splice(this.place(run), 1)
  }

  /** Index of the first run that is not older than `dated`. */
  place(dated: Dated): number {
    let low = 0
    let high = this.#runs.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const run = this.#runs[middle]
      if (run !== undefined && compareRuns(run, dated) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Negative when `a` is older than `b`, 0 when they are the same run. */
export function compareRuns(a: Dated, b: Dated): number {
  if (a.createdMs !== b.createdMs) return a.createdMs - b.createdMs
  return a.runId < b.runId ? -1 : a.runId === b.runId ? 0 : 1
}

/**
 * Walks backwards through lists that have no run in common, newest run first: from the one before
 * `before` to the one after `after`, where they are given.
 */
export function* newestFirst<R extends Dated>(
  lists: readonly OrderedRuns<R>[],
  before: Dated | null,
  after: Dated | null,
): Generator<R> {
  const walks = lists.map((list) => ({
    list,
    at: (before === null ? list.size : list.place(before)) - 1,
    end: after === null ? 0 : list.place(after),
  }))
  const [only] = walks
  if (walks.length === 1 && only !== undefined) {
    for (let { at } = only; at >= only.end; at--) yield only.list.at(at) as R
    return
  }
  for (;;) {
    let newest: R | undefined
    let from: (typeof walks)[number] | undefined
    for (const walk of walks) {
      const run = walk.at >= walk.end ? walk.list.at(walk.at) : undefined
      if (run !== undefined && (newest === undefined || compareRuns(newest, run) < 0)) {
        newest = run
        from = walk
      }
    }
    if (newest === undefined || from === undefined) return
    from.at -= 1
    yield newest
  }
}
