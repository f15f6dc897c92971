/**
 * Removes what nobody needs any more: contents to which no run refers, and copies of runs that
 * need them no longer. In background; a failure is for the host's log.
 *
 * 1. It begins soon after runs were removed, by whomever, as far as the store tells; else once an
 *    hour. What a crash leaves in between, the next start removes.
 * 2. Copies are looked at together, whatever the number of runs that were removed, and for a small
 *    part of the time.
 *
 * @module
 */
import { describeError } from '../../internal/errors.js'
import { isUnavailable, StoreError } from '../errors.js'
import { isTerminal } from '../events.js'
import { warn } from '../output.js'
import type { RunDetails } from '../run-details.js'
import type { RunStore } from '../store.js'
import { needsCopy } from './run-files.js'
import type { ObjectUse } from './object-use.js'
import { inBackground, Reclaimer, REST, type Schedule } from './reclaim.js'

export interface UpkeepParts {
  readonly store: RunStore
  /** Null: there are no contents. */
  readonly use: ObjectUse | null
  /** Null: there are no copies. */
  readonly isolation: SweptCopies | null
  /** Those of sealed checks. */
  readonly sealed: SweptCopies
  /** For tests. @defaultValue a timer that does not keep the process alive */
  readonly schedule?: Schedule | undefined
  /** Milliseconds, for tests. @defaultValue `performance.now` */
  readonly now?: (() => number) | undefined
}

/** The copies of isolated runs. */
export interface SweptCopies {
  sweep(isWanted: (runId: string) => Promise<boolean>): Promise<void>
}

/** After runs were removed: others may follow. */
const AFTER_REMOVAL_MS = 1_000
/** After a sweep that has failed. */
const AFTER_FAILURE_MS = 60_000

/** See the comment of this file. */
export class Upkeep {
  readonly #parts: UpkeepParts
  readonly #schedule: Schedule
  readonly #now: () => number
  readonly #reclaimer: Reclaimer | null
  #sweep: Promise<void> = Promise.resolve()
  /** Of the next sweep of copies. */
  #timer: { cancel(): void } | null = null
  /** When that may begin. */
  #notBefore = -Infinity
  /** Why the last sweep failed; null when it did not. */
  #problem: string | null = null
  #isClosed = false

  constructor(parts: UpkeepParts) {
    const { store, use, schedule = inBackground, now = () => performance.now() } = parts
    this.#parts = parts
    this.#schedule = schedule
    this.#now = now
    const onProblem = ({ message }: Error): void => warn(message)
    const onSwept = (): void => this.#sweepCopies(true)
    this.#reclaimer = use && new Reclaimer({ store, use, onProblem, onSwept, schedule, now })
  }

  /** Contents that runs refer to and that are not there, as far as that was noticed. */
  get problems(): readonly string[] {
    return this.#reclaimer?.problems ?? []
  }

  /** Begins; called once the store is open. */
  start(): void {
    this.#reclaimer?.start()
    this.#sweepCopies(true)
  }

  /** Says that runs were removed; `here` as for {@link RunStore.onRemoved}. */
  removed(here: boolean): void {
    if (here) this.#reclaimer?.deleted()
    this.#sweepSoon()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await this.#reclaimer?.close()
    await this.#sweep
  }

  #sweepSoon(): void {
    if (this.#isClosed || this.#timer !== null || this.#parts.isolation === null) return
    const ms = Math.max(AFTER_REMOVAL_MS, this.#notBefore - this.#now())
    this.#timer = this.#schedule(() => {
      this.#timer = null
      this.#sweepCopies(false)
    }, ms)
  }

  /** @param all also those of sealed checks, which end with their check */
  #sweepCopies(all: boolean): void {
    if (this.#isClosed) return
    this.#sweep = this.#sweep.then(() => this.#sweepNow(all))
  }

  async #sweepNow(all: boolean): Promise<void> {
    const { isolation, sealed } = this.#parts
    const began = this.#now()
    try {
      await isolation?.sweep((runId) => this.#isWanted(runId))
      this.#notBefore = this.#now() + REST * (this.#now() - began)
      if (all) await sealed.sweep((runId) => this.#isLive(runId))
      this.#problem = null
    } catch (error) {
      if (this.#isClosed) return
      const problem = `copies of runs that are over were not removed: ${describeError(error)}`
      if (problem !== this.#problem) warn(problem)
      this.#problem = problem
      this.#notBefore = this.#now() + AFTER_FAILURE_MS
      this.#sweepSoon()
    }
  }

  /** A run that is still to end may be checked now, by a process that shares the store. */
  async #isLive(runId: string): Promise<boolean> {
    if (this.#isClosed) return true
    const run = await this.#detailsOf(runId)
    return run === 'unknown' || (run !== null && !isTerminal(run.status))
  }

  async #isWanted(runId: string): Promise<boolean> {
    // What is left, the next start removes.
    if (this.#isClosed) return true
    const run = await this.#detailsOf(runId)
    return run === 'unknown' || (run !== null && needsCopy(run))
  }

  /** Null for a run that is gone; `unknown` for one that cannot be read: it keeps what it has. */
  async #detailsOf(runId: string): Promise<RunDetails | null | 'unknown'> {
    try {
      return (await this.#parts.store.head(runId))?.details ?? null
    } catch (error) {
      if (error instanceof StoreError && !isUnavailable(error)) return 'unknown'
      throw error
    }
  }
}
