import type { JsonObject } from '../internal/json.js'
import { uuidV7 } from '../internal/uuid.js'
import { resolveEngineConfig, type EngineConfig, type EngineOptions } from './config.js'
import {
  CursorError,
  CwdBusyError,
  EngineClosedError,
  InvalidRequestError,
  QueueFullError,
  RunStateError,
  StoreError,
  UnknownRunError,
} from './errors.js'
import {
  type AgentEvent,
  type Decision,
  isTerminal,
  type PrivatePayloads,
  publicEvent,
  type RunOwner,
  type RunStatus,
} from './events.js'
import type { ResumeAnswer } from './request/gate-answer.js'
import { goalRegistry, type GoalRegistry } from './goals/index.js'
import { ActiveRuns } from './run/active-runs.js'
import { LocalDriver } from './run/local-driver.js'
import { McpServers } from './mcp/servers.js'
import { createModelRegistry, type ModelInfo, type ModelRegistry } from './models/registry.js'
import { repeatedRun } from './request/idempotency.js'
import { createdRecord, requestHash, resolveNewRun } from './request/new-run.js'
import { summarize } from './log/head.js'
import type { RunDetails, RunHead, RunSummary } from './run-details.js'
import { Redactor, secretsOfEnvironment } from './redaction/redactor.js'
import { Observers, type RunObserver } from './log/observer.js'
import type { RunDriver } from './run/driver.js'
import { stamp } from './log/writer.js'
import { readTraceContext, type TraceContext } from './tracing/trace-context.js'
import { Tracing } from './tracing/tracing.js'
import { parseStartRequest, requestAgain, type StartRequest } from './request/start-request.js'
import { SharedDriver } from './run/shared-driver.js'
import { performStep } from './run/steps/perform.js'
import type { RunQuery } from './store.js'
import type { RunSubscription, StreamItem } from './log/subscription.js'
import type { Tool } from './tool.js'

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
  readonly #redactor: Redactor
  readonly #observers = new Observers()
  readonly #driver: RunDriver
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
    const tracing = new Tracing(config.tracer, config.clock, this.#redactor)
    const offeredTools = (): ReadonlyMap<string, Tool> => this.#tools()
    const { shared } = config.store
    const common = { ...config, offeredTools, observers: this.#observers }
    const runs = new ActiveRuns({
      ...common,
      tracing,
      performStep,
      resolveModel: (name) => this.#models.resolve(name),
      redactor: this.#redactor,
    })
    this.#driver =
      shared === undefined
        ? new LocalDriver({ ...common, runs })
        : new SharedDriver({ ...common, runs, shared })
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
      await engine.#driver.start()
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
    const body_hash = requestHash(parsed)
    const first = await this.#config.store.findByKey(owner, idempotencyKey, this.#keysSince())
    const repeated = repeatedRun(first, body_hash)
    if (repeated !== null) return { details: repeated.details, created: false }
    return await this.#create(parsed, owner, { key: idempotencyKey, body_hash }, options)
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
    return (await this.#head(runId, caller)).details
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
    const { status, gateId } = await this.#driver.answer(stored, answer, caller?.owner.id ?? null)
    return { run_id: runId, status, decision: answer.decision, gate_id: gateId }
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
    const already = await this.#driver.abort(stored.details, caller?.owner.id ?? null)
    return { details: await this.get(runId, caller), already }
  }

  /**
   * Starts the same request as a new run, with `parent_run_id` set.
   *
   * @throws as {@link RunEngine.get} and {@link RunEngine.create} do.
   */
  async retry(runId: string, caller?: Caller, trace?: TraceContext): Promise<RunDetails> {
    await this.#head(runId, caller)
    const [first] = await this.#config.store.read(runId, 0, 1)
    if (first?.kind !== 'run_created' || first.private === undefined)
      throw new UnknownRunError(runId)
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
    if (head !== null && (!isTerminal(head.details.status) || this.#driver.isLive(runId))) {
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
    const { feed, release } = await this.#driver.follow(details)
    // The log may have grown while the feed was opened, and never shrinks.
    const end = Math.max(feed.lastSeq, details.last_seq)
    if (after <= end) return feed.subscribe(after < 0 ? end : after, deltas, release)
    release()
    throw new CursorError(after, end)
  }

  /** The models that this host offers. */
  models(): readonly ModelInfo[] {
    return this.#models.list()
  }

  /** The tools that a run gets that begins now: those of the host, of MCP servers, and the shipped ones. */
  tools(): readonly ToolInfo[] {
    return [...this.#tools().values()].map(({ name, description, effect }) => ({
      name,
      description,
      effect,
    }))
  }

  /** The goals that this host offers. */
  goals(): readonly GoalInfo[] {
    return this.#goals.list()
  }

  /** Runs that wait for a slot, and how many may; at the limit no more are taken. */
  capacity(): { readonly queued: number; readonly maxQueued: number } {
    return { queued: this.#driver.queued, maxQueued: this.#config.maxQueuedRuns }
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
    await this.#driver.close(graceMs)
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

  /** From when on idempotency keys count, in float seconds since the epoch. */
  #keysSince(): number {
    return this.#config.clock.now() / 1000 - KEY_SECONDS
  }

  async #create(
    request: StartRequest,
    owner: RunOwner,
    idempotency: PrivatePayloads['run_created']['idempotency'],
    options: CreateOptions,
  ): Promise<{ readonly details: RunDetails; readonly created: boolean }> {
    const { clock } = this.#config
    const secret = Object.entries(request).find(([, value]) => this.#redactor.findsIn(value))
    if (secret !== undefined) {
      throw new InvalidRequestError([{ pointer: `/${secret[0]}`, detail: SECRET_IN_REQUEST }])
    }
    const newRun = await resolveNewRun(request, this.#config, this.#models, this.#goals, owner)
    this.#assertOpen()
    const runId = uuidV7(clock.now())
    const trace = readTraceContext(options.trace ?? {})
    const more = {
      tools: [...this.#tools().keys()],
      owner,
      idempotency,
      ...(trace !== null && { trace }),
    }
    const draft = createdRecord(newRun, options.parentRunId ?? null, more)
    const record = stamp(draft, runId, 1, 0, clock)
    const { head, created } = await this.#driver.begin(record, newRun.model, this.#keysSince())
    return { details: head.details, created }
  }
}

function isUnreadable(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'ERR_AGENT_STORE_CORRUPT'
}
