/**
 * Drives the runs of a store that belongs to this process alone: every run that has not ended is
 * driven here, and the queue is in memory.
 *
 * @module
 */
import { CwdBusyError, EngineClosedError, QueueFullError, RunStateError } from '../errors.js'
import { isTerminal, type RunCreated, type RunStatus } from '../events.js'
import { RunFeed, type OpenFeed } from '../log/feed.js'
import { copyHead } from '../log/head.js'
import { loadState } from '../log/state.js'
import { LogWriter } from '../log/writer.js'
import type { Model } from '../model.js'
import { gateFor, type ResumeAnswer } from '../request/gate-answer.js'
import { repeatedRun } from '../request/idempotency.js'
import type { RunDetails, RunHead } from '../run-details.js'
import type { ActiveRuns } from './active-runs.js'
import type { AnsweredGate, BegunRun, DriverOptions, RunDriver } from './driver.js'
import { endFromRecords, endUnreadable } from './end-from-records.js'
import { ABORTED } from './outcome.js'
import type { RunLoop } from './run-loop.js'

export interface LocalDriverOptions extends DriverOptions {
  readonly runs: ActiveRuns
}

/** The only driver of its store. */
export class LocalDriver implements RunDriver {
  readonly #options: LocalDriverOptions
  /** Runs being created, by owner and key: a request with the same key waits for the first. */
  readonly #creating = new Map<string, Promise<unknown>>()
  #closed = false

  constructor(options: LocalDriverOptions) {
    this.#options = options
  }

  get queued(): number {
    return this.#options.runs.queued
  }

  isLive(runId: string): boolean {
    return this.#options.runs.get(runId) !== undefined
  }

  /** Takes over every run that has not ended, oldest first. */
  async start(): Promise<void> {
    const { runs, store } = this.#options
    const heads: RunHead[] = []
    let cursor: string | null | undefined
    while (cursor !== null) {
      const status: RunStatus[] = ['pending', 'running', 'awaiting_human']
      const page = await store.list({ status, limit: 1000, cursor })
      heads.push(...page.heads)
      cursor = page.next
    }
    const taken: RunLoop[] = []
    for (const { details } of heads.reverse()) {
      const feed = new RunFeed(details.run_id, store, details.last_seq)
      const unreadable = (error: unknown): Promise<null> =>
        endUnreadable(error, runs.logOptions, feed)
      const state = await loadState(store, details.run_id).catch(unreadable)
      if (state === null) continue
      if (details.status !== 'pending')
        runs.scheduler.hold(details.run_id, state.frozen.request.cwd)
      const log = new LogWriter(runs.logOptions, feed, state, true)
      taken.push(runs.prepare(log, { abandoned: true }))
    }
    for (const run of taken) void this.#drive(run)
  }

  async begin(created: RunCreated, model: Model, keysSince: number): Promise<BegunRun> {
    const { owner, idempotency } = created.private ?? {}
    if (owner === undefined || idempotency == null) return await this.#begin(created, model)
    const lock = JSON.stringify([owner.tenant, owner.id, idempotency.key])
    const before = this.#creating.get(lock) ?? Promise.resolve()
    const creation = before.then(async () => {
      const first = await this.#options.store.findByKey(owner, idempotency.key, keysSince)
      const repeated = repeatedRun(first, idempotency.body_hash)
      if (repeated === null) return await this.#begin(created, model)
      return { head: repeated, created: false }
    })
    const settled = creation.catch(() => undefined).finally(() => {
      if (this.#creating.get(lock) === settled) this.#creating.delete(lock)
    })
    this.#creating.set(lock, settled)
    return await creation
  }

  async answer(stored: RunHead, answer: ResumeAnswer, by: string | null): Promise<AnsweredGate> {
    const { offeredTools, runs } = this.#options
    const live = runs.get(stored.details.run_id)
    const head = live?.state.head ?? stored
    const gate = gateFor(head, answer, live?.tools ?? offeredTools())
    if (gate !== null) {
      // Every waiting run is live here until the engine closes.
      if (live === undefined) throw new EngineClosedError()
      await live.answer(gate, answer, by)
    } else {
      await live?.log.flush()
    }
    const { status } = (live?.state.head ?? stored).details
    return { status, gateId: gate?.gate_id ?? answer.gate_id ?? head.lastDecision?.gate_id ?? '' }
  }

  async abort({ run_id, ...stored }: RunDetails, by: string | null): Promise<boolean> {
    const live = this.#options.runs.get(run_id)
    const status = live?.state.head.details.status ?? stored.status
    if (status === 'aborted') {
      await live?.log.flush()
      return true
    }
    if (isTerminal(status))
      throw new RunStateError('ended', `run ${run_id} has already ended: it is ${status}`)
    if (live !== undefined) {
      await live.abort(by)
      return false
    }
    if (this.#closed) throw new EngineClosedError()
    // A run that is driven by nobody could not be ended before.
    const feed = new RunFeed(run_id, this.#options.store, stored.last_seq)
    if (await endFromRecords(this.#options.runs.logOptions, feed, ABORTED)) return false
    const ended = (await this.#options.store.head(run_id))?.details.status
    if (ended === 'aborted') return true
    throw new RunStateError('ended', `run ${run_id} has already ended: it is ${ended}`)
  }

  async follow({ run_id }: RunDetails): Promise<OpenFeed> {
    const { runs, store } = this.#options
    const release = (): void => undefined
    const live = runs.get(run_id)
    if (live !== undefined) return { feed: live.log.feed, release }
    // Read again: the run may have ended since `stored` was read.
    const head = await store.head(run_id)
    const feed = new RunFeed(run_id, store, head?.details.last_seq ?? 0)
    if (head === null) feed.finish('deleted')
    else feed.finish(isTerminal(head.details.status) ? 'run_end' : 'shutdown')
    return { feed, release }
  }

  async close(graceMs: number): Promise<void> {
    this.#closed = true
    await this.#options.runs.close(graceMs)
  }

  async #begin(created: RunCreated, model: Model): Promise<BegunRun> {
    const { runs, store } = this.#options
    // No `await` between these checks and add(): they hold when the run is queued.
    if (this.#closed) throw new EngineClosedError()
    this.#assertRoom(created.payload.cwd)
    const feed = new RunFeed(created.run_id, store, 0)
    const log = LogWriter.begin(runs.logOptions, feed, created)
    const run = runs.prepare(log, { abandoned: false }, model)
    runs.add(run)
    try {
      await log.flush()
    } catch (error) {
      runs.remove(run)
      throw error
    }
    const head = copyHead(run.state.head)
    void this.#drive(run)
    return { head, created: true }
  }

  #assertRoom(cwd: string): void {
    const { cwdPolicy, maxQueuedRuns, runs } = this.#options
    if (cwdPolicy === 'reject') {
      for (const { state, log } of runs) {
        if (state.frozen.request.cwd === cwd) throw new CwdBusyError(log.runId)
      }
    }
    if (runs.queued >= maxQueuedRuns) throw new QueueFullError(maxQueuedRuns)
  }

  async #drive(run: RunLoop): Promise<void> {
    const ended = await this.#options.runs.drive(run)
    run.log.feed.finish(ended ? 'run_end' : 'shutdown')
  }
}
