import { checkOptions } from '../internal/options.js'
import type { JsonObject } from '../internal/json.js'
import type { RunWorkspaces } from './checkpoint.js'
import { FileOperations } from './checkpoints/file-operations.js'
import { forkFiles } from './checkpoints/fork-files.js'
import { EngineRunFiles } from './checkpoints/run-files.js'
import { checkpointSettings, type CheckpointSettings } from './checkpoints/settings.js'
import { Upkeep } from './checkpoints/upkeep.js'
import { Workspaces } from './checkpoints/workspaces.js'
import type { CheckFiles } from './check-files.js'
import { resolveEngineConfig, type EngineConfig, type EngineOptions } from './config.js'
import {
  CLOSE,
  CREATE,
  MESSAGE,
  SUBSCRIBE,
  USAGE,
  type Caller,
  type CreateOptions,
  type GoalInfo,
  type MessageOptions,
  type ResumeResult,
  type TenantUsage,
  type ToolInfo,
} from './engine-calls.js'
import {
  CursorError,
  CwdBusyError,
  EngineClosedError,
  ExhaustedError,
  InvalidRequestError,
  isCorrupt,
  QueueFullError,
  RunStateError,
  StoreError,
  UnknownRunError,
} from './errors.js'
import { machineProblem } from './exhaustion.js'
import {
  type AgentEvent,
  publicEvent,
  type RunStatus,
} from './events.js'
import type { GoalRegistry } from './goals/goal-registry.js'
import { commandOfGoal, goalRegistry } from './goals/registry.js'
import type { ImagePart } from './image-part.js'
import { IsolatedFolders } from './isolation/isolated-folders.js'
import { copyExecutor } from './executors/copy-executor.js'
import { sealingFor } from './sealing.js'
import { copiesFor } from './copies/run-copies.js'
import { SealedFolders } from './isolation/sealed-folders.js'
import { checkFilesOf } from './request/check-files.js'
import { summarize } from './log/head.js'
import { Observers, type RunObserver } from './log/observer.js'
import type { RunSubscription, StreamItem } from './log/subscription.js'
import type { McpPromptInfo } from './mcp/resources.js'
import { McpServers } from './mcp/servers.js'
import type { TraceContext } from './model.js'
import { createModelRegistry, type ModelInfo, type ModelRegistry } from './models/registry.js'
import { addSecrets, redactor } from './redaction/redactor.js'
import type { ResumeAnswer } from './request/gate-answer.js'
import { Creation, SECRET_IN_REQUEST } from './request/creation.js'
import { Offers, type RunOffers } from './request/offers.js'
import { runsToDelete } from './request/deletion.js'
import { parseMessage, parseUpdate } from './request/message.js'
import { ownerOf } from './request/owner-of.js'
import { completeDetails } from './request/complete-details.js'
import { requestAgain } from './request/start-request.js'
import { TenantUsages } from './request/tenant-usage.js'
import { visibleHead } from './request/visible-head.js'
import type { RunDetails, RunHead, RunSummary } from './run-details.js'
import { EngineChildren } from './run/children/engine-children.js'
import { limitedProviders } from './run/limited-calls.js'
import { RunDriver } from './run/run-driver.js'
import { Scheduler } from './run/scheduler.js'
import type { RunServices } from './run/services.js'
import { HAND_OVER_MS } from './run/steps/suspend.js'
import { QUERY, type RunQuery, type StoreDamage } from './store.js'
import type { Tool } from './tool.js'
import { Tracing } from './tracing/tracing.js'

/** The services of runs and steps, and those that only the engine uses. */
interface EngineServices extends Omit<EngineConfig, 'checkpoints'>, RunServices {
  /** Checkpoint settings, set even when new runs make none. Null without an object store. */
  readonly contents: CheckpointSettings | null
  readonly sealedFolders: SealedFolders
}

/** Page size of a list without a limit. */
const LIST_LIMIT = 10_000

/**
 * Creates, drives, stores, recovers and reports runs. Everything that it reports is durable.
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
  /** What runs did to their folders: checkpoints, changes, files, restore, apply. */
  readonly workspaces: RunWorkspaces
  /** What a form needs before a run is started: folders, and what a request would begin. */
  readonly offers: RunOffers
  readonly #config: EngineConfig
  #mcp: McpServers | undefined
  readonly #models: ModelRegistry
  readonly #goals: GoalRegistry
  readonly #services: EngineServices
  readonly #driver: RunDriver
  readonly #upkeep: Upkeep
  readonly #creation: Creation
  readonly #usages: TenantUsages
  /** Aborted when nothing may use the store of contents any more. */
  readonly #over = new AbortController()
  #closing: Promise<void> | undefined

  private constructor(config: EngineConfig) {
    if (typeof config?.store !== 'object' || !(config.tools instanceof Map)) {
      throw new TypeError('an engine is opened by RunEngine.open({ store, roots })')
    }
    this.#config = config
    const { defaultModel, providers, scripts } = config
    this.#models = createModelRegistry({ providers, defaultModel, scripts, replay: config.store })
    this.#goals = goalRegistry(config.goals)
    addSecrets(config.secrets, process.env)
    const services = this.#makeServices(config)
    this.#services = services
    const { isolation, sealedFolders, store } = services
    this.#driver = new RunDriver(services)
    const use = services.contents?.use ?? null
    this.#upkeep = new Upkeep({ store, use, isolation, sealed: sealedFolders })
    this.workspaces = new Workspaces({ ...services, logs: this.#driver })
    this.#usages = new TenantUsages(store, config.clock)
    this.#creation = new Creation({
      ...services,
      goals: this.#goals,
      nameOfModel: (model) => this.#models.nameOf(model),
      files: forkFiles(services.checkpoints),
      begin: (created, ...rest) => {
        // A run that another one starts was let in with that one.
        if (created.payload.role === undefined) this.#assertOpen()
        return this.#driver.begin(created, ...rest)
      },
    })
    this.offers = new Offers({
      ...config,
      resolveRun: (request, owner) => this.#creation.preview(request, owner),
      assertOpen: () => this.#assertOpen(),
    })
  }

  #makeServices(config: EngineConfig): EngineServices {
    const { clock, closed, store, workspaceFolder: folder, maxWorkspaceBytes: maxBytes } = config
    const isShared = store.shared !== undefined
    const contents = checkpointSettings(config, this.#over.signal)
    const copies = { maxBytes, closed, dataFolder: store.dataFolder, isShared }
    const isolation = folder === null ? null : new IsolatedFolders({ folder, ...copies })
    const sealedFolders = new SealedFolders({ folder, ...copies })
    const executor = copyExecutor(config.executor, closed)
    // A shared store admits one run per folder itself, across processes.
    const isExclusive = config.cwdPolicy !== 'allow' && !isShared
    return {
      ...config,
      redactor,
      observers: new Observers(),
      contents,
      checkpoints: config.checkpoints === 'off' ? null : contents,
      isolation,
      sealedFolders,
      // Also without checkpoints: an operation that an earlier engine began must be finished.
      files: contents && new EngineRunFiles({ ...config, ...contents, isolation }),
      operations: contents && new FileOperations(contents),
      offeredTools: () => this.#tools(),
      resolveModel: (name) => this.#models.resolve(name),
      limitedProvider: limitedProviders(config.providerLimits, this.#models, clock),
      tracing: new Tracing(config.tracer, clock, redactor),
      commandOfGoal: commandOfGoal(this.#goals),
      sealingFor: sealingFor({ ...config, sealedFolders, executor }),
      copiesFor: copiesFor({ sealedFolders, executor }),
      scheduler: new Scheduler(config.maxConcurrentRuns, isExclusive),
      trees: new Map(),
      childRuns: new EngineChildren({
        store,
        creation: () => this.#creation,
        driver: () => this.#driver,
      }),
    }
  }

  /**
   * Opens the store and begins to resume the runs that have not ended; in a store that processes
   * share, starts to claim runs.
   *
   * @throws TypeError for a bad option; {@link StoreError} when the store cannot be opened;
   * {@link McpError} when a required MCP server cannot be reached.
   */
  static async open(options: EngineOptions): Promise<RunEngine> {
    const engine = new RunEngine(resolveEngineConfig(options))
    // An unknown name should fail now, not with the first request.
    const { defaultModel, judgeModel } = engine.#config
    for (const name of [defaultModel, judgeModel])
      if (name !== undefined) engine.#models.resolve(name)
    engine.#mcp = await McpServers.open(engine.#config.mcpServers)
    try {
      engine.#config.store.onRemoved?.((here) => engine.#upkeep.removed(here))
      await engine.#config.store.open()
      await engine.#driver.start()
      engine.#upkeep.start()
    } catch (error) {
      await engine.#mcp.close()
      throw error
    }
    return engine
  }

  /**
   * Creates a run and resolves once it is durable; it starts as soon as a slot and its folder are
   * free. `request` is not trusted: it is checked against `START_REQUEST_SCHEMA`.
   *
   * @returns the run, and whether this call created it or an earlier one with the same key did.
   * @throws {@link InvalidRequestError}, {@link GoalError}, {@link QueueFullError},
   * {@link CwdBusyError}, {@link ForeignFolderError}, {@link IdempotencyError},
   * {@link EngineClosedError}, {@link InstructionsError}, {@link StoreError}; what the host's
   * `roots` throws
   */
  async create(
    request: JsonObject,
    options: CreateOptions = {},
  ): Promise<{ readonly details: RunDetails; readonly created: boolean }> {
    this.#assertOpen()
    checkOptions(options, CREATE, 'create()')
    return await this.#answer(this.#creation.create(request, options))
  }

  /** A page of runs, newest first by default; at most 10 000 without a limit. */
  async list(
    query: Partial<RunQuery> = {},
  ): Promise<{ readonly runs: readonly RunSummary[]; readonly next: string | null }> {
    checkOptions(query, QUERY, 'list()')
    const { heads, next } = await this.#answer(
      this.#config.store.list({ limit: LIST_LIMIT, ...query }),
    )
    return { runs: heads.map(summarize), next }
  }

  /** @throws {@link UnknownRunError} when no run with this id is visible to the caller. */
  async get(runId: string, caller?: Caller): Promise<RunDetails> {
    const head = await this.#head(runId, caller)
    return await this.#answer(completeDetails(this.#config.store, head))
  }

  /**
   * Answers the open gate; resolves once the answer is durable, without waiting for the run.
   *
   * @throws {@link UnknownRunError}, {@link InvalidRequestError}, {@link RunStateError};
   * {@link StoreError} when the answer cannot be stored: it was not given then.
   */
  async resume(runId: string, answer: ResumeAnswer, caller?: Caller): Promise<ResumeResult> {
    const stored = await this.#head(runId, caller)
    if (redactor.findsIn(answer.edits)) {
      throw new InvalidRequestError([{ pointer: '/edits', detail: SECRET_IN_REQUEST }])
    }
    const { status, gateId } = await this.#answer(
      this.#driver.answer(stored, answer, caller?.owner.id ?? null),
    )
    return { run_id: runId, status, decision: answer.decision, gate_id: gateId }
  }

  /**
   * Aborts a run; resolves once the request is durable. `already`: it had been aborted before.
   *
   * @throws {@link UnknownRunError}; {@link RunStateError} when the run has ended otherwise;
   * {@link StoreError} with `ERR_AGENT_STORE_UNAVAILABLE` when the store is unavailable: the run
   * was stopped, and ends as aborted as soon as the store takes its records, unless the service
   * stops before.
   */
  async abort(
    runId: string,
    caller?: Caller,
  ): Promise<{ readonly details: RunDetails; readonly already: boolean }> {
    const stored = await this.#head(runId, caller)
    const already = await this.#answer(
      this.#driver.abort(stored.details, caller?.owner.id ?? null),
    )
    return { details: await this.get(runId, caller), already }
  }

  /**
   * Starts a new run with the same request, and with `parent_run_id` set.
   *
   * @throws as {@link RunEngine.get} and {@link RunEngine.create} do.
   */
  async retry(runId: string, caller?: Caller, trace?: TraceContext): Promise<RunDetails> {
    await this.#head(runId, caller)
    const [first] = await this.#answer(this.#config.store.read(runId, 0, 1))
    if (first?.kind !== 'run_created' || first.private === undefined)
      throw new UnknownRunError(runId)
    const request = requestAgain(first.private.request)
    this.#assertOpen()
    const options = { caller, parentRunId: runId, trace }
    const { details } = await this.#answer(this.#creation.create(request, options, runId))
    return details
  }

  /**
   * Starts a new run from the end of an iteration of another one, with its conversation and its
   * files: see `FORK_SCHEMA`.
   *
   * @throws as {@link RunEngine.get} and {@link RunEngine.create} do; {@link CheckpointError};
   * {@link RunStateError} with `live` for a fork in place of a run that has not ended.
   */
  async fork(
    runId: string,
    request: JsonObject,
    options: CreateOptions = {},
  ): Promise<{ readonly details: RunDetails; readonly created: boolean }> {
    this.#assertOpen()
    checkOptions(options, CREATE, 'fork()')
    const source = this.#head(runId, options.caller)
    return await this.#answer(this.#creation.fork(runId, source, request, options))
  }

  /**
   * Sends text to the model of a run that has not ended, see `MESSAGE_SCHEMA`; resolves once it is
   * durable. The model hears it before its next call, or when the next iteration begins.
   *
   * @throws {@link UnknownRunError}, {@link InvalidRequestError}, {@link IdempotencyError},
   * {@link StoreError}; {@link RunStateError} with `ended`, or with `too_many_messages` when 100 of
   * them wait.
   */
  async message(
    runId: string,
    message: JsonObject,
    options: MessageOptions = {},
  ): Promise<{ readonly message_id: string }> {
    this.#assertOpen()
    checkOptions(options, MESSAGE, 'message()')
    const { caller, idempotencyKey: key } = options
    const { details } = await this.#head(runId, caller)
    const sender = { by: caller?.owner.id ?? null, key }
    const parsed = parseMessage(runId, message, sender, this.#config.clock.now())
    this.#creation.assertNoSecret({ text: parsed.text }, key)
    return { message_id: await this.#answer(this.#driver.message(details, parsed)) }
  }

  /**
   * Changes the request of a run that has not ended, see `UPDATE_SCHEMA`; resolves once that is
   * durable. The next check of the run goes by it, and its model hears of it as of a message.
   *
   * @throws as {@link RunEngine.message} does.
   */
  async update(
    runId: string,
    update: JsonObject,
    options: MessageOptions = {},
  ): Promise<RunDetails> {
    this.#assertOpen()
    checkOptions(options, MESSAGE, 'update()')
    const { caller, idempotencyKey: key } = options
    const { details } = await this.#head(runId, caller)
    const sender = { by: caller?.owner.id ?? null, key }
    const parsed = parseUpdate(details, update, sender, this.#config.clock.now())
    this.#creation.assertNoSecret({ may_change: parsed.may_change }, key)
    await this.#answer(this.#driver.message(details, parsed))
    return await this.get(runId, caller)
  }

  /**
   * Removes a run that has ended or whose log is corrupt, together with its log and with all runs
   * that it has started.
   *
   * @throws {@link UnknownRunError}; {@link RunStateError} with `live` while it, or one that it has
   * started, is live, and with `child` for a run that another one has started, whose message names
   * the root to delete in its place.
   */
  async delete(runId: string, caller?: Caller): Promise<void> {
    const head = await this.#head(runId, caller).catch((error: unknown) => {
      // The status and tenant of a corrupt run are unknown, but it must be removable.
      if (isCorrupt(error) && (caller?.owner.tenant ?? null) === null) return null
      throw error
    })
    const { store } = this.#config
    for (const doomed of await this.#answer(runsToDelete(store, runId, head))) {
      await this.#driver.exclusively(doomed.runId, doomed.isReadable, async () => {
        await this.#assertFilesAtRest(doomed.runId)
        await this.#answer(store.delete(doomed.runId))
      })
      // What cannot be removed now, a sweep removes.
      await this.#services.isolation?.remove(doomed.runId).catch(() => undefined)
    }
    this.#upkeep.removed(true)
  }

  /**
   * What belongs to the check of a run: no change of it counts towards the goal. Empty before the
   * run has started, and for goals that a model judges.
   *
   * @throws {@link UnknownRunError}
   */
  async checkFiles(runId: string, caller?: Caller): Promise<CheckFiles> {
    await this.#head(runId, caller)
    return await this.#answer(checkFilesOf(this.#config.store, runId))
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
    const records = this.#config.store.read(runId, page.after, page.limit)
    return (await this.#answer(records)).map(publicEvent)
  }

  /**
   * The images that belong to an event: those of the request to `run_created`, those of a result to
   * its `tool_result`; none for others.
   *
   * @throws {@link UnknownRunError}
   */
  async images(runId: string, seq: number, caller?: Caller): Promise<readonly ImagePart[]> {
    await this.#head(runId, caller)
    const [record] = await this.#answer(this.#config.store.read(runId, seq - 1, 1))
    if (record?.kind === 'run_created') return record.private?.request.images ?? []
    return record?.kind === 'tool_result' ? (record.private?.images ?? []) : []
  }

  /**
   * Follows a run: all events after `after` (0: from the start; -1: only new ones), then live
   * events, gap-free and in order, until `run_end`. With `deltas`, also the text that the model is
   * writing, in the process that drives the run; see {@link EncodedDelta}.
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
    checkOptions(options, SUBSCRIBE, 'subscribe()')
    const { details } = await this.#head(runId, caller)
    const { after = 0, deltas = false } = options
    const { feed, release } = await this.#answer(this.#driver.follow(details))
    // The log may have grown since `details` was read; it never shrinks.
    const end = Math.max(feed.lastSeq, details.last_seq)
    if (after <= end) return feed.subscribe(after < 0 ? end : after, deltas, release)
    release()
    throw new CursorError(after, end)
  }

  /** The models that requests may name, as far as providers list them. */
  models(): readonly ModelInfo[] {
    return this.#models.list()
  }

  /** The tools of a run that begins now: the host's, those of MCP servers, and the shipped ones. */
  tools(): readonly ToolInfo[] {
    return [...this.#tools().values()].map(({ name, description, effect }) => ({
      name,
      description,
      effect,
    }))
  }

  /** Asks the MCP servers for their prompts; one that fails is reported and left out. */
  async mcpPrompts(): Promise<readonly McpPromptInfo[]> {
    return (await this.#mcp?.prompts()) ?? []
  }

  /** The named goals: the host's and the shipped ones. */
  goals(): readonly GoalInfo[] {
    return this.#goals.list()
  }

  /** The number of runs that wait for a slot, and its limit, at which `create` refuses runs. */
  capacity(): { readonly queued: number; readonly maxQueued: number } {
    return { queued: this.#driver.queued, maxQueued: this.#config.maxQueuedRuns }
  }

  /**
   * Verifies that events can be stored right now, and that no run waits for the store or for the
   * machine.
   *
   * @throws {@link StoreError} with the reason: the disk is full, the folder gone, the store
   * closed; {@link ExhaustedError} while there are no file descriptors, processes or memory left,
   * or a disk fails on which the engine keeps files.
   */
  async check(): Promise<void> {
    const { store } = this.#config
    if (store.check !== undefined) await store.check()
    else await store.counts()
    // A check writes little: there may be room for that, but not for the records of a run.
    const { refusal } = this.#driver
    if (refusal !== null) throw refusal
    const problem = machineProblem()
    if (problem !== null) throw new ExhaustedError(problem)
  }

  /** What the store has found to be damaged or missing; empty lists when nothing is. */
  damage(): StoreDamage {
    const { runs, files } = this.#config.store.damage?.() ?? { runs: [], files: [] }
    return { runs, files: [...files, ...this.#upkeep.problems] }
  }

  /** Calls `observer` after every append of this engine; the returned function stops that. */
  observe(observer: RunObserver): () => void {
    return this.#services.observers.add(observer)
  }

  /** The number of runs in each status, of all tenants. */
  async counts(): Promise<Readonly<Record<RunStatus, number>>> {
    return await this.#answer(this.#config.store.counts())
  }

  /**
   * What the runs of a tenant use; null: of those without one. Reads the runs of the tenant that
   * have not ended, and for `costs` (default false) those created since the last call, at first all
   * of the last 24 hours.
   */
  async usage(
    tenant: string | null,
    options: { readonly costs?: boolean | undefined } = {},
  ): Promise<TenantUsage> {
    checkOptions(options, USAGE, 'usage()')
    return await this.#answer(this.#usages.of(tenant, options.costs ?? false))
  }

  /**
   * Accepts no more runs, waits up to `graceMs` (default 0) for running work, suspends the rest to
   * be resumed by the next start, and closes the store. Calling it twice is harmless.
   */
  close(options: { readonly graceMs?: number | undefined } = {}): Promise<void> {
    checkOptions(options, CLOSE, 'close()')
    this.#closing ??= this.#close(options.graceMs ?? 0)
    return this.#closing
  }

  /** For `await using`: suspends running work at once, as `close()` without `graceMs` does. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #close(graceMs: number): Promise<void> {
    // Files are handed over with their run, and changes of a folder are finished; a silent store of
    // contents holds up nothing for longer.
    const { clock } = this.#config
    const lastMs = graceMs + HAND_OVER_MS
    const over = (): void => this.#over.abort(new StoreError('ERR_AGENT_STORE', 'it is closed'))
    const timer = clock.setTimeout(over, lastMs)
    await this.#driver.close(graceMs)
    timer.cancel()
    over()
    await this.#upkeep.close()
    await Promise.all([this.#services.sealedFolders.close(), this.#services.isolation?.close()])
    await Promise.all([this.#config.store.close(), this.#mcp?.close()])
  }

  /** The configured tools, and those that MCP servers offer now. */
  #tools(): ReadonlyMap<string, Tool> {
    return this.#mcp?.join(this.#config.tools) ?? this.#config.tools
  }

  /** What store or driver answer; an error of a store that was closed meanwhile says so. */
  async #answer<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      if (error instanceof StoreError) this.#assertOpen()
      throw error
    }
  }

  /** A restore or apply under way could not be finished without the log. */
  async #assertFilesAtRest(runId: string): Promise<void> {
    const head = await this.#config.store.head(runId).catch(() => null)
    if (head === null || head.operation === null || this.#config.objects === null) return
    throw new RunStateError('live', `files of run ${runId} are being changed; try again`)
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new EngineClosedError()
  }

  async #head(runId: string, caller: Caller | undefined): Promise<RunHead> {
    return await this.#answer(visibleHead(this.#config.store, runId, ownerOf(caller)))
  }
}
