/** Says whether a JSON object that comes in pieces is complete. It looks at each character once. */
export class ObjectEnd {
  /** What came and was not looked at. */
  #pieces: string[] = []
  #depth = 0
  #isInString = false
  #isEscaped = false
  #state: 'before' | 'within' | 'after' | 'no object' = 'before'

  /** Adds the next piece of the text. */
  add(piece: string): void {
    if (this.#isOpen) this.#pieces.push(piece)
  }

  /** Whether the object ends in what has come so far. */
  get isReached(): boolean {
    for (const piece of this.#pieces)
      for (let i = 0; i < piece.length && this.#isOpen; i++) this.#take(piece.charAt(i))
    this.#pieces = []
    return this.#state === 'after'
  }

  get #isOpen(): boolean {
    return this.#state === 'before' || this.#state === 'within'
  }

  #take(char: string): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (this.#isInString) {
      if (char === '"') this.#isInString = false
      else if (char === '\\') this.#isEscaped = true
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
