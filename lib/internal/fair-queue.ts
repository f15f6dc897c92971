/**
 * Runs that wait for their turn, in rounds over their roots, so that no tree of runs keeps others
 * waiting.
 *
 * 1. A root's turn comes when the run with which it came would have had its own. After each turn
 *    the root goes behind all others that wait.
 * 2. Runs of one root have their turns in the order in which they came, but for those that cannot
 *    start.
 * 3. Runs that are their own roots therefore have their turns in the order in which they came.
 *
 * A turn costs no look at the other runs.
 *
 * @module
 */

/** A run that waits; `root` is the run at the top of its tree, or itself. */
export interface Waiting {
  readonly runId: string
  readonly root: string
}

interface Root<W> {
  /** Smaller numbers come first. */
  order: number
  /** Its runs that wait, those that cannot start included. */
  waiting: number
  /** Those that can start. */
  readonly ready: Entry<W>[]
}

interface Entry<W> {
  readonly run: W
  readonly order: number
  readonly root: Root<W>
}

/** The queue; its rules are in the comment of this file. */
export class FairQueue<W extends Waiting> {
  /** Runs that come and roots that go behind the others get their numbers from the same count. */
  #count = 0
  readonly #entries = new Map<string, Entry<W>>()
  readonly #roots = new Map<string, Root<W>>()
  /** Roots with runs that can start. */
  readonly #ready: Root<W>[] = []

  /** Adds a run, which cannot start until {@link FairQueue.ready} is called. */
  add(run: W): void {
    const order = this.#count++
    const root = this.#roots.get(run.root) ?? { order, waiting: 0, ready: [] }
    root.waiting += 1
    this.#roots.set(run.root, root)
    this.#entries.set(run.runId, { run, order, root })
  }

  /** From now on this run can start. */
  ready(runId: string): void {
    const entry = this.#entries.get(runId)
    if (entry === undefined) return
    const { root } = entry
    if (root.ready.length === 0) insert(this.#ready, root)
    insert(root.ready, entry)
  }

  /** Removes the run whose turn it is, of those that `may` accepts. */
  next(may: (run: W) => boolean = () => true): W | undefined {
    for (const root of this.#ready) {
      const entry = root.ready.find(({ run }) => may(run))
      if (entry === undefined) continue
      this.#remove(entry)
      const hasMore = remove(this.#ready, root)
      root.order = this.#count++
      if (hasMore) this.#ready.push(root)
      return entry.run
    }
    return undefined
  }

  /** Removes a run; does nothing when it is not in the queue. */
  remove(runId: string): void {
    const entry = this.#entries.get(runId)
    if (entry !== undefined) this.#remove(entry)
  }

  #remove(entry: Entry<W>): void {
    const { root, run } = entry
    this.#entries.delete(run.runId)
    root.waiting -= 1
    if (root.waiting === 0) this.#roots.delete(run.root)
    if (remove(root.ready, entry) && root.ready.length === 0) remove(this.#ready, root)
  }
}

interface Ordered {
  readonly order: number
}

/** The index of the first item that does not come before `order`. */
function indexOf(items: readonly Ordered[], order: number): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((items[middle] as Ordered).order < order) low = middle + 1
    else high = middle
  }
  return low
}

function insert<T extends Ordered>(items: T[], item: T): void {
  items.splice(indexOf(items, item.order), 0, item)
}

/** False when the item is not there. */
function remove<T extends Ordered>(items: T[], item: T): boolean {
  const index = indexOf(items, item.order)
  if (items[index] !== item) return false
  items.splice(index, 1)
  return true
}
