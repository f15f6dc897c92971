/** What stands above the list of runs: what a first visitor needs, and what is wrong. */
import { call } from './api.js'
import { fill, h, setText } from './dom.js'

/** @typedef {import('./dom.js').View} View */

/** Between looks at the health of the service. */
const HEALTH_MS = 10_000

/** Updated with every new list of runs. @implements {View} */
export class Home {
  element = h('section.home', { 'aria-labelledby': 'home-title' })
  title = 'Runs'
  #askedAt = -Infinity
  #health = h('p.notice.bad', { role: 'status', hidden: true })
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

  /** @param {HTMLElement} notices where notifications are switched */
  constructor(notices) {
    const head = h('div.home-head', h('h1', { id: 'home-title' }, 'Runs'), notices)
    fill(this.element, head, this.#health, this.#welcome)
  }

  /** @param {boolean | null} hasRuns null while unknown */
  async update(hasRuns) {
    this.#welcome.hidden = hasRuns !== false
    if (performance.now() - this.#askedAt < HEALTH_MS) return
    this.#askedAt = performance.now()
    try {
      const { status, problem } = await call('GET', 'api/health', { quiet: true })
      this.#health.hidden = status !== 'damaged'
      // Callers of a single tenant get no details.
      setText(this.#health, `Stored data is damaged or missing. ${problem ?? ''}`)
    } catch {
      // The list of runs shows the error.
    }
  }

  close() {}
}
