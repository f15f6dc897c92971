import { steadyNow, type Clock } from '../../internal/time.js'
import { ModelError } from '../errors.js'
import type { LogWriter } from '../log/writer.js'
import type { Model } from '../model.js'
import type { ProviderLimitsById } from '../models/provider-limits.js'
import { limiterOf, type CallPlace, type ProviderLimiter } from './provider-limiter.js'
import { waitingOf } from './queue-keys.js'

/** A wait that takes longer (ms) is told in the log of its run. */
const TELL_MS = 2_000
/** Between two such messages (ms), however often the run waits. */
const TELL_AGAIN_MS = 60_000

/** A provider whose calls are limited. */
export interface LimitedProvider {
  readonly id: string
  readonly limiter: ProviderLimiter
}

/** The provider that has made a model; null when it has no limits. */
export type LimitedProviderOf = (model: Model) => LimitedProvider | null

/**
 * The providers with limits; null without any, which costs nothing then.
 *
 * @throws TypeError for limits of an unknown provider.
 */
export function limitedProviders(
  limits: ProviderLimitsById,
  models: { nameOf(model: Model): string; providerOf(name: string): string | null },
  clock: Clock,
): LimitedProviderOf | null {
  const known = new Map<string, LimitedProvider>()
  for (const [id, given] of Object.entries(limits)) {
    if (models.providerOf(`${id}:`) !== id)
      throw new TypeError(`providerLimits.${id}: there is no provider ${id}; add it to providers`)
    known.set(id, { id, limiter: limiterOf(given, clock) })
  }
  const of = (model: Model): LimitedProvider | null =>
    known.get(models.providerOf(models.nameOf(model)) ?? '') ?? null
  return known.size === 0 ? null : of
}

/** The calls of one run to providers with limits. A run makes one call at a time. */
export class LimitedCalls {
  readonly #providerOf: LimitedProviderOf
  readonly #clock: Clock
  #told = -Infinity

  constructor(providerOf: LimitedProviderOf, clock: Clock) {
    this.#providerOf = providerOf
    this.#clock = clock
  }

  /**
   * Resolves once a call may begin, with null for a provider without limits. Waiting is no work of
   * the run, which says so in its log if it takes long.
   *
   * @param tokens - estimates the input of the call.
   * @throws the signal's reason.
   */
  async enter(
    model: Model,
    tokens: () => number,
    log: LogWriter,
    signal: AbortSignal,
  ): Promise<CallPlace | null> {
    const provider = this.#providerOf(model)
    if (provider === null) return null
    const { limiter } = provider
    const estimate = limiter.countsTokens ? tokens() : 0
    const call = { ...waitingOf(log.state.head), tokens: estimate, signal }
    const place = limiter.tryEnter(call)
    if (place !== null) return place
    const timer = this.#clock.setTimeout(() => this.#tell(provider, log), TELL_MS)
    try {
      return await log.idleWhile(limiter.wait(call))
    } finally {
      timer.cancel()
    }
  }

  #tell({ id, limiter }: LimitedProvider, log: LogWriter): void {
    const now = steadyNow(this.#clock)
    if (now - this.#told < TELL_AGAIN_MS || log.hasFailed) return
    this.#told = now
    const message = `waiting for ${id}: the limit of ${limiter.reason} is reached`
    const { iteration } = log.state.head.details
    log.note({ kind: 'log', iteration, payload: { level: 'info', message } })
  }
}

/** How many tokens a failed call has used; null when that is not known. */
export function tokensOfFailure(error: unknown): number | null {
  if (!(error instanceof ModelError)) return null
  return error.usage === undefined ? 0 : error.usage.input_tokens + error.usage.output_tokens
}
