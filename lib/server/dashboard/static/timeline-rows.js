/** The rows of the timeline, and the blocks that draw them only near the window. */
import { entryView } from './entries.js'
import { button, h, place, prose, setText, update } from './dom.js'
import { actionButton } from './folder-entries.js'
import { matchesOf } from './search.js'

/**
 * @typedef {import('../types.js').AgentEvent} AgentEvent
 * @typedef {import('./entries.js').Progress} Progress
 */

/** Assumed height of a row that was never drawn, gap included, in pixels. */
const ROW_HEIGHT = 76

/** An entry, or the head of an iteration. */
export class Row {
  /** @type {Progress} */
  progress = {}
  /** @type {HTMLElement | null} */
  element = null
  /** Which of its details were open when its element was removed. @type {readonly boolean[]} */
  #open = []
  /** How often it holds what is searched for; null while nobody knows. @type {number | null} */
  matches = null
  #stale = false

  /**
   * @param {AgentEvent | null} event null for the head of an iteration
   * @param {Iteration | null} iteration
   */
  constructor(event, iteration) {
    this.event = event
    this.iteration = iteration
  }

  /** @param {boolean} onlyMatches */
  isVisible(onlyMatches) {
    if (onlyMatches) return this.matches !== null && this.matches > 0
    return this.event === null || this.iteration === null || !this.iteration.folded
  }

  /** Counts what is searched for. @param {string} words not empty */
  count(words) {
    const { event, progress } = this
    this.matches = event === null ? 0 : matchesOf(event, progress, words)
  }

  /** @param {Progress} progress */
  note(progress) {
    this.progress = { ...this.progress, ...progress }
    this.matches = null
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
        parts.forEach((part, i) => this.#open[i] === true && unfold(part))
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

/** At its full height at once, so that nothing moves below it. @param {HTMLDetailsElement} part */
function unfold(part) {
  part.open = true
  part.dispatchEvent(new Event('show'))
}

/** Whether the entries of an iteration are folded, and what its goal check found. */
export class Iteration {
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

/** What has the focus, and where a selection begins and ends. */
function heldNodes() {
  const selection = getSelection()
  const ends = selection?.isCollapsed === false ? [selection.anchorNode, selection.focusNode] : []
  return [document.activeElement, ...ends]
}

/** Consecutive rows, drawn only while they are near the window. */
export class Block {
  element = h('div.block')
  /** @type {Row[]} */
  rows = []
  drawn = false
  /** Number of visible rows. */
  visible = 0

  /** Counts its visible rows. @param {boolean} onlyMatches */
  count(onlyMatches) {
    const visible = this.rows.reduce((sum, row) => sum + (row.isVisible(onlyMatches) ? 1 : 0), 0)
    if (visible === this.visible) return
    this.visible = visible
    this.element.hidden = visible === 0
    if (!this.drawn) this.element.style.height = `${visible * ROW_HEIGHT}px`
  }

  /** Updates its elements from its rows; unchanged elements are not touched. */
  draw(/** @type {boolean} */ onlyMatches) {
    const shown = this.rows.filter((row) => row.isVisible(onlyMatches))
    place(this.element, shown.map((row) => row.draw()))
    for (const row of this.rows) if (!shown.includes(row)) row.clear()
    this.element.style.height = ''
    this.drawn = true
  }

  /** Removes its elements and keeps its height, unless the reader holds something in it. */
  clear() {
    if (!this.drawn || heldNodes().some((node) => this.element.contains(node))) return
    const height = this.element.offsetHeight
    for (const row of this.rows) row.clear()
    this.element.style.height = `${height}px`
    this.drawn = false
  }
}
