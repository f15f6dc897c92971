/**
 * What model calls cost. An unknown price is null, never 0: a run that counts it as free would
 * never reach its cost budget.
 *
 * @module
 */
import { checkString } from '../../internal/options.js'
import type { CallUsage, ModelPrices, Usage } from '../usage.js'

/**
 * Cost of a call in US dollars: what its provider says that it charged, else by its price; null
 * when that is not known. A provider that says 0 of a model that has a price is not believed.
 */
export function chargeFor(usage: CallUsage, prices: ModelPrices | null): number | null {
  const { cost_usd: told = 0 } = usage
  if (told > 0 || (prices === null && usage.cost_usd !== undefined)) return told
  return costOf(usage, prices)
}

/** Cost of a call in US dollars by its price, or null when that is not known. */
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

/** Dollars per million tokens; null: cached input costs as much as other input. */
type Row = readonly [input: number, cached: number | null, output: number]

/**
 * By the date of the lookup, then by name, without a date suffix unless that snapshot has another
 * price. A price that is lowered for some months only has its regular amount here: nobody
 * renews this table on the day on which a promotion ends.
 */
const PRICES: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  '2026-11-26': {
    'gpt-6.2-astra': [8, null, 40],
    'gpt-6.2-sol': [2, 0.1, 10],
    'gpt-6.1-sol': [2, 0.1, 10],
    'gpt-6.1-terra': [1, 0.05, 5],
    'gpt-6-astra': [10, 1, 50],
    'gpt-6-sol': [2, 0.2, 10],
    'gpt-6-luna': [0.1, 0.01, 0.5],
    'gpt-5.6': [5, 0.5, 30],
    'gpt-5.6-sol': [5, 0.5, 30],
    'gpt-5.6-terra': [2, 0.2, 12],
    'gpt-5.6-luna': [0.2, 0.02, 1.2],
    'gpt-5.5': [5, 0.5, 30],
    'gpt-5.5-pro': [30, 3, 180],
    'gpt-5.4-pro': [30, 3, 180],
    'gpt-5.3-codex': [1.75, 0.175, 14],
    'gpt-5.3-chat': [1.75, 0.175, 14],
    'gpt-5.2-codex': [1.75, 0.175, 14],
    'gpt-5.2-chat': [1.75, 0.175, 14],
    'gpt-5.2-pro': [21, null, 168],
    'gpt-5.1-codex': [1.25, 0.125, 10],
    'gpt-5.1-codex-max': [1.25, 0.125, 10],
    'gpt-5.1-codex-mini': [0.25, 0.025, 2],
    'gpt-5.1-chat': [1.25, 0.125, 10],
    'gpt-5-codex': [1.25, 0.125, 10],
    'gpt-5-chat': [1.25, 0.125, 10],
    'gpt-5-pro': [15, null, 120],
    'gpt-4o-2024-05-13': [5, null, 15],
    'gpt-4-turbo': [10, null, 30],
    'gpt-4': [30, null, 60],
    'gpt-3.5-turbo': [0.5, null, 1.5],
    'o3-pro': [20, null, 80],
    'o3-mini': [1.1, 0.55, 4.4],
    o1: [15, 7.5, 60],
    'o1-pro': [150, null, 600],
    'claude-fable-5-1': [10, 0.25, 50],
    'claude-mythos-5-1': [10, 0.25, 50],
    'claude-mythos-5': [10, 1, 50],
    'claude-opus-5-5': [4, 0.2, 20],
    'claude-sonnet-5-5': [2, 0.1, 10],
    'claude-haiku-5-5': [0.1, 0.01, 0.5],
    'claude-opus-4': [15, 1.5, 75],
    'claude-3-7-sonnet': [3, 0.3, 15],
    'claude-3-opus': [15, 1.5, 75],
    'claude-3-haiku': [0.25, 0.03, 1.25],
    'gemini-3.8-flash': [1.5, null, 7.5],
    'gemini-3.6-flash': [1.5, 0.15, 7.5],
    'gemini-3.5-flash-lite': [0.3, 0.03, 2.5],
    'gemini-3-pro-preview': [2, 0.2, 12],
    'gemini-3-flash-preview': [0.5, 0.05, 3],
    'gemini-2.5-flash-lite': [0.1, 0.01, 0.4],
  },
  '2026-09-07': {
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
  },
}

/**
 * List prices of a well-known model by its vendor's name for it, or null. A date suffix
 * (`-2025-08-07`, `-20251001`) and `-latest` are ignored, but for snapshots with a price of their
 * own; any other difference means another model. Surcharges and discounts are not included: for
 * long prompts, batches, priority service, and OpenAI's writes to the cache since GPT-5.6.
 */
export function knownPrices(model: string): ModelPrices | null {
  checkString('model', model)
  const name = model.toLowerCase()
  return listed(name) ?? listed(name.replace(/-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$/, ''))
}

function listed(name: string): ModelPrices | null {
  for (const [as_of, rows] of Object.entries(PRICES)) {
    const row = Object.hasOwn(rows, name) ? rows[name] : undefined
    if (row === undefined) continue
    const [input, cached, output] = row
    return cached === null ? { input, output, as_of } : { input, cached, output, as_of }
  }
  return null
}
