/**
 * A random choice of what a test could go through. With `RUNWRIGHT_CHOICE=all` it is all there is,
 * as in `.ci/full`; `RUNWRIGHT_SEED` repeats a choice.
 */
import { Random } from './random.js'

const ALL = process.env['RUNWRIGHT_CHOICE'] === 'all'
const SEED = Number(process.env['RUNWRIGHT_SEED'] ?? Date.now() % 1_000_000)

/** What the title of a test says about its choice. */
export const choice: string = ALL ? 'all of them' : `one of each kind, seed ${SEED}`

/** One of each kind, in the order of the kinds. */
export function oneOfEach<T>(all: readonly T[], kindOf: (one: T) => unknown): readonly T[] {
  if (ALL) return all
  const random = new Random(SEED)
  const kinds = [...new Set(all.map(kindOf))]
  return kinds.map((kind) => random.pick(all.filter((one) => kindOf(one) === kind)))
}

/** Pairs that contain each value of both lists; all pairs, if all are chosen. */
export function pairs<A, B>(
  some: readonly A[],
  others: readonly B[],
): readonly (readonly [A, B])[] {
  if (ALL) return some.flatMap((one) => others.map((other) => [one, other] as const))
  const first = new Random(SEED).integer(0, others.length - 1)
  return Array.from({ length: Math.max(some.length, others.length) }, (_, i) => [
    some[i % some.length]!,
    others[(first + i) % others.length]!,
  ])
}
