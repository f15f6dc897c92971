/** A seeded generator (xorshift32): the same seed gives the same numbers on every machine. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = (seed | 0) === 0 ? 0x9e3779b9 : seed | 0
  }

  /** A number from 0 to below 1. */
  next(): number {
    this.#state ^= this.#state << 13
    this.#state ^= this.#state >>> 17
    this.#state ^= this.#state << 5
    return (this.#state >>> 0) / 0x1_0000_0000
  }

  /** A whole number from `low` to `high`, inclusive. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1))
  }

  /** True with the given probability. */
  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(values: readonly T[]): T {
    return values[this.integer(0, values.length - 1)] as T
  }
}
