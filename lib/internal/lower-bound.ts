/**
 * The first of `count` places for which `isBefore` is false; `count` when there is none. The places
 * are in order: it is true up to some place, and false from there on.
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
