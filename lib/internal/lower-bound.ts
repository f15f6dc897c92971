/**
 * Binary search: the first of `count` indexes for which `isBefore` is false, or `count`. `isBefore`
 * must not become true again after it was false.
 */
export function lowerBound(count: number, isBefore: (at: number) => boolean): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isBefore(middle)) low = middle + 1
    else high = middle
  }
  return low
}
