/**
 * What model calls cost. An unknown price is null, never 0: a run that counts it as free would
 * never reach its cost budget.
 *
 * @module
 */
import { checkString } from '../../internal/options.js'
import type { ModelPrices, Usage } from '../usage.js'

/** Cost of a call in US dollars, or null when the price is not known. */
export function costOf(usage: Usage, prices: ModelPrices | null): number | null {
  if (prices === null) return null
  const cached = Math.min(usage.cached_tokens, usage.input_tokens)
  const fresh = usage.input_tokens - cached
  const total =
    fresh * prices.input +
    cached * (prices.cached ?? prices.input) +
    usage.output_tokens * prices.output
  return total / 1_000_000
}

/** When the table below was last compared with the providers' price lists. */
const AS_OF = '2026-09-07'

/** By name without a date suffix: dollars per million tokens. */
const PRICES: Readonly<Record<string, readonly [input: number, cached: number, output: number]>> = {
  'gpt-5.4': [2.5, 0.25, 15],
  'gpt-5.4-mini': [0.75, 0.075, 4.5],
  'gpt-5.4-nano': [0.2, 0.02, 1.25],
  'gpt-5.2': [1.75, 0.175, 14],
  'gpt-5.1': [1.25, 0.125, 10],
  'gpt-5': [1.25, 0.125, 10],
  'gpt-5-mini': [0.25, 0.025, 2],
  'gpt-5-nano': [0.05, 0.005, 0.4],
  'gpt-4.1': [2, 0.5, 8],
  'gpt-4.1-mini': [0.4, 0.1, 1.6],
  'gpt-4.1-nano': [0.1, 0.025, 0.4],
  'gpt-4o': [2.5, 1.25, 10],
  'gpt-4o-mini': [0.15, 0.075, 0.6],
  o3: [2, 0.5, 8],
  'o4-mini': [1.1, 0.275, 4.4],
  'claude-fable-5': [10, 1, 50],
  'claude-opus-5': [5, 0.5, 25],
  'claude-opus-4-8': [5, 0.5, 25],
  'claude-opus-4-7': [5, 0.5, 25],
  'claude-opus-4-6': [5, 0.5, 25],
  'claude-opus-4-5': [5, 0.5, 25],
  'claude-opus-4-1': [15, 1.5, 75],
  'claude-sonnet-5': [2, 0.2, 10],
  'claude-sonnet-4-6': [3, 0.3, 15],
  'claude-sonnet-4-5': [3, 0.3, 15],
  'claude-sonnet-4': [3, 0.3, 15],
  'claude-haiku-4-5': [1, 0.1, 5],
  'gemini-3.5-flash': [1.5, 0.15, 9],
  'gemini-3.1-pro-preview': [2, 0.2, 12],
  'gemini-3.1-flash-lite': [0.25, 0.025, 1.5],
  'gemini-2.5-pro': [1.25, 0.125, 10],
  'gemini-2.5-flash': [0.3, 0.03, 2.5],
}

/**
 * List prices of a well-known model by its vendor's name for it, or null. A date suffix
 * (`-2025-08-07`, `-20251001`) and `-latest` are ignored; any other difference means another model.
 * Surcharges and discounts for long prompts, batches and priority service are not included.
 */
export function knownPrices(model: string): ModelPrices | null {
  checkString('model', model)
  const name = model.toLowerCase().replace(/-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$/, '')
  const known = Object.hasOwn(PRICES, name) ? PRICES[name] : undefined
  if (known === undefined) return null
  const [input, cached, output] = known
  return { input, cached, output, as_of: AS_OF }
}
