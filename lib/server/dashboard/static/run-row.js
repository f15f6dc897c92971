/** One run in the list: its name, how it stands or why it ended, and what it took. */
import { serviceNow } from './clock.js'
import { h, prose, setText } from './dom.js'
import { whyEnded, workingMs } from './end-reasons.js'
import { ago, cost, duration, isLive, statusLabel } from './format.js'
import { markCurrent, RunBranch } from './run-branch.js'
import { shortFolder } from './run-query.js'

/** @typedef {import('../types.js').RunSummary} RunSummary */

/** @type {Record<import('../types.js').ChildRole, string>} */
const ROLES = { attempt: 'Attempt', delegate: 'Delegate' }

/**
 * The name that the user gave a run in its metadata, or else its goal. Of a damaged run the goal
 * may be unknown.
 *
 * @param {Pick<RunSummary, 'goal' | 'metadata' | 'run_id'>} run
 */
export function nameOf({ goal, metadata, run_id }) {
  return metadata['name']?.trim() || goal || run_id
}

export class RunRow {
  element
  /** The runs that it has started. */
  branch
  /** @type {RunSummary | null} */
  #shown = null
  #link
  #goal = h('span.run-goal', { dir: 'auto' })
  #chip = h('span.chip')
  #why = h('span.run-why')
  #model
  #time = h('span.run-time')
  #cost = h('span.run-cost')
  #when = h('span.when')
  #problem = h('span.run-problem', { hidden: true })

  /** @param {RunSummary} run */
  constructor(run) {
    this.branch = new RunBranch(run)
    const role = run.role === 'root' ? '' : `${ROLES[run.role]} · `
    this.#model = h('span.run-model', role, run.model_name)
    this.#goal.append(prose(nameOf(run)))
    this.#link = h(
      'a.run.run-row',
      { href: `#/runs/${run.run_id}` },
      this.#goal,
      this.#chip,
      this.#why,
      run.cwd !== '' && h('span.run-folder', { title: run.cwd }, shortFolder(run.cwd)),
      this.#model,
      this.#time,
      this.#cost,
      this.#when,
      this.#problem,
    )
    this.element = h('li', this.#link, this.branch.element)
  }

  /**
   * @param {RunSummary} run
   * @param {string | null} current the id of the run that is shown
   */
  update(run, current) {
    setText(this.#when, ago(run.created_at))
    markCurrent(this.#link, current === run.run_id)
    this.branch.mark(current)
    // Nothing of an ended run changes but for this, and there may be thousands.
    if (this.#shown?.last_seq === run.last_seq && !isLive(run.status)) return
    this.#shown = run
    const { problem } = run
    setText(this.#chip, problem === null ? statusLabel(run.status) : 'Damaged')
    this.#chip.className = `chip ${problem === null ? run.status : 'failed'}`
    setText(this.#problem, problem ?? '')
    this.#problem.hidden = problem === null
    setText(this.#why, problem === null ? standing(run) : '')
    const ms = problem === null ? workingMs(run, serviceNow()) : null
    // Tenths of a second would only flicker while it goes on.
    setText(this.#time, ms === null ? '' : duration(run.ended_at === null ? whole(ms) : ms))
    const spent = run.estimated_cost_usd
    setText(this.#cost, spent === 0 && run.cost_known ? '' : cost(spent, run.cost_known))
    this.branch.update(run, current)
  }
}

/** @param {number} ms */
function whole(ms) {
  return Math.max(1, Math.floor(ms / 1_000)) * 1_000
}

/** @param {RunSummary} run */
function standing(run) {
  const { status, iteration, max_iterations } = run
  if (status === 'pending') return 'Waits for its turn'
  if (run.end_reason !== null) return sentence(whyEnded(run))
  // A run of attempts has no iterations of its own.
  return iteration === 0 ? '' : `Iteration ${iteration} of ${max_iterations}`
}

/** @param {string} words */
function sentence(words) {
  return words.slice(0, 1).toUpperCase() + words.slice(1)
}
