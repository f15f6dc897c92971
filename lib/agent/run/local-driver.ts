/**
 * Drives the runs of a store that belongs to this process alone: every run that has not ended is
 * driven here, and the queue is in memory.
 *
 * 1. Runs of an earlier process are taken up in background: those that have begun first, by age,
 *    then the others, each when a slot is free. A gate's deadline, an answer and an abort take
 *    their run up at once.
 * 2. A new run comes behind them.
 * 3. When another process takes over the store, every run stops, and nothing more is written.
 *
 * @module
 */
import { nextTurn } from '../../internal/time.js'
import { describeError } from '../../internal/errors.js'
import { exceededBound } from '../../internal/queues.js'
import { FolderIndex } from '../../internal/folder-index.js'
import type { OnLog } from '../checkpoints/run-logs.js'
import {
  CwdBusyError,
  EngineClosedError,
  ForeignFolderError,
  QueueFullError,
  StoreError,
} from '../errors.js'
import { isTerminal, type RunCreated, type RunOwner, type RunStatus } from '../events.js'
import { untilAvailable } from '../exhaustion.js'
import { RunFeed, type OpenFeed } from '../log/feed.js'
import { copyHead } from '../log/head.js'
import { foldState, loadState } from '../log/state.js'
import { LogWriter } from '../log/writer.js'
import type { Model } from '../model.js'
import { warn } from '../output.js'
import { hasForeignRun } from '../request/foreign-run.js'
import { gateFor, type ResumeAnswer } from '../request/gate-answer.js'
import { repeatedRun } from '../request/idempotency.js'
import { assertAccepted, type NewMessage } from '../request/message.js'
import type { RunDetails, RunHead } from '../run-details.js'
import type { ActiveRuns } from './active-runs.js'
import type { AnsweredGate, BegunRun, RunDriver } from './driver.js'
import { endedError, EndedRuns } from './ended-runs.js'
import { endUnreadable } from './end-from-records.js'
import { placeOf } from './place-of.js'
import type { RunLoop } from './run-loop.js'
import type { RunServices } from './services.js'
import {
  listOldestFirst,
  operatingHeads,
  UntakenRuns,
  type UnfinishedRun,
} from './untaken-runs.js'

/** Milliseconds for which a restore or apply waits for a run that has ended to leave its folder. */
const BUSY_MS = 30_000
/** Milliseconds beyond the grace period for a restore or apply; the next start finishes it. */
const FILES_MS = 15_000

/** The only driver of its store. */
export class LocalDriver implements RunDriver {
  readonly #services: RunServices
  readonly #runs: ActiveRuns
  /** Runs being created, by owner and key: a request with the same key waits for the first. */
  readonly #creating = new Map<string, Promise<unknown>>()
  readonly #untaken: UntakenRuns
  /** Tenants of the runs that are being created, in their folders. */
  readonly #beginning = new FolderIndex<string | null>()
  /** Folders of the runs that have not ended; with the policy `reject` only. */
  readonly #folders = new Map<string, string>()
  readonly #users = new FolderIndex<string>()
  /** Runs that have not begun and are not listed yet. */
  #unlisted = 0
  /** How many drives are over: what was read of a run before one of them may be out of date. */
  #drivesOver = 0
  /** Settles when all runs of earlier processes are listed and have their places in the queue. */
  #listed: Promise<void> = Promise.resolve()
  /** Runs whose logs are being read. */
  readonly #taking = new Map<string, Promise<RunLoop | null>>()
  /** Settles when the runs of {@link LocalDriver.#takeUpLater} so far are taken up. */
  #later: Promise<void> = Promise.resolve()
  /** Feeds of runs that are followed but not taken up, with the number of their users. */
  readonly #feeds = new Map<string, { readonly feed: RunFeed; users: number }>()
  /** Aborted when this process drives no runs any more. */
  readonly #stopped = new AbortController()
  readonly #ended: EndedRuns

  constructor(services: RunServices, runs: ActiveRuns) {
    this.#services = services
    this.#runs = runs
    this.#ended = new EndedRuns(services)
    this.#untaken = new UntakenRuns(services.clock)
  }

  get queued(): number {
    return this.#runs.queued + this.#untaken.pending.size + this.#unlisted
  }

  get refusal(): StoreError | null {
    return this.#runs.refusal
  }

  async alone(runId: string, _isKnown: boolean, work: () => Promise<void>): Promise<void> {
    await this.#runs.over(runId)
    await this.#ended.alone(runId, work)
  }

  async start(): Promise<void> {
    const { store } = this.#services
    const { lost } = store
    lost?.throwIfAborted()
    lost?.addEventListener('abort', () => this.#lose(lost.reason as Error), { once: true })
    this.#unlisted = (await store.counts()).pending
    this.#listed = this.#list().finally(() => (this.#unlisted = 0))
  }

  /** Lists the runs that have not ended. Never rejects. */
  async #list(): Promise<void> {
    const { scheduler } = this.#services
    const operating = await this.#listOperating()
    const begun = await this.#listWith(['running', 'awaiting_human'])
    // Every folder in use is held before any run begins.
    for (const run of begun) {
      this.#untaken.add(run, () => this.#takeUpLater(run.runId))
      this.#addUser(run.runId, run.place)
      scheduler.hold(run.runId, run.place)
    }
    for (const run of begun) {
      const { runId, place, status } = run
      if (status !== 'running' && operating.has(runId)) this.#takeUpLater(runId)
      if (status !== 'running') continue
      scheduler.queue(run, place, () => undefined)
      // Also without a slot: a run that waits for one says so.
      this.#takeUpLater(runId)
    }
    for (const run of await this.#listWith(['pending'])) {
      const { runId, place } = run
      if (this.#isLive(runId)) continue
      this.#untaken.add(run, () => undefined)
      this.#addUser(runId, place)
      scheduler.queue(run, place, () => void this.#takeUpPatiently(runId))
    }
  }

  /**
   * Runs whose files were being changed when the last process died. For those that have ended, that
   * is finished now, in folders that no run gets before; the others do so when they are taken up.
   */
  async #listOperating(): Promise<ReadonlySet<string>> {
    const { files, store } = this.#services
    if (files === null) return new Set()
    const problem = 'no restore or apply that was cut off is finished'
    const heads = await this.#patiently(problem, () => operatingHeads(store))
    for (const { details } of heads ?? []) {
      const { run_id, cwd, status } = details
      if (!isTerminal(status)) continue
      this.#services.scheduler.reserve(run_id, cwd)
      void this.#ended
        .use(run_id, (log, signal) => files.finish(log, signal))
        .catch((error: unknown) => {
          if (!this.#stopped.signal.aborted) warn(`run ${run_id}: ${describeError(error)}`)
        })
        .finally(() => this.#services.scheduler.release(run_id))
    }
    return new Set((heads ?? []).map(({ details }) => details.run_id))
  }

  #isLive(runId: string): boolean {
    return this.#runs.get(runId) !== undefined
  }

  async #listWith(status: readonly RunStatus[]): Promise<readonly UnfinishedRun[]> {
    const { store } = this.#services
    const { signal } = this.#stopped
    const problem = `no ${status.join(' or ')} run of the last process is resumed`
    const runs = await this.#patiently(problem, () => listOldestFirst(store, status, signal))
    return runs ?? []
  }

  /** Takes runs up one after the other: many deadlines may have passed while no process ran. */
  #takeUpLater(runId: string): void {
    this.#later = this.#later.then(() => this.#takeUpPatiently(runId))
  }

  async #takeUpPatiently(runId: string): Promise<void> {
    await this.#patiently(`run ${runId} was not resumed`, () => this.#takeUp(runId))
    this.#untaken.remove(runId)
    // A run that cannot be read stays as it is; the others continue.
    if (this.#isLive(runId)) return
    this.#services.scheduler.leave(runId)
    this.#removeUser(runId)
  }

  /** Repeats `attempt` while the store is unavailable; warns and resolves with null if it fails. */
  async #patiently<T>(problem: string, attempt: () => Promise<T>): Promise<T | null> {
    const { signal } = this.#stopped
    if (signal.aborted) return null
    try {
      return await untilAvailable(attempt, this.#services.clock, signal)
    } catch (error) {
      if (!signal.aborted) warn(`${problem}: ${describeError(error)}`)
      return null
    }
  }

  /**
   * The run with this id, which is driven from now on if it was not; null when it cannot be, as it
   * has ended, was deleted, or this process drives no runs any more.
   *
   * @throws {@link StoreError} when its log cannot be read.
   */
  async #takeUp(runId: string): Promise<RunLoop | null> {
    const live = this.#runs.get(runId)
    if (live !== undefined) return live
    let taking = this.#taking.get(runId)
    if (taking === undefined) {
      taking = this.#load(runId).finally(() => this.#taking.delete(runId))
      this.#taking.set(runId, taking)
    }
    return await taking
  }

  async #load(runId: string): Promise<RunLoop | null> {
    const { store } = this.#services
    const runs = this.#runs
    const state = await loadState(store, runId).catch(async (error: unknown) => {
      if (error instanceof StoreError) throw error
      // Its log makes no sense: the run ends, and with it the subscriptions.
      const feed = this.#feeds.get(runId)?.feed ?? new RunFeed(runId, store, 0)
      await endUnreadable(error, this.#services, feed)
      feed.finish()
      this.#feeds.get(runId)?.feed.finish()
      return null
    })
    if (state === null || this.#stopped.signal.aborted) return null
    const { last_seq, status } = state.head.details
    if (isTerminal(status)) return null
    // Only now: a reader may have subscribed while the log was read.
    const feed = this.#feeds.get(runId)?.feed ?? new RunFeed(runId, store, last_seq)
    const log = new LogWriter(this.#services, feed, state, this.#untaken.gateOf(runId))
    const run = runs.prepare(log, { abandoned: true })
    this.#feeds.delete(runId)
    this.#untaken.remove(runId)
    void this.#drive(run)
    return run
  }

  async begin(created: RunCreated, model: Model, keysSince: number): Promise<BegunRun> {
    const { owner, idempotency } = created.private ?? {}
    if (owner === undefined || idempotency == null) return await this.#begin(created, model)
    const lock = JSON.stringify([owner.tenant, owner.id, idempotency.key])
    const before = this.#creating.get(lock) ?? Promise.resolve()
    const creation = before.then(async () => {
      const first = await this.#services.store.findByKey(owner, idempotency.key, keysSince)
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
    const { offeredTools, store } = this.#services
    const live = await this.#liveRun(stored.details)
    const gate = (await live?.answer(answer, by)) ?? null
    const head = live?.state.head ?? (await store.head(stored.details.run_id)) ?? stored
    // A run that is not driven here has ended: at most, this answer is repeated.
    if (live === null) gateFor(head, answer, offeredTools())
    const gateId = gate?.gate_id ?? answer.gate_id ?? head.lastDecision?.gate_id ?? ''
    return { status: head.details.status, gateId }
  }

  async operate<T>(stored: RunHead, folder: string | null, work: OnLog<T>): Promise<T> {
    const { scheduler } = this.#services
    const { run_id } = stored.details
    const live = await this.#liveRun(stored.details)
    if (folder !== null) await this.#reserve(run_id, folder)
    try {
      const done = (await live?.operate(work)) ?? null
      if (done !== null) return done.result
      await this.#runs.over(run_id)
      return await this.#ended.use(run_id, work)
    } finally {
      if (folder !== null) scheduler.release(run_id)
    }
  }

  /** Resolves when this process neither drives the run nor does anything with its files. */
  async #over(runId: string): Promise<void> {
    await this.#runs.over(runId)
    await this.#ended.over(runId)
  }

  /** @throws {@link CwdBusyError}; a run that has ended gives its folder back in a moment. */
  async #reserve(runId: string, folder: string): Promise<void> {
    const { clock } = this.#services
    const runs = this.#runs
    // Folders of an earlier process's runs are known from then on.
    await this.#listed
    let timer: { cancel(): void } | undefined
    const late = new Promise<true>((resolve) => {
      timer = clock.setTimeout(() => resolve(true), BUSY_MS)
    })
    try {
      for (let isLate = false; ; ) {
        const busy = this.#services.scheduler.reserve(runId, folder)
        if (busy === null) return
        const holder = runs.get(busy)
        const isEnding =
          holder === undefined
            ? this.#ended.isUsed(busy)
            : isTerminal(holder.state.head.details.status)
        if (!isEnding || isLate) throw new CwdBusyError(busy)
        isLate = await Promise.race([late, this.#over(busy).then(nextTurn).then(() => false)])
      }
    } finally {
      timer?.cancel()
    }
  }

  async abort(stored: RunDetails, by: string | null, why?: string): Promise<boolean> {
    const live = await this.#liveRun(stored)
    if (live !== null) return await live.abort(by, why)
    const head = await this.#services.store.head(stored.run_id)
    const status = head?.details.status ?? stored.status
    if (status !== 'aborted') throw endedError(stored.run_id, status)
    return true
  }

  async message(stored: RunDetails, message: NewMessage): Promise<string> {
    const live = await this.#liveRun(stored)
    if (live !== null) return await live.message(message)
    return await assertAccepted(this.#services.store, stored.run_id, message)
  }

  /** The run, taken up if necessary; null when it has ended. */
  async #liveRun({ run_id, status }: RunDetails): Promise<RunLoop | null> {
    const live = this.#runs.get(run_id)
    if (live !== undefined) return live
    if (isTerminal(status)) return null
    this.#stopped.signal.throwIfAborted()
    const taken = await this.#takeUp(run_id)
    if (taken === null) this.#stopped.signal.throwIfAborted()
    return taken
  }

  async follow({ run_id }: RunDetails): Promise<OpenFeed> {
    const { store } = this.#services
    const runs = this.#runs
    const none = (): void => undefined
    const before = runs.get(run_id)
    if (before !== undefined) return { feed: before.log.feed, release: none }
    // Read again: the run may have ended since `stored` was read, or while this reads.
    let head: RunHead | null
    let drivesOver: number
    do {
      drivesOver = this.#drivesOver
      head = await store.head(run_id)
    } while (drivesOver !== this.#drivesOver)
    const live = runs.get(run_id)
    if (live !== undefined) return { feed: live.log.feed, release: none }
    if (head !== null && !isTerminal(head.details.status) && !this.#stopped.signal.aborted)
      return this.#followUntaken(head)
    const isComplete = head !== null && isTerminal(head.details.status)
    const feed = new RunFeed(run_id, store, head?.details.last_seq ?? 0, isComplete)
    feed.finish(head === null ? 'deleted' : 'shutdown')
    return { feed, release: none }
  }

  /** The feed with which the run will be driven. */
  #followUntaken({ details }: RunHead): OpenFeed {
    const { run_id, last_seq } = details
    const open = this.#feeds.get(run_id) ?? {
      feed: new RunFeed(run_id, this.#services.store, last_seq),
      users: 0,
    }
    this.#feeds.set(run_id, open)
    open.users += 1
    let isReleased = false
    const release = (): void => {
      if (isReleased) return
      isReleased = true
      open.users -= 1
      if (open.users === 0 && this.#feeds.get(run_id) === open) this.#feeds.delete(run_id)
    }
    return { feed: open.feed, release }
  }

  async close(graceMs: number): Promise<void> {
    this.#stopped.abort(new EngineClosedError())
    this.#untaken.clear()
    await this.#listed
    await Promise.allSettled(this.#taking.values())
    const { clock } = this.#services
    const runs = this.#runs
    await Promise.all([runs.close(graceMs), this.#ended.close(graceMs + FILES_MS, clock)])
    this.#endFeeds()
  }

  #lose(reason: Error): void {
    this.#stopped.abort(reason)
    this.#untaken.clear()
    this.#runs.lose(reason)
    this.#ended.lose(reason)
    this.#endFeeds()
  }

  #endFeeds(): void {
    for (const { feed } of this.#feeds.values()) feed.finish('shutdown')
    this.#feeds.clear()
  }

  async #begin(created: RunCreated, model: Model): Promise<BegunRun> {
    const { cwd } = created.payload
    const tenant = created.private?.owner.tenant ?? null
    // Of two that begin at once, the later one sees the other here or in the store.
    if (this.#beginning.find(cwd, tenant) !== undefined) throw new ForeignFolderError()
    this.#beginning.add(tenant, cwd)
    try {
      if (await hasForeignRun(this.#services.store, cwd, tenant)) throw new ForeignFolderError()
      return await this.#beginOwn(created, model)
    } finally {
      this.#beginning.remove(tenant, cwd)
    }
  }

  /** Begins a run in a folder that no other tenant uses. */
  async #beginOwn(created: RunCreated, model: Model): Promise<BegunRun> {
    const { cwdPolicy, observers, store } = this.#services
    const runs = this.#runs
    if (cwdPolicy === 'reject') await this.#listed
    const isRoot = created.payload.role === undefined
    // No `await` between these checks and add(): they hold when the run is queued.
    if (isRoot) this.#stopped.signal.throwIfAborted()
    const feed = new RunFeed(created.run_id, store, 0)
    const log = new LogWriter(this.#services, feed, foldState(null, created))
    const place = placeOf(log.state.head.details)
    this.#assertRoom(place, isRoot ? log.state.head.owner : null)
    const run = runs.prepare(log, { abandoned: false }, model)
    runs.add(run)
    this.#addUser(created.run_id, place)
    const began = performance.now()
    try {
      await store.append(created.run_id, [created])
    } catch (error) {
      runs.remove(run)
      this.#removeUser(created.run_id)
      throw error
    }
    const head = copyHead(run.state.head)
    feed.publish([created])
    observers.notify(head.details, [created], performance.now() - began)
    void this.#listed.then(() => this.#drive(run))
    return { head, created: true }
  }

  /** `owner` is null for a run that another one starts: it has been let in with that one. */
  #assertRoom(place: string, owner: RunOwner | null): void {
    const user = this.#users.find(place)
    if (user !== undefined) throw new CwdBusyError(user)
    if (owner === null) return
    const { tenant } = owner
    const waiting = { all: this.queued, ofTenant: this.#queuedOf(tenant) }
    const exceeded = exceededBound(waiting, tenant, this.#services.maxQueuedRuns)
    if (exceeded !== null) throw new QueueFullError(exceeded)
  }

  /** Runs of a tenant that wait for a slot, as far as they are listed. */
  #queuedOf(tenant: string | null): number {
    let waiting = this.#runs.queuedOf(tenant)
    for (const other of this.#untaken.pending.values()) if (other === tenant) waiting += 1
    return waiting
  }

  async #drive(run: RunLoop): Promise<void> {
    await this.#runs.drive(run, () => {
      this.#removeUser(run.log.runId)
      run.log.feed.finish()
    })
    this.#drivesOver += 1
  }

  #addUser(runId: string, place: string): void {
    if (this.#services.cwdPolicy !== 'reject' || this.#folders.has(runId)) return
    this.#folders.set(runId, place)
    this.#users.add(runId, place)
  }

  #removeUser(runId: string): void {
    const place = this.#folders.get(runId)
    if (place !== undefined) this.#users.remove(runId, place)
    this.#folders.delete(runId)
  }
}
