/**
 * Removes what nobody needs any more: contents to which no run refers, and copies of runs that
 * need them no longer. In background; a failure is for the host's log.
 *
 * @module
 */
import { isUnavailable, StoreError } from '../errors.js'
import { isTerminal } from '../events.js'
import { warn } from '../output.js'
import type { RunDetails } from '../run-details.js'
import type { RunStore } from '../store.js'
import { needsCopy } from './needs-copy.js'
import type { ObjectUse } from './object-use.js'
import { Reclaimer } from './reclaim.js'

export interface UpkeepParts {
  readonly store: RunStore
  /** Null: there are no contents. */
  readonly use: ObjectUse | null
  /** Null: there are no copies. */
  readonly isolation: SweptCopies | null
  /** Those of sealed checks. */
  readonly sealed: SweptCopies
}

/** The copies of isolated runs. */
export interface SweptCopies {
  sweep(isWanted: (runId: string) => Promise<boolean>): Promise<void>
}

/** See the comment of this file. */
export class Upkeep {
  readonly #parts: UpkeepParts
  readonly #reclaimer: Reclaimer | null
  #sweep: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(parts: UpkeepParts) {
    const { store, use } = parts
    this.#parts = parts
    const onProblem = ({ message }: Error): void => warn(message)
    const onSwept = (): void => this.#sweepCopies()
    this.#reclaimer = use && new Reclaimer({ store, use, onProblem, onSwept })
  }

  /** Contents that runs refer to and that are not there, as far as that was noticed. */
  get problems(): readonly string[] {
    return this.#reclaimer?.problems ?? []
  }

  /** Begins; called once the store is open. */
  start(): void {
    this.#reclaimer?.start()
    this.#sweepCopies()
  }

  /** Says that a run was deleted. */
  deleted(): void {
    this.#reclaimer?.deleted()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#reclaimer?.close()
    await this.#sweep
  }

  #sweepCopies(): void {
    const { isolation, sealed } = this.#parts
    if (this.#isClosed) return
    const next = this.#sweep.then(async () => {
      await isolation?.sweep((runId) => this.#isWanted(runId))
      await sealed.sweep((runId) => this.#isLive(runId))
    })
    this.#sweep = next.catch((error: unknown) => {
      if (!this.#isClosed) warn(`copies of runs that are over were not removed: ${String(error)}`)
    })
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
