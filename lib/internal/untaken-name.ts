/** The number that each name has reached, so that a name given a thousand times is counted once. */
const reached = new WeakMap<ReadonlyMap<string, unknown>, Map<string, number>>()

/** The name, or if it is taken its first numbered form that is not: the second, the third, … */
export function untakenName(
  name: string,
  taken: ReadonlyMap<string, unknown>,
  numbered: (name: string, number: number) => string,
): string {
  let numbers = reached.get(taken)
  if (numbers === undefined) reached.set(taken, (numbers = new Map()))
  let number = numbers.get(name) ?? 1
  let untaken = number === 1 ? name : numbered(name, number)
  while (taken.has(untaken)) {
    number += 1
    untaken = numbered(name, number)
  }
  numbers.set(name, number)
  return untaken
}
