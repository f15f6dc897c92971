/** The files that a run has changed, with the number of changes. */
import { button, h, setText } from './dom.js'
import { plural } from './format.js'

/** @typedef {import('../types.js').AgentEvent} AgentEvent */

/** Files listed before the user asks for more. */
const SHOWN = 12

/** Hidden while there are none. */
export class ChangedFiles {
  #title = h('h2', { id: 'files-title' })
  #list = h('ul')
  #more = button('', () => this.#showAll(), { class: 'quiet small', hidden: true })
  element = h(
    'section.files',
    { hidden: true, 'aria-labelledby': 'files-title' },
    this.#title,
    this.#list,
    this.#more,
  )
  /** Number of changes by path. @type {Map<string, number>} */
  #edits = new Map()
  /** Where the number of a listed file is shown. @type {Map<string, HTMLElement>} */
  #counts = new Map()
  #most = SHOWN
  #chosen

  /** @param {(path: string) => void} chosen called with the path that the user clicks */
  constructor(chosen) {
    this.#chosen = chosen
  }

  /** @param {readonly AgentEvent[]} events */
  add(events) {
    for (const event of events) {
      if (event.kind !== 'tool_result') continue
      for (const { path } of event.payload.changes ?? [])
        this.#edits.set(path, (this.#edits.get(path) ?? 0) + 1)
    }
    if (this.#edits.size > 0) this.#draw()
  }

  #draw() {
    for (const [path, edits] of [...this.#edits].slice(0, this.#most)) {
      const count = this.#counts.get(path) ?? this.#addFile(path)
      setText(count, plural(edits, 'change'))
    }
    const rest = this.#edits.size - this.#counts.size
    this.element.hidden = false
    this.#more.hidden = rest === 0
    setText(this.#title, `Changed files (${this.#edits.size})`)
    setText(this.#more, `Show ${rest} more`)
  }

  #showAll() {
    const last = this.#list.lastElementChild
    this.#most = Infinity
    this.#draw()
    // Keyboard users continue with what has come.
    last?.nextElementSibling?.querySelector('button')?.focus()
  }

  /** @param {string} path */
  #addFile(path) {
    const count = h('span.word')
    const props = { class: 'changed', title: 'Find in the timeline' }
    const file = button([h('span.path', path), count], () => this.#chosen(path), props)
    this.#list.append(h('li', file))
    this.#counts.set(path, count)
    return count
  }
}
