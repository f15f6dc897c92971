/**
 * The runs that this process drives, by their ids: prepared from their logs, and driven until they
 * end or are suspended.
 *
 * @module
 */
import { asError } from '../../internal/errors.js'
import { within } from '../../internal/time.js'
import { uuidV7 } from '../../internal/bytes.js'
import { StoreError, WorkspaceError } from '../errors.js'
import type { RunOwner, RunRequest } from '../events.js'
import type { Executor } from '../executor.js'
import type { SealingFor } from '../goals/sealed/sealing.js'
import type { CopiesFor } from '../copies/run-copies.js'
import type { IsolatedFolders } from '../isolation/isolated-folders.js'
import type { RunState } from '../log/run-state.js'
import type { LogWriter, LogWriterOptions } from '../log/writer.js'
import type { Model } from '../model.js'
import type { RootsOf } from '../request/roots.js'
import type { RunDetails } from '../run-details.js'
import type { Tool } from '../tool.js'
import { onlyRunsCommands } from '../tools/builtin.js'
import { bashTool } from '../tools/bash.js'
import { delegateTool } from '../tools/delegate.js'
import { RunTrace } from '../tracing/run-trace.js'
import type { Tracing } from '../tracing/tracing.js'
import type { ModelPrices } from '../usage.js'
import { resolveUnderRoots } from '../workspace/open.js'
import type { CheckpointSettings } from '../checkpoints/settings.js'
import { closedInCopy } from '../workspace/closed-folders.js'
import { claimedExecutor } from './claimed-executor.js'
import { RunLoop, type RunLoopOptions } from './run-loop.js'
import type { LocalTrees } from './children/tree-budget.js'
import { LimitedCalls, type LimitedProviderOf } from './limited-calls.js'
import { openCopy } from './isolated-copy.js'
import { noFolder } from './no-folder.js'
import { openRunFolder, type RunFolder } from './run-folder.js'
import { RunModels } from './run-models.js'
import { Scheduler } from './scheduler.js'

/** The options of a {@link RunLoop} that differ from run to run. */
type PerRun =
  | 'holdFolder'
  | 'onWaiting'
  | 'judge'
  | 'limits'
  | 'models'
  | 'openFolder'
  | 'overdueGate'
  | 'parksAtGates'
  | 'scheduler'
  | 'sealing'
  | 'copies'
  | 'takenOver'
  | 'tools'
  | 'trace'

/** What the runs of one engine have in common. */
export interface ActiveRunsOptions extends Omit<RunLoopOptions, PerRun | 'trees'> {
  readonly rootsOf: RootsOf
  /** Folders that do not exist for runs. */
  readonly closed: readonly string[]
  /** Null: there are no isolated runs. */
  readonly isolation: IsolatedFolders | null
  readonly sealingFor: SealingFor
  readonly copiesFor: CopiesFor
  /** Null: runs have no checkpoints. */
  readonly checkpoints: CheckpointSettings | null
  readonly maxConcurrentRuns: number
  readonly cwdPolicy: 'queue' | 'reject' | 'allow'
  readonly tracing: Tracing
  /** The tools for a run that is prepared now. */
  readonly offeredTools: () => ReadonlyMap<string, Tool>
  /** @throws when no provider has a model of this name. */
  readonly resolveModel: (name: string) => Model
  /** Null: no provider has limits. */
  readonly limitedProvider: LimitedProviderOf | null
}

/** How a run comes to be driven here. */
export interface Origin {
  /** A process that has died drove it before. */
  readonly abandoned: boolean
  /** Its gate has expired by the store's clock, whatever the clock of this process says. */
  readonly overdue?: boolean
}

/** Bound of the wait for suspended runs: their commands get 4 s to end. */
const STOP_MS = 15_000

/** The runs that this process drives, and the slots that they work in. */
export class ActiveRuns {
  readonly scheduler: Scheduler
  /** Called when a run gives up its slot to wait for others. */
  onWaiting: () => void = () => undefined
  readonly #options: ActiveRunsOptions
  readonly #trees: LocalTrees = new Map()
  readonly #runs = new Map<string, RunLoop>()
  /** The service shuts down: what is added goes on with the next start. */
  #suspends = false
  /** The runs being driven: resolves when that is over, or at once when `leave` is called. */
  readonly #drives = new Map<string, { readonly over: Promise<void>; readonly leave: () => void }>()

  constructor(options: ActiveRunsOptions) {
    this.#options = options
    const { maxConcurrentRuns, cwdPolicy, store } = options
    // A shared store admits one run per folder itself, across processes.
    const exclusive = cwdPolicy !== 'allow' && store.shared === undefined
    this.scheduler = new Scheduler(maxConcurrentRuns, exclusive)
  }

  /** What the logs of these runs are written with. */
  get logOptions(): LogWriterOptions {
    return this.#options
  }

  /** Runs that wait for a slot. */
  get queued(): number {
    let queued = 0
    for (const { state } of this) if (isQueued(state.head.details)) queued += 1
    return queued
  }

  /** The same for the runs of a tenant. */
  queuedOf(tenant: string | null): number {
    let queued = 0
    for (const { state } of this)
      if (state.head.owner.tenant === tenant && isQueued(state.head.details)) queued += 1
    return queued
  }

  /** Why the store refuses records of these runs right now; null while it does not. */
  get refusal(): StoreError | null {
    for (const { log } of this) if (log.refusal !== null) return log.refusal
    return null
  }

  get(runId: string): RunLoop | undefined {
    return this.#runs.get(runId)
  }

  [Symbol.iterator](): Iterator<RunLoop> {
    return this.#runs.values()
  }

  /** Creates the loop of a run without driving it; without `model`, the logged name is resolved. */
  prepare(log: LogWriter, { abandoned, overdue = false }: Origin, model?: Model): RunLoop {
    const options = this.#options
    const { clock, executor, limitedProvider, offeredTools, store, tracing } = options
    const { frozen, head } = log.state
    const { judge } = frozen.goal
    const { shared } = store
    const checkpoints = frozen.request.checkpoints === 'off' ? null : options.checkpoints
    const claimed = (one: Executor): Executor =>
      shared === undefined ? one : claimedExecutor(one, () => shared.confirm(log.runId))
    const own = claimed(executor)
    // Written out: an object of so many fields that are copied from another one is slow to make.
    return new RunLoop(log, {
      store,
      clock,
      redactor: options.redactor,
      observers: options.observers,
      files: options.files,
      performStep: options.performStep,
      holdsSecrets: options.holdsSecrets,
      random: options.random,
      toolTimeoutMs: options.toolTimeoutMs,
      gateTimeoutMs: options.gateTimeoutMs,
      maxTurnsPerIteration: options.maxTurnsPerIteration,
      detectStuck: options.detectStuck,
      maxRecoveries: options.maxRecoveries,
      childRuns: options.childRuns,
      operations: options.operations,
      approval: options.approval,
      commandOfGoal: options.commandOfGoal,
      trees: this.#trees,
      executor: own,
      tools: toolsOf(offeredTools(), frozen.request),
      onWaiting: () => this.onWaiting(),
      judge: judge === undefined ? null : this.#modelNamed(judge.model, judge.prices),
      trace: new RunTrace(tracing, log.runId, frozen.trace ?? null),
      models: new RunModels((name, prices) => this.#modelNamed(name, prices), model),
      limits: limitedProvider === null ? null : new LimitedCalls(limitedProvider, clock),
      scheduler: this.scheduler,
      sealing: options.sealingFor(log.runId, frozen, claimed),
      copies: options.copiesFor(log.runId, claimed),
      openFolder: async (log, signal, onLost) => {
        if (frozen.request.workspace === 'none') return noFolder(own)
        const roots = await this.#rootsOf(head.owner)
        const { closed } = this.#options
        const { cwd, workspace } = frozen.request
        // What has attempts works in no copy itself.
        if (workspace === 'isolated' && frozen.request.attempts === undefined) {
          await resolveUnderRoots(cwd, roots)
          return await this.#openIsolated(log, own, signal, onLost)
        }
        const settings = { roots, closed, checkpoints }
        return await openRunFolder(own, settings, cwd, log.state.folder, onLost)
      },
      holdFolder: async (folder) => {
        if (shared === undefined) return this.scheduler.reserve(log.runId, folder) === null
        return (await shared.occupy?.(log.runId, true))?.outcome === 'occupied'
      },
      takenOver: abandoned,
      overdueGate: overdue ? (head.details.gate?.gate_id ?? null) : null,
      parksAtGates: shared !== undefined,
    })
  }

  async #openIsolated(
    log: LogWriter,
    executor: Executor,
    signal: AbortSignal,
    onLost: (error: Error) => void,
  ): Promise<RunFolder> {
    const { checkpoints, closed, isolation: folders, store } = this.#options
    if (folders === null || checkpoints === null) {
      const message = 'isolated runs need checkpoints and a folder for copies: see workspaceFolder'
      throw new WorkspaceError('ERR_AGENT_WORKSPACE', message)
    }
    const { details } = log.state.head
    const { shared } = store
    const isShared = shared !== undefined
    const confirm = (): Promise<void> => shared?.confirm(log.runId) ?? log.verify()
    const tell = (message: string): Promise<void> => {
      const payload = { level: 'info', message } as const
      return log.append([{ kind: 'log', iteration: details.iteration, payload }])
    }
    const options = { folders, checkpoints, confirm, executor, isShared, signal, tell }
    const { copy, notes, loss, holds } = await openCopy(log.state, options)
    for (const message of notes) await tell(message)
    if (loss !== null) {
      const message = { message_id: uuidV7(this.#options.clock.now()), text: loss, by: null }
      const payload = { ...message, deliver: 'next_turn' } as const
      await log.append([{ kind: 'user_message', iteration: details.iteration, payload }])
    }
    const open = await closedInCopy(copy.root, closed)
    const inCopy = { ...checkpoints, rules: { ...checkpoints.rules, closed: open } }
    const folder = { checkpoints: inCopy, closed: open, isolated: copy, holds }
    return await openRunFolder(executor, folder, copy.root, null, onLost)
  }

  /** Registers a run before it is driven, so that it counts as queued. */
  add(run: RunLoop): void {
    this.#runs.set(run.log.runId, run)
    if (this.#suspends) run.suspend()
  }

  /** Undoes {@link ActiveRuns.add}. */
  remove(run: RunLoop): void {
    this.#runs.delete(run.log.runId)
  }

  /**
   * Drives a run; resolves when that is over: the run has ended, waits, or was suspended. `onLeft`
   * is called once, as soon as nothing of it happens any more, but for the removal of its copy.
   */
  async drive(run: RunLoop, onLeft: () => void): Promise<void> {
    this.add(run)
    let leave: () => void = () => undefined
    const over = new Promise<void>((resolve) => (leave = resolve))
    this.#drives.set(run.log.runId, { over, leave })
    let hasLeft = false
    const left = (): void => {
      if (!hasLeft) onLeft()
      hasLeft = true
    }
    void run.drive(left).then(leave)
    await over
    left()
    this.#drives.delete(run.log.runId)
    this.remove(run)
  }

  /** Resolves when the run is driven no longer: an ended one still stops its processes. */
  async over(runId: string): Promise<void> {
    await this.#drives.get(runId)?.over
  }

  /** Stops all runs without writing anything more: another process has taken over the store. */
  lose(reason: Error): void {
    for (const run of this) run.lose(reason)
  }

  /**
   * Suspends waiting runs at once and the others after `graceMs`; resolves when no run is driven,
   * or when a store that does not answer keeps runs from being suspended for `stopMs`. Runs that
   * others start meanwhile work as those do.
   */
  async close(graceMs: number, stopMs: number = STOP_MS): Promise<void> {
    const working = new Set([...this].filter(works).map(({ state }) => rootOf(state)))
    for (const run of this) if (!works(run) && !working.has(rootOf(run.state))) run.suspend()
    if (graceMs > 0) await this.#over(graceMs)
    this.#suspends = true
    for (const run of this) run.suspend()
    await this.#over(stopMs)
    const message = 'the store did not answer while the service shut down'
    this.lose(new StoreError('ERR_AGENT_STORE_UNAVAILABLE', message))
    for (const run of this) void run.leaveFolder()
    for (const { leave } of this.#drives.values()) leave()
  }

  /** Resolves when no run is driven, after `ms` milliseconds at the latest. */
  async #over(ms: number): Promise<void> {
    if (this.#drives.size === 0) return
    const over = Promise.all([...this.#drives.values()].map((drive) => drive.over))
    await within(ms, over, this.#options.clock)
  }

  /** The roots of a run that begins to work. Its log does not get an error of the host. */
  async #rootsOf(owner: RunOwner): Promise<readonly string[]> {
    try {
      return await this.#options.rootsOf(owner)
    } catch (error) {
      process.emitWarning(asError(error))
      const message = 'the folders that this run may work in are not known: see the log of the host'
      throw new WorkspaceError('ERR_AGENT_WORKSPACE', message)
    }
  }

  /** A model that does not exist any more fails when it is called, which ends its run. */
  #modelNamed(name: string, prices: ModelPrices | null): Model {
    try {
      return this.#options.resolveModel(name)
    } catch (error) {
      const failing = (): Promise<never> => Promise.reject(error as Error)
      return { name, isLanguageModel: true, contextWindow: null, prices, complete: failing }
    }
  }
}

/** Does the run make progress while the service shuts down? Its tree then waits for it. */
function works({ state, waitsForRuns }: RunLoop): boolean {
  const { role, status } = state.head.details
  // A run that another one has started gets its slot.
  return status === 'running' ? !waitsForRuns : status === 'pending' && role !== 'root'
}

function rootOf({ head }: RunState): string {
  return head.details.root_run_id
}

/** A run that another one starts has been let in with that one. */
function isQueued({ role, status }: RunDetails): boolean {
  return status === 'pending' && role === 'root'
}

/**
 * The tools of a run: those that its request names, or all; one that must not start others is not
 * offered the tool for that, one without `bash` none that only runs commands of the model, and one
 * without a folder none that needs it.
 */
function toolsOf(
  offered: ReadonlyMap<string, Tool>,
  { delegation, tools: named, workspace }: RunRequest,
): ReadonlyMap<string, Tool> {
  const without = delegation === undefined && offered.get(delegateTool.name) === delegateTool
  const hasFolder = workspace !== 'none'
  const runsCommands = named?.includes(bashTool.name) ?? true
  if (named === undefined && !without && hasFolder) return offered
  const isOffered = (tool: Tool): boolean =>
    (named?.includes(tool.name) ?? true) &&
    !(without && tool === delegateTool) &&
    (runsCommands || !onlyRunsCommands(tool)) &&
    (hasFolder || tool.needsFolder !== true)
  return new Map([...offered].filter(([, tool]) => isOffered(tool)))
}
