import type { JsonObject } from '../internal/json.js'
import { uuidV7 } from '../internal/uuid.js'
import { resolveEngineConfig, type EngineConfig, type EngineOptions } from './config.js'
import {
  CursorError,
  CwdBusyError,
  EngineClosedError,
  IdempotencyError,
  InvalidRequestError,
  QueueFullError,
  RunStateError,
  StoreError,
  UnknownRunError,
} from './errors.js'
import type { AgentEvent, Decision, PrivatePayloads, RunOwner, RunStatus } from './events.js'
import { ABORTED_BY_HUMAN, gateFor, responseRecord, type ResumeAnswer } from './gate-answer.js'
import { goalRegistry, type GoalRegistry } from './goals/index.js'
import { LiveRun, loadState } from './live-run.js'
import { McpServers } from './mcp/servers.js'
import type { Model, ModelPrices } from './model.js'
import { createModelRegistry, type ModelInfo, type ModelRegistry } from './models/registry.js'
import { createdRecord, requestHash, resolveNewRun } from './new-run.js'
import { isTerminal, summarize, type RunDetails, type RunHead, type RunSummary } from './run-details.js'
import { Redactor, secretsOfEnvironment } from './redact.js'
import { Observers, type RunObserver } from './observer.js'
import { publicEvent, RunFeed } from './run-feed.js'
import { RunLog, stamp } from './run-log.js'
import { RunTrace } from './run-trace.js'
import { readTraceContext, type TraceContext } from './trace-context.js'
import { Tracing } from './tracing.js'
import { parseStartRequest, requestAgain, type StartRequest } from './run-request.js'
import { Scheduler } from './scheduler.js'
import { SharedDriver } from './shared-driver.js'
import { foldState, type RunState } from './state.js'
import { endingRecords } from './steps/finish.js'
import type { RunQuery } from './store.js'
import type { RunSubscription, StreamItem } from './subscription.js'
import type { Tool } from './tool.js'
import { openWorkspace } from './workspace.js'

/** On whose behalf the engine is called. Omitted: by the host itself, which may see every run. */
export interface Caller {
  readonly owner: RunOwner
}

/** What {@link RunEngine.resume} tells. */
export interface ResumeResult {
  readonly run_id: string
  readonly status: RunStatus
  readonly decision: Decision
  readonly gate_id: string
}

/** A goal as it is offered to people. */
export interface GoalInfo {
  readonly name: string
  readonly description: string
  readonly usage: string
}

/** A tool as it is offered to runs. */
export type ToolInfo = Pick<Tool, 'name' | 'description' | 'effect'>

/** Who starts a run, and how a repeated request is recognised. */
export interface CreateOptions {
  readonly caller?: Caller | undefined
  /** The same key and request within 24 hours give the first run again. */
  readonly idempotencyKey?: string | undefined
  readonly parentRunId?: string | undefined
  /**
   * The trace that the request belongs to, from its headers `traceparent` and `tracestate`. One that
   * is not well-formed is ignored. The run's model calls carry it on, as does every span.
   */
  readonly trace?: TraceContext | undefined
}

/** Seconds for which an idempotency key is remembered. */
const KEY_SECONDS = 24 * 3600
/** Told when a request holds a secret. */
const SECRET_IN_REQUEST =
  'holds a key or password, which would be logged: let commands read it from a file or from their environment'
/** Runs of one list without a limit of its own. */
const LIST_LIMIT = 10_000
const NOBODY: RunOwner = { id: null, tenant: null }

/**
 * Runs agents: creates, drives, stores, recovers and reports runs. What it tells is durable.
 *
 * @example
 * ```ts
 * const engine = await RunEngine.open({ store: new MemoryStore(), roots: [process.cwd()] })
 * const { details } = await engine.create({ goal: 'node-test' })
 * for await (const events of await engine.subscribe(details.run_id)) {
 *   for (const { json } of events) console.log(json)
 * }
 * await engine.close()
 * ```
 */
export class RunEngine {
  readonly #config: EngineConfig
  #mcp: McpServers | undefined
  readonly #models: ModelRegistry
  readonly #goals: GoalRegistry
  readonly #scheduler: Scheduler
  readonly #redactor: Redactor
  readonly #tracing: Tracing
  readonly #observers = new Observers()
  readonly #live = new Map<string, LiveRun>()
  readonly #drives = new Set<Promise<void>>()
  /** Creations in progress by owner and key: a second one with the same key waits for the first. */
  readonly #creating = new Map<string, Promise<unknown>>()
  /** Set when the store is shared with other processes. */
  readonly #sharing: SharedDriver | undefined
  #closing: Promise<void> | undefined

  private constructor(config: EngineConfig) {
    this.#config = config
    this.#models = createModelRegistry({
      providers: config.providers,
      defaultModel: config.defaultModel,
      scripts: config.scripts,
      replay: config.store,
    })
    this.#goals = goalRegistry(config.goals)
    this.#redactor = new Redactor([...config.secrets, ...secretsOfEnvironment(process.env)])
    this.#tracing = new Tracing(config.tracer, config.clock, this.#redactor)
    const { store, clock, maxConcurrentRuns } = config
    const { shared } = store
    // Folders are kept apart by the store when other processes have runs in them as well.
    this.#scheduler = new Scheduler(maxConcurrentRuns, config.cwdPolicy !== 'allow' && !shared)
    this.#sharing =
      shared &&
      new SharedDriver({
        store,
        shared,
        clock,
        redactor: this.#redactor,
        observers: this.#observers,
        slots: maxConcurrentRuns,
        prepare: (state, feed, abandoned) => this.#prepare(state, this.#modelOf(state), abandoned, feed),
        drive: (run) => this.#drive(run),
      })
  }

  /**
   * Opens the store, takes up the runs that had not ended when it was last closed, and starts; in a
   * store that processes share, claims runs from now on.
   *
   * @throws TypeError for a bad option; {@link StoreError} when the store cannot be opened;
   * {@link McpError} when an MCP server that is required cannot be reached.
   */
  static async open(options: EngineOptions): Promise<RunEngine> {
    const engine = new RunEngine(resolveEngineConfig(options))
    // A wrong name is told now, not to the first client.
    engine.#models.resolve(undefined)
    if (engine.#config.judgeModel !== undefined) engine.#models.resolve(engine.#config.judgeModel)
    engine.#mcp = await McpServers.open(engine.#config.mcpServers)
    try {
      await engine.#config.store.open()
      if (engine.#sharing === undefined) await engine.#takeUp()
      else engine.#sharing.start()
    } catch (error) {
      await engine.#mcp.close()
      throw error
    }
    return engine
  }

  /**
   * Creates a run and resolves once it is durable; it starts as soon as a slot and its folder are
   * free. `request` may be anything: it is checked here (see `START_REQUEST_SCHEMA`).
   *
   * @returns the run, and whether it was made by this call or by an earlier one with the same key.
   * @throws {@link InvalidRequestError}, {@link GoalError}, {@link QueueFullError},
   * {@link CwdBusyError}, {@link IdempotencyError}, {@link EngineClosedError}, {@link StoreError}
   */
  async create(
    request: JsonObject,
    options: CreateOptions = {},
  ): Promise<{ readonly details: RunDetails; readonly created: boolean }> {
    this.#assertOpen()
    const parsed = parseStartRequest(request)
    const { idempotencyKey } = options
    const owner = options.caller?.owner ?? NOBODY
    if (idempotencyKey === undefined) return await this.#create(parsed, owner, null, options)
    const lock = JSON.stringify([owner.tenant, owner.id, idempotencyKey])
    const before = this.#creating.get(lock) ?? Promise.resolve()
    const creation = before.then(() => this.#createOnce(parsed, owner, idempotencyKey, options))
    const settled = creation.catch(() => undefined).finally(() => {
      if (this.#creating.get(lock) === settled) this.#creating.delete(lock)
    })
    this.#creating.set(lock, settled)
    return await creation
  }

  /** Runs by condition, newest first; without a limit up to 10 000. */
  async list(
    query: Partial<RunQuery> = {},
  ): Promise<{ readonly runs: readonly RunSummary[]; readonly next: string | null }> {
    const { heads, next } = await this.#config.store.list({ limit: LIST_LIMIT, ...query })
    return { runs: heads.map(({ details }) => summarize(details)), next }
  }

  /** @throws {@link UnknownRunError} when there is no such run that the caller may see. */
  async get(runId: string, caller?: Caller): Promise<RunDetails> {
    return copyOf((await this.#head(runId, caller)).details)
  }

  /**
   * Answers the open gate; resolves once the answer is durable, and never waits for the run.
   *
   * @throws {@link UnknownRunError}, {@link InvalidRequestError}, {@link RunStateError}
   */
  async resume(runId: string, answer: ResumeAnswer, caller?: Caller): Promise<ResumeResult> {
    const stored = await this.#head(runId, caller)
    if (this.#redactor.findsIn(answer.edits)) {
      throw new InvalidRequestError([{ pointer: '/edits', detail: SECRET_IN_REQUEST }])
    }
    const by = caller?.owner.id ?? null
    const { decision } = answer
    if (this.#sharing !== undefined) {
      const { status, gateId } = await this.#sharing.answer(runId, answer, this.#tools(), by)
      return { run_id: runId, status, decision, gate_id: gateId }
    }
    const live = this.#live.get(runId)
    const head = live?.state.head ?? stored
    const gate = gateFor(head, answer, live?.tools ?? this.#tools())
    if (gate !== null) {
      // A run that this engine does not drive cannot hear the answer.
      if (live === undefined) throw new EngineClosedError()
      const response = responseRecord(gate, answer, by)
      await live.answer([response], (state) =>
        decision === 'abort' ? endingRecords(state, ABORTED_BY_HUMAN) : [],
      )
    } else {
      await live?.log.flush()
    }
    const { status } = (live?.state.head ?? stored).details
    const gateId = gate?.gate_id ?? answer.gate_id ?? head.lastDecision?.gate_id ?? ''
    return { run_id: runId, status, decision, gate_id: gateId }
  }

  /**
   * Stops a run; resolves once the wish is durable. `already` when it was aborted before.
   *
   * @throws {@link UnknownRunError}; {@link RunStateError} when the run has ended otherwise.
   */
  async abort(
    runId: string,
    caller?: Caller,
  ): Promise<{ readonly details: RunDetails; readonly already: boolean }> {
    const stored = await this.#head(runId, caller)
    const live = this.#live.get(runId)
    const { status } = (live?.state.head ?? stored).details
    if (status === 'aborted') {
      await live?.log.flush()
      return { details: await this.get(runId, caller), already: true }
    }
    if (isTerminal(status)) {
      throw new RunStateError('ended', `run ${runId} has ended before: it is ${status}`)
    }
    const by = caller?.owner.id ?? null
    const { shared } = this.#config.store
    if (shared !== undefined) await shared.requestAbort(runId, by)
    else if (live === undefined) throw new EngineClosedError()
    else await live.abort(by)
    return { details: await this.get(runId, caller), already: false }
  }

  /**
   * Starts the same request as a new run, with `parent_run_id` set.
   *
   * @throws as {@link RunEngine.get} and {@link RunEngine.create} do.
   */
  async retry(runId: string, caller?: Caller, trace?: TraceContext): Promise<RunDetails> {
    await this.#head(runId, caller)
    const [first] = await this.#config.store.read(runId, 0, 1)
    if (first?.kind !== 'run_created' || first.private === undefined) throw new UnknownRunError(runId)
    const request = requestAgain(first.private.request)
    const { details } = await this.create(request, { caller, parentRunId: runId, trace })
    return details
  }

  /**
   * Removes an ended run and its log, or one whose log is damaged.
   *
   * @throws {@link UnknownRunError}; {@link RunStateError} while the run lives.
   */
  async delete(runId: string, caller?: Caller): Promise<void> {
    const head = await this.#head(runId, caller).catch((error: unknown) => {
      // A damaged run tells neither its state nor its tenant, and must be removable all the same.
      if (isUnreadable(error) && (caller?.owner.tenant ?? null) === null) return null
      throw error
    })
    if (head !== null && (!isTerminal(head.details.status) || this.#live.has(runId))) {
      throw new RunStateError('live', `run ${runId} is ${head.details.status}; abort it first`)
    }
    await this.#config.store.delete(runId)
  }

  /**
   * A page of the event log: events with `seq` greater than `after`, in order.
   *
   * @throws {@link UnknownRunError}
   */
  async events(
    runId: string,
    page: { readonly after: number; readonly limit: number },
    caller?: Caller,
  ): Promise<readonly AgentEvent[]> {
    await this.#head(runId, caller)
    return (await this.#config.store.read(runId, page.after, page.limit)).map(publicEvent)
  }

  /**
   * Follows a run: everything after `after` (0 from the start, -1 only what is to come), then live,
   * gap-free and in order, ending after `run_end`. With `deltas`, what the model writes is told as
   * well while it writes it, by the process that drives the run; see {@link EncodedDelta}.
   *
   * @throws {@link UnknownRunError}; {@link CursorError} when `after` is beyond the log.
   */
  subscribe(
    runId: string,
    options: { readonly after?: number | undefined; readonly deltas: boolean },
    caller?: Caller,
  ): Promise<RunSubscription<StreamItem>>
  subscribe(
    runId: string,
    options?: { readonly after?: number | undefined },
    caller?: Caller,
  ): Promise<RunSubscription>
  async subscribe(
    runId: string,
    options: { readonly after?: number | undefined; readonly deltas?: boolean | undefined } = {},
    caller?: Caller,
  ): Promise<RunSubscription<StreamItem>> {
    const { details } = await this.#head(runId, caller)
    const { after = 0, deltas = false } = options
    if (this.#sharing !== undefined && !isTerminal(details.status)) {
      if (after > details.last_seq) throw new CursorError(after, details.last_seq)
      const { feed, release } = await this.#sharing.follow(runId, details.last_seq)
      return feed.subscribe(after < 0 ? details.last_seq : after, deltas, release)
    }
    const feed = this.#live.get(runId)?.log.feed ?? (await this.#endedFeed(runId, caller))
    if (after > feed.lastSeq) throw new CursorError(after, feed.lastSeq)
    return feed.subscribe(after < 0 ? feed.lastSeq : after, deltas)
  }

  /** The models that this host offers. */
  models(): readonly ModelInfo[] {
    return this.#models.list()
  }

  /** The tools that a run gets that begins now: those of the host, of MCP servers, and the shipped ones. */
  tools(): readonly ToolInfo[] {
    return [...this.#tools().values()].map(({ name, description, effect }) => ({ name, description, effect }))
  }

  /** The goals that this host offers. */
  goals(): readonly GoalInfo[] {
    return this.#goals.list()
  }

  /** Runs that wait for a slot, and how many may; at the limit no more are taken. */
  capacity(): { readonly queued: number; readonly maxQueued: number } {
    let queued = 0
    for (const { state } of this.#live.values()) {
      if (state.head.details.status === 'pending') queued += 1
    }
    return { queued, maxQueued: this.#config.maxQueuedRuns }
  }

  /**
   * Makes sure that events can be stored right now.
   *
   * @throws {@link StoreError} that says why not: the disk is full, the folder gone, the store closed.
   */
  async check(): Promise<void> {
    const { store } = this.#config
    if (store.check !== undefined) await store.check()
    else await store.counts()
  }

  /** Tells `observer` about every append of the runs that this engine drives. The result ends that. */
  observe(observer: RunObserver): () => void {
    return this.#observers.add(observer)
  }

  /** Number of runs by status. */
  async counts(): Promise<Readonly<Record<RunStatus, number>>> {
    return await this.#config.store.counts()
  }

  /**
   * Takes no more runs, waits up to `graceMs` (default 0) for those that work, leaves the rest so
   * that the next start goes on with them, and closes the store. Calling it twice is harmless.
   */
  close(options: { readonly graceMs?: number | undefined } = {}): Promise<void> {
    this.#closing ??= this.#close(options.graceMs ?? 0)
    return this.#closing
  }

  /** Closes without grace. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #close(graceMs: number): Promise<void> {
    await this.#sharing?.stop()
    const idle = [...this.#live.values()].filter(({ state }) => state.head.details.status !== 'running')
    for (const run of idle) run.suspend()
    if (graceMs > 0 && this.#drives.size > 0) {
      let timer: { cancel(): void } | undefined
      const grace = new Promise<void>((resolve) => {
        timer = this.#config.clock.setTimeout(resolve, graceMs)
      })
      await Promise.race([Promise.all(this.#drives), grace])
      timer?.cancel()
    }
    for (const run of this.#live.values()) run.suspend()
    await Promise.all(this.#drives)
    await this.#sharing?.close()
    await Promise.all([this.#config.store.close(), this.#mcp?.close()])
  }

  /** The host's tools, and those that MCP servers have now. */
  #tools(): ReadonlyMap<string, Tool> {
    return this.#mcp?.join(this.#config.tools) ?? this.#config.tools
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new EngineClosedError()
  }

  async #head(runId: string, caller: Caller | undefined): Promise<RunHead> {
    const head = await this.#config.store.head(runId)
    if (head === null || (caller !== undefined && caller.owner.tenant !== head.owner.tenant)) {
      throw new UnknownRunError(runId)
    }
    return head
  }

  async #endedFeed(runId: string, caller: Caller | undefined): Promise<RunFeed> {
    // Read again: the run may have ended between the first look and now.
    const { details } = await this.#head(runId, caller)
    const feed = new RunFeed(runId, this.#config.store, details.last_seq)
    feed.finish(isTerminal(details.status) ? 'run_end' : 'shutdown')
    return feed
  }

  async #createOnce(
    request: StartRequest,
    owner: RunOwner,
    key: string,
    options: CreateOptions,
  ): Promise<{ readonly details: RunDetails; readonly created: boolean }> {
    const { store, clock } = this.#config
    const body_hash = requestHash(request)
    const first = await store.findByKey(owner, key, clock.now() / 1000 - KEY_SECONDS)
    if (first === null) return await this.#create(request, owner, { key, body_hash }, options)
    if (first.idempotency?.body_hash !== body_hash) throw new IdempotencyError()
    return { details: copyOf(first.details), created: false }
  }

  async #create(
    request: StartRequest,
    owner: RunOwner,
    idempotency: PrivatePayloads['run_created']['idempotency'],
    options: CreateOptions,
  ): Promise<{ readonly details: RunDetails; readonly created: boolean }> {
    const { clock, store } = this.#config
    const secret = Object.entries(request).find(([, value]) => this.#redactor.findsIn(value))
    if (secret !== undefined) {
      throw new InvalidRequestError([{ pointer: `/${secret[0]}`, detail: SECRET_IN_REQUEST }])
    }
    const newRun = await resolveNewRun(request, this.#config, this.#models, this.#goals, owner)
    this.#assertOpen()
    const runId = uuidV7(clock.now())
    const trace = readTraceContext(options.trace ?? {})
    const more = { tools: [...this.#tools().keys()], owner, idempotency, ...(trace !== null && { trace }) }
    const draft = createdRecord(newRun, options.parentRunId ?? null, more)
    const created = stamp(draft, runId, 1, 0, clock)
    if (this.#sharing !== undefined) {
      const { maxQueuedRuns: maxQueued, cwdPolicy } = this.#config
      const keysSince = clock.now() / 1000 - KEY_SECONDS
      const began = performance.now()
      const admitted = await this.#sharing.admit({ created, maxQueued, cwdPolicy, keysSince })
      if (admitted.created) {
        this.#observers.tell(admitted.head.details, [created], performance.now() - began)
      }
      return { details: copyOf(admitted.head.details), created: admitted.created }
    }
    // Nothing waits between this check and the run's place in the queue.
    this.#assertRoom(newRun.request.cwd)
    const run = this.#prepare(foldState(null, created), newRun.model, false)
    this.#live.set(runId, run)
    const began = performance.now()
    try {
      await store.append(runId, [created])
    } catch (error) {
      this.#live.delete(runId)
      throw error
    }
    run.log.feed.publish([created])
    this.#observers.tell(run.state.head.details, [created], performance.now() - began)
    const details = copyOf(run.state.head.details)
    void this.#drive(run)
    return { details, created: true }
  }

  #assertRoom(cwd: string): void {
    if (this.#config.cwdPolicy === 'reject') {
      for (const { state, log } of this.#live.values()) {
        if (state.frozen.request.cwd === cwd) throw new CwdBusyError(log.runId)
      }
    }
    const { queued, maxQueued } = this.capacity()
    if (queued >= maxQueued) throw new QueueFullError(maxQueued)
  }

  #prepare(state: RunState, model: Model, takenOver: boolean, sharedFeed?: RunFeed): LiveRun {
    const { store, clock, roots } = this.#config
    const { run_id, last_seq } = state.head.details
    const feed = sharedFeed ?? new RunFeed(run_id, store, takenOver ? last_seq : 0)
    const logOptions = { store, clock, redactor: this.#redactor, observers: this.#observers }
    return new LiveRun(new RunLog(logOptions, feed, state), {
      ...this.#config,
      ...logOptions,
      tools: this.#tools(),
      judge: this.#judgeOf(state),
      trace: new RunTrace(this.#tracing, run_id, state.frozen.trace ?? null),
      model,
      scheduler: this.#scheduler,
      openWorkspace: (cwd) => openWorkspace(cwd, { roots, closed: store.closedFolders ?? [] }),
      takenOver,
      parksAtGates: sharedFeed !== undefined,
    })
  }

  #drive(run: LiveRun): Promise<void> {
    const { runId } = run.log
    this.#live.set(runId, run)
    const drive = run.drive().finally(() => {
      this.#drives.delete(drive)
      this.#live.delete(runId)
      if (isTerminal(run.state.head.details.status)) run.log.feed.finish('run_end')
      else if (this.#sharing === undefined) run.log.feed.finish('shutdown')
    })
    this.#drives.add(drive)
    return drive
  }

  /** Takes up every run that has not ended, oldest first. */
  async #takeUp(): Promise<void> {
    const { store } = this.#config
    const heads: RunHead[] = []
    let cursor: string | null | undefined
    while (cursor !== null) {
      const status: RunStatus[] = ['pending', 'running', 'awaiting_human']
      const page = await store.list({ status, limit: 1000, cursor })
      heads.push(...page.heads)
      cursor = page.next
    }
    const runs: LiveRun[] = []
    for (const { details } of heads.reverse()) {
      const state = await loadState(store, details.run_id).catch(reportUnreadable(details.run_id))
      if (state === null) continue
      state.downSince = state.head.last_ts * 1000
      const run = this.#prepare(state, this.#modelOf(state), true)
      const { cwd } = state.frozen.request
      if (details.status !== 'pending') this.#scheduler.hold(details.run_id, cwd)
      runs.push(run)
    }
    for (const run of runs) void this.#drive(run)
  }

  /** The model of a run that is taken up; one that is gone fails when it is called. */
  #modelOf({ frozen }: RunState): Model {
    return this.#modelNamed(frozen.request.model_name, frozen.prices)
  }

  #judgeOf({ frozen }: RunState): Model | null {
    const { judge } = frozen.goal
    return judge === undefined ? null : this.#modelNamed(judge.model, judge.prices)
  }

  #modelNamed(name: string, prices: ModelPrices | null): Model {
    try {
      return this.#models.resolve(name)
    } catch (error) {
      const failing = (): Promise<never> => Promise.reject(error as Error)
      return { name, isLanguageModel: true, contextWindow: null, prices, complete: failing }
    }
  }
}

/** A run whose log cannot be read stays as it is, and does not keep the others from going on. */
function reportUnreadable(runId: string): (error: unknown) => null {
  return (error) => {
    process.emitWarning(`run ${runId} is not taken up: ${error instanceof Error ? error.message : String(error)}`)
    return null
  }
}

function isUnreadable(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'ERR_AGENT_STORE_CORRUPT'
}

/** Details as they are now: the store goes on folding its own. */
function copyOf(details: RunDetails): RunDetails {
  return { ...details, final_state: { ...details.final_state } }
}
