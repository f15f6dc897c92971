import { oneOfEach } from '../../../helpers/choice.js'
import type { Trick } from './tricks/trick.js'

/** One trick of each class, or all of them: see choice.ts. */
export const sampled = (tricks: readonly Trick[]): readonly Trick[] =>
  oneOfEach(tricks, (trick) => trick.class)
