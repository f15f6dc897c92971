/**
 * Drives runs of a store that several processes share: claims runs and drives what it has claimed;
 * begins, answers and aborts runs wherever they are driven; and follows logs that other processes
 * write.
 *
 * @module
 */
import { sleep, steadyNow, within } from '../../internal/time.js'
import type { OnLog } from '../checkpoints/run-logs.js'
import {
  CwdBusyError,
  EngineClosedError,
  ForeignFolderError,
  isCorrupt,
  isUnavailable,
  QueueFullError,
  StoreError,
  UnknownRunError,
} from '../errors.js'
import { isTerminal, type RunCreated } from '../events.js'
import { RunFeed, type OpenFeed } from '../log/feed.js'
import { foldHead } from '../log/head.js'
import { SharedFeeds, type OpenSharedFeed } from '../log/shared-feeds.js'
import type { RunState } from '../log/run-state.js'
import { loadState } from '../log/state.js'
import { LogWriter } from '../log/writer.js'
import type { Model } from '../model.js'
import { warn } from '../output.js'
import { gateFor, type ResumeAnswer } from '../request/gate-answer.js'
import { repeatedRun } from '../request/idempotency.js'
import { assertAccepted, type NewMessage } from '../request/message.js'
import type { RunDetails, RunHead } from '../run-details.js'
import type { Claim, SharedRuns } from '../shared-store.js'
import type { ActiveRuns } from './active-runs.js'
import type { AnsweredGate, BegunRun, RunDriver } from './driver.js'
import { endUnreadable } from './end-from-records.js'
import { endedError } from './ended-runs.js'
import { Forwarding, wasOvertaken } from './forwarding.js'
import type { RunLoop } from './run-loop.js'
import type { RunServices } from './services.js'
import { SharedOperations } from './shared-operations.js'
import { answerGate } from './steps/finish.js'

/** Retries of an answer after another process appended to the run in between. */
const MAX_RACES = 80
const RACE_DELAY_MS = 25
const MAX_RACE_DELAY_MS = 500
/** Milliseconds until a run that could not be driven here is claimed again. */
const REFUSED_MS = 60_000
/** Milliseconds beyond the grace period for suspended runs to stop and to append that. */
const STORE_PATIENCE_MS = 5_000

/** One of the drivers of a shared store: drives what this process has claimed. */
export class SharedDriver implements RunDriver {
  readonly #feeds: SharedFeeds
  readonly #forwarding: Forwarding
  readonly #services: RunServices
  readonly #runs: ActiveRuns
  readonly #shared: SharedRuns
  /** Runs that are driven here; `over` settles when a drive has finished. */
  readonly #driven = new Map<string, { readonly run: RunLoop; readonly over: Promise<void> }>()
  /** Runs that get their messages now; true when more were left meanwhile. */
  readonly #delivering = new Map<string, boolean>()
  /** Runs whose files are being changed by this process. */
  readonly #operating: SharedOperations
  /** Runs that could not be driven here, and when to try them again (epoch ms). */
  readonly #refused = new Map<string, number>()
  #claiming: Promise<void> | undefined
  /** Why no run can be claimed, however often that is tried again; null while some can. */
  #claimProblem: StoreError | null = null
  #claimAgain = false
  readonly #stopped = new AbortController()

  constructor(services: RunServices, runs: ActiveRuns, shared: SharedRuns) {
    this.#services = services
    this.#runs = runs
    this.#shared = shared
    runs.onWaiting = () => this.#claimSoon()
    this.#feeds = new SharedFeeds(services.store, shared, services.clock)
    this.#forwarding = new Forwarding(services, shared, this.#stopped.signal)
    const onReleased = (): void => this.#claimSoon()
    this.#operating = new SharedOperations(services, shared, this.#feeds, onReleased)
  }

  get queued(): number {
    return this.#runs.queued
  }

  get refusal(): StoreError | null {
    return this.#runs.refusal ?? this.#claimProblem
  }

  async alone(runId: string, isKnown: boolean, work: () => Promise<void>): Promise<void> {
    await this.#driven.get(runId)?.over
    await this.#operating.alone(runId, isKnown, work)
  }

  async operate<T>(stored: RunHead, folder: string | null, work: OnLog<T>): Promise<T> {
    const { run_id } = stored.details
    await this.#driven.get(run_id)?.over
    return await this.#operating.operate(run_id, folder !== null, work)
  }

  async start(): Promise<void> {
    this.#shared.listen({
      claimable: () => this.#claimSoon(),
      abortRequested: (runId, { by }) =>
        void this.#driven
          .get(runId)
          ?.run.abort(by)
          .catch(() => undefined),
      messagesLeft: (runId) => {
        const run = this.#driven.get(runId)?.run
        if (run !== undefined) void this.#deliverAll(run).catch(() => undefined)
      },
      lost: (runId) => {
        this.#driven.get(runId)?.run.lose(claimLost(runId))
        this.#operating.lose(runId, claimLost(runId))
      },
      doubtful: (runId) => {
        this.#driven.get(runId)?.run.halt()
        this.#operating.lose(runId, claimLost(runId))
      },
    })
    this.#claimSoon()
  }

  /** Claims no more, suspends and releases running work after `graceMs`, and ends all feeds. */
  async close(graceMs: number): Promise<void> {
    this.#stopped.abort(new EngineClosedError())
    await this.#claiming
    const { clock } = this.#services
    const runs = this.#runs
    const over = runs
      .close(graceMs, STORE_PATIENCE_MS)
      .then(() => Promise.all([...this.#driven.values()].map((driven) => driven.over)))
      .then(() => this.#operating.allOver())
    // Runs wait for an unreachable store without limit; closing the store ends these waits.
    await within(graceMs + STORE_PATIENCE_MS, over, clock)
    this.#operating.loseAll(new EngineClosedError())
    this.#feeds.close()
  }

  async begin(created: RunCreated, _: Model, keysSince: number): Promise<BegunRun> {
    const { cwdPolicy, maxQueuedRuns, observers } = this.#services
    const shared = this.#shared
    // A run that another one starts has been let in with that one.
    const maxQueued = created.payload.role === undefined ? maxQueuedRuns : Infinity
    const began = performance.now()
    // The store makes the record durable together with its checks, so no log writer is involved.
    const parent = created.payload.role && (created.payload.parent_run_id ?? undefined)
    const admitted = await shared.admit({ created, maxQueued, cwdPolicy, keysSince, parent })
    switch (admitted.outcome) {
      case 'admitted': {
        const head = foldHead(null, created)
        observers.notify(head.details, [created], performance.now() - began)
        return { head, created: true }
      }
      case 'repeated': {
        repeatedRun(admitted.head, created.private?.idempotency?.body_hash)
        return { head: admitted.head, created: false }
      }
      case 'queue_full':
        throw new QueueFullError(admitted.limit)
      case 'foreign_folder':
        throw new ForeignFolderError()
      case 'cwd_busy':
        throw new CwdBusyError(admitted.runId)
      case 'parent_lost':
        throw claimLost(parent ?? '')
    }
  }

  /** Appends the answer itself, as no process drives a waiting run; retries after a lost race. */
  async answer(stored: RunHead, answer: ResumeAnswer, by: string | null): Promise<AnsweredGate> {
    const { clock, offeredTools, store } = this.#services
    const { run_id: runId } = stored.details
    for (let races = 0; ; races++) {
      const state = await loadState(store, runId)
      if (state === null) throw new UnknownRunError(runId)
      const { head } = state
      const gate = gateFor(head, answer, offeredTools())
      if (gate === null) {
        return {
          status: head.details.status,
          gateId: answer.gate_id ?? head.lastDecision?.gate_id ?? '',
        }
      }
      const feed = new RunFeed(runId, store, head.details.last_seq)
      const log = new LogWriter(this.#services, feed, state)
      try {
        await answerGate(log, gate, answer, by)
        return { status: log.state.head.details.status, gateId: gate.gate_id }
      } catch (error) {
        if (!wasOvertaken(error) || races === MAX_RACES) throw error
      }
      // A restore may hold the run.
      const delay = Math.min(RACE_DELAY_MS * (races + 1), MAX_RACE_DELAY_MS)
      await sleep(delay, this.#stopped.signal, clock)
    }
  }

  async abort({ run_id, status }: RunDetails, by: string | null): Promise<boolean> {
    if (status === 'aborted') return true
    if (isTerminal(status)) throw endedError(run_id, status)
    await this.#shared.requestAbort(run_id, by)
    return false
  }

  async message({ run_id, status }: RunDetails, message: NewMessage): Promise<string> {
    if (isTerminal(status)) return await assertAccepted(this.#services.store, run_id, message)
    return await this.#forwarding.send(run_id, message, () => {
      const run = this.#driven.get(run_id)?.run
      const isHeld = run !== undefined && this.#shared.holds(run_id)
      return isHeld ? (one) => run.message(one) : undefined
    })
  }

  /** Delivers until nothing was left meanwhile: once at a time, however often it is told to. */
  async #deliverAll(run: RunLoop): Promise<void> {
    const { runId } = run.log
    if (this.#delivering.has(runId)) return void this.#delivering.set(runId, true)
    try {
      do {
        this.#delivering.set(runId, false)
        await this.#deliver(run)
      } while (this.#delivering.get(runId) === true)
    } finally {
      this.#delivering.delete(runId)
    }
  }

  #deliver(run: RunLoop): Promise<void> {
    return this.#forwarding.deliver(run.log.runId, (message) => run.message(message))
  }

  async follow({ run_id, status, last_seq }: RunDetails): Promise<OpenFeed> {
    const { store } = this.#services
    if (isTerminal(status)) {
      const feed = new RunFeed(run_id, store, last_seq, true)
      feed.finish()
      return { feed, release: () => undefined }
    }
    const opened = this.#feeds.open(run_id, last_seq)
    if (!opened.isFresh) return opened
    try {
      // What was appended before the watch began is read now; the watch reports the rest.
      const head = await store.head(run_id)
      if (head === null) opened.feed.finish('deleted')
      else opened.catchUp(head.details.last_seq)
      return opened
    } catch (error) {
      opened.release()
      throw error
    }
  }

  #claimSoon(): void {
    if (this.#stopped.signal.aborted) return
    this.#claimAgain = true
    this.#claiming ??= this.#claim().finally(() => (this.#claiming = undefined))
  }

  async #claim(): Promise<void> {
    const { maxConcurrentRuns } = this.#services
    while (this.#claimAgain && !this.#stopped.signal.aborted) {
      this.#claimAgain = false
      const working = [...this.#driven.values()].filter(({ run }) => !run.waitsForRuns).length
      const slots = Math.max(0, maxConcurrentRuns - working)
      const claims = await this.#claimNow(slots)
      if (claims.length > 0) this.#claimAgain = true
      for (const claim of claims) await this.#take(claim)
    }
  }

  async #claimNow(slots: number): Promise<readonly Claim[]> {
    try {
      const claims = await this.#shared.claim(slots, this.#refusedNow())
      this.#claimProblem = null
      return claims
    } catch (error) {
      // What passes by itself is told by what else the store is asked for.
      const isOver = this.#stopped.signal.aborted || isUnavailable(error)
      if (isOver || !(error instanceof StoreError)) return []
      const problem: StoreError = error
      if (this.#claimProblem === null) warn(`no run can be claimed: ${problem.message}`)
      this.#claimProblem = problem
      return []
    }
  }

  /** Runs that are not claimed now: another process, or a newer version, may drive them. */
  #refusedNow(): readonly string[] {
    const now = steadyNow(this.#services.clock)
    for (const [runId, until] of this.#refused) if (until <= now) this.#refused.delete(runId)
    return [...this.#refused.keys()]
  }

  async #take({ runId, abandoned, abort, hasMessages, overdue }: Claim): Promise<void> {
    const { clock, store } = this.#services
    const runs = this.#runs
    const shared = this.#shared
    try {
      await this.#driven.get(runId)?.over
      // A restore here has waited for the holder of the run: it releases the claim.
      if (this.#operating.has(runId)) return
      // A run whose head cannot be read takes no records.
      await store.head(runId)
      const state = await loadState(store, runId)
      if (state === null || isTerminal(state.head.details.status) || this.#stopped.signal.aborted) {
        return await this.#finishFiles(runId, state)
      }
      const { last_seq } = state.head.details
      const opened = this.#feeds.open(runId, last_seq)
      opened.catchUp(last_seq)
      const log = new LogWriter(this.#services, opened.feed, state)
      const run = runs.prepare(log, { abandoned, overdue })
      if (abort !== null && !state.abortRequested) void run.abort(abort.by).catch(() => undefined)
      // Before it can end: their senders may have been told that they are delivered.
      if (hasMessages) await this.#deliver(run)
      this.#driven.set(runId, { run, over: this.#drive(run, opened) })
    } catch (error) {
      const until = isCorrupt(error) ? Infinity : steadyNow(clock) + REFUSED_MS
      if (!isUnavailable(error)) this.#refused.set(runId, until)
      await endUnreadable(error, this.#services, new RunFeed(runId, store, 0))
      await shared.release(runId).catch(() => undefined)
    }
  }

  /** Finishes what a process that died did with the files of a run that has ended. */
  async #finishFiles(runId: string, state: RunState | null): Promise<void> {
    const { clock, files } = this.#services
    const shared = this.#shared
    const isOpen = state !== null && state.head.operation !== null
    if (!isOpen || files === null || this.#stopped.signal.aborted) {
      if (isOpen) this.#refused.set(runId, steadyNow(clock) + REFUSED_MS)
      return await shared.release(runId)
    }
    void this.#operating
      .finish(runId, state, files)
      .catch(() => this.#refused.set(runId, steadyNow(clock) + REFUSED_MS))
  }

  async #drive(run: RunLoop, { feed, release, catchUp }: OpenSharedFeed): Promise<void> {
    const runs = this.#runs
    const shared = this.#shared
    const { runId } = run.log
    await runs.drive(run, () => {
      // The run may look ended here although its end was not stored: then the feed is not complete.
      if (feed.isComplete) feed.finish()
    })
    this.#driven.delete(runId)
    await shared.release(runId).catch(() => undefined)
    catchUp() // others may have appended while this process believed that it held the run
    release()
    this.#claimSoon()
  }
}

function claimLost(runId: string): StoreError {
  return new StoreError('ERR_AGENT_CLAIM_LOST', `another process has taken over run ${runId}`)
}
