import { atOnce } from '../../../lib/internal/time.js'
import { mergeTexts } from '../../../lib/agent/workspace/merge-text.js'
import { Random } from '../../helpers/random.js'

/** Merges texts; null for a conflict. */
export function merge(base: string, ours: string, theirs: string): string | null {
  const [o, a, b] = [base, ours, theirs].map((text) => Buffer.from(text, 'latin1'))
  return atOnce(mergeTexts(o!, a!, b!))?.toString('latin1') ?? null
}

/** A random edit of some lines; `word` gives new lines. */
function edited(random: Random, lines: readonly string[], word: () => string): string[] {
  const result = [...lines]
  for (let i = random.integer(0, 3); i > 0; i--) {
    const added = Array.from({ length: random.integer(0, 2) }, word)
    result.splice(random.integer(0, result.length), random.integer(0, 2), ...added)
  }
  return result
}

export function randomTriple(random: Random, distinct: boolean): [string, string, string] {
  let serial = 0
  const word = (): string => (distinct ? `${serial++}` : random.pick(['a', 'b', '', '}']))
  const base = Array.from({ length: random.integer(0, 14) }, word)
  const shared = random.chance(0.4) ? edited(random, base, word) : base
  const text = (lines: readonly string[]): string =>
    lines.join('\n') + (random.chance(0.8) && lines.length > 0 ? '\n' : '')
  return [text(base), text(edited(random, shared, word)), text(edited(random, shared, word))]
}
