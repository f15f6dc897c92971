/** Index of the first member of an ascending pool that stands at or after a token. */
export function lowerBound(pool: readonly { readonly at: number }[], at: number): number {
  let low = 0
  let high = pool.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (pool[middle]!.at < at) low = middle + 1
    else high = middle
  }
  return low
}
