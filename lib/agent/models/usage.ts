/**
 * Pure: what a model says it used, made fit to be added up.
 *
 * @module
 */
import type { Usage } from '../usage.js'

/**
 * More tokens than any call takes; so little that the sum over the longest run is still a whole
 * number that JSON carries.
 */
const MAX_TOKENS_OF_A_CALL = 1e11

/**
 * Usage as it is booked. Providers are outside of us, and one count that is no number, below zero or
 * beyond all measure would spoil the totals of the whole run.
 */
export function soundUsage(usage: Usage): Usage {
  return {
    input_tokens: soundCount(usage.input_tokens),
    output_tokens: soundCount(usage.output_tokens),
    cached_tokens: soundCount(usage.cached_tokens),
    reasoning_tokens: soundCount(usage.reasoning_tokens),
  }
}

function soundCount(count: unknown): number {
  if (typeof count !== 'number' || !(count > 0)) return 0
  return Math.min(Math.floor(count), MAX_TOKENS_OF_A_CALL)
}
