/**
 * Limits per tenant: runs that have not ended, and their cost within a day.
 *
 * 1. Runs are counted in the store, before each start. A repetition of a start is none.
 * 2. A process admits one start of a tenant at a time, so its own count is exact. Processes that
 *    share a store may each admit one run at the same moment: all but one of these may be too many.
 * 3. A run that has been admitted may cost what it will: `max_cost_usd` limits that.
 *
 * @module
 */
import type { RunEngine } from '../../agent/index.js'
import { ProblemError, type QuotaUse } from '../errors.js'

/** Limits per tenant; `null` sets no limit. Callers without a tenant are one tenant. */
export interface TenantLimits {
  /** Runs that have not ended, those that wait for a human included. @defaultValue null */
  readonly runs: number | null
  /**
   * US dollars within 24 hours, by the `estimated_cost_usd` of runs; models of unknown price count
   * as 0. @defaultValue null
   */
  readonly costUsdPerDay: number | null
}

/** What a start passes on to the engine: `admit` of its options, if there are limits. */
export interface Admission {
  readonly admit?: () => Promise<void>
}

/** The tenants of one service. */
export class TenantQuotas {
  readonly #engine: Pick<RunEngine, 'usage'>
  readonly #limits: TenantLimits
  /** Settles when the starts of a tenant so far are over. */
  readonly #turns = new Map<string | null, Promise<void>>()

  constructor(engine: Pick<RunEngine, 'usage'>, limits: TenantLimits) {
    this.#engine = engine
    this.#limits = limits
  }

  /**
   * Starts a run of the tenant.
   *
   * @throws {@link ProblemError} 429 `quota_runs` or `quota_cost`
   */
  async start<T>(
    tenant: string | null,
    begin: (admission: Required<Admission>) => Promise<T>,
  ): Promise<T> {
    let over: () => void = () => undefined
    const admit = async (): Promise<void> => {
      over = await this.#turn(tenant)
      await this.#check(tenant)
    }
    try {
      return await begin({ admit })
    } finally {
      over()
    }
  }

  /** Resolves when no other start of the tenant is under way, with what to call after this one. */
  async #turn(tenant: string | null): Promise<() => void> {
    const before = this.#turns.get(tenant)
    let over: () => void = () => undefined
    const own = new Promise<void>((resolve) => (over = resolve))
    const all = Promise.all([before, own]).then(() => {
      if (this.#turns.get(tenant) === all) this.#turns.delete(tenant)
    })
    this.#turns.set(tenant, all)
    await before
    return over
  }

  async #check(tenant: string | null): Promise<void> {
    const { runs, costUsdPerDay } = this.#limits
    const costs = costUsdPerDay !== null
    const { openRuns, cost } = await this.#engine.usage(tenant, { costs })
    if (runs !== null && openRuns >= runs) throw tooManyRuns(openRuns, runs)
    if (!costs || cost === null || cost.usd < costUsdPerDay) return
    throw tooCostly(cost.usd, costUsdPerDay, cost.freesInMs)
  }
}

function tooManyRuns(used: number, allowed: number): ProblemError {
  const detail =
    `the tenant has ${used} runs that have not ended, and may have ${allowed}; ` +
    'when one of them ends is not known: abort one, answer its gate, or try again later'
  return new ProblemError(429, 'quota_runs', detail, { quota: { used, allowed, frees_at: null } })
}

function tooCostly(usd: number, allowed: number, freesInMs: number | null): ProblemError {
  const used = Math.round(usd * 1e6) / 1e6
  const seconds = freesInMs === null ? null : Math.max(1, Math.ceil(freesInMs / 1000))
  const frees_at = seconds === null ? null : new Date(Date.now() + seconds * 1000).toISOString()
  const quota: QuotaUse = { used, allowed, frees_at }
  const frees =
    frees_at === null
      ? 'when they count no longer is not known, as they have not ended'
      : `the oldest of them counts until ${frees_at}`
  const detail =
    `the runs of the tenant used ${used} US dollars within 24 hours, and may use ${allowed}; ` +
    frees
  const headers = seconds === null ? undefined : { 'Retry-After': String(seconds) }
  return new ProblemError(429, 'quota_cost', detail, { quota, headers })
}
