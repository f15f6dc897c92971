import { oneOfEach } from '../../../helpers/choice.js'
import type { Trick } from './tricks/trick.js'

/** One trick of each class for each runner, or all of them: see choice.ts. */
export const sampled = (tricks: readonly Trick[]): readonly Trick[] =>
  oneOfEach(tricks, (trick) => `${trick.runner} ${trick.class}`)
