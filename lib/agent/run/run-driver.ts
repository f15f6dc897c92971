/**
 * Drives the runs of a store: claims runs and drives what it has claimed; begins, answers and
 * aborts runs; and follows their logs.
 *
 * 1. What a request does to a run that this process drives, or can claim at once as the store is
 *    its own, the loop of the run does. In a store that several processes share, the store passes
 *    it on to the process that holds the run, or it is appended to the log of a run that no
 *    process holds.
 * 2. When another process takes over a store of one process, every run stops, and nothing more is
 *    written.
 *
 * @module
 */
import { sleep, within } from '../../internal/time.js'
import { operateOn, type OnLog, type RunLogs } from '../checkpoints/run-logs.js'
import {
  CwdBusyError, EngineClosedError, ForeignFolderError, QueueFullError, type StoreError,
  UnknownRunError,
} from '../errors.js'
import { isTerminal, type RunCreated, type RunStatus } from '../events.js'
import { RunFeed, type OpenFeed } from '../log/feed.js'
import { foldHead } from '../log/head.js'
import { SharedFeeds } from '../log/shared-feeds.js'
import { loadState } from '../log/state.js'
import { LogWriter } from '../log/writer.js'
import { gateFor, type ResumeAnswer } from '../request/gate-answer.js'
import { repeatedRun } from '../request/idempotency.js'
import { assertAccepted, type NewMessage } from '../request/message.js'
import type { RunDetails, RunHead } from '../run-details.js'
import type { SharedRuns } from '../shared-store.js'
import { ClaimLoop } from './claim-loop.js'
import { DrivenRuns } from './driven-runs.js'
import { Forwarding, wasOvertaken } from './forwarding.js'
import { InProcessRuns, type RunClaims } from './in-process-runs.js'
import { claimLost, endedError } from './refusals.js'
import type { RunLoop } from './run-loop.js'
import { RunOperations } from './run-operations.js'
import type { RunServices } from './services.js'
import { answerGate } from './steps/finish.js'

/** Retries of an answer after another process appended to the run in between. */
const MAX_RACES = 80
const RACE_DELAY_MS = 25
const MAX_RACE_DELAY_MS = 500
/** Milliseconds beyond the grace period for suspended runs to stop and to append that. */
const SHARED_PATIENCE_MS = 5_000
/** The same in a store of one process: the next process cannot start before. */
const OWN_PATIENCE_MS = 15_000

export interface BegunRun {
  readonly head: RunHead
  /** False when the request repeats one that began this run earlier. */
  readonly created: boolean
}

export interface AnsweredGate {
  readonly status: RunStatus
  readonly gateId: string
}

/** The driver of an engine's runs; see the comment of this file. */
export class RunDriver implements RunLogs {
  readonly #services: RunServices
  /** The seam of a store that several processes share; null for one of this process alone. */
  readonly #shared: SharedRuns | null
  /** The same for a store of this process alone; null for one that is shared. */
  readonly #own: InProcessRuns | null
  readonly #claims: RunClaims
  readonly #feeds: SharedFeeds
  readonly #forwarding: Forwarding | null
  /** Runs whose files are being changed by this process. */
  readonly #operating: RunOperations
  readonly #driven: DrivenRuns
  readonly #claiming: ClaimLoop
  /** Runs that get their messages now; true when more were left meanwhile. */
  readonly #delivering = new Map<string, boolean>()
  /** Aborted when this process takes up no runs any more, but for those that its runs start. */
  readonly #stopped = new AbortController()

  constructor(services: RunServices) {
    this.#services = services
    const { store } = services
    const stopped = this.#stopped.signal
    const claimSoon = (): void => this.#claiming.claimSoon()
    this.#shared = store.shared ?? null
    this.#own = this.#shared ? null : new InProcessRuns(services, stopped, claimSoon)
    const claims = (this.#shared ?? this.#own) as RunClaims
    this.#claims = claims
    this.#feeds = new SharedFeeds(store, claims, services.clock)
    this.#forwarding = this.#shared && new Forwarding(services, this.#shared, stopped)
    this.#operating = new RunOperations(services, claims, this.#feeds, claimSoon)
    const parts = { services, claims, own: this.#own, feeds: this.#feeds }
    this.#driven = new DrivenRuns({ ...parts, onSlot: claimSoon })
    this.#claiming = new ClaimLoop({
      ...parts,
      driven: this.#driven,
      operating: this.#operating,
      stopped,
      deliver: (run) => this.#deliver(run),
    })
  }

  /** Runs of this process that wait for their first slot. */
  get queued(): number {
    return this.#services.scheduler.queued(null).all + (this.#own?.queued ?? 0)
  }

  /** Why the store refuses records of runs right now; null while it does not. */
  get refusal(): StoreError | null {
    return this.#driven.refusal ?? this.#claiming.claimProblem
  }

  /**
   * Begins to take over the runs that have not ended, and accepts new ones from now on.
   *
   * @throws {@link StoreError}
   */
  async start(): Promise<void> {
    const { lost } = this.#services.store
    lost?.throwIfAborted()
    lost?.addEventListener('abort', () => this.#lose(lost.reason as Error), { once: true })
    this.#shared?.listen({
      claimable: () => this.#claiming.claimSoon(),
      abortRequested: (runId, { by }) =>
        void this.#driven
          .get(runId)
          ?.abort(by)
          .catch(() => undefined),
      messagesLeft: (runId) => {
        const run = this.#driven.get(runId)
        if (run !== undefined) void this.#deliverAll(run).catch(() => undefined)
      },
      lost: (runId) => {
        this.#driven.get(runId)?.lose(claimLost(runId))
        this.#operating.lose(runId, claimLost(runId))
      },
      doubtful: (runId) => {
        this.#driven.get(runId)?.halt()
        this.#operating.lose(runId, claimLost(runId))
      },
    })
    await this.#own?.start()
    this.#claiming.claimSoon()
  }

  /** Begins nothing more, waits up to `graceMs` for running work, and suspends the rest. */
  async close(graceMs: number): Promise<void> {
    this.#stopped.abort(new EngineClosedError())
    // Another process claims the runs of a shared store.
    if (this.#own === null) this.#claiming.stop()
    await this.#own?.listed
    await this.#claiming.claimed()
    const patienceMs = this.#own === null ? SHARED_PATIENCE_MS : OWN_PATIENCE_MS
    this.#operating.giveUp()
    const over = this.#driven
      .close(graceMs, patienceMs)
      .then(() => this.#operating.allOver())
    // Runs wait for an unreachable store without limit; closing the store ends these waits.
    await within(graceMs + patienceMs, over, this.#services.clock)
    this.#claiming.stop()
    this.#operating.loseAll(new EngineClosedError())
    // They stop between two changes of a folder, which the next engine goes on with.
    await within(patienceMs, this.#operating.allOver(), this.#services.clock)
    this.#feeds.close()
  }

  /** Another process has taken over the store. */
  #lose(reason: Error): void {
    this.#stopped.abort(reason)
    this.#claiming.stop()
    this.#driven.lose(reason)
    this.#operating.loseAll(reason)
    this.#feeds.close()
  }

  /**
   * Begins a run; resolves once its first record is durable. Idempotency keys older than
   * `keysSince` (float seconds since the epoch) have expired.
   *
   * @throws {@link QueueFullError}, {@link CwdBusyError}, {@link ForeignFolderError},
   * {@link IdempotencyError}, {@link StoreError}
   */
  async begin(created: RunCreated, keysSince: number): Promise<BegunRun> {
    const { cwdPolicy, maxQueuedRuns, observers, store } = this.#services
    // A run that another one starts has been let in with that one.
    const maxQueued = created.payload.role === undefined ? maxQueuedRuns : Infinity
    const began = performance.now()
    // The store makes the record durable together with its checks, so no log writer is involved.
    const parent = created.payload.role && (created.payload.parent_run_id ?? undefined)
    const admitted = await this.#claims.admit({ created, maxQueued, cwdPolicy, keysSince, parent })
    switch (admitted.outcome) {
      case 'admitted': {
        const head = foldHead(null, created)
        new RunFeed(created.run_id, store, 0).publish([created])
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

  /**
   * Answers the open gate; resolves once the answer is durable.
   *
   * @throws as the engine's `resume`.
   */
  async answer(stored: RunHead, answer: ResumeAnswer, by: string | null): Promise<AnsweredGate> {
    const run = await this.#claiming.own(stored.details)
    if (run === null) return await this.#answerInLog(stored.details.run_id, answer, by)
    const gate = await run.answer(answer, by)
    return answered(run.state.head, answer, gate?.gate_id)
  }

  /** Appends the answer to a run that no process drives; retries after a lost race. */
  async #answerInLog(
    runId: string,
    answer: ResumeAnswer,
    by: string | null,
  ): Promise<AnsweredGate> {
    const { clock, offeredTools, store } = this.#services
    for (let races = 0; ; races++) {
      const state = await loadState(store, runId)
      if (state === null) throw new UnknownRunError(runId)
      const gate = gateFor(state.head, answer, offeredTools())
      if (gate === null) return answered(state.head, answer)
      const feed = new RunFeed(runId, store, state.head.details.last_seq)
      const log = new LogWriter(this.#services, feed, state)
      try {
        await answerGate(log, gate, answer, by)
        return answered(log.state.head, answer, gate.gate_id)
      } catch (error) {
        if (!wasOvertaken(error) || races === MAX_RACES) throw error
      }
      // A restore may hold the run.
      const delay = Math.min(RACE_DELAY_MS * (races + 1), MAX_RACE_DELAY_MS)
      await sleep(delay, this.#stopped.signal, clock)
    }
  }

  /**
   * Aborts a run; resolves once the request is durable, with true when it was aborted before.
   * `why`: for its log, when its tree asks for it; a store that processes share does not pass it
   * on.
   *
   * @throws {@link RunStateError} when the run has ended otherwise; {@link StoreError}.
   */
  async abort(stored: RunDetails, by: string | null, why?: string): Promise<boolean> {
    const { run_id: runId } = stored
    const run = await this.#claiming.own(stored)
    if (run !== null) return await run.abort(by, why)
    const isOwn = this.#shared === null
    // One that was not taken over has ended since `stored` was read.
    const head = isOwn ? await this.#services.store.head(runId) : null
    const status = head?.details.status ?? stored.status
    if (status === 'aborted') return true
    if (isOwn || isTerminal(status)) throw endedError(runId, status)
    await this.#shared?.requestAbort(runId, by)
    return false
  }

  /**
   * Sends a message to the model of a run; resolves with its id once it is durable.
   *
   * @throws as the engine's `message`.
   */
  async message(stored: RunDetails, message: NewMessage): Promise<string> {
    const { run_id: runId, status } = stored
    const run = await this.#claiming.own(stored)
    if (run !== null) return await run.message(message)
    if (this.#forwarding === null || isTerminal(status))
      return await assertAccepted(this.#services.store, runId, message)
    return await this.#forwarding.send(runId, message, () => {
      const run = this.#driven.get(runId)
      const isHeld = run !== undefined && this.#claims.holds(runId)
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

  async #deliver(run: RunLoop): Promise<void> {
    await this.#forwarding?.deliver(run.log.runId, (message) => run.message(message))
  }

  /** The feed of a run, up to date with its log. */
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
      if (this.#own !== null && this.#stopped.signal.aborted) opened.feed.finish('shutdown')
      return opened
    } catch (error) {
      opened.release()
      throw error
    }
  }

  /**
   * Calls `work` while no process drives the run or changes its files.
   *
   * @param isKnown false for a run whose log cannot be read: other processes are not waited for
   */
  async exclusively(runId: string, isKnown: boolean, work: () => Promise<void>): Promise<void> {
    await this.#driven.over(runId)
    await this.#operating.exclusively(runId, isKnown, work)
  }

  async operate<T>(stored: RunHead, folder: string | null, work: OnLog<T>): Promise<T> {
    const { files } = this.#services
    return await operateOn(files, work, (finishing) => this.#operate(stored, folder, finishing))
  }

  async #operate<T>(stored: RunHead, folder: string | null, work: OnLog<T>): Promise<T> {
    const { run_id: runId } = stored.details
    const run = await this.#claiming.own(stored.details)
    if (run !== null) {
      const done = await this.#operateOn(run, folder, work)
      if (done !== null) return done.result
    }
    await this.#driven.over(runId)
    return await this.#operating.operate(runId, folder !== null, work)
  }

  /** The same for a run that this process drives; null when it has ended. */
  async #operateOn<T>(
    run: RunLoop,
    folder: string | null,
    work: OnLog<T>,
  ): Promise<{ readonly result: T } | null> {
    if (folder === null) return await run.operate(work)
    const { runId } = run.log
    await this.#operating.occupy(runId, true, this.#stopped.signal)
    try {
      return await run.operate(work)
    } finally {
      this.#own?.vacate(runId)
    }
  }
}

function answered(
  { details, lastDecision }: RunHead,
  answer: ResumeAnswer,
  gateId: string | undefined = answer.gate_id ?? lastDecision?.gate_id,
): AnsweredGate {
  return { status: details.status, gateId: gateId ?? '' }
}
