/** The runs that a run has started, with their details, read again as they go on. */
import { call, page } from './api.js'

/**
 * @typedef {import('../types.js').AttemptsInfo} AttemptsInfo
 * @typedef {import('../types.js').RunDetails} RunDetails
 * @typedef {import('../types.js').RunSummary} RunSummary
 */

/**
 * @typedef {{
 *   readonly name: string,
 *   readonly run: RunSummary,
 *   readonly details: RunDetails | null,
 * }} Child `details` null: its log cannot be read
 */

/** The most children of a run, and how many details are read at a time. */
const MOST = 16
const AT_A_TIME = 4

export class Children {
  #runId
  /** The details of each, as of its last event. @type {Map<string, RunDetails>} */
  #known = new Map()

  /** @param {string} runId */
  constructor(runId) {
    this.#runId = runId
  }

  /**
   * Reads what has changed since the last time.
   *
   * @param {AttemptsInfo | null} attempts of the run
   * @returns {Promise<readonly Child[]>} attempts by number, delegates in the order of their start
   */
  async read(attempts) {
    const path = `api/runs?parent=${this.#runId}&limit=${MOST}`
    const { items } = await page(path, { quiet: true })
    /** @type {RunSummary[]} */
    const runs = items.slice(0, MOST).reverse()
    const stale = runs.filter(
      ({ run_id, last_seq, problem }) =>
        problem === null && this.#known.get(run_id)?.last_seq !== last_seq,
    )
    while (stale.length > 0)
      await Promise.all(stale.splice(0, AT_A_TIME).map(({ run_id }) => this.#read(run_id)))
    const ids = new Set(runs.map(({ run_id }) => run_id))
    for (const runId of this.#known.keys()) if (!ids.has(runId)) this.#known.delete(runId)
    return this.#named(runs, attempts)
  }

  /** @param {string} runId */
  async #read(runId) {
    this.#known.set(runId, await call('GET', `api/runs/${runId}`, { quiet: true }))
  }

  /**
   * @param {readonly RunSummary[]} runs
   * @param {AttemptsInfo | null} attempts
   */
  #named(runs, attempts) {
    let delegates = 0
    const numbered = runs.map((run) => {
      const details = this.#known.get(run.run_id) ?? null
      if (run.role === 'delegate')
        return { number: (delegates += 1), name: `Delegate ${delegates}`, run, details }
      // Its parent says so next.
      const known = attempts?.runs.find(({ run_id }) => run_id === run.run_id)?.attempt
      const name = known === undefined ? 'Attempt' : `Attempt ${known}`
      return { number: known ?? MOST + 1, name, run, details }
    })
    return numbered.sort((a, b) => a.number - b.number)
  }
}
