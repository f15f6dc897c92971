/**
 * The runs that this process has claimed: takes them up, drives them, and releases them.
 *
 * @module
 */
import { steadyNow } from '../../internal/time.js'
import { isCorrupt, isUnavailable, StoreError } from '../errors.js'
import { isTerminal } from '../events.js'
import { untilAvailable } from '../exhaustion.js'
import { RunFeed } from '../log/feed.js'
import type { RunState } from '../log/run-state.js'
import type { OpenSharedFeed, SharedFeeds } from '../log/shared-feeds.js'
import { foldState, loadState } from '../log/state.js'
import { LogWriter } from '../log/writer.js'
import { warn } from '../output.js'
import type { RunDetails } from '../run-details.js'
import type { Claim } from '../shared-store.js'
import type { ActiveRuns } from './active-runs.js'
import { endUnreadable } from './end-from-records.js'
import { isChild, type InProcessRuns, type OwnClaim, type RunClaims } from './in-process-runs.js'
import type { RunLoop } from './run-loop.js'
import type { RunOperations } from './run-operations.js'
import type { RunServices } from './services.js'

/** Milliseconds until a run that could not be driven here is claimed again. */
const REFUSED_MS = 60_000

/** What {@link DrivenRuns} shares with its driver. */
export interface DrivenRunsOptions {
  readonly services: RunServices
  readonly runs: ActiveRuns
  readonly claims: RunClaims
  /** The same, in a store of this process alone; null in a shared one. */
  readonly own: InProcessRuns | null
  readonly feeds: SharedFeeds
  readonly operating: RunOperations
  /** Aborts when this process takes up no runs any more, but for those that its runs start. */
  readonly stopped: AbortSignal
  /** Delivers the messages that were left for a run. */
  readonly deliver: (run: RunLoop) => Promise<void>
}

/** A run that is about to be driven. */
interface OpenRun {
  readonly run: RunLoop
  readonly opened: OpenSharedFeed
  /** True if nothing but its first record is in its log. */
  readonly isNew: boolean
}

interface DrivenRun {
  readonly run: RunLoop
  /** Settles when the run is driven no longer and is released. */
  readonly over: Promise<void>
}

/** See the comment of this file. */
export class DrivenRuns {
  readonly #options: DrivenRunsOptions
  readonly #driven = new Map<string, DrivenRun>()
  /** Runs that are claimed and whose logs are being read. */
  readonly #taking = new Map<string, Promise<void>>()
  /** Runs that could not be driven here, and when to try them again (ms of the steady clock). */
  readonly #refused = new Map<string, number>()
  #claiming: Promise<void> | undefined
  #claimAgain = false
  #isStopped = false
  /** Why no run can be claimed, however often that is tried again; null while some can. */
  claimProblem: StoreError | null = null

  constructor(options: DrivenRunsOptions) {
    this.#options = options
  }

  get(runId: string): RunLoop | undefined {
    return this.#driven.get(runId)?.run
  }

  /** Resolves when the run is not driven any more. */
  async over(runId: string): Promise<void> {
    await this.#driven.get(runId)?.over
  }

  /** The same for all runs. */
  async allOver(): Promise<void> {
    await Promise.all([...this.#driven.values()].map(({ over }) => over))
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
    if (this.#options.own === null) return null
    const driven = this.#driven.get(runId)
    if (driven !== undefined) return driven.run
    if (isTerminal(status)) return null
    this.#options.stopped.throwIfAborted()
    await this.#takeNow(this.#options.own, runId)
    await this.#taking.get(runId)
    const run = this.#driven.get(runId)?.run ?? null
    if (run === null) this.#options.stopped.throwIfAborted()
    return run
  }

  async #takeNow(own: InProcessRuns, runId: string): Promise<void> {
    try {
      const state = await loadState(this.#options.services.store, runId)
      if (state === null || isTerminal(state.head.details.status)) return
      const claim = this.#options.stopped.aborted ? null : own.claimNow(runId)
      if (claim !== null) this.#drive(this.#open(claim, state))
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
      // What passes by itself is told by what else the store is asked for.
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
    if (this.#options.own !== null) return Infinity
    const working = [...this.#driven.values()].filter(({ run }) => !run.waitsForRuns).length
    return Math.max(0, this.#options.services.maxConcurrentRuns - working)
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
    const { claims, deliver, services } = this.#options
    try {
      const state = await this.#read(claim)
      if (state === null) return
      const opened = this.#open(claim, state)
      const { run } = opened
      if (abort !== null && !state.abortRequested) void run.abort(abort.by).catch(() => undefined)
      // Before it can end: their senders may have been told that they are delivered.
      if (hasMessages) await deliver(run)
      this.#drive(opened)
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
    const { operating, stopped } = this.#options
    await this.over(runId)
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

  #open(claim: Claim | OwnClaim, state: RunState): OpenRun {
    const { last_seq, run_id: runId } = state.head.details
    const opened = this.#options.feeds.open(runId, last_seq)
    opened.catchUp(last_seq)
    const gate = 'gate' in claim ? claim.gate : null
    const log = new LogWriter(this.#options.services, opened.feed, state, gate)
    const isNew = 'created' in claim && claim.created !== null
    return { run: this.#options.runs.prepare(log, claim), opened, isNew }
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

  /** Drives a run until it ends, waits or is suspended, and releases it. */
  #drive({ run, opened, isNew }: OpenRun): void {
    const { runId } = run.log
    this.#options.runs.add(run)
    this.#options.own?.driven(runId)
    const drive = async (): Promise<void> => {
      // Every folder in use is held before a new run begins.
      if (isNew) await this.#options.own?.listed
      await this.#options.runs.drive(run, () => {
        // The run may look ended here although its end was not stored: the feed is not complete,
        // and another process may append to it.
        if (opened.feed.isComplete || this.#options.own !== null) opened.end()
      })
      this.#driven.delete(runId)
      await this.#options.claims.release(runId).catch(() => undefined)
      opened.catchUp() // others may have appended while this process believed that it held the run
      opened.release()
      this.claimSoon()
    }
    this.#driven.set(runId, { run, over: drive() })
  }
}
