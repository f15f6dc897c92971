import { hash } from '../../../internal/hash.js'


/** Characters of a hash: 72 bits, so that no other name can be made to have the same one. */
export const HASH_LENGTH = 12
const WORDS = HASH_LENGTH / 4

/** The first 9 bytes of the SHA-256 of a name, in base64. */
export function hashOf(name: string): string {
  return hash('sha256', name, 'base64').slice(0, HASH_LENGTH)
}

/**
 * Numbers different hashes 0, 1, 2, … in the order in which they come. Takes 20 bytes a hash,
 * outside of the heap, and never grows: memory that was never written to costs nothing.
 */
export class HashTable {
  /** One row a hash; what is looked for is written behind the last one. */
  readonly #rows: Buffer
  readonly #words: Uint32Array
  /** Row + 1 by the place where the search for a hash begins; 0 for a free place. */
  readonly #slots: Int32Array
  #size = 0

  /** @param capacity - the most hashes that are ever added */
  constructor(capacity: number) {
    const bytes = new ArrayBuffer((capacity + 1) * HASH_LENGTH)
    this.#rows = Buffer.from(bytes)
    this.#words = new Uint32Array(bytes)
    this.#slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * capacity + 2)))
  }

  get size(): number {
    return this.#size
  }

  /** The number of a hash; -1 if it was not added. */
  find(hash: string): number {
    return this.#slots[this.#slotOf(hash)]! - 1
  }

  /** The number of a hash, which is added unless it is known. */
  add(hash: string): number {
    const slot = this.#slotOf(hash)
    if (this.#slots[slot] === 0) this.#slots[slot] = ++this.#size
    return this.#slots[slot]! - 1
  }

  /** Writes hash number `row` to `target`, as its hash number `at`. */
  copy(row: number, target: Uint32Array, at: number): void {
    for (let i = 0; i < WORDS; i++) target[at * WORDS + i] = this.#words[row * WORDS + i]!
  }

  /** The place of a hash, or the free one where it belongs. */
  #slotOf(hash: string): number {
    const words = this.#words
    const wanted = this.#size * WORDS
    this.#rows.write(hash, wanted * 4, 'latin1')
    const [a, b, c] = [words[wanted]!, words[wanted + 1]!, words[wanted + 2]!]
    const last = this.#slots.length - 1
    for (let slot = mix(a, b) & last; ; slot = (slot + 1) & last) {
      const at = (this.#slots[slot]! - 1) * WORDS
      if (at < 0 || (words[at] === a && words[at + 1] === b && words[at + 2] === c)) return slot
    }
  }
}

/** Spreads the six random bits of each character over all bits. */
function mix(a: number, b: number): number {
  const x = Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b)
  return Math.imul(x ^ (x >>> 15), 0x2c1b3c6d) >>> 8
}
