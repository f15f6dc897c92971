/** What stands above the list of runs: what a first visitor needs, and what is wrong. */
import { call } from './api.js'
import { DemoStart } from './demo.js'
import { fill, h, setText } from './dom.js'
import { welcome } from './welcome.js'

/** @typedef {import('./dom.js').View} View */

/** Between looks at the health of the service. */
const HEALTH_MS = 10_000

/** Updated with every new list of runs. @implements {View} */
export class Home {
  element = h('section.home', { 'aria-labelledby': 'home-title' })
  title = 'Runs'
  #askedAt = -Infinity
  #health = h('p.notice.bad', { role: 'status', hidden: true })
  #demo = new DemoStart()
  #welcome = welcome(this.#demo.element)

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
      const health = await call('GET', 'api/health', { quiet: true })
      const { status, problem } = health
      this.#demo.offer(health)
      this.#health.hidden = status !== 'damaged'
      // Callers of a single tenant get no details.
      setText(this.#health, `Stored data is damaged or missing. ${problem ?? ''}`)
    } catch {
      // The list of runs shows the error.
    }
  }

  close() {}
}
