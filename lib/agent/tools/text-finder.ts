/** Shorter texts are compared anew at every offset, which costs at most this much for each. */
const SHORT = 64

/**
 * Finds a text in others in linear time (D. Knuth, J. Morris, V. Pratt, "Fast pattern matching in
 * strings", 1977). `indexOf` takes minutes for a long text in a file that resembles it everywhere.
 */
export class TextFinder {
  readonly #wanted: string
  /** For each beginning of the text, how long a shorter beginning is that it ends in. */
  readonly #borders: Int32Array | null

  constructor(wanted: string) {
    this.#wanted = wanted
    this.#borders = wanted.length <= SHORT ? null : bordersOf(wanted)
  }

  /** The first offset from `from`; -1 for none. */
  indexIn(text: string, from = 0): number {
    if (this.#borders === null) return text.indexOf(this.#wanted, from)
    let same = 0
    for (let i = from; i < text.length; i++) {
      same = extended(this.#wanted, this.#borders, same, text.charCodeAt(i))
      if (same === this.#wanted.length) return i + 1 - same
    }
    return -1
  }
}

function bordersOf(text: string): Int32Array {
  const borders = new Int32Array(text.length + 1)
  for (let i = 1; i < text.length; i++) {
    borders[i + 1] = extended(text, borders, borders[i]!, text.charCodeAt(i))
  }
  return borders
}

/** How much of the text is there after one more character, if it was `same` characters before. */
function extended(text: string, borders: Int32Array, same: number, code: number): number {
  while (same > 0 && text.charCodeAt(same) !== code) same = borders[same]!
  return text.charCodeAt(same) === code ? same + 1 : 0
}
