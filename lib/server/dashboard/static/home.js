/** The overview: numbers of runs by status, and the runs that wait at a gate. */
import { call, page } from './api.js'
import { button, fill, h, prose, refill, setText } from './dom.js'
import { ago, number, plural, statusLabel } from './format.js'

/**
 * @typedef {import('../types.js').RunSummary} RunSummary
 * @typedef {import('../types.js').Status} Status
 * @typedef {import('./dom.js').View} View
 */

/** @type {readonly Status[]} */
const TILES = ['running', 'awaiting_human', 'achieved', 'failed']

/** The most waiting runs listed. */
const SHOWN = 8

/** Updated with every new list of runs. */
export class Home {
  element = h('section.home', { 'aria-labelledby': 'home-title' })
  title = 'Runs'
  /** @type {Map<Status, HTMLElement>} */
  #counts = new Map(TILES.map((status) => [status, h('span.tile-count')]))
  #tiles = h('div.tiles', { hidden: true })
  #health = h('p.notice.bad', { role: 'status', hidden: true })
  #list = h('ul.waiting-list')
  #more = button('Show all waiting runs', () => this.#chosen('awaiting_human'), 'quiet')
  #waiting = h(
    'section.waiting',
    { 'aria-labelledby': 'waiting-title', hidden: true },
    h('h2', { id: 'waiting-title' }, 'Waiting for you'),
    this.#list,
    this.#more,
  )
  #welcome = h(
    'section.panel.welcome',
    { hidden: true },
    h('h2', 'Give it a goal that can be checked'),
    h(
      'p',
      'A run works in a folder, step by step, until a command proves that its goal is met. ' +
        'It pauses for your approval where you ask it to.',
    ),
    h('p', h('a.button.primary', { href: '#/new' }, 'Start the first run')),
  )
  #chosen

  /** @param {(status: Status) => void} chosen called with the status that the user clicks */
  constructor(chosen) {
    this.#chosen = chosen
    fill(
      this.element,
      h('h1', { id: 'home-title' }, 'Runs'),
      this.#health,
      this.#welcome,
      this.#tiles,
      this.#waiting,
    )
    fill(
      this.#tiles,
      [...this.#counts].map(([status, count]) =>
        button(
          [count, h('span.tile-name', statusLabel(status))],
          () => this.#chosen(status),
          { class: `tile ${status}` },
        ),
      ),
    )
  }

  /** @param {boolean | null} hasRuns null while unknown */
  async update(hasRuns) {
    this.#welcome.hidden = hasRuns !== false
    try {
      // Read by status: a run that has waited for long is not among the newest runs.
      const [waiting, health] = await Promise.all([
        page(`api/runs?status=awaiting_human&limit=${SHOWN}`, { quiet: true }),
        call('GET', 'api/health', { quiet: true }),
      ])
      this.#drawHealth(health)
      const usable = waiting.items.filter(({ problem }) => problem === null)
      this.#drawWaiting(usable, waiting.next !== null)
      /** @type {Partial<Record<Status, number>>} */
      const counts = health.runs ?? {}
      // Callers of a single tenant get no numbers.
      this.#tiles.hidden = hasRuns !== true || Object.keys(counts).length === 0
      for (const [status, element] of this.#counts) setText(element, number(counts[status] ?? 0))
    } catch {
      // The list of runs shows the error.
    }
  }

  /** @param {{ status: string, problem?: string | null }} health */
  #drawHealth({ status, problem }) {
    this.#health.hidden = status !== 'damaged'
    // Callers of a single tenant get no details.
    setText(this.#health, `Stored data is damaged or missing. ${problem ?? ''}`)
  }

  /**
   * @param {readonly RunSummary[]} waiting
   * @param {boolean} more whether more are waiting
   */
  #drawWaiting(waiting, more) {
    this.#waiting.hidden = waiting.length === 0
    refill(this.#list, waiting.map(waitingView))
    this.#more.hidden = !more
  }

  close() {}
}

/** @param {RunSummary} run */
function waitingView({ run_id, goal, iteration, created_at, model_name }) {
  const facts = [plural(iteration, 'iteration'), ' · ', h('bdi', model_name), ` · ${ago(created_at)}`]
  const card = h(
    'a.card',
    { href: `#/runs/${run_id}`, 'data-key': 'card' },
    h('span.run-goal', { dir: 'auto' }, prose(goal)),
    h('span.hint', facts),
  )
  return h('li', { 'data-key': run_id }, card)
}
