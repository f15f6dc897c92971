/** Shows a long list page by page, so that the document stays small. */
import { button, fill, h, setText } from './dom.js'
import { number } from './format.js'

export class Pager {
  element = h('nav.pager', { hidden: true, 'aria-label': 'Pages of this list' })
  start = 0
  #size
  #where = h('span.hint', { role: 'status' })
  #before
  #after

  /**
   * @param {number} size items per page
   * @param {() => void} turned called when the user goes to another page
   */
  constructor(size, turned) {
    this.#size = size
    const turn = (/** @type {number} */ by) => () => {
      this.start += by
      turned()
    }
    this.#before = button('Previous', turn(-size), 'small')
    this.#after = button('Next', turn(size), 'small')
    fill(this.element, this.#before, this.#where, this.#after)
  }

  /**
   * @template T
   * @param {readonly T[]} items
   * @returns {readonly T[]} those of the page
   */
  page(items) {
    if (this.start >= items.length) this.start = 0
    const end = Math.min(this.start + this.#size, items.length)
    this.element.hidden = items.length <= this.#size
    setText(this.#where, `${number(this.start + 1)}–${number(end)} of ${number(items.length)}`)
    this.#before.disabled = this.start === 0
    this.#after.disabled = end === items.length
    return items.slice(this.start, end)
  }
}
