import { checkOptions, describeValue, type OptionKinds } from '../../internal/options.js'

/**
 * How much of a provider the runs of this process may use together, the judge's calls included.
 * Engines to which the same object is given share it. At least one limit is set.
 */
export interface ProviderLimits {
  /** Calls at the same time. @defaultValue no limit */
  readonly concurrent?: number | undefined
  /** Calls that begin within any 60 seconds, each retry among them. @defaultValue no limit */
  readonly requestsPerMinute?: number | undefined
  /**
   * Tokens of those calls, input and output. A call counts as what is estimated of its input until
   * its provider has told what it used. @defaultValue no limit
   */
  readonly tokensPerMinute?: number | undefined
}

/** Limits by the ids of providers. */
export type ProviderLimitsById = Readonly<Record<string, ProviderLimits>>

const LIMITS: OptionKinds<ProviderLimits> = {
  concurrent: 'number', requestsPerMinute: 'number', tokensPerMinute: 'number',
}

/** @throws TypeError that names the invalid limit. */
export function checkProviderLimits(given: ProviderLimitsById = {}): ProviderLimitsById {
  for (const [id, limits] of Object.entries(given)) {
    const name = `providerLimits.${id}`
    if (typeof limits !== 'object' || limits === null)
      throw new TypeError(`${name} must be an object of limits, got ${describeValue(limits)}`)
    checkOptions(limits, LIMITS, name)
    const values = Object.entries(limits).filter(([, value]) => value !== undefined)
    if (values.length === 0)
      throw new TypeError(`${name} needs concurrent, requestsPerMinute or tokensPerMinute`)
    for (const [limit, value] of values) {
      if (!Number.isSafeInteger(value) || value < 1)
        throw new TypeError(`${name}.${limit} must be a positive integer, got ${String(value)}`)
    }
  }
  return { ...given }
}
