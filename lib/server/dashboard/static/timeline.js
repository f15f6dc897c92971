/**
 * The events of a run, iteration by iteration, for runs of any length.
 *
 * 1. Every event is kept as a row, in the order of the log, but only rows near the window have
 *    elements. Rows form blocks, and a distant block is an empty box of the same height.
 * 2. Rows of a folded iteration, and rows that do not match the search, have no elements either.
 * 3. It is a feed (WAI-ARIA): each entry has its position among all visible ones, and Page Up,
 *    Page Down, Home and End move from entry to entry.
 */
import { h, textIn } from './dom.js'
import { isShown } from './entries.js'
import { highlight } from './highlight.js'
import { folded, wordsOf } from './search.js'
import { Block, Iteration, Row } from './timeline-rows.js'

/**
 * @typedef {import('../types.js').AgentEvent} AgentEvent
 * @typedef {import('./entries.js').Progress} Progress
 */

/** Rows per block. */
const BLOCK = 20
/** Distance from the window within which blocks are drawn. */
const MARGIN = '400px 0px'

/** Milliseconds of one part of a search: then the page answers its user. */
const SLICE_MS = 12

/** Pixels from the end within which the page follows new entries. */
const NEAR_END = 160

export function isNearEnd() {
  const { scrollHeight, clientHeight } = document.documentElement
  return scrollHeight - clientHeight - window.scrollY < NEAR_END
}

/**
 * What an event tells about the entries of earlier ones.
 *
 * @param {AgentEvent} event
 * @returns {readonly (readonly [id: string, Progress])[]}
 */
function progressOf(event) {
  switch (event.kind) {
    case 'tool_started':
      return [[event.payload.call_id, { started: true }]]
    case 'tool_result':
      return [[event.payload.call_id, { result: event }]]
    case 'model_turn':
      return (event.payload.heard ?? []).map((id) => [id, { heard: true }])
    case 'run_end':
      return (event.payload.unheard ?? []).map((id) => [id, { heard: false }])
    default:
      return []
  }
}

/**
 * Whether a reader is in an iteration: has the focus there, or has scrolled to it.
 *
 * @param {Iteration} iteration
 */
function isRead({ blocks }) {
  const scrolled = window.scrollY > 0 && !isNearEnd()
  return [...blocks].some(({ element }) => {
    if (element.contains(document.activeElement)) return true
    const { top, bottom } = element.getBoundingClientRect()
    return scrolled && top < window.innerHeight && bottom > 0
  })
}

/** The timeline of one run. Events are added in the order of the log. */
export class Timeline {
  element
  /** @type {Block[]} */
  #blocks = []
  /** @type {Map<Element, Block>} */
  #byElement = new Map()
  /** Rows of tool calls and messages, by id. @type {Map<string, [Row, Block]>} */
  #calls = new Map()
  /** @type {Iteration[]} */
  #iterations = []
  #ended = false
  /** The newest checkpoint. @type {string | null} */
  #checkpoint = null
  #index = 0
  /** What is searched for, in lower case. */
  #words = ''
  /** Of what all rows know how often they hold it. */
  #counted = ''
  #onlyMatches = true
  /** The match that the user has gone to. @type {Row | null} */
  #current = null
  /** Rows of events without an entry of their own, by `seq`. @type {Map<number, Row>} */
  #homes = new Map()
  #searches = 0
  #isMarking = false
  #isClosed = false
  #isMarked = false
  #changed
  #observer = new IntersectionObserver((entries) => this.#onIntersection(entries), {
    rootMargin: MARGIN,
  })

  /** @param {() => void} changed called when other entries are visible, or match */
  constructor(changed) {
    this.#changed = changed
    this.element = h('div.feed', {
      role: 'feed',
      'aria-labelledby': 'timeline-title',
      'aria-busy': true,
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#onKey(event),
      onclick: (/** @type {Event} */ event) => this.#onClick(event),
    })
  }

  close() {
    this.#observer.disconnect()
    this.#searches += 1
    this.#isClosed = true
    // Marks hold on to what they mark.
    for (const name of /** @type {const} */ (['found', 'found-in-output']))
      highlight(this.element, '', name)
  }

  /** Tells screen readers whether the log is still loading. @param {boolean} busy */
  set busy(busy) {
    this.element.setAttribute('aria-busy', String(busy))
  }

  /** @param {readonly AgentEvent[]} events */
  add(events) {
    /** Blocks with new or changed rows. @type {Set<Block>} */
    const touched = new Set()
    for (const event of events) this.#take(event, touched)
    this.#update(touched)
  }

  /**
   * @param {AgentEvent} event
   * @param {Set<Block>} touched
   */
  #take(event, touched) {
    if (event.iteration > this.#index) {
      this.#index = event.iteration
      const last = this.#iterations.at(-1)
      if (last !== undefined && !last.chosen && !isRead(last)) {
        last.folded = true
        for (const block of last.blocks) touched.add(block)
      }
      const next = new Iteration(event.iteration, () => this.#update(next.blocks))
      this.#iterations.push(next)
      this.#push(new Row(null, next), touched)
    }
    const iteration = this.#iterations.at(-1) ?? null
    iteration?.note(event)
    for (const [id, progress] of progressOf(event)) {
      const [row, block] = this.#calls.get(id) ?? []
      if (row === undefined || block === undefined) continue
      row.note(progress)
      if (this.#words !== '') row.count(this.#words)
      this.#homes.set(event.seq, row)
      touched.add(block)
    }
    if (!isShown(event)) return
    // The end, and what follows it, belongs to the run, not to its last iteration.
    this.#ended ||= event.kind === 'run_end'
    const row = new Row(event, this.#ended ? null : iteration)
    if (event.kind === 'checkpoint') {
      // Those before an apply may be of another folder.
      const isApply = event.payload.reason === 'apply'
      row.note({ previous: isApply ? null : this.#checkpoint })
      if (!isApply) this.#checkpoint = event.payload.checkpoint_id
    }
    const block = this.#push(row, touched)
    if (event.kind === 'tool_call') this.#calls.set(event.payload.call_id, [row, block])
    if (event.kind === 'user_message') this.#calls.set(event.payload.message_id, [row, block])
  }

  /**
   * @param {Row} row
   * @param {Set<Block>} touched
   */
  #push(row, touched) {
    let block = this.#blocks.at(-1)
    if (block === undefined || block.rows.length === BLOCK) {
      block = new Block()
      this.#blocks.push(block)
      this.#byElement.set(block.element, block)
      this.element.append(block.element)
      this.#observer.observe(block.element)
    }
    if (this.#words !== '') row.count(this.#words)
    block.rows.push(row)
    row.iteration?.blocks.add(block)
    touched.add(block)
    return block
  }

  /** @param {Set<Block>} touched */
  #update(touched) {
    for (const block of touched) {
      block.count(this.#isFiltered)
      if (block.drawn) block.draw(this.#isFiltered)
    }
    this.#number()
  }

  get #isFiltered() {
    return this.#words !== '' && this.#onlyMatches
  }

  /** The number of visible entries. */
  get shown() {
    return this.#blocks.reduce((sum, { visible }) => sum + visible, 0)
  }

  /** Sets the position of each drawn entry among all visible ones. */
  #number() {
    const total = this.shown
    // A feed has entries, or it is none: far from the window there are no elements.
    if (!this.#blocks.some(({ drawn, visible }) => drawn && visible > 0))
      this.element.removeAttribute('role')
    else this.element.setAttribute('role', 'feed')
    let before = 0
    for (const block of this.#blocks) {
      if (block.drawn) {
        for (const [i, element] of [...block.element.children].entries()) {
          element.setAttribute('aria-posinset', String(before + i + 1))
          element.setAttribute('aria-setsize', String(total))
          // One tab stop per block; the other entries are reached from there.
          element.setAttribute('tabindex', i === 0 ? '0' : '-1')
        }
      }
      before += block.visible
    }
    this.#changed()
    this.#mark()
  }

  /** @param {readonly IntersectionObserverEntry[]} entries */
  #onIntersection(entries) {
    // While another tab is shown, nothing has a height.
    if (this.element.offsetParent === null) return
    const atEnd = isNearEnd() && window.scrollY > 0
    for (const { target, isIntersecting } of entries) {
      const block = this.#byElement.get(target)
      if (block === undefined || block.drawn === isIntersecting) continue
      if (isIntersecting) block.draw(this.#isFiltered)
      else block.clear()
    }
    this.#number()
    // Drawn rows are higher than assumed: a page that was at the end stays at the end.
    if (atEnd && !isNearEnd()) this.scrollToEnd()
  }

  /**
   * Searches all entries, a part at a time.
   *
   * @param {string} typed empty for all entries
   * @param {boolean} onlyMatches hide the others?
   * @returns {Promise<boolean>} false: another search has begun since
   */
  async find(typed, onlyMatches) {
    const words = wordsOf(typed)
    const search = (this.#searches += 1)
    // A user who goes on typing searches what was found.
    const narrower = this.#counted !== '' && words.includes(this.#counted)
    if (words !== this.#counted && words !== '') {
      this.#counted = ''
      if (!(await this.#count(words, narrower, () => search !== this.#searches))) return false
      this.#counted = words
    }
    if (words !== this.#words) this.#current = null
    this.#words = words
    this.#onlyMatches = onlyMatches
    // What came meanwhile.
    for (const row of this.#rows()) if (words !== '' && row.matches === null) row.count(words)
    this.#update(new Set(this.#blocks))
    return true
  }

  /**
   * @param {string} words
   * @param {boolean} narrower than the search before
   * @param {() => boolean} isOver
   */
  async #count(words, narrower, isOver) {
    let until = performance.now() + SLICE_MS
    for (const row of [...this.#rows()]) {
      if (!narrower || row.matches !== 0) row.count(words)
      if (performance.now() < until) continue
      await new Promise((resolve) => setTimeout(resolve, 0))
      if (isOver()) return false
      until = performance.now() + SLICE_MS
    }
    return true
  }

  *#rows() {
    for (const { rows } of this.#blocks) yield* rows
  }

  /**
   * What was found: matches, entries that have any, and which of them the user has gone to, from 1;
   * null without a search.
   */
  get found() {
    if (this.#words === '') return null
    let [matches, entries, at] = [0, 0, 0]
    for (const row of this.#rows()) {
      if (row.matches === null || row.matches === 0) continue
      matches += row.matches
      entries += 1
      if (row === this.#current) at = entries
    }
    return { matches, entries, at }
  }

  /** Goes to the next entry that matches, or the one before. @param {1 | -1} by */
  goToMatch(by) {
    const rows = [...this.#rows()].filter(({ matches }) => matches !== null && matches > 0)
    if (rows.length === 0) return
    const at = this.#current === null ? -1 : rows.indexOf(this.#current)
    const first = by === 1 ? 0 : rows.length - 1
    const next = at === -1 ? first : (at + by + rows.length) % rows.length
    this.#current = rows[next] ?? null
    if (this.#current === null) return
    const element = this.#reveal(this.#current)
    this.#open(element)
    this.#point(element)
    this.#number()
  }

  /** Opens what is folded in an entry and holds the words. @param {HTMLElement} element */
  #open(element) {
    for (const part of element.querySelectorAll('details')) {
      part.dispatchEvent(new Event('show'))
      const output = part.querySelector('.output-view')
      const isOutput = output?.dispatchEvent(
        new CustomEvent('find', { detail: this.#words, cancelable: true }),
      )
      if (isOutput === false || folded(textIn(part)).includes(this.#words))
        part.open = true
    }
  }

  /** Draws a row, wherever it is. @param {Row} row */
  #reveal(row) {
    const block = /** @type {Block} */ (this.#blocks.find(({ rows }) => rows.includes(row)))
    const { iteration } = row
    if (iteration !== null && iteration.folded && !this.#isFiltered) {
      iteration.chosen = true
      iteration.folded = false
      this.#update(iteration.blocks)
    }
    if (!block.drawn) block.draw(this.#isFiltered)
    this.#number()
    return row.draw()
  }

  /** Shows where the reader is. @param {HTMLElement} element */
  #point(element) {
    for (const each of this.element.querySelectorAll('[aria-current]'))
      each.removeAttribute('aria-current')
    element.setAttribute('aria-current', 'true')
    element.scrollIntoView({ block: 'center' })
    // What is drawn now around it is higher or lower than was assumed.
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        const { top, bottom } = element.getBoundingClientRect()
        if (bottom < 0 || top > window.innerHeight) element.scrollIntoView({ block: 'center' })
      }),
    )
  }

  /**
   * Goes to the entry of an event, or the one after which an event without one comes.
   *
   * @param {number} seq
   * @returns {boolean} false when there is none
   */
  goTo(seq) {
    let row = this.#homes.get(seq) ?? null
    if (row === null) {
      for (const each of this.#rows()) {
        if (each.event === null) continue
        if (each.event.seq > seq && row !== null) break
        row = each
        if (each.event.seq >= seq) break
      }
    }
    if (row === null) return false
    const element = this.#reveal(row)
    element.focus({ preventScroll: true })
    this.#point(element)
    return true
  }

  /** Marks what is searched for, once for all that changes before the next frame. */
  #mark() {
    if (this.#isMarking || (this.#words === '' && !this.#isMarked)) return
    this.#isMarking = true
    requestAnimationFrame(() => {
      this.#isMarking = false
      if (this.#isClosed) return
      this.#isMarked = this.#words !== ''
      highlight(this.element, this.#words)
    })
  }

  /** @param {boolean} folded */
  foldAll(folded) {
    for (const iteration of this.#iterations) {
      iteration.chosen = true
      iteration.folded = folded
    }
    this.#update(new Set(this.#blocks))
  }

  /** Draws the last screenful first, so that the page does not grow after scrolling. */
  scrollToEnd() {
    let height = 0
    for (let i = this.#blocks.length - 1; i >= 0 && height < window.innerHeight; i--) {
      const block = /** @type {Block} */ (this.#blocks[i])
      if (!block.drawn) block.draw(this.#isFiltered)
      height += block.element.offsetHeight
    }
    this.#number()
    window.scrollTo({ top: document.documentElement.scrollHeight })
  }

  /** What a reader has opened or selected is not folded by itself. @param {Event} event */
  #onClick({ target }) {
    const part = /** @type {Element} */ (target)
    const block = this.#byElement.get(part.closest('.block') ?? part)
    const row = block?.rows.find(({ element }) => element?.contains(part))
    if (row?.iteration != null) row.iteration.chosen = true
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const here = /** @type {Element} */ (event.target).closest('article')
    // The same keys scroll output.
    if (here === null || /** @type {Element} */ (event.target).matches('pre')) return
    const position = Number(here.getAttribute('aria-posinset'))
    const total = Number(here.getAttribute('aria-setsize'))
    /** @type {Record<string, number>} */
    const targets = { PageUp: position - 1, PageDown: position + 1, Home: 1, End: total }
    const target = targets[event.key]
    if (target === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    this.#focus(Math.min(Math.max(target, 1), total))
  }

  /** @param {number} position */
  #focus(position) {
    let before = 0
    for (const block of this.#blocks) {
      if (position <= before + block.visible) {
        if (!block.drawn) block.draw(this.#isFiltered)
        this.#number()
        const element = block.element.children[position - before - 1]
        if (!(element instanceof HTMLElement)) return
        element.focus({ preventScroll: true })
        element.scrollIntoView({ block: 'center' })
        return
      }
      before += block.visible
    }
  }
}
