/**
 * A run on a time axis: a row for each model call, tool call, check, gate and wait, in the order of
 * their starts, below the head of its iteration. A row is a link to the entry of the timeline.
 *
 * It is a list to screen readers, and says in words what the bars show. Arrow keys, Home, End, Page
 * Up and Page Down go from row to row; Left and Right fold and unfold an iteration.
 */
import { runAddress } from './address.js'
import { serviceNow } from './clock.js'
import { button, h, setText, textIn } from './dom.js'
import { duration } from './format.js'
import { Spans } from './spans.js'
import { legendOf } from './waterfall-legend.js'
import { TimeScale } from './time-scale.js'
import { VirtualList } from './virtual-list.js'
import { WaterfallChart } from './waterfall-chart.js'
import { groupFacts, isSameRow, iterationName, skeleton, spanFacts } from './waterfall-row.js'
import { elapsed, groupsOf, rowsOf } from './waterfall-rows.js'

/**
 * @typedef {import('../types.js').AgentEvent} AgentEvent
 * @typedef {import('./spans.js').Span} Span
 * @typedef {import('./waterfall-rows.js').WaterfallRow} WaterfallRow
 * @typedef {{
 *   readonly focused: WaterfallRow | undefined,
 *   readonly top: WaterfallRow | undefined,
 *   readonly first: number,
 *   readonly open: readonly number[],
 * }} Place
 */

/** Height of a row in pixels, as the style sheet has it. */
const ROW = 32
/** So many spans are all shown; of more, only those of the last iteration. */
const UNFOLDED = 150
/** Between two updates of a run that goes on, in milliseconds. */
const LIVE_MS = 1_000
/** So many times as long as an update took, the page is left to its reader. */
const REST = 4
const MOST_ZOOM = 512
/** Seconds after which the last event of a live run cannot have come: a month. */
const MOST_SINCE = 30 * 86_400
/** Pixels from one label of the axis to the next. */
const TICK = 120
/** Pixels of a letter beside a bar, or a little more. */
const LETTER = 6.6
/** Shortened waits that are named. */
const MOST_BREAKS = 20

export class Waterfall {
  #runId
  #spans = new Spans()
  /** Events since the tab was last shown. @type {AgentEvent[]} */
  #waiting = []
  #received = 0
  #shown = false
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer
  /** When the next update is due, by `performance.now()`. */
  #due = Infinity
  /** How long the last one took, in milliseconds. */
  #took = 0
  /** @type {WaterfallRow[]} */
  #rows = []
  /** Iterations that the user has folded or unfolded. @type {Map<number, boolean>} */
  #chosen = new Map()
  /** Has all been unfolded? Then iterations that have still to come, or to load, are open, too. */
  #unfolds = false
  #scale = new TimeScale([], 0)
  #now = 0
  #zoom = 1
  /** The row that Tab goes to. @type {WaterfallRow | null} */
  #active = null

  #legend = h('ul.wf-legend')
  #chart = new WaterfallChart()
  #ticks = h('div.wf-axis', { 'aria-hidden': 'true' })
  #canvas = h('ol.wf-rows', {
    'aria-label': 'What the run spends its time on',
    onkeydown: (/** @type {KeyboardEvent} */ event) => this.#onKey(event),
    onclick: (/** @type {Event} */ event) => this.#onClick(event),
    onfocusin: (/** @type {Event} */ event) => this.#onFocus(event),
  })
  #scroller = h('div.wf-scroller', this.#ticks, this.#canvas)
  #out = button('−', () => this.#zoomTo(this.#zoom / 2), {
    class: 'small', title: 'Zoom out', 'aria-label': 'Zoom out',
  })
  #in = button('+', () => this.#zoomTo(this.#zoom * 2), {
    class: 'small', title: 'Zoom in', 'aria-label': 'Zoom in',
  })
  #fold = button('Fold all', () => this.#foldAll(), 'quiet small')
  #empty = h('p.empty', { hidden: true }, 'Nothing has happened yet.')
  #list
  #resized = new ResizeObserver(() => this.#resize())
  /** Is nothing folded? */
  #whole = true
  /** How far the rows were scrolled. */
  #top = 0

  element = h(
    'section.tab-panel.waterfall',
    h('div.wf-head', this.#legend, h('span.wf-tools', this.#fold, this.#out, this.#in)),
    this.#empty,
    h('div.wf-chart-row', h('span'), h('div.wf-chart-box')),
    this.#scroller,
  )

  /** @param {string} runId */
  constructor(runId) {
    this.#runId = runId
    this.element.querySelector('.wf-chart-box')?.append(this.#chart.element)
    this.#chart.element.addEventListener('click', (event) => this.#goTo(event))
    this.#list = new VirtualList(this.#scroller, this.#canvas, ROW, (index, former) =>
      this.#draw(index, former),
    )
    this.#scroller.addEventListener('scroll', () => this.#onScroll(), { passive: true })
    this.#resized.observe(this.#scroller)
  }

  close() {
    this.show(false)
    this.#list.close()
    this.#resized.disconnect()
  }

  /** @param {readonly AgentEvent[]} events */
  add(events) {
    for (const event of events) this.#waiting.push(event)
    this.#received = performance.now()
    if (this.#shown) this.#soon(Math.min(REST * this.#took, LIVE_MS))
  }

  /** @param {boolean} shown */
  show(shown) {
    this.#shown = shown
    if (shown) return this.#update()
    clearTimeout(this.#timer)
    this.#due = Infinity
  }

  /** @param {number} ms */
  #soon(ms) {
    const due = performance.now() + ms
    if (due >= this.#due) return
    this.#due = due
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#update(), ms)
  }

  #update() {
    const began = performance.now()
    this.#due = Infinity
    const place = this.#place()
    const spans = this.#spans
    spans.add(this.#waiting.splice(0))
    const all = spans.all
    const lasts = all.some(({ end }) => end === null)
    this.#now = spans.duration + (lasts && !spans.ended ? this.#since : 0)
    this.#scale = new TimeScale(all, this.#now)
    const atEnd = this.#isAtEnd() && this.#rows.length > 0 && lasts
    const groups = groupsOf(all)
    const last = groups.at(-1)?.iteration
    const fits = all.length <= UNFOLDED
    // No iteration is folded under the eyes of its reader.
    const isOpen = (/** @type {number} */ n) =>
      fits || this.#unfolds || n === last || place.open.includes(n)
    this.#rows = rowsOf(groups, (n) => this.#chosen.get(n) ?? !isOpen(n))
    this.#empty.hidden = all.length > 0
    this.#scroller.hidden = all.length === 0
    this.#fold.hidden = groups.length < 2
    this.#whole = this.#rows.length === groups.length + all.length
    setText(this.#fold, this.#whole ? 'Fold all' : 'Unfold all')
    this.#legend.replaceChildren(...legendOf(all, this.#now))
    this.#chart.update(all, (time) => this.#scale.at(time), this.#now)
    this.#list.update(this.#rows.length)
    this.#showTicks()
    this.#return(place)
    if (atEnd) this.#scroller.scrollTop = this.#scroller.scrollHeight
    this.#offerTab()
    this.#took = performance.now() - began
    if (this.#shown && lasts && !spans.ended) this.#soon(LIVE_MS)
  }

  /**
   * Where the reader is: the row that has the focus, and the first one in sight of rows that were
   * scrolled. Their iterations stay as they are.
   *
   * @returns {Place}
   */
  #place() {
    const { activeElement } = document
    const [first] = this.#list.sight
    const focused = this.#canvas.contains(activeElement) ? this.#rowOf(activeElement) : undefined
    const top = this.#scroller.scrollTop > 0 ? this.#rows[first] : undefined
    const open = [focused, top]
      .filter((row) => row !== undefined)
      .filter((row) => row.span !== null || !this.#isFolded(this.#indexOf(row)))
      .map((row) => row.group.iteration)
    return { focused, top, first, open }
  }

  /** Rows have come or gone above it. @param {Place} place */
  #return({ focused, top, first }) {
    const now = top === undefined ? -1 : this.#indexOf(top)
    if (now !== -1 && now !== first) this.#scroller.scrollTop += (now - first) * ROW
    const link = focused && this.#list.draw(this.#indexOf(focused))?.firstElementChild
    if (link instanceof HTMLElement && link !== document.activeElement)
      link.focus({ preventScroll: true })
  }

  /** Tab goes to the row that had the focus last, or to the first one in sight. */
  #offerTab() {
    const links = [...this.#canvas.querySelectorAll('.wf-link')]
    const [first] = this.#list.sight
    const at = (/** @type {WaterfallRow | null | undefined} */ row) =>
      links.find((link) => row != null && row === this.#rowOf(link))
    const active = this.#active === null ? null : this.#rows[this.#indexOf(this.#active)]
    const stop = at(active) ?? at(this.#rows[first])
    for (const link of links) link.setAttribute('tabindex', link === stop ? '0' : '-1')
  }

  /** Seconds since the last event: since it came, where the clocks of both sides disagree. */
  get #since() {
    const { origin, duration: length } = this.#spans
    const seconds = serviceNow() / 1_000 - origin - length
    const isLikely = seconds >= 0 && seconds < MOST_SINCE
    return isLikely ? seconds : (performance.now() - this.#received) / 1_000
  }

  #isAtEnd() {
    const { scrollTop, clientHeight, scrollHeight } = this.#scroller
    return scrollTop > 0 && scrollHeight - clientHeight - scrollTop < ROW
  }

  /** Pixels of the axis, without the names. */
  get #width() {
    return Math.max(this.#scroller.clientWidth - this.#labels, 80) * this.#zoom
  }

  /** Pixels of the names. */
  get #labels() {
    return this.#scroller.clientWidth < 600 ? 118 : 260
  }

  #resize() {
    if (this.#scroller.clientWidth === 0) return
    this.#list.update(this.#rows.length)
    this.#showTicks()
    this.#offerTab()
  }

  /**
   * @param {number} index
   * @param {HTMLElement | undefined} former
   * @returns {HTMLElement}
   */
  #draw(index, former) {
    const row = /** @type {WaterfallRow} */ (this.#rows[index])
    const { group, span } = row
    const isHead = span === null
    const element =
      former?.dataset['head'] === String(isHead) ? former : skeleton(isHead)
    const link = /** @type {HTMLElement} */ (element.firstElementChild)
    element.dataset['index'] = String(index)
    element.setAttribute('aria-posinset', String(index + 1))
    element.setAttribute('aria-setsize', String(this.#rows.length))
    const [label, track] = /** @type {[HTMLElement, HTMLElement]} */ ([...link.children])
    const [name, detail] = /** @type {[HTMLElement, HTMLElement]} */ ([...label.children])
    const [bar, fact] = /** @type {[HTMLElement, HTMLElement]} */ ([...track.children])
    setText(name, isHead ? iterationName(group.iteration) : span.name)
    setText(detail, isHead ? '' : span.detail)
    setText(fact, isHead ? groupFacts(group, this.#now) : spanFacts(span, this.#now))
    if (isHead) link.setAttribute('aria-expanded', String(!this.#isFolded(index)))
    else link.setAttribute('href', runAddress(this.#runId, 'timeline', { event: String(span.seq) }))
    const { start, end } = span ?? group
    bar.className = `wf-bar wf-${span?.kind ?? 'group'} ${span?.state ?? ''}`
    if (end === null) bar.classList.add('live')
    this.#layOut(element, bar, fact, this.#scale.at(start), this.#scale.at(end ?? this.#now))
    return element
  }

  /**
   * @param {HTMLElement} element
   * @param {HTMLElement} bar
   * @param {HTMLElement} fact
   * @param {number} from
   * @param {number} to
   */
  #layOut(element, bar, fact, from, to) {
    const width = this.#width
    const left = from * width
    const length = Math.max((to - from) * width, 3)
    element.style.setProperty('width', `${width + this.#labels}px`)
    element.style.setProperty('--labels', `${this.#labels}px`)
    bar.style.setProperty('left', `${left}px`)
    bar.style.setProperty('width', `${length}px`)
    // What a bar stands for is written beside it, or in it where there is no room.
    const needed = textIn(fact).length * LETTER + 12
    const isAfter = width - left - length >= needed
    const isBefore = !isAfter && left >= needed
    const isInside = !isAfter && !isBefore
    const at = isAfter ? left + length + 6 : Math.max(Math.min(left + 8, width - needed), 0)
    fact.style.setProperty('left', isBefore ? 'auto' : `${at}px`)
    fact.style.setProperty('right', isBefore ? `${width - left + 6}px` : 'auto')
    fact.classList.toggle('inside', isInside)
  }

  /** @param {number} index */
  #isFolded(index) {
    return (this.#rows[index + 1]?.span ?? null) === null
  }

  /** Labels of the part of the axis that is in sight. */
  #showTicks() {
    const { scrollLeft, clientWidth } = this.#scroller
    const width = this.#width
    const first = Math.ceil(scrollLeft / TICK)
    const count = Math.floor((clientWidth - this.#labels) / TICK)
    const breaks = this.#scale.breaks
      .map(([from, to]) => ({ x: this.#scale.at((from + to) / 2) * width, length: to - from }))
      .filter(({ x }) => x >= scrollLeft && x <= scrollLeft + clientWidth)
      .slice(0, MOST_BREAKS)
    const ticks = Array.from({ length: Math.max(count, 0) + 1 }, (_, i) => (first + i) * TICK)
      .filter((x) => x <= width - 40 && !breaks.some((mark) => Math.abs(mark.x - x - 30) < 75))
      .map((x) => {
        const [time, next] = [this.#scale.timeAt(x / width), this.#scale.timeAt((x + TICK) / width)]
        const tick = h('span.wf-tick', elapsed(time, next - time))
        tick.style.setProperty('left', `${this.#labels + x}px`)
        return tick
      })
    const marks = breaks.map(({ x, length }) => {
      const mark = h('span.wf-break', `≈ ${duration(length * 1_000)}`)
      mark.style.setProperty('left', `${this.#labels + x}px`)
      return mark
    })
    this.#ticks.style.setProperty('width', `${width + this.#labels}px`)
    this.#ticks.replaceChildren(...ticks, ...marks)
  }

  #onScroll() {
    if (this.#zoom > 1) this.#follow()
    this.#showTicks()
    this.#offerTab()
  }

  /** After scrolling down a zoomed axis, what is in sight is somewhere else on it. */
  #follow() {
    const { scrollTop, scrollLeft, clientWidth } = this.#scroller
    if (scrollTop === this.#top) return
    this.#top = scrollTop
    const [first, end] = this.#list.sight
    const rows = this.#rows.slice(first, end).filter(({ span }) => span !== null)
    const width = this.#width
    const room = clientWidth - this.#labels
    const places = rows.map(({ span }) => this.#scale.at(span?.start ?? 0) * width)
    if (places.length === 0 || places.some((x) => x >= scrollLeft && x <= scrollLeft + room)) return
    this.#scroller.scrollLeft = Math.max((places[0] ?? 0) - room / 4, 0)
  }

  /** @param {number} zoom */
  #zoomTo(zoom) {
    const { scrollLeft, clientWidth } = this.#scroller
    const room = clientWidth - this.#labels
    const middle = (scrollLeft + room / 2) / this.#width
    const row = this.#active === null ? undefined : this.#rows[this.#indexOf(this.#active)]
    this.#zoom = Math.min(Math.max(zoom, 1), MOST_ZOOM)
    this.#out.disabled = this.#zoom === 1
    this.#in.disabled = this.#zoom === MOST_ZOOM
    this.#list.update(this.#rows.length)
    const place = row === undefined ? middle : this.#scale.at((row.span ?? row.group).start)
    this.#scroller.scrollLeft = place * this.#width - room / 2
    this.#showTicks()
    this.#offerTab()
  }

  /** To what was clicked in the chart. @param {MouseEvent} event */
  #goTo(event) {
    const { left, width } = this.#chart.element.getBoundingClientRect()
    const time = this.#scale.timeAt((event.clientX - left) / Math.max(width, 1))
    const after = this.#rows.findIndex(({ group, span }) => (span ?? group).start > time)
    this.#focus(after === -1 ? this.#rows.length - 1 : Math.max(after - 1, 0))
  }

  #foldAll() {
    this.#unfolds = !this.#whole
    for (const { group } of this.#rows) this.#chosen.set(group.iteration, this.#whole)
    this.#update()
  }

  /** Where a row is, or the head of its iteration; -1 for neither. @param {WaterfallRow} row */
  #indexOf(row) {
    const { group } = row
    const at = this.#rows.findIndex((each) => isSameRow(each, row))
    return at === -1 ? this.#rows.findIndex((each) => isSameRow(each, { group, span: null })) : at
  }

  /** The row that an element shows. @param {Element | null} target */
  #rowOf(target) {
    return this.#rows[this.#indexAt({ target })]
  }

  /** @param {{ readonly target: EventTarget | null }} event */
  #indexAt({ target }) {
    const row = /** @type {Element | null} */ (target)?.closest('li')
    return row instanceof HTMLElement ? Number(row.dataset['index']) : -1
  }

  /** @param {Event} event */
  #onFocus(event) {
    const row = this.#rows[this.#indexAt(event)]
    if (row === undefined) return
    this.#active = row
    this.#offerTab()
  }

  /** @param {Event} event */
  #onClick(event) {
    const index = this.#indexAt(event)
    const row = this.#rows[index]
    if (row?.span === null) this.#toggle(index, !this.#isFolded(index))
  }

  /**
   * @param {number} index of a head
   * @param {boolean} folded
   */
  #toggle(index, folded) {
    const row = this.#rows[index]
    if (row === undefined) return
    this.#chosen.set(row.group.iteration, folded)
    this.#update()
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const index = this.#indexAt(event)
    const row = this.#rows[index]
    if (row === undefined) return
    const page = Math.max(Math.floor(this.#scroller.clientHeight / ROW) - 2, 1)
    /** @type {Record<string, number>} */
    const targets = {
      ArrowUp: index - 1,
      ArrowDown: index + 1,
      PageUp: index - page,
      PageDown: index + page,
      Home: 0,
      End: this.#rows.length - 1,
    }
    const target = targets[event.key]
    if (target !== undefined) {
      event.preventDefault()
      return this.#focus(Math.min(Math.max(target, 0), this.#rows.length - 1))
    }
    if (event.key === 'ArrowRight' && row.span === null) {
      event.preventDefault()
      this.#toggle(index, false)
    }
    if (event.key !== 'ArrowLeft') return
    event.preventDefault()
    const head = this.#rows.findLastIndex(({ span }, at) => span === null && at <= index)
    if (head !== index) this.#focus(head)
    else this.#toggle(index, true)
  }

  /** @param {number} index */
  #focus(index) {
    const row = this.#rows[index]
    if (row === undefined) return
    const { start } = row.span ?? row.group
    const link = this.#list.reveal(index)?.firstElementChild
    if (!(link instanceof HTMLElement)) return
    link.focus({ preventScroll: true })
    const x = this.#scale.at(start) * this.#width
    const room = this.#scroller.clientWidth - this.#labels
    const { scrollLeft } = this.#scroller
    if (x < scrollLeft || x > scrollLeft + room - 20)
      this.#scroller.scrollLeft = Math.max(x - room / 4, 0)
    this.#scroller.scrollIntoView({ block: 'nearest' })
  }
}
