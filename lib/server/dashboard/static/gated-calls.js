/** The calls that wait at a gate, a bounded number of them at first. */
import { button, h, setText } from './dom.js'
import { number, plural } from './format.js'
import { GatedCall } from './gated-call.js'
import { PresentFiles } from './present-files.js'

/** Calls drawn at first and each time the reader asks for more, and how many of them are open. */
const SHOWN = 20
const OPEN = 5

export class GatedCalls {
  #files
  #changed
  /** @type {readonly GatedCall[]} */
  #calls
  #shown = 0
  #list = h('ol.gated')
  #more = button('', () => this.#showMore(), 'quiet')
  element = h('div.stack', this.#list, this.#more)

  /**
   * @param {readonly import('../types.js').GatedCall[]} calls
   * @param {import('../types.js').RunDetails} details
   * @param {() => void} changed the reader has decided otherwise
   * @param {() => void} drawn what a call would do is now to be seen
   */
  constructor(calls, { run_id, cwd, workspace }, changed, drawn) {
    this.#files = new PresentFiles(run_id)
    this.#changed = changed
    const place = { runId: run_id, cwd, isCopy: workspace === 'isolated' }
    this.#calls = calls.map((call, i) => new GatedCall(call, i + 1, {
      place,
      isOnly: calls.length === 1,
      before: (path) => this.#before(i, path),
      changed: () => {
        this.#redraw()
        this.#changed()
      },
      drawn,
    }))
    this.#showMore()
  }

  get count() {
    return this.#calls.length
  }

  get choices() {
    return this.#calls.map(({ choice }) => choice)
  }

  /** What the reader has typed. */
  get typed() {
    return this.#calls.flatMap(({ typed }) => typed)
  }

  /** The folder may have changed. */
  filesChanged() {
    this.#files.forget()
    this.#redraw()
  }

  open() {
    for (const call of this.#calls.slice(0, OPEN)) call.open()
  }

  /** Edits the call that has the focus, or the first. */
  edit() {
    const shown = this.#calls.slice(0, this.#shown)
    const focused = shown.find(({ element }) => element.contains(document.activeElement))
    ;(focused ?? shown[0])?.edit()
  }

  /** False when one that is edited is not valid, which it says. */
  commit() {
    return this.#calls.every((call) => call.commit())
  }

  /**
   * A file as the calls before leave it.
   *
   * @param {number} index
   * @param {string} path
   */
  async #before(index, path) {
    let present = await this.#files.text(path)
    for (const call of this.#calls.slice(0, index))
      if (call.path === path) present = call.result(present)
    return present
  }

  #redraw() {
    for (const call of this.#calls.slice(0, this.#shown)) void call.draw()
  }

  #showMore() {
    const next = this.#calls.slice(this.#shown, this.#shown + SHOWN)
    const isFirst = this.#shown === 0
    this.#list.append(...next.map(({ element }) => element))
    this.#shown += next.length
    const rest = this.#calls.length - this.#shown
    this.#more.hidden = rest === 0
    const all = rest > SHOWN ? `Show ${SHOWN} of ` : 'Show '
    setText(this.#more, `${all}${plural(rest, 'call')} more, of ${number(this.count)}`)
    // Keyboard users continue in the list.
    if (!isFirst) next[0]?.element.querySelector('summary')?.focus()
  }
}
