/** A seeded generator of numbers from 0 to below 1 (mulberry32). */
export function random(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Cuts `bytes` at random offsets, in `ways` different ways. */
export function splits(bytes: Buffer, ways: number, seed = 1): Buffer[][] {
  const next = random(seed)
  return Array.from({ length: ways }, () => {
    const pieces: Buffer[] = []
    for (let at = 0; at < bytes.length; ) {
      const size = 1 + Math.floor(next() ** 3 * (bytes.length - at))
      pieces.push(bytes.subarray(at, at + size))
      at += size
    }
    return pieces
  })
}
