/** Says whether a JSON object that comes in pieces is complete. It looks at each character once. */
export class ObjectEnd {
  #at = 0
  #depth = 0
  #isInString = false
  #state: 'before' | 'within' | 'after' | 'no object' = 'before'

  /** @param text - all that has come so far, which begins with what was given before. */
  isIn(text: string): boolean {
    while (this.#at < text.length && (this.#state === 'before' || this.#state === 'within'))
      this.#take(text.charAt(this.#at++))
    return this.#state === 'after'
  }

  #take(char: string): void {
    if (this.#isInString) {
      if (char === '"') this.#isInString = false
      // Skips what is escaped, even if it has not come yet.
      else if (char === '\\') this.#at += 1
    } else if (char === '{' || char === '[') {
      this.#state = this.#state === 'before' && char === '[' ? 'no object' : 'within'
      this.#depth += 1
    } else if (char === '}' || char === ']') {
      this.#depth -= 1
      this.#state = this.#depth > 0 ? 'within' : this.#depth === 0 ? 'after' : 'no object'
    } else if (this.#state === 'before' && char.trim() !== '') this.#state = 'no object'
    else if (char === '"') this.#isInString = true
  }
}
