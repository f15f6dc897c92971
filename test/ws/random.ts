/** Numbers that look random and come again for the same seed (mulberry32): 0 ≤ n < 1. */
export function random(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** `octets` cut at random places, in so many ways. */
export function splits(octets: Buffer, ways: number, seed = 1): Buffer[][] {
  const next = random(seed)
  return Array.from({ length: ways }, () => {
    const pieces: Buffer[] = []
    for (let at = 0; at < octets.length; ) {
      const size = 1 + Math.floor(next() ** 3 * (octets.length - at))
      pieces.push(octets.subarray(at, at + size))
      at += size
    }
    return pieces
  })
}
