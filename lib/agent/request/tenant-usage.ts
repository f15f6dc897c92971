/**
 * What the runs of each tenant use: how many have not ended, and what they cost within a day.
 *
 * 1. Roots count. The cost of a root includes that of the runs below it: its log tells of those
 *    that have ended, and their own logs of those that have not.
 * 2. What a run costs counts as a whole, from its creation for 24 hours, and until it has ended.
 * 3. The store is asked each time, so that runs of other processes count: for runs that have not
 *    ended, and for those created since the last time. What all others cost does not change any
 *    more, and is kept as one sum for each minute of creation.
 * 4. The day is that of the time of day, as creations are stored. When that was set back, the runs
 *    of the day are read anew, as after a restart: unknown ones may seem older than known ones.
 *
 * @module
 */
import { steadyNow, type Clock } from '../../internal/time.js'
import type { TenantUsage } from '../engine-calls.js'
import { isTerminal, type RunStatus } from '../events.js'
import { headsOf } from '../log/heads-of.js'
import type { RunDetails } from '../run-details.js'
import type { RunQuery, RunStore } from '../store.js'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
/** Clocks of processes, and so the times of creation of their runs, may differ by this much. */
const SKEW_MS = MINUTE_MS
/** Tenants in memory; beyond it, the costs of the least recently used one are read again. */
const MAX_TENANTS = 1_000
const UNENDED: readonly RunStatus[] = ['pending', 'running', 'awaiting_human']

/** What the runs of all tenants of one store use. */
export class TenantUsages {
  readonly #store: RunStore
  readonly #clock: Clock
  readonly #spending = new Map<string | null, Spending>()

  constructor(store: RunStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /** As `RunEngine.usage`. */
  async of(tenant: string | null, costs: boolean): Promise<TenantUsage> {
    if (costs) return await this.#spendingOf(tenant).read()
    let openRuns = 0
    const unended = { tenant, status: UNENDED, role: 'root' } as const
    for await (const _ of readable(this.#store, unended)) openRuns += 1
    return { openRuns, cost: null }
  }

  #spendingOf(tenant: string | null): Spending {
    const spending = this.#spending.get(tenant) ?? new Spending(this.#store, this.#clock, tenant)
    // Deleted first, so that the least recently used one stays first.
    this.#spending.delete(tenant)
    this.#spending.set(tenant, spending)
    if (this.#spending.size > MAX_TENANTS) {
      this.#spending.delete(this.#spending.keys().next().value!)
    }
    return spending
  }
}

interface Cost {
  readonly createdMs: number
  readonly usd: number
}

/** What the runs of one tenant cost. */
class Spending {
  readonly #store: RunStore
  readonly #clock: Clock
  readonly #tenant: string | null
  /** Roots that had not ended when they were last read. */
  #open: ReadonlyMap<string, Cost> = new Map()
  /** What runs cost that have ended, by the minute of their creation. */
  readonly #ended = new Map<number, number>()
  /** Those of them that may be listed again, with their creation in epoch ms. */
  readonly #counted = new Map<string, number>()
  /** Runs created before are known, in epoch ms. */
  #knownBefore = 0
  /** The time of day at the last read, less that of the steady clock. */
  #offset = -Infinity
  /** Settles when the reads so far have: each continues where the last one ended. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(store: RunStore, clock: Clock, tenant: string | null) {
    this.#store = store
    this.#clock = clock
    this.#tenant = tenant
  }

  read(): Promise<TenantUsage> {
    const read = this.#turn.then(() => this.#read())
    this.#turn = read.catch(() => undefined)
    return read
  }

  async #read(): Promise<TenantUsage> {
    const now = this.#clock.now()
    this.#forgetIfSetBack(now - steadyNow(this.#clock))
    const tenant = this.#tenant
    const open = new Map<string, Cost>()
    const below = new Map<string, number>()
    const since = Math.max(this.#knownBefore, now - DAY_MS - MINUTE_MS)
    // In this order, so that a run that ends meanwhile is found.
    for await (const details of readable(this.#store, { tenant, status: UNENDED })) {
      const { final_state, role, root_run_id: root } = details
      if (role === 'root') this.#note(details, open)
      else below.set(root, (below.get(root) ?? 0) + final_state.estimated_cost_usd)
    }
    const recent = { tenant, createdAfter: since / 1000, role: 'root' } as const
    for await (const details of readable(this.#store, recent)) this.#note(details, open)
    for (const [runId, cost] of this.#open) {
      if (open.has(runId) || this.#counted.has(runId)) continue
      const head = await this.#store.head(runId)
      if (head === null) this.#end(runId, cost)
      else this.#note(head.details, open)
    }
    this.#open = open
    this.#knownBefore = now - SKEW_MS
    this.#forget(now)
    return { openRuns: open.size, cost: this.#sum(now, below) }
  }

  #note(details: RunDetails, open: Map<string, Cost>): void {
    const { run_id, status, created_at, final_state } = details
    const cost = { createdMs: Date.parse(created_at), usd: final_state.estimated_cost_usd }
    if (!isTerminal(status)) return void open.set(run_id, cost)
    open.delete(run_id)
    this.#end(run_id, cost)
  }

  #end(runId: string, { createdMs, usd }: Cost): void {
    if (this.#counted.has(runId)) return
    this.#counted.set(runId, createdMs)
    const minute = Math.floor(createdMs / MINUTE_MS)
    if (usd > 0) this.#ended.set(minute, (this.#ended.get(minute) ?? 0) + usd)
  }

  #forgetIfSetBack(offset: number): void {
    if (offset < this.#offset - SKEW_MS) {
      this.#knownBefore = 0
      this.#counted.clear()
      this.#ended.clear()
    }
    this.#offset = offset
  }

  #forget(now: number): void {
    for (const minute of this.#ended.keys()) if (leaves(minute) <= now) this.#ended.delete(minute)
    for (const [runId, createdMs] of this.#counted) {
      if (createdMs < this.#knownBefore) this.#counted.delete(runId)
    }
  }

  /** `below`: what live runs cost that the logs of their roots do not tell, by these roots. */
  #sum(now: number, below: ReadonlyMap<string, number>): TenantUsage['cost'] {
    let usd = [...below.values()].reduce((sum, cost) => sum + cost, 0)
    let frees = Infinity
    for (const [minute, cost] of this.#ended) {
      usd += cost
      frees = Math.min(frees, leaves(minute))
    }
    for (const [runId, cost] of this.#open) {
      usd += cost.usd
      const at = leaves(Math.floor(cost.createdMs / MINUTE_MS))
      if (cost.usd + (below.get(runId) ?? 0) > 0 && at > now) frees = Math.min(frees, at)
    }
    return { usd, freesInMs: frees === Infinity ? null : frees - now }
  }
}

/** When runs created in this minute count no longer, in epoch ms. */
function leaves(minute: number): number {
  return (minute + 1) * MINUTE_MS + DAY_MS
}

type Conditions = Omit<RunQuery, 'cursor' | 'limit'>

/** The runs that meet the conditions and can be read. */
async function* readable(store: RunStore, query: Conditions): AsyncGenerator<RunDetails> {
  for await (const { details, problem } of headsOf(store, query)) {
    if (problem === undefined) yield details
  }
}
