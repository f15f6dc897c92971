import { lowerBound } from '../../internal/queues.js'

/** The key of {@link OrderedRuns}: by `createdMs`, then by `runId`. */
export interface SortKey {
  readonly runId: string
  /** Epoch milliseconds. */
  readonly createdMs: number
}

/**
 * Runs in a sorted array, oldest first. New runs nearly always go to the end; all other positions
 * are found by binary search.
 */
export class OrderedRuns<R extends SortKey> {
  readonly #runs: R[] = []

  get size(): number {
    return this.#runs.length
  }

  at(index: number): R | undefined {
    return this.#runs[index]
  }

  /** A copy of the array, which the caller owns. */
  all(): R[] {
    return this.#runs.slice()
  }

  add(run: R): void {
    const last = this.#runs.at(-1)
    if (last === undefined || compareRuns(last, run) < 0) this.#runs.push(run)
    else this.#runs.splice(this.indexOf(run), 0, run)
  }

  /** Removes a run, which must be present. */
  remove(run: R): void {
    this.#runs.splice(this.indexOf(run), 1)
  }

  /** Index of the first run that is not older than `key`. */
  indexOf(key: SortKey): number {
    return lowerBound(this.#runs.length, (at) => compareRuns(this.#runs[at]!, key) < 0)
  }
}

/** Negative when `a` sorts before `b`; 0 for the same key. */
export function compareRuns(a: SortKey, b: SortKey): number {
  if (a.createdMs !== b.createdMs) return a.createdMs - b.createdMs
  return a.runId < b.runId ? -1 : a.runId === b.runId ? 0 : 1
}

/**
 * Merges lists that have no run in common: the runs not older than `after` and older than `before`;
 * null sets no bound. `step` is 1 for the oldest run first, -1 for the newest first.
 */
export function* merged<R extends SortKey>(
  lists: readonly OrderedRuns<R>[],
  after: SortKey | null,
  before: SortKey | null,
  step: 1 | -1,
): Generator<R> {
  const cursors = lists.map((list) => {
    const first = after === null ? 0 : list.indexOf(after)
    const last = (before === null ? list.size : list.indexOf(before)) - 1
    return { list, at: step === 1 ? first : last, left: last - first + 1 }
  })
  const [only] = cursors
  if (cursors.length === 1 && only !== undefined) {
    for (let { at, left } = only; left > 0; at += step, left--) yield only.list.at(at) as R
    return
  }
  for (;;) {
    let next: R | undefined
    let from: (typeof cursors)[number] | undefined
    for (const cursor of cursors) {
      const run = cursor.left > 0 ? cursor.list.at(cursor.at) : undefined
      if (run !== undefined && (next === undefined || compareRuns(next, run) * step > 0)) {
        next = run
        from = cursor
      }
    }
    if (next === undefined || from === undefined) return
    from.at += step
    from.left -= 1
    yield next
  }
}
