/**
 * A random choice of the tricks and changes of a table, one of each kind. With
 * `RUNWRIGHT_TRICKS=all` it is all of them, which takes minutes for each runner.
 */
import { Random } from '../../../helpers/random.js'
import type { Trick } from './tricks/trick.js'

const ALL = process.env['RUNWRIGHT_TRICKS'] === 'all'
const SEED = Number(process.env['RUNWRIGHT_SEED'] ?? Date.now() % 1_000_000)

/** What the title of a test says about its choice. */
export const choice: string = ALL ? 'all of them' : `one of each kind, seed ${SEED}`

export function oneOfEach<T>(all: readonly T[], kindOf: (one: T) => string): readonly T[] {
  if (ALL) return all
  const random = new Random(SEED)
  const kinds = [...new Set(all.map(kindOf))]
  return kinds.map((kind) => random.pick(all.filter((one) => kindOf(one) === kind)))
}

/** One trick of each class for each runner. */
export const sampled = (tricks: readonly Trick[]): readonly Trick[] =>
  oneOfEach(tricks, (trick) => `${trick.runner} ${trick.class}`)
