/** The list of runs at the side: filtered here, asked for again as long as somebody looks. */
import { ApiError, call } from './api.js'
import { byId, fill, h, setText } from './dom.js'
import { ago, isLive, plural, statusLabel } from './format.js'

/**
 * @typedef {import('../types.js').RunSummary} RunSummary
 * @typedef {import('../types.js').Status} Status
 */

const LIVE_MS = 1_500
const IDLE_MS = 5_000
const SHOWN = 200

/** @type {readonly (Status | '')[]} */
const FILTERS = ['', 'running', 'awaiting_human', 'pending', 'achieved', 'failed', 'aborted']

/** The list, its filters, and which run is open. */
export class RunList {
  /** @type {readonly RunSummary[]} */
  #runs = []
  /** @type {string | null} */
  #current = null
  /** @type {Map<string, ListItem>} */
  #items = new Map()
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  #busy = false
  #search = h('input', {
    type: 'search',
    id: 'search',
    placeholder: 'Search goals',
    'aria-label': 'Search runs by goal or model',
    oninput: () => this.#draw(),
  })
  #filter = h(
    'select',
    { id: 'filter', 'aria-label': 'Show runs with status', onchange: () => this.#draw() },
    FILTERS.map((status) =>
      h('option', { value: status }, status === '' ? 'All' : statusLabel(status)),
    ),
  )
  #list = h('ul', { class: 'runs' })
  #note = h('p', { class: 'hint list-note' })

  constructor() {
    fill(
      byId('side'),
      h('div', { class: 'filters' }, this.#search, this.#filter),
      this.#list,
      this.#note,
    )
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) void this.refresh()
    })
  }

  /** @param {string | null} runId */
  select(runId) {
    this.#current = runId
    this.#draw()
  }

  /** Asks for the list now, and again after a while. */
  async refresh() {
    clearTimeout(this.#timer)
    if (this.#busy) return
    this.#busy = true
    try {
      this.#runs = await call('GET', `api/runs?limit=${SHOWN}`)
      setText(byId('service'), '')
      this.#draw()
    } catch (error) {
      const shown = error instanceof ApiError ? error.message : 'The service does not answer.'
      setText(byId('service'), shown)
    } finally {
      this.#busy = false
    }
    if (document.hidden) return
    const live = this.#runs.some(({ status }) => isLive(status))
    this.#timer = setTimeout(() => void this.refresh(), live ? LIVE_MS : IDLE_MS)
  }

  #draw() {
    const words = this.#search.value.trim().toLowerCase()
    const status = this.#filter.value
    const shown = this.#runs.filter(
      (run) =>
        (status === '' || run.status === status) &&
        (words === '' || `${run.goal} ${run.model_name}`.toLowerCase().includes(words)),
    )
    const items = shown.map((run) => this.#item(run))
    // The elements stay the same from one answer to the next: focus and selection survive.
    if (
      items.some(({ element }, i) => this.#list.children[i] !== element) ||
      items.length !== this.#list.children.length
    ) {
      const focused = document.activeElement
      this.#list.replaceChildren(...items.map(({ element }) => element))
      if (focused instanceof HTMLElement && this.#list.contains(focused)) focused.focus()
    }
    const known = new Set(this.#runs.map(({ run_id }) => run_id))
    for (const runId of this.#items.keys()) if (!known.has(runId)) this.#items.delete(runId)
    setText(this.#note, this.#noteText(shown.length))
  }

  /** @param {number} shown */
  #noteText(shown) {
    if (this.#runs.length === 0) return 'No runs yet.'
    if (shown === 0) return 'No run matches.'
    if (this.#runs.length >= SHOWN) return `The newest ${SHOWN} runs.`
    return plural(shown, 'run')
  }

  /** @param {RunSummary} run */
  #item(run) {
    let item = this.#items.get(run.run_id)
    if (item === undefined) {
      item = new ListItem(run)
      this.#items.set(run.run_id, item)
    }
    item.update(run, run.run_id === this.#current)
    return item
  }
}

/** One run in the list. */
class ListItem {
  element
  #link
  #chip = h('span', { class: 'chip' })
  #when = h('span', { class: 'when' })

  /** @param {RunSummary} run */
  constructor(run) {
    this.#link = h(
      'a',
      { href: `#/runs/${run.run_id}`, class: 'run' },
      h('span', { class: 'run-goal', dir: 'auto' }, run.goal),
      h('span', { class: 'run-meta' }, this.#chip, this.#when),
      h('span', { class: 'run-model' }, run.model_name),
    )
    this.element = h('li', {}, this.#link)
  }

  /**
   * @param {RunSummary} run
   * @param {boolean} current
   */
  update(run, current) {
    setText(this.#chip, statusLabel(run.status))
    this.#chip.className = `chip ${run.status}`
    setText(this.#when, ago(run.created_at))
    if (current) this.#link.setAttribute('aria-current', 'page')
    else this.#link.removeAttribute('aria-current')
  }
}
