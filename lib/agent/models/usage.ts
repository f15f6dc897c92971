/**
 * Pure: makes the usage that a model reports safe to add up.
 *
 * @module
 */
import type { CallUsage, Usage } from '../usage.js'

/** More tokens than any call uses, yet the sum over the longest run stays a safe integer. */
const MAX_TOKENS_OF_A_CALL = 1e11
/** More dollars than any call costs. */
const MAX_COST_OF_A_CALL = 1e6

/**
 * Bounds each count. Providers are not trusted: a single negative, non-numeric or absurdly large
 * count would corrupt the totals of the whole run.
 */
export function sanitizeUsage(usage: CallUsage): CallUsage {
  const counts: Usage = {
    input_tokens: soundCount(usage.input_tokens),
    output_tokens: soundCount(usage.output_tokens),
    cached_tokens: soundCount(usage.cached_tokens),
    reasoning_tokens: soundCount(usage.reasoning_tokens),
  }
  const { estimated_tokens: estimated, cost_usd: told } = usage
  // Without a spread: V8 would keep a hidden class for each object, as long as the object lives.
  if (estimated !== undefined)
    Object.assign(counts, { estimated_tokens: soundCount(estimated) })
  if (typeof told === 'number' && told >= 0)
    Object.assign(counts, { cost_usd: Math.min(told, MAX_COST_OF_A_CALL) })
  return counts
}

function soundCount(count: unknown): number {
  if (typeof count !== 'number' || !(count > 0)) return 0
  return Math.min(Math.floor(count), MAX_TOKENS_OF_A_CALL)
}
