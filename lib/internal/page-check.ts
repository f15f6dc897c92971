/** Pages without an item in a row: no list that ends has as many. */
const MAX_EMPTY_PAGES = 64

/**
 * Watches the cursors of a list that another program serves in pages, so that one without an end is
 * an error. A cursor that comes again is noticed in constant memory (Brent's algorithm), when the
 * list has gone round a few times at the latest.
 */
export class PageCheck {
  #kept: string | null = null
  #age = 0
  #keptFor = 1
  #empty = 0

  /**
   * Takes the cursor of the next page, and how many items the page before it has.
   *
   * @returns why the list does not end, as a predicate; null if it still may.
   */
  problem(cursor: string, items: number): string | null {
    if (cursor === this.#kept) return 'leads back to a page before it'
    this.#age += 1
    if (this.#age === this.#keptFor) {
      this.#kept = cursor
      this.#age = 0
      this.#keptFor *= 2
    }
    this.#empty = items > 0 ? 0 : this.#empty + 1
    return this.#empty < MAX_EMPTY_PAGES ? null : `has ${MAX_EMPTY_PAGES} empty pages in a row`
  }
}
