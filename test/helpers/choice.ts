/**
 * Random samples of the cases of a test. `RUNWRIGHT_CHOICE=all` selects all cases, as `.ci/full`
 * does; `RUNWRIGHT_SEED` repeats a sample.
 */
import { Random } from './random.js'

/** True if every case is selected instead of a sample. */
export const isComplete: boolean = process.env['RUNWRIGHT_CHOICE'] === 'all'
const SEED = Number(process.env['RUNWRIGHT_SEED'] ?? Date.now() % 1_000_000)

/** Describes the choice, for the titles of tests. */
export const choice: string = isComplete ? 'all of them' : `one of each kind, seed ${SEED}`

/** One of each kind, in the order of the kinds. */
export function oneOfEach<T>(all: readonly T[], kindOf: (one: T) => unknown): readonly T[] {
  if (isComplete) return all
  const random = new Random(SEED)
  const kinds = [...new Set(all.map(kindOf))]
  return kinds.map((kind) => random.pick(all.filter((one) => kindOf(one) === kind)))
}

/** Pairs that cover each value of both lists, or all pairs if all cases are selected. */
export function pairs<A, B>(
  some: readonly A[],
  others: readonly B[],
): readonly (readonly [A, B])[] {
  if (isComplete) return some.flatMap((one) => others.map((other) => [one, other] as const))
  const first = new Random(SEED).integer(0, others.length - 1)
  return Array.from({ length: Math.max(some.length, others.length) }, (_, i) => [
    some[i % some.length]!,
    others[(first + i) % others.length]!,
  ])
}
