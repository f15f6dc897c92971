/**
 * A list of any length whose rows all have the same height: only those in sight have elements. A
 * row that has the focus keeps its element, wherever it is.
 */

/** Rows that are drawn above and below what is in sight. */
const MORE = 8

export class VirtualList {
  #scroller
  #list
  #height
  #draw
  #count = 0
  /** By index. @type {Map<number, HTMLElement>} */
  #rows = new Map()
  #resized = new ResizeObserver(() => this.show())

  /**
   * @param {HTMLElement} scroller what scrolls
   * @param {HTMLElement} list has the rows
   * @param {number} height of a row, in pixels
   * @param {(index: number, former: HTMLElement | undefined) => HTMLElement} draw the element of a
   *   row, which may be the former one, changed in place
   */
  constructor(scroller, list, height, draw) {
    this.#scroller = scroller
    this.#list = list
    this.#height = height
    this.#draw = draw
    scroller.addEventListener('scroll', () => this.show(), { passive: true })
    this.#resized.observe(scroller)
  }

  close() {
    this.#resized.disconnect()
  }

  get count() {
    return this.#count
  }

  /** Draws all rows in sight again. @param {number} count */
  update(count) {
    this.#count = count
    this.#list.style.setProperty('height', `${count * this.#height}px`)
    this.show(true)
  }

  /** The first row in sight, and the one after the last. @returns {[first: number, end: number]} */
  get sight() {
    const { scrollTop, clientHeight } = this.#scroller
    const first = Math.floor(scrollTop / this.#height)
    return [first, Math.min(Math.ceil((scrollTop + clientHeight) / this.#height), this.#count)]
  }

  /** @param {boolean} [again] also those that are drawn already */
  show(again = false) {
    const [first, end] = this.sight
    const from = Math.max(first - MORE, 0)
    const to = Math.min(end + MORE, this.#count)
    for (const [index, row] of this.#rows) {
      const isInSight = index >= from && index < to
      const isKept = isInSight || row.contains(document.activeElement)
      if (isKept && index < this.#count) continue
      row.remove()
      this.#rows.delete(index)
    }
    for (const index of this.#rows.keys()) if (again && index < this.#count) this.#place(index)
    for (let index = from; index < to; index++) if (!this.#rows.has(index)) this.#place(index)
  }

  /** @param {number} index */
  #place(index) {
    const former = this.#rows.get(index)
    const row = this.#draw(index, former)
    if (row !== former) {
      former?.remove()
      row.style.setProperty('top', `${index * this.#height}px`)
      this.#rows.set(index, row)
      this.#insert(row, index)
    }
  }

  /** Screen readers and Tab go through the rows in their order. */
  #insert(/** @type {HTMLElement} */ row, /** @type {number} */ index) {
    let next = Infinity
    for (const each of this.#rows.keys()) if (each > index && each < next) next = each
    this.#list.insertBefore(row, this.#rows.get(next) ?? null)
  }

  /** The element of a row, in sight or not; undefined beyond the last. @param {number} index */
  draw(index) {
    if (index >= 0 && index < this.#count && !this.#rows.has(index)) this.#place(index)
    return this.#rows.get(index)
  }

  /** Scrolls to a row, unless it is in sight, and returns its element. @param {number} index */
  reveal(index) {
    const { scrollTop, clientHeight } = this.#scroller
    const top = index * this.#height
    if (top < scrollTop || top + this.#height > scrollTop + clientHeight)
      this.#scroller.scrollTop = top - (clientHeight - this.#height) / 2
    this.show()
    return this.#rows.get(index)
  }
}
