/** One attempt, to be compared with others beside it. */
import { runAddress } from './address.js'
import { restsOn } from './assurance.js'
import { serviceNow } from './clock.js'
import { h, prose, refill, setText } from './dom.js'
import { cost, duration, endReason, lineCounts, number, plural, statusLabel } from './format.js'
import { NetChanges } from './net-changes.js'

/**
 * @typedef {import('../types.js').Assurance} Assurance
 * @typedef {import('../types.js').ChangeCounts} ChangeCounts
 * @typedef {import('../types.js').RunDetails} RunDetails
 * @typedef {import('../types.js').Status} Status
 */

/**
 * What is known of an attempt; null for what is not.
 *
 * @typedef {{
 *   readonly status: Status | null,
 *   readonly reason: string,
 *   readonly assurance: Assurance | null,
 *   readonly changes: ChangeCounts | null,
 *   readonly files: readonly [string, string][],
 *   readonly tokens: number | null,
 *   readonly usd: number | null,
 *   readonly costKnown: boolean,
 *   readonly chosen: boolean,
 *   readonly details: RunDetails | null,
 * }} Outcome
 */

export class AttemptCard {
  #model
  #chip = h('span.chip')
  #chosen = h('span.badge.applied', { hidden: true }, 'Chosen')
  #facts = h('dl.facts')
  #changes
  element

  /**
   * @param {{ attempt: number, run_id: string, model_name: string }} attempt
   * @param {HTMLElement | null} [choose] the button by which it is chosen
   */
  constructor({ attempt, run_id, model_name }, choose = null) {
    const name = `Attempt ${attempt}`
    this.#model = model_name
    this.#changes = new NetChanges(run_id, name)
    this.element = h(
      'li.attempt',
      h(
        'div.attempt-head',
        h('h3', h('a', { href: runAddress(run_id) }, name)),
        this.#chip,
        this.#chosen,
      ),
      this.#facts,
      choose,
      this.#changes.element,
    )
  }

  /** @param {boolean} open whether its changes are shown */
  set open(open) {
    this.#changes.open = open
  }

  /** @param {Outcome} outcome */
  update(outcome) {
    const { status, chosen, changes, details } = outcome
    setText(this.#chip, status === null ? 'Not read yet' : statusLabel(status))
    this.#chip.className = `chip ${status ?? 'pending'}`
    this.#chosen.hidden = !chosen
    this.element.classList.toggle('chosen', chosen)
    refill(this.#facts, this.#rowsOf(outcome).map(([name, value]) => factRow(name, value)))
    this.#changes.update(details?.checkpoint_id ?? changes)
  }

  /**
   * Those of one line come first, so that they are level with those of the others.
   *
   * @param {Outcome} outcome
   * @returns {readonly [string, string | Node][]}
   */
  #rowsOf({ reason, assurance, changes, files, tokens, usd, costKnown, details }) {
    /** @type {[string, string | Node][]} */
    const rows = [
      ['Model', this.#model],
      ['Net change', changes === null ? '–' : changeText(changes)],
      ['Tokens', tokens === null ? '–' : number(tokens)],
      ['Cost', usd === null ? '–' : cost(usd, costKnown)],
    ]
    if (details !== null) rows.push(['Time', timeOf(details)])
    rows.push(['Rests on', assurance === null ? '–' : restsOn(assurance, null)])
    rows.push(...files)
    if (details?.end_reason) rows.push(['Ended', endReason(details.end_reason)])
    if (reason !== '') rows.push(['Verdict', prose(reason)])
    return rows
  }
}

/**
 * @param {string} name
 * @param {string | Node} value
 */
function factRow(name, value) {
  return h('div', { 'data-key': name }, h('dt', name), h('dd', { dir: 'auto' }, value))
}

/** @param {ChangeCounts} changes */
function changeText(changes) {
  if (changes.files === 0) return 'none'
  return `${plural(changes.files, 'file')} ${lineCounts(changes)}`
}

/** @param {RunDetails} details */
function timeOf({ started_at, ended_at }) {
  if (started_at === null) return '–'
  const until = ended_at === null ? serviceNow() : Date.parse(ended_at)
  return duration(Math.max(0, until - Date.parse(started_at)))
}
