import type { OperatorContext, OperatorName } from './patch.js'

/** An alternative text and its strength relative to the other alternatives at the same place. */
export type Alternative = readonly [text: string, strength: number]

/**
 * The strongest alternatives, each with its share of `mass`: how likely the change is at this place
 * at all. So a place with many alternatives is no likelier to be changed than one with few.
 */
export function spread(
  alternatives: Iterable<Alternative>,
  mass: number,
  most: number,
): Alternative[] {
  const strongest = new Map<string, number>()
  for (const [text, strength] of alternatives)
    if (strength > 0) strongest.set(text, Math.max(strongest.get(text) ?? 0, strength))
  const kept = [...strongest]
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0))
    .slice(0, most)
  const total = kept.reduce((sum, [, strength]) => sum + strength, 0)
  return kept.map(([text, strength]) => [text, (mass * strength) / Math.max(total, 1)])
}

/** Proposes to replace the tokens from `first` to `last` by each of the alternatives. */
export function replaceByAny(
  context: OperatorContext,
  first: number,
  last: number,
  alternatives: Iterable<Alternative>,
  operator: OperatorName,
  mass: number,
  most: number,
): void {
  for (const [text, weight] of spread(alternatives, mass, most))
    context.replace(first, last, text, operator, weight)
}
