/** Of which runs the user is told: pure, from what was known of them before. */

/**
 * @typedef {import('../types.js').RunSummary} RunSummary
 * @typedef {{ readonly status: string }} Known
 * @typedef {{ readonly run: RunSummary, readonly needsUser: boolean }} Notice
 */

/** The most runs remembered; those of which nothing was heard for longest are forgotten. */
export const REMEMBERED = 2_000

/**
 * What to tell of a new list, and what is known from then on. Nothing is told of runs that are seen
 * for the first time and have ended already: the page was opened after that.
 *
 * @param {ReadonlyMap<string, Known> | null} known null for the first list
 * @param {readonly RunSummary[]} runs
 * @returns {{ notices: readonly Notice[], known: ReadonlyMap<string, Known> }}
 */
export function noticesOf(known, runs) {
  /** @type {Notice[]} */
  const notices = []
  const next = new Map(known ?? [])
  for (const run of runs) {
    const { run_id, status, problem, role } = run
    if (problem !== null) continue
    const before = next.get(run_id)?.status
    next.delete(run_id)
    next.set(run_id, { status })
    if (known === null || before === status) continue
    if (status === 'awaiting_human') notices.push({ run, needsUser: true })
    else if (role === 'root' && before !== undefined && isEnd(status))
      notices.push({ run, needsUser: false })
  }
  for (const runId of [...next.keys()].slice(0, Math.max(0, next.size - REMEMBERED)))
    next.delete(runId)
  return { notices, known: next }
}

/** @param {string} status */
function isEnd(status) {
  return status === 'achieved' || status === 'failed' || status === 'aborted'
}
