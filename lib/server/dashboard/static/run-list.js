/**
 * The list of runs: a page of its own, and at the side of a run. The service searches, filters and
 * pages; the list is refreshed as long as the page is visible.
 *
 * 1. Runs that go on are read often, which costs as much as there are of them. Ended runs are read
 *    when one of the others has ended, and now and then, for those that other people started.
 * 2. Groups by status, what needs the user first, however old it is.
 */
import { ApiError, messageOf, onKeyGiven } from './api.js'
import { button, byId, fill, h, place, setText } from './dom.js'
import { isLive, number, plural } from './format.js'
import { RunFilters } from './run-filters.js'
import { RunPages } from './run-pages.js'
import { ENDED, isNarrowed, listAddress, listPath, LIVE } from './run-query.js'
import { RunRow } from './run-row.js'

/**
 * @typedef {import('../types.js').RunSummary} RunSummary
 * @typedef {import('../types.js').Status} Status
 */

/** Between refreshes while runs are live, and otherwise. */
const LIVE_MS = 1_500
const IDLE_MS = 5_000
/** Between refreshes without a key that is accepted; a new one refreshes the list at once. */
const REFUSED_MS = 60_000
/** Between looks at the ended runs while nothing tells of a new one. */
const ENDED_MS = 4_500
/** Runs per page: those that go on are nearly always all there at once. */
const PAGE = 50
const LIVE_PAGE = 200

/** @type {readonly (readonly [title: string, statuses: readonly Status[]])[]} */
const GROUPS = [
  ['Needs you', ['awaiting_human']],
  ['Working', ['running']],
  ['Queued', ['pending']],
  ['Ended', ENDED],
]

export class RunList {
  #filters = new RunFilters(() => this.#filtered())
  #live = new RunPages(LIVE_PAGE, (limit) => this.#path(limit, LIVE))
  #ended = new RunPages(PAGE, (limit) => this.#path(limit, ENDED))
  /** Read only when there are more live runs than one page has. */
  #waiting = new RunPages(PAGE, (limit) => this.#path(limit, ['awaiting_human']))
  /** When ended runs were read, by `performance.now()`. */
  #endedAt = -Infinity
  /** @type {string | null} */
  #current = null
  /** @type {Map<string, RunRow>} */
  #rows = new Map()
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  /** Counts refreshes: the response to an older one is dropped. */
  #refreshes = 0
  #loaded
  #end = new IntersectionObserver((entries) => {
    if (entries.some(({ isIntersecting }) => isIntersecting)) void this.#loadMore()
  })
  #groups = GROUPS.map(([title], i) => new RunGroup(title, `group-${i}`))
  #more = button('Show older runs', () => void this.#loadMore(), { class: 'quiet', hidden: true })
  #note = h('p.hint.list-note', { role: 'status' })

  /**
   * @param {(hasRuns: boolean | null) => void} loaded called with every new list: whether there are
   *   runs at all, or null where a filter hides it
   */
  constructor(loaded) {
    this.#loaded = loaded
    const onkeydown = (/** @type {KeyboardEvent} */ event) => this.#onKey(event)
    const groups = h('div.groups', { onkeydown }, this.#groups.map(({ element }) => element))
    fill(byId('side'), this.#filters.element, groups, this.#more, this.#note)
    onKeyGiven(() => void this.refresh())
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) void this.refresh(true)
    })
    // Scrolling to the end loads more.
    this.#end.observe(this.#more)
  }

  /** @param {string | null} runId */
  select(runId) {
    this.#current = runId
    this.#draw()
  }

  /** Shows the runs of a filter that the address has. @param {URLSearchParams} filter */
  show(filter) {
    if (listAddress(filter) === listAddress(this.#filters.filter)) return
    this.#filters.show(filter)
    this.#restart()
  }

  /** How many events a run has, as far as the list knows. @param {string} runId */
  lastSeq(runId) {
    return this.#runs().find(({ run_id }) => run_id === runId)?.last_seq ?? 0
  }

  /** The user has changed the filter: the address of the list says so. */
  #filtered() {
    const address = listAddress(this.#filters.filter)
    const { view } = document.body.dataset
    if (view === 'list') history.replaceState(null, '', address)
    byId('brand').setAttribute('href', address)
    this.#restart()
    void this.refresh()
  }

  #restart() {
    for (const pages of [this.#live, this.#waiting, this.#ended]) pages.restart()
    byId('brand').setAttribute('href', listAddress(this.#filters.filter))
  }

  /**
   * @param {number} limit
   * @param {readonly Status[]} statuses
   */
  #path(limit, statuses) {
    return listPath(this.#filters.filter, { limit, statuses })
  }

  /** All runs, each once. */
  #runs() {
    /** @type {Map<string, RunSummary>} */
    const runs = new Map()
    // A run that has just ended may be in two parts; the later one is newer.
    for (const run of [...this.#waiting.runs, ...this.#live.runs, ...this.#ended.runs]) {
      const other = runs.get(run.run_id)
      if (other === undefined || other.last_seq <= run.last_seq) runs.set(run.run_id, run)
    }
    return [...runs.values()]
  }

  /** Reads the list now, and schedules the next refresh. @param {boolean} [quiet] as `call()` */
  async refresh(quiet = false) {
    clearTimeout(this.#timer)
    const refresh = ++this.#refreshes
    let refused = false
    try {
      await this.#read(quiet)
      if (refresh !== this.#refreshes) return
      setText(byId('service'), '')
      this.#draw()
      this.#loaded(isNarrowed(this.#filters.filter) ? null : this.#rows.size > 0)
    } catch (error) {
      if (refresh !== this.#refreshes) return
      setText(byId('service'), messageOf(error))
      refused = error instanceof ApiError && error.status === 401
    }
    for (const { branch } of this.#rows.values()) await branch.refresh()
    if (document.hidden || refresh !== this.#refreshes) return
    clearTimeout(this.#timer)
    const pause = refused ? REFUSED_MS : this.#live.runs.some(goesOn) ? LIVE_MS : IDLE_MS
    this.#timer = setTimeout(() => void this.refresh(true), pause)
  }

  /** @param {boolean} quiet */
  async #read(quiet) {
    const before = this.#live.runs
    await this.#live.refresh(quiet)
    if (this.#live.next === null) this.#waiting.restart()
    else await this.#waiting.refresh(quiet)
    const now = new Set(this.#live.runs.map(({ run_id }) => run_id))
    const oneEnded = before.some(({ run_id }) => !now.has(run_id))
    const isDue = performance.now() - this.#endedAt >= ENDED_MS
    if (quiet && !oneEnded && !isDue) return
    await this.#ended.refresh(quiet)
    this.#endedAt = performance.now()
  }

  async #loadMore() {
    const pages = this.#ended.next === null ? this.#live : this.#ended
    if (this.#more.disabled || pages.next === null) return
    this.#more.disabled = true
    try {
      await pages.more()
      this.#draw()
      // What was added may stand above: then the end of the list is still in view.
      this.#end.unobserve(this.#more)
      this.#end.observe(this.#more)
    } catch {
      // The next refresh shows the error; the button tries again.
      setText(this.#note, 'Could not load older runs.')
    } finally {
      this.#more.disabled = false
    }
  }

  #draw() {
    const focused = document.activeElement
    const runs = this.#runs()
    this.#filters.offer(runs)
    const known = new Set(runs.map(({ run_id }) => run_id))
    for (const runId of this.#rows.keys()) if (!known.has(runId)) this.#rows.delete(runId)
    for (const [i, [, statuses]] of GROUPS.entries()) {
      const isLast = i === GROUPS.length - 1
      // A damaged run does not go on, whatever it was doing.
      const members = runs.filter(({ problem, status }) =>
        problem === null ? statuses.includes(status) : isLast,
      )
      const pages = isLast ? this.#ended : this.#live
      this.#groups[i]?.draw(members.map((run) => this.#row(run).element), pages.next !== null)
    }
    this.#more.hidden = this.#live.next === null && this.#ended.next === null
    setText(this.#note, this.#noteText(runs.length))
    // A run that went to another group has taken the focus along.
    if (focused instanceof HTMLElement && focused.isConnected && document.activeElement !== focused)
      focused.focus({ preventScroll: true })
  }

  /** @param {number} count */
  #noteText(count) {
    if (count === 0) return isNarrowed(this.#filters.filter) ? 'No run matches.' : 'No runs yet.'
    return this.#more.hidden ? plural(count, 'run') : ''
  }

  /** @param {RunSummary} run */
  #row(run) {
    let row = this.#rows.get(run.run_id)
    if (row === undefined) {
      row = new RunRow(run)
      this.#rows.set(run.run_id, row)
    }
    row.update(run, this.#current)
    return row
  }

  /** Arrow keys move from run to run. @param {KeyboardEvent} event */
  #onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    const here = /** @type {Element} */ (event.target).closest('li')?.querySelector('a')
    if (step === undefined || !here) return
    const links = [...byId('side').querySelectorAll('a')]
    const target = links[links.indexOf(here) + step]
    if (target === undefined) return
    event.preventDefault()
    target.focus()
  }
}

/** @param {RunSummary} run */
function goesOn({ problem, status }) {
  return problem === null && isLive(status)
}

/** Runs of one kind; hidden while there are none. */
class RunGroup {
  #count = h('span.group-count')
  #list = h('ul.runs')
  element

  /**
   * @param {string} title
   * @param {string} id
   */
  constructor(title, id) {
    const heading = h('h2', { id }, title, ' ', this.#count)
    this.element = h('section.group', { 'aria-labelledby': id, hidden: true }, heading, this.#list)
  }

  /**
   * @param {readonly Node[]} rows
   * @param {boolean} more whether there are others that were not read
   */
  draw(rows, more) {
    this.element.hidden = rows.length === 0
    setText(this.#count, `${number(rows.length)}${more ? '+' : ''}`)
    place(this.#list, rows)
  }
}
