/**
 * The list of runs at the side. The service searches, filters and pages; the list is refreshed as
 * long as the page is visible.
 */
import { ApiError, messageOf, onKeyGiven, page } from './api.js'
import { button, byId, fill, h, place, prose, select, setText } from './dom.js'
import { ago, isLive, plural, statusLabel } from './format.js'
import { markCurrent, RunBranch } from './run-branch.js'

/**
 * @typedef {import('../types.js').RunSummary} RunSummary
 * @typedef {import('../types.js').Status} Status
 */

/** Between refreshes while runs are live, and otherwise. */
const LIVE_MS = 1_500
const IDLE_MS = 5_000
/** Between refreshes without a key that is accepted; a new one refreshes the list at once. */
const REFUSED_MS = 60_000
/** Runs per page. */
const PAGE = 50
/** The most runs refreshed at a time; older ones stay as they were when they were read. */
const REFRESHED = 200
/** Pause in typing after which the search begins. */
const TYPING_MS = 200

/** @type {Record<import('../types.js').ChildRole, string>} */
const ROLES = { attempt: 'Attempt', delegate: 'Delegate' }

/** @type {readonly (Status | '')[]} */
const FILTERS = ['', 'running', 'awaiting_human', 'pending', 'achieved', 'failed', 'aborted']

export class RunList {
  /** @type {readonly RunSummary[]} */
  #runs = []
  /** Path of the next page; null when there is none. @type {string | null} */
  #next = null
  /** @type {string | null} */
  #current = null
  /** @type {Map<string, ListItem>} */
  #items = new Map()
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  /** Counts refreshes: the response to an older one is dropped. */
  #refreshes = 0
  #loaded
  #search = h('input', {
    type: 'search',
    id: 'search',
    placeholder: 'Search all runs',
    maxLength: 200,
    'aria-label': 'Search all runs by goal, model or id',
    oninput: () => this.#restart(TYPING_MS),
  })
  #filter = select(
    { id: 'filter', 'aria-label': 'Show runs with status', onchange: () => this.#restart(0) },
    FILTERS.map((status) => [status, status === '' ? 'All' : statusLabel(status)]),
  )
  #list = h('ul.runs', { onkeydown: (/** @type {KeyboardEvent} */ event) => this.#onKey(event) })
  #more = button('Show older runs', () => void this.#loadMore(), { class: 'quiet', hidden: true })
  #note = h('p.hint.list-note', { role: 'status' })

  /**
   * @param {(hasRuns: boolean | null) => void} loaded called with every new list: whether there are
   *   runs at all, or null where a filter hides it
   */
  constructor(loaded) {
    this.#loaded = loaded
    fill(
      byId('side'),
      h('div.filters', this.#search, this.#filter),
      this.#list,
      this.#more,
      this.#note,
    )
    onKeyGiven(() => void this.refresh())
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) void this.refresh(true)
    })
    // Scrolling to the end loads more.
    new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) void this.#loadMore()
    }).observe(this.#more)
  }

  /** @param {string | null} runId */
  select(runId) {
    this.#current = runId
    this.#draw()
  }

  /** How many events a run has, as far as the list knows. @param {string} runId */
  lastSeq(runId) {
    return this.#runs.find(({ run_id }) => run_id === runId)?.last_seq ?? 0
  }

  /** @param {Status} status */
  show(status) {
    this.#filter.value = status
    this.#search.value = ''
    this.#restart(0)
  }

  /** Starts a new list after a delay. @param {number} inMs */
  #restart(inMs) {
    this.#runs = this.#runs.slice(0, PAGE)
    this.#next = null
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.refresh(), inMs)
  }

  get #isFiltered() {
    return this.#search.value.trim() !== '' || this.#filter.value !== ''
  }

  #path() {
    const query = new URLSearchParams()
    query.set('limit', String(Math.min(Math.max(this.#runs.length, PAGE), REFRESHED)))
    if (this.#filter.value !== '') query.set('status', this.#filter.value)
    const words = this.#search.value.trim()
    if (words !== '') query.set('search', words)
    // What another run started is folded under that, unless the user looks for it.
    if (!this.#isFiltered) query.set('role', 'root')
    return `api/runs?${query}`
  }

  /** Reads the list now, and schedules the next refresh. @param {boolean} [quiet] as `call()` */
  async refresh(quiet = false) {
    clearTimeout(this.#timer)
    const refresh = ++this.#refreshes
    let refused = false
    try {
      const { items, next } = await page(this.#path(), { quiet })
      if (refresh !== this.#refreshes) return
      this.#take(items, next)
      setText(byId('service'), '')
    } catch (error) {
      setText(byId('service'), messageOf(error))
      refused = error instanceof ApiError && error.status === 401
    }
    for (const { branch } of this.#items.values()) await branch.refresh()
    if (document.hidden || refresh !== this.#refreshes) return
    const live = this.#runs.some(({ status, problem }) => problem === null && isLive(status))
    clearTimeout(this.#timer)
    const pause = refused ? REFUSED_MS : live ? LIVE_MS : IDLE_MS
    this.#timer = setTimeout(() => void this.refresh(true), pause)
  }

  /**
   * Puts refreshed runs before the older ones that were read earlier.
   *
   * @param {RunSummary[]} items
   * @param {string | null} next
   */
  #take(items, next) {
    const last = items.at(-1)
    const at =
      last === undefined ? -1 : this.#runs.findIndex(({ run_id }) => run_id === last.run_id)
    const older = next === null || at === -1 ? [] : this.#runs.slice(at + 1)
    if (older.length === 0) this.#next = next
    this.#runs = [...items, ...older]
    this.#draw()
    this.#loaded(this.#isFiltered ? null : this.#runs.length > 0)
  }

  async #loadMore() {
    const path = this.#next
    if (path === null || this.#more.disabled) return
    const refresh = this.#refreshes
    this.#more.disabled = true
    try {
      const { items, next } = await page(path)
      // The list was restarted meanwhile: this page belongs to the former one.
      if (this.#next !== path) return
      const known = new Set(this.#runs.map(({ run_id }) => run_id))
      this.#next = next
      this.#runs = [...this.#runs, ...items.filter(({ run_id }) => !known.has(run_id))]
      this.#draw()
    } catch {
      // The next refresh shows the error; the button tries again.
      if (refresh === this.#refreshes) setText(this.#note, 'Could not load older runs.')
    } finally {
      this.#more.disabled = false
    }
  }

  #draw() {
    place(this.#list, this.#runs.map((run) => this.#item(run).element))
    const known = new Set(this.#runs.map(({ run_id }) => run_id))
    for (const runId of this.#items.keys()) if (!known.has(runId)) this.#items.delete(runId)
    this.#more.hidden = this.#next === null
    setText(this.#note, this.#noteText())
  }

  #noteText() {
    const count = this.#runs.length
    if (count === 0) return this.#isFiltered ? 'No run matches.' : 'No runs yet.'
    return this.#next === null ? plural(count, 'run') : ''
  }

  /** @param {RunSummary} run */
  #item(run) {
    let item = this.#items.get(run.run_id)
    if (item === undefined) {
      item = new ListItem(run)
      this.#items.set(run.run_id, item)
    }
    item.update(run, this.#current)
    return item
  }

  /** Arrow keys move from run to run. @param {KeyboardEvent} event */
  #onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    const here = /** @type {Element} */ (event.target).closest('li')?.querySelector('a')
    if (step === undefined || !here) return
    const links = [...this.#list.querySelectorAll('a')]
    const target = links[links.indexOf(here) + step]
    if (target === undefined) return
    event.preventDefault()
    target.focus()
  }
}

class ListItem {
  element
  #link
  #chip = h('span.chip')
  #when = h('span.when')
  #problem = h('span.run-problem', { hidden: true })
  /** The runs that it has started. */
  branch

  /** @param {RunSummary} run */
  constructor(run) {
    this.branch = new RunBranch(run)
    this.#link = h(
      'a',
      { href: `#/runs/${run.run_id}`, class: 'run' },
      // Of a damaged run the goal may be unknown.
      h('span.run-goal', { dir: 'auto' }, prose(run.goal || run.run_id)),
      h('span.run-meta', this.#chip, this.#when),
      h('span.run-model', run.role === 'root' ? '' : `${ROLES[run.role]} · `, run.model_name),
      this.#problem,
    )
    this.element = h('li', this.#link, this.branch.element)
  }

  /**
   * @param {RunSummary} run
   * @param {string | null} current the id of the run that is shown
   */
  update(run, current) {
    const { problem } = run
    setText(this.#chip, problem === null ? statusLabel(run.status) : 'Damaged')
    this.#chip.className = `chip ${problem === null ? run.status : 'failed'}`
    setText(this.#problem, problem ?? '')
    this.#problem.hidden = problem === null
    setText(this.#when, ago(run.created_at))
    markCurrent(this.#link, current === run.run_id)
    this.branch.update(run, current)
  }
}
