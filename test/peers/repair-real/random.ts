/** Numbers that look random and are the same for the same seed. */
export interface Random {
  /** At least 0 and less than `bound`. */
  below(bound: number): number
  shuffled<T>(items: readonly T[]): T[]
}

/** The seed may be any text, such as a number and a name. */
export function seeded(seed: string): Random {
  let state = 0x811c9dc5
  for (const character of seed) {
    state = Math.imul(state ^ character.codePointAt(0)!, 0x01000193) >>> 0
  }
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (bound: number): number => Math.floor(next() * bound)
  return {
    below,
    shuffled: (items) => {
      const left = [...items]
      for (let at = left.length - 1; at > 0; at--) {
        const other = below(at + 1)
        ;[left[at], left[other]] = [left[other]!, left[at]!]
      }
      return left
    },
  }
}
