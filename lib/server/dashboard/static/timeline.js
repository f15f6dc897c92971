/**
 * The events of a run, iteration by iteration, for runs of any length.
 *
 * 1. Every event is kept as a row, in the order of the log, but only rows near the window have
 *    elements. Rows form blocks, and a distant block is an empty box of the same height.
 * 2. Rows of a folded iteration, and rows that do not match the search, have no elements either.
 * 3. It is a feed (WAI-ARIA): each entry has its position among all visible ones, and Page Up,
 *    Page Down, Home and End move from entry to entry.
 */
import { entryView, isShown } from './entries.js'
import { button, h, place, prose, setText, update } from './dom.js'
import { actionButton } from './folder-entries.js'
import { visible } from './visible.js'

/**
 * @typedef {import('../types.js').AgentEvent} AgentEvent
 * @typedef {import('./entries.js').Progress} Progress
 */

/** Rows per block. */
const BLOCK = 40
/** Assumed height of a row that was never drawn, gap included, in pixels. */
const ROW_HEIGHT = 64
/** Distance from the window within which blocks are drawn. */
const MARGIN = '1200px 0px'

/** Pixels from the end within which the page follows new entries. */
const NEAR_END = 160

export function isNearEnd() {
  const { scrollHeight, clientHeight } = document.documentElement
  return scrollHeight - clientHeight - window.scrollY < NEAR_END
}

/** An entry, or the head of an iteration. */
class Row {
  /** @type {Progress} */
  progress = {}
  /** @type {HTMLElement | null} */
  element = null
  /** Which of its details were open when its element was removed. @type {readonly boolean[]} */
  #open = []
  /** @type {string | null} */
  #text = null
  #stale = false

  /**
   * @param {AgentEvent | null} event null for the head of an iteration
   * @param {Iteration | null} iteration
   */
  constructor(event, iteration) {
    this.event = event
    this.iteration = iteration
  }

  /** @param {string} words lower case, or empty for all */
  isVisible(words) {
    if (words !== '') return this.event !== null && this.#holds(words)
    return this.event === null || this.iteration === null || !this.iteration.folded
  }

  /** @param {string} words */
  #holds(words) {
    const { event, progress } = this
    this.#text ??= visible(JSON.stringify([event?.payload, progress.result?.payload])).toLowerCase()
    return this.#text.includes(words)
  }

  /** @param {Progress} progress */
  note(progress) {
    this.progress = { ...this.progress, ...progress }
    this.#text = null
    this.#stale = true
  }

  /** The element of this row, changed in place when its content has changed. */
  draw() {
    if (this.element !== null && !this.#stale) return this.element
    this.#stale = false
    const made =
      this.event === null
        ? /** @type {Iteration} */ (this.iteration).head()
        : entryView(this.event, this.progress)
    if (this.element === null) {
      const parts = made.querySelectorAll('details')
      if (parts.length === this.#open.length)
        parts.forEach((part, i) => (part.open = this.#open[i] === true))
      this.element = made
    } else update(this.element, made)
    return this.element
  }

  /** Removes its element. */
  clear() {
    if (this.element === null) return
    this.#open = [...this.element.querySelectorAll('details')].map(({ open }) => open)
    this.element.remove()
    this.element = null
  }
}

/** Whether the entries of an iteration are folded, and what its goal check found. */
class Iteration {
  /** The blocks that hold its rows. @type {Set<Block>} */
  blocks = new Set()
  #folded = false
  /** True once the user has folded or unfolded it: then it is not folded automatically. */
  chosen = false
  outcome = ''
  tone = ''
  #index
  #toggled
  /** @type {HTMLElement | null} */
  #fact = null
  /** @type {HTMLElement | null} */
  #button = null
  #complete = false
  /** @type {HTMLElement | null} */
  #fork = null

  /**
   * @param {number} index
   * @param {() => void} toggled
   */
  constructor(index, toggled) {
    this.#index = index
    this.#toggled = toggled
  }

  get folded() {
    return this.#folded
  }

  set folded(folded) {
    this.#folded = folded
    this.#button?.setAttribute('aria-expanded', String(!folded))
  }

  head() {
    this.#fact = h('span', { class: `fact ${this.tone}`, dir: 'auto' }, prose(this.outcome))
    const toggle = () => {
      this.chosen = true
      this.folded = !this.folded
      this.#toggled()
    }
    this.#button = button(`Iteration ${this.#index}`, toggle, {
      class: 'fold',
      'aria-expanded': !this.#folded,
    })
    this.#fork = actionButton('Fork from here', {
      name: 'fork',
      at: { iteration: this.#index },
      from: `After iteration ${this.#index}`,
    })
    this.#fork.hidden = !this.#complete
    return h('article.iteration', h('h3', this.#button), this.#fact, this.#fork)
  }

  /** @param {AgentEvent} event */
  note(event) {
    if (event.kind === 'iteration_complete') {
      this.#complete = true
      if (this.#fork !== null) this.#fork.hidden = false
    }
    if (event.kind !== 'goal_check') return
    this.outcome = event.payload.achieved ? 'Goal met' : event.payload.reason
    this.tone = event.payload.achieved ? 'good' : ''
    if (this.#fact === null) return
    setText(this.#fact, prose(this.outcome))
    this.#fact.className = `fact ${this.tone}`
  }
}

/** Consecutive rows, drawn only while they are near the window. */
class Block {
  element = h('div.block')
  /** @type {Row[]} */
  rows = []
  drawn = false
  /** Number of visible rows. */
  visible = 0

  /** Counts its visible rows. @param {string} words */
  count(words) {
    const visible = this.rows.reduce((sum, row) => sum + (row.isVisible(words) ? 1 : 0), 0)
    if (visible === this.visible) return
    this.visible = visible
    this.element.hidden = visible === 0
    if (!this.drawn) this.element.style.height = `${visible * ROW_HEIGHT}px`
  }

  /** Updates its elements from its rows; unchanged elements are not touched. */
  draw(/** @type {string} */ words) {
    const shown = this.rows.filter((row) => row.isVisible(words))
    place(this.element, shown.map((row) => row.draw()))
    for (const row of this.rows) if (!shown.includes(row)) row.clear()
    this.element.style.height = ''
    this.drawn = true
  }

  /** Removes its elements and keeps its height. */
  clear() {
    if (!this.drawn || this.element.contains(document.activeElement)) return
    const height = this.element.offsetHeight
    for (const row of this.rows) row.clear()
    this.element.style.height = `${height}px`
    this.drawn = false
  }
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
  #words = ''
  #counted
  #observer = new IntersectionObserver((entries) => this.#onIntersection(entries), {
    rootMargin: MARGIN,
  })

  /** @param {(visible: number) => void} [counted] called with the number of visible entries */
  constructor(counted = () => {}) {
    this.#counted = counted
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
    block.rows.push(row)
    row.iteration?.blocks.add(block)
    touched.add(block)
    return block
  }

  /** @param {Set<Block>} touched */
  #update(touched) {
    for (const block of touched) {
      block.count(this.#words)
      if (block.drawn) block.draw(this.#words)
    }
    this.#number()
  }

  /** Sets the position of each drawn entry among all visible ones. */
  #number() {
    const total = this.#blocks.reduce((sum, { visible }) => sum + visible, 0)
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
    this.#counted(total)
  }

  /** @param {readonly IntersectionObserverEntry[]} entries */
  #onIntersection(entries) {
    // While another tab is shown, nothing has a height.
    if (this.element.offsetParent === null) return
    const atEnd = isNearEnd() && window.scrollY > 0
    for (const { target, isIntersecting } of entries) {
      const block = this.#byElement.get(target)
      if (block === undefined || block.drawn === isIntersecting) continue
      if (isIntersecting) block.draw(this.#words)
      else block.clear()
    }
    this.#number()
    // Drawn rows are higher than assumed: a page that was at the end stays at the end.
    if (atEnd && !isNearEnd()) this.scrollToEnd()
  }

  /** Shows only entries that contain `words`. @param {string} words */
  find(words) {
    this.#words = visible(words.trim()).toLowerCase()
    this.#update(new Set(this.#blocks))
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
      if (!block.drawn) block.draw(this.#words)
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
        if (!block.drawn) block.draw(this.#words)
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
