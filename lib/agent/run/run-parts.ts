/**
 * What one run has besides the services of its engine: its models, tools and folder, as its first
 * record froze them.
 *
 * @module
 */
import { uuidV7 } from '../../internal/hash.js'
import { asError } from '../../internal/errors.js'
import type { RunCopies } from '../copies/run-copies.js'
import { WorkspaceError } from '../errors.js'
import type { RunOwner, RunRequest } from '../events.js'
import type { Executor } from '../executor.js'
import type { Sealing } from '../goals/sealed/sealing.js'
import type { LogWriter } from '../log/writer.js'
import type { Model } from '../model.js'
import type { Tool } from '../tool.js'
import { bashTool } from '../tools/bash.js'
import { onlyRunsCommands } from '../tools/builtin.js'
import { delegateTool } from '../tools/delegate.js'
import { RunTrace } from '../tracing/run-trace.js'
import type { ModelPrices } from '../usage.js'
import { closedInCopy } from '../workspace/closed-folders.js'
import { resolveUnderRoots } from '../workspace/open.js'
import { claimedExecutor } from './claimed-executor.js'
import { openCopy } from './isolated-copy.js'
import { LimitedCalls } from './limited-calls.js'
import { noFolder } from './no-folder.js'
import { openRunFolder, type RunFolder } from './run-folder.js'
import { RunModels } from './run-models.js'
import type { RunServices } from './services.js'

/** How a run comes to be driven here. */
export interface Origin {
  /** A process that has died drove it before. */
  readonly abandoned: boolean
  /** Its gate has expired by the store's clock, whatever the clock of this process says. */
  readonly overdue?: boolean
}

/** The parts of one run. */
export interface RunParts {
  readonly origin: Origin
  readonly models: RunModels
  /** Null: no provider has limits. */
  readonly limits: LimitedCalls | null
  /** Judges the goal; null when a command checks it. */
  readonly judge: Model | null
  readonly tools: ReadonlyMap<string, Tool>
  readonly trace: RunTrace
  /** Runs commands, as long as the run is this process's. */
  readonly executor: Executor
  /** Makes sealed checks; null when there are none. */
  readonly sealing: Sealing | null
  /** Private copies of the workspace, for tools. */
  readonly copies: RunCopies
  /** Called when the run first works; `onLost` when its folder must not be used any more. */
  readonly openFolder: (
    log: LogWriter,
    signal: AbortSignal,
    onLost: (error: Error) => void,
  ) => Promise<RunFolder>
  /** Keeps a folder for the run until it ends; false while another one has it. */
  readonly holdFolder: (folder: string) => Promise<boolean>
}

/** The parts of the run with this log. */
export function runParts(services: RunServices, log: LogWriter, origin: Origin): RunParts {
  const { runId, state } = log
  const { frozen } = state
  const { judge } = frozen.goal
  const { limitedProvider, store } = services
  const { shared } = store
  const named = (name: string, prices: ModelPrices | null): Model =>
    modelNamed(services, name, prices)
  const claimed = (executor: Executor): Executor =>
    shared === undefined ? executor : claimedExecutor(executor, () => shared.confirm(runId))
  const executor = claimed(services.executor)
  return {
    origin,
    models: new RunModels(named),
    limits: limitedProvider === null ? null : new LimitedCalls(limitedProvider, services.clock),
    judge: judge === undefined ? null : named(judge.model, judge.prices),
    tools: toolsOf(services.offeredTools(), frozen.request),
    trace: new RunTrace(services.tracing, runId, frozen.trace ?? null),
    executor,
    sealing: services.sealingFor(runId, frozen, claimed),
    copies: services.copiesFor(runId, claimed),
    openFolder: async (current, signal, onLost) =>
      await openFolder(services, executor, current, signal, onLost),
    holdFolder: async (folder) => {
      if (shared === undefined) return services.scheduler.reserve(runId, folder) === null
      return (await shared.occupy?.(runId, true))?.outcome === 'occupied'
    },
  }
}

async function openFolder(
  services: RunServices,
  executor: Executor,
  log: LogWriter,
  signal: AbortSignal,
  onLost: (error: Error) => void,
): Promise<RunFolder> {
  const { frozen, head } = log.state
  const { attempts, checkpoints: mode, cwd, setup, workspace } = frozen.request
  if (workspace === 'none') return noFolder(executor)
  const roots = await rootsFor(services, head.owner)
  const checkpoints = mode === 'off' ? null : services.checkpoints
  // What has attempts works in no copy itself, unless their copies are made of one that is set up.
  const isSetUp = setup !== undefined && log.state.children.size === 0
  if (workspace === 'isolated' && (attempts === undefined || isSetUp)) {
    await resolveUnderRoots(cwd, roots)
    return await openIsolated({ ...services, checkpoints }, executor, log, signal, onLost)
  }
  const settings = { roots, closed: services.closed, checkpoints }
  // A run with attempts may have begun in a copy.
  const before = workspace === 'isolated' && setup !== undefined ? null : log.state.folder
  return await openRunFolder(executor, settings, cwd, before, onLost)
}

async function openIsolated(
  { checkpoints, clock, closed, isolation: folders, store }: RunServices,
  executor: Executor,
  log: LogWriter,
  signal: AbortSignal,
  onLost: (error: Error) => void,
): Promise<RunFolder> {
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
  const setUpAgain = async (): Promise<void> => {
    const { frozen, setup } = log.state
    const { setup: command } = frozen.request
    if (command === undefined || setup === 'due') return
    const payload = { command, again: true } as const
    await log.append([{ kind: 'setup_started', iteration: details.iteration, payload }])
  }
  const options = { folders, checkpoints, confirm, executor, isShared, setUpAgain, signal, tell }
  const { copy, notes, loss, holds } = await openCopy(log.state, options)
  for (const message of notes) await tell(message)
  if (loss !== null) {
    const message = { message_id: uuidV7(clock.now()), text: loss, by: null }
    const payload = { ...message, deliver: 'next_turn' } as const
    await log.append([{ kind: 'user_message', iteration: details.iteration, payload }])
  }
  const open = await closedInCopy(copy.root, closed)
  const inCopy = { ...checkpoints, rules: { ...checkpoints.rules, closed: open } }
  const folder = { checkpoints: inCopy, closed: open, isolated: copy, holds }
  return await openRunFolder(executor, folder, copy.root, null, onLost)
}

/** The roots of a run that begins to work. Its log does not get an error of the host. */
async function rootsFor({ rootsOf }: RunServices, owner: RunOwner): Promise<readonly string[]> {
  try {
    return await rootsOf(owner)
  } catch (error) {
    process.emitWarning(asError(error))
    const message = 'the folders that this run may work in are not known: see the log of the host'
    throw new WorkspaceError('ERR_AGENT_WORKSPACE', message)
  }
}

/** A model that does not exist any more fails when it is called, which ends its run. */
function modelNamed(
  { resolveModel }: RunServices,
  name: string,
  prices: ModelPrices | null,
): Model {
  try {
    return resolveModel(name)
  } catch (error) {
    const failing = (): Promise<never> => Promise.reject(error as Error)
    return { name, isLanguageModel: true, contextWindow: null, prices, complete: failing }
  }
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
