/** A part of the list of runs: read anew from its beginning, and page by page on demand. */
import { page } from './api.js'

/** @typedef {import('../types.js').RunSummary} RunSummary */

/** The most runs read anew at a time; older ones stay as they were when they were read. */
const REFRESHED = 200

export class RunPages {
  /** @type {readonly RunSummary[]} */
  runs = []
  /** Path of the next page; null when there is none. @type {string | null} */
  next = null
  #pathOf
  #size
  /** Counts restarts and refreshes: what was asked for before the last one is out of date. */
  #turns = 0

  /**
   * @param {number} size runs per page
   * @param {(limit: number) => string | null} pathOf null for a part that has no runs
   */
  constructor(size, pathOf) {
    this.#size = size
    this.#pathOf = pathOf
  }

  /** Begins again, with another filter. */
  restart() {
    this.#turns += 1
    this.runs = this.runs.slice(0, this.#size)
    this.next = null
  }

  /**
   * Reads the first runs, which go before the older ones that were read earlier.
   *
   * @param {boolean} quiet as `call()`
   */
  async refresh(quiet) {
    const turn = (this.#turns += 1)
    const path = this.#pathOf(Math.min(Math.max(this.runs.length, this.#size), REFRESHED))
    const { items, next } = path === null ? NOTHING : await page(path, { quiet })
    if (turn !== this.#turns) return
    const last = items.at(-1)
    const at =
      last === undefined ? -1 : this.runs.findIndex(({ run_id }) => run_id === last.run_id)
    const older = next === null || at === -1 ? [] : this.runs.slice(at + 1)
    if (older.length === 0) this.next = next
    this.runs = [...items, ...without(older, items)]
  }

  /** Reads the next page. */
  async more() {
    const path = this.next
    if (path === null) return
    const { items, next } = await page(path)
    // The list was restarted meanwhile: this page belongs to the former one.
    if (this.next !== path) return
    this.next = next
    this.runs = [...this.runs, ...without(items, this.runs)]
  }
}

/** @type {{ items: RunSummary[], next: null }} */
const NOTHING = { items: [], next: null }

/**
 * @param {readonly RunSummary[]} runs
 * @param {readonly RunSummary[]} others
 */
function without(runs, others) {
  const known = new Set(others.map(({ run_id }) => run_id))
  return runs.filter(({ run_id }) => !known.has(run_id))
}
