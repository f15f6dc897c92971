/** The files that a run has changed, with the number of changes. */
import { button, fill, h } from './dom.js'
import { plural } from './format.js'

/** @typedef {import('../types.js').AgentEvent} AgentEvent */

/** Files listed before the user asks for more. */
const SHOWN = 12

/** Hidden while there are none. */
export class ChangedFiles {
  element = h('section.files', { hidden: true, 'aria-labelledby': 'files-title' })
  /** Number of changes by path. @type {Map<string, number>} */
  #edits = new Map()
  #all = false
  #chosen

  /** @param {(path: string) => void} chosen called with the path that the user clicks */
  constructor(chosen) {
    this.#chosen = chosen
  }

  /** @param {readonly AgentEvent[]} events */
  add(events) {
    let changed = false
    for (const event of events) {
      if (event.kind !== 'tool_result') continue
      for (const { path } of event.payload.changes ?? []) {
        this.#edits.set(path, (this.#edits.get(path) ?? 0) + 1)
        changed = true
      }
    }
    if (changed) this.#draw()
  }

  #draw() {
    const shown = [...this.#edits].slice(0, this.#all ? undefined : SHOWN)
    const rest = this.#edits.size - shown.length
    this.element.hidden = false
    fill(
      this.element,
      h('h2', { id: 'files-title' }, `Changed files (${this.#edits.size})`),
      h('ul', shown.map(([path, edits]) => h('li', this.#file(path, edits)))),
      rest > 0 &&
        button(`Show ${rest} more`, () => this.#showAll(), 'quiet small'),
    )
  }

  #showAll() {
    this.#all = true
    this.#draw()
  }

  /**
   * @param {string} path
   * @param {number} edits
   */
  #file(path, edits) {
    const label = [h('span.path', path), h('span.word', plural(edits, 'change'))]
    return button(label, () => this.#chosen(path), {
      class: 'changed',
      title: 'Find in the timeline',
    })
  }
}
