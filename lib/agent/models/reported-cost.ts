import type { JsonObject } from '../../internal/json.js'
import { amountOf, objectOf } from './json-reader.js'

/**
 * What OpenRouter, and servers like it, say in `usage` that a call has cost, in US dollars; empty
 * where they do not. With a key of one's own (`is_byok`), the provider behind it charges as well.
 */
export function reportedCost(usage: JsonObject): { readonly cost_usd?: number } {
  const cost = amountOf(usage['cost'])
  if (cost === undefined) return {}
  const upstream = amountOf(objectOf(usage['cost_details'])['upstream_inference_cost']) ?? 0
  return { cost_usd: usage['is_byok'] === true ? cost + upstream : cost }
}
