/**
 * Claims runs while there are slots for them, and has those driven that can go on.
 *
 * @module
 */
import { steadyNow } from '../../internal/time.js'
import { isCorrupt, isUnavailable, StoreError } from '../errors.js'
import { isTerminal } from '../events.js'
import { untilAvailable } from '../exhaustion.js'
import { RunFeed } from '../log/feed.js'
import type { RunState } from '../log/run-state.js'
import type { SharedFeeds } from '../log/shared-feeds.js'
import { foldState, loadState } from '../log/state.js'
import { warn } from '../output.js'
import type { RunDetails } from '../run-details.js'
import type { Claim } from '../shared-store.js'
import type { DrivenRuns } from './driven-runs.js'
import { endUnreadable } from './end-from-records.js'
import { isChild, type InProcessRuns, type OwnClaim, type RunClaims } from './in-process-runs.js'
import type { RunLoop } from './run-loop.js'
import type { RunOperations } from './run-operations.js'
import type { RunServices } from './services.js'

/** Milliseconds until a run that could not be driven here is claimed again. */
const REFUSED_MS = 60_000

/** Dependencies of {@link ClaimLoop}, shared with its driver. */
export interface ClaimLoopOptions {
  readonly services: RunServices
  readonly driven: DrivenRuns
  readonly claims: RunClaims
  /** The same, in a store of this process alone; null in a shared one. */
  readonly own: InProcessRuns | null
  readonly feeds: SharedFeeds
  readonly operating: RunOperations
  /** Aborts when this process stops accepting runs, except those started by its own runs. */
  readonly stopped: AbortSignal
  /** Delivers the messages that were left for a run. */
  readonly deliver: (run: RunLoop) => Promise<void>
}

/** See the comment of this file. */
export class ClaimLoop {
  readonly #options: ClaimLoopOptions
  /** Runs that are claimed and whose logs are being read. */
  readonly #taking = new Map<string, Promise<void>>()
  /** Runs that could not be driven here, and when to try them again (ms of the steady clock). */
  readonly #refused = new Map<string, number>()
  #claiming: Promise<void> | undefined
  #claimAgain = false
  #isStopped = false
  /** Why no run can be claimed, however often that is tried again; null while some can. */
  claimProblem: StoreError | null = null

  constructor(options: ClaimLoopOptions) {
    this.#options = options
  }

  /** Resolves when nothing is being claimed. */
  async claimed(): Promise<void> {
    await this.#claiming
  }

  /** Claims nothing from now on. */
  stop(): void {
    this.#isStopped = true
  }

  /**
   * The run, driven from now on if it was not, in a store of this process alone; null when it has
   * ended or was deleted, and in a store that is shared.
   *
   * @throws {@link StoreError} when its log cannot be read; {@link EngineClosedError}.
   */
  async own({ run_id: runId, status }: RunDetails): Promise<RunLoop | null> {
    const { driven, own, stopped } = this.#options
    if (own === null) return null
    const run = driven.get(runId)
    if (run !== undefined) return run
    if (isTerminal(status)) return null
    stopped.throwIfAborted()
    await this.#takeNow(own, runId)
    await this.#taking.get(runId)
    const taken = driven.get(runId) ?? null
    if (taken === null) stopped.throwIfAborted()
    return taken
  }

  async #takeNow(own: InProcessRuns, runId: string): Promise<void> {
    try {
      const { driven, services, stopped } = this.#options
      const state = await loadState(services.store, runId)
      if (state === null || isTerminal(state.head.details.status)) return
      const claim = stopped.aborted ? null : own.claimNow(runId)
      if (claim !== null) driven.drive(driven.open(claim, state))
    } catch (error) {
      if (error instanceof StoreError) throw error
      await this.#endUnreadable(runId, error)
    }
  }

  claimSoon(): void {
    if (this.#isStopped) return
    this.#claimAgain = true
    this.#claiming ??= this.#claim().finally(() => (this.#claiming = undefined))
  }

  async #claim(): Promise<void> {
    while (this.#claimAgain && !this.#isStopped) {
      this.#claimAgain = false
      const claims = await this.#claimNow()
      if (claims.length > 0) this.#claimAgain = true
      for (const claim of claims) await this.#take(claim)
    }
  }

  async #claimNow(): Promise<readonly Claim[]> {
    try {
      const claims = await this.#options.claims.claim(this.#freeSlots(), this.#refusedNow())
      this.claimProblem = null
      return claims
    } catch (error) {
      // Temporary failures are reported by other calls to the store.
      const isOver = this.#options.stopped.aborted || isUnavailable(error)
      if (isOver || !(error instanceof StoreError)) return []
      const problem: StoreError = error
      if (this.claimProblem === null) warn(`no run can be claimed: ${problem.message}`)
      this.claimProblem = problem
      return []
    }
  }

  /** Slots for runs to claim. A store of one process grants all claims: the scheduler has slots. */
  #freeSlots(): number {
    const { driven, own, services } = this.#options
    return own === null ? Math.max(0, services.maxConcurrentRuns - driven.working) : Infinity
  }

  /** Runs that are not claimed now: another process, or a newer version, may drive them. */
  #refusedNow(): readonly string[] {
    const now = steadyNow(this.#options.services.clock)
    for (const [runId, until] of this.#refused) if (until <= now) this.#refused.delete(runId)
    return [...this.#refused.keys()]
  }

  /** Takes up a run that was claimed; never rejects. */
  async #take(claim: Claim | OwnClaim): Promise<void> {
    const { runId } = claim
    const taking = this.#drivesOrReleases(claim)
    this.#taking.set(runId, taking)
    await taking
    this.#taking.delete(runId)
  }

  async #drivesOrReleases(claim: Claim | OwnClaim): Promise<void> {
    const { runId, abort, hasMessages } = claim
    const { claims, deliver, driven, services } = this.#options
    try {
      const state = await this.#read(claim)
      if (state === null) return
      const opened = driven.open(claim, state)
      const { run } = opened
      if (abort !== null && !state.abortRequested) void run.abort(abort.by).catch(() => undefined)
      // Before it can end: their senders may have been told that they are delivered.
      if (hasMessages) await deliver(run)
      driven.drive(opened)
    } catch (error) {
      const until = isCorrupt(error) ? Infinity : steadyNow(services.clock) + REFUSED_MS
      if (!isUnavailable(error)) this.#refused.set(runId, until)
      await this.#endUnreadable(runId, error)
      await claims.release(runId).catch(() => undefined)
    }
  }

  /** The state of a run that this process has claimed; null when it is not driven. */
  async #read(claim: Claim | OwnClaim): Promise<RunState | null> {
    const { runId } = claim
    const { driven, operating, stopped } = this.#options
    await driven.over(runId)
    // A restore here has waited for the holder of the run: it releases the claim.
    if (operating.has(runId)) return null
    const isNew = 'created' in claim && claim.created !== null
    const state = isNew ? foldState(null, claim.created) : await this.#load(runId)
    const isOver = stopped.aborted && !(isNew && isChild(claim))
    if (state !== null && !isTerminal(state.head.details.status) && !isOver) return state
    await this.#finishFiles(runId, state)
    return null
  }

  async #load(runId: string): Promise<RunState | null> {
    const { own, services, stopped } = this.#options
    const { clock, store } = services
    const load = async (): Promise<RunState | null> => {
      // A run whose head cannot be read takes no records.
      await store.head(runId)
      return await loadState(store, runId)
    }
    // Nothing tells when an own store is available again.
    return await (own === null ? load() : untilAvailable(load, clock, stopped))
  }

  /** Ends a run whose log makes no sense, and with it its subscriptions. */
  async #endUnreadable(runId: string, error: unknown): Promise<void> {
    const { store } = this.#options.services
    await endUnreadable(error, this.#options.services, new RunFeed(runId, store, 0))
    if (error instanceof StoreError) return
    const opened = this.#options.feeds.open(runId, 0)
    const head = await store.head(runId).catch(() => null)
    opened.catchUp(head?.details.last_seq)
    opened.release()
  }

  /** Finishes what a process that died did with the files of a run that has ended. */
  async #finishFiles(runId: string, state: RunState | null): Promise<void> {
    const { clock, files } = this.#options.services
    const isOpen = state !== null && state.head.operation !== null
    if (!isOpen || files === null || this.#options.stopped.aborted) {
      if (isOpen) this.#refused.set(runId, steadyNow(clock) + REFUSED_MS)
      return await this.#options.claims.release(runId)
    }
    void this.#options.operating.finish(runId, state, files).catch((error: unknown) => {
      this.#refused.set(runId, steadyNow(clock) + REFUSED_MS)
      if (!this.#options.stopped.aborted) warn(`run ${runId}: ${String(error)}`)
    })
  }
}
