import { checkOptions, type OptionKinds } from '../internal/options.js'

/** Token counts of one model call. */
export interface Usage {
  /** Includes `cached_tokens`. */
  readonly input_tokens: number
  /** Includes `reasoning_tokens`. */
  readonly output_tokens: number
  readonly cached_tokens: number
  readonly reasoning_tokens: number
}

/** What one model call has used, as the model reports it. */
export interface CallUsage extends Usage {
  /**
   * How many of these tokens are estimated, because the call broke off before its provider had
   * counted them; absent when all are counted.
   */
  readonly estimated_tokens?: number
  /** US dollars that the provider says it charged; absent where it does not say. */
  readonly cost_usd?: number
}

/** US dollars for one million tokens. */
export interface ModelPrices {
  readonly input: number
  readonly output: number
  /** For cached input; absent means the price of other input. */
  readonly cached?: number
  /** The date of the price, `YYYY-MM-DD`. */
  readonly as_of: string
}

const PRICES: OptionKinds<ModelPrices> = {
  input: 'number! dollars per million tokens', output: 'number! dollars per million tokens',
  cached: 'number', as_of: 'string! the date of the price',
}

/** @throws TypeError that names what is wrong with a host's prices. */
export function checkPrices(prices: ModelPrices | null | undefined, name = 'prices'): void {
  if (prices === undefined || prices === null) return
  checkOptions(prices, PRICES, name)
  checkAmounts(prices, name)
}

/** @throws TypeError for a price that no budget could be held to. */
export function checkAmounts(prices: ModelPrices, name: string): void {
  if (typeof prices !== 'object') throw new TypeError(`${name} must be an object or null`)
  for (const field of ['input', 'output', 'cached'] as const) {
    const amount: unknown = prices[field]
    if (field === 'cached' && amount === undefined) continue
    if (typeof amount === 'number' && amount >= 0 && amount < Infinity) continue
    const unit = 'US dollars for one million tokens, 0 or more'
    throw new TypeError(`${name}.${field} must be a number of ${unit}, not ${String(amount)}`)
  }
}

/** For calls of models that count no tokens. */
export const NO_USAGE: Usage = {
  input_tokens: 0,
  output_tokens: 0,
  cached_tokens: 0,
  reasoning_tokens: 0,
}
