/** What is shown while no run is open: how things stand, and who waits for an answer. */
import { call } from './api.js'
import { fill, h, setText } from './dom.js'
import { ago, number, plural, statusLabel } from './format.js'

/**
 * @typedef {import('../types.js').RunSummary} RunSummary
 * @typedef {import('../types.js').Status} Status
 * @typedef {import('./dom.js').View} View
 */

/** @type {readonly Status[]} */
const TILES = ['running', 'awaiting_human', 'achieved', 'failed']

/** Waiting runs that are named. */
const SHOWN = 8

/** The overview; `update()` is told about every new list. */
export class Home {
  element = h('section', { class: 'home', 'aria-labelledby': 'home-title' })
  title = 'Runs'
  /** @type {Map<Status, HTMLElement>} */
  #counts = new Map(TILES.map((status) => [status, h('span', { class: 'tile-count' })]))
  #tiles = h('div', { class: 'tiles', hidden: true })
  /** What the list of waiting runs was drawn from. */
  #drawn = ''
  #waiting = h('section', { class: 'waiting', 'aria-labelledby': 'waiting-title', hidden: true })
  #welcome = h(
    'section',
    { class: 'panel welcome', hidden: true },
    h('h2', {}, 'Give it a goal that can be checked'),
    h(
      'p',
      {},
      'A run works in a folder, step by step, until a command proves that its goal is met. ' +
        'It stops for you where you want to be asked.',
    ),
    h('p', {}, h('a', { class: 'button primary', href: '#/new' }, 'Start the first run')),
  )
  #chosen

  /** @param {(status: Status) => void} chosen called when somebody wants to see runs of a status */
  constructor(chosen) {
    this.#chosen = chosen
    fill(
      this.element,
      h('h1', { id: 'home-title' }, 'Runs'),
      this.#welcome,
      this.#tiles,
      this.#waiting,
    )
    fill(
      this.#tiles,
      [...this.#counts].map(([status, count]) =>
        h(
          'button',
          { type: 'button', class: `tile ${status}`, onclick: () => this.#chosen(status) },
          count,
          h('span', { class: 'tile-name' }, statusLabel(status)),
        ),
      ),
    )
  }

  /** @param {readonly RunSummary[]} runs the newest ones */
  async update(runs) {
    this.#welcome.hidden = runs.length > 0
    this.#drawWaiting(runs.filter(({ status }) => status === 'awaiting_human'))
    try {
      /** @type {Partial<Record<Status, number>>} */
      const counts = (await call('GET', 'api/health')).runs ?? {}
      // Callers of a tenant are not told how many runs there are.
      this.#tiles.hidden = runs.length === 0 || Object.keys(counts).length === 0
      for (const [status, element] of this.#counts) setText(element, number(counts[status] ?? 0))
    } catch {
      // The list says what is wrong.
    }
  }

  /** @param {readonly RunSummary[]} waiting */
  #drawWaiting(waiting) {
    const drawn = JSON.stringify(waiting.map(({ run_id, iteration }) => [run_id, iteration]))
    if (drawn === this.#drawn) return
    this.#drawn = drawn
    this.#waiting.hidden = waiting.length === 0
    fill(
      this.#waiting,
      h('h2', { id: 'waiting-title' }, 'Waiting for you'),
      h('ul', { class: 'waiting-list' }, waiting.slice(0, SHOWN).map(waitingView)),
      waiting.length > SHOWN && h('p', { class: 'hint' }, `and ${waiting.length - SHOWN} more`),
    )
  }

  close() {}
}

/** @param {RunSummary} run */
function waitingView({ run_id, goal, iteration, created_at, model_name }) {
  return h(
    'li',
    {},
    h(
      'a',
      { class: 'card', href: `#/runs/${run_id}` },
      h('span', { class: 'run-goal', dir: 'auto' }, goal),
      h(
        'span',
        { class: 'hint' },
        `${plural(iteration, 'iteration')} · ${model_name} · ${ago(created_at)}`,
      ),
    ),
  )
}
