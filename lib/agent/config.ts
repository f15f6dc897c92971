/**
 * The options of an engine, every default, and how both are merged and checked.
 *
 * @module
 */
import { join, resolve } from 'node:path'
import { checkOptions, describeValue, type OptionKinds } from '../internal/options.js'
import { systemClock, type Clock } from '../internal/time.js'
import type { ApproveCall } from './approval.js'
import type { Executor } from './executor.js'
import { executorNamed, type ExecutorName } from './executors/named.js'
import type { Compaction, SealedMode, WorkspaceMode } from './events.js'
import type { Delegation } from './run-tree.js'
import type { GoalDefinition } from './goal.js'
import type { McpServerConfig, McpServerOptions } from './mcp/options.js'
import { resolveMcpServers } from './mcp/servers.js'
import type { ModelProvider } from './model-provider.js'
import type { ObjectStore } from './object-store.js'
import { checkProviderLimits, type ProviderLimitsById } from './models/provider-limits.js'
import { SHORTEST_SECRET } from './redaction/redactor.js'
import { checkHoldout } from './goals/holdout/held-out-tests.js'
import type { HoldoutOption } from './request/holdouts.js'
import {
  textProblem, type InstructionsOption, type SystemPromptOption,
} from './request/instructions.js'
import { resolveRoots, type NamedRootsOf, type Roots, type RootsOf } from './request/roots.js'
import { MAX_CHILDREN, MAX_DEPTH } from './request/start-request.js'
import type { RunStore } from './store.js'
import type { Tool } from './tool.js'
import { prepareSchema } from './check-schema.js'
import { builtinTools } from './tools/builtin.js'
import { delegateTool } from './tools/delegate.js'
import type { Tracer } from './tracing/tracing.js'
import { withinSecrets } from './workspace/left-out.js'

/** What a host gives to the engine. */
export interface EngineOptions {
  /** Where runs are stored: `FileStore`, `MemoryStore`, `PostgresStore`, or your own. */
  readonly store: RunStore
  /**
   * Folders that runs may work in, by real path; at least one. The first is the default `cwd`. A
   * function returns the folders of a principal, as absolute paths of folders that exist; it gets
   * null for callers without one. It is called for each new run, and when a run begins to work. An
   * error that it throws is the caller's answer: for a response other than 500, `ProblemError`.
   */
  readonly roots: Roots
  /** Model of requests that name none. @defaultValue none: requests must name one */
  readonly defaultModel?: string | undefined
  /**
   * Name of the model that judges free-text goals without a check. It sees the changes and the
   * output of commands, but not what the worker says. Without it, such goals are refused.
   */
  readonly judgeModel?: string | undefined
  /**
   * Where models come from, such as `providersFromEnvironment(process.env)`, or `[repairModel()]`
   * of `runwright/repair`. Without providers, no run can be created.
   */
  readonly providers?: readonly ModelProvider[] | undefined
  /**
   * Limits of providers by their ids, which all runs of this process share, and other engines that
   * get the same objects: `{ openai: { concurrent: 4, requestsPerMinute: 500 } }`. Runs wait for
   * their turn, and say so in their logs. @defaultValue none
   */
  readonly providerLimits?: ProviderLimitsById | undefined
  /** Goals besides the shipped ones. */
  readonly goals?: readonly GoalDefinition[] | undefined
  /** Tools besides the shipped ones; with `replace: true`, in place of a shipped one. */
  readonly tools?: readonly Tool[] | undefined
  /**
   * Model Context Protocol servers whose tools runs may use, opened and closed with the engine. A
   * run has the tools that were available when this process started to drive it.
   */
  readonly mcpServers?: readonly McpServerOptions[] | undefined
  /**
   * How the commands of tools and checks run: `process` (process groups of this user, no
   * confinement), `bubblewrap` (a sandbox without network and without access to the store's data),
   * `auto` (bubblewrap where it works, else process), or a custom executor.
   * @defaultValue 'process'
   */
  readonly executor?: ExecutorName | Executor | undefined
  /** Runs that may work at the same time. @defaultValue 4 */
  readonly maxConcurrentRuns?: number | undefined
  /**
   * Runs that may wait for a slot; those of one tenant take at most as many places as they leave
   * free. @defaultValue 256
   */
  readonly maxQueuedRuns?: number | undefined
  /**
   * What happens to a new run when a live run works in its folder, in one above or in one below:
   * it waits, is refused, or works beside it. @defaultValue 'queue'
   */
  readonly cwdPolicy?: 'queue' | 'reject' | 'allow' | undefined
  /** Model turns per iteration. @defaultValue 8 */
  readonly maxTurnsPerIteration?: number | undefined
  /**
   * End a run as `stuck` when its model repeats itself, produces unusable turns, or calls no tools:
   * see "Why a run ended" in `docs/errors.md`. @defaultValue true
   */
  readonly detectStuck?: boolean | undefined
  /**
   * How often a run is taken over after a crash of the process without progress in between (a turn
   * of the model, a result or a check). It may be what crashes the process: after the next crash
   * it fails as `recovery_failed`. @defaultValue 3
   */
  readonly maxRecoveries?: number | undefined
  /**
   * Decides for each tool call whether it waits for a human, whatever the request of the run says;
   * undefined leaves it to the request. @defaultValue as requests say
   */
  readonly approval?: ApproveCall | undefined
  /** Milliseconds until an unanswered gate aborts its run; null never does. @defaultValue null */
  readonly gateTimeoutMs?: number | null | undefined
  /** Milliseconds after which a tool call is stopped. @defaultValue 660000 */
  readonly toolTimeoutMs?: number | undefined
  /** Let goals be met even if tests were changed. @defaultValue false */
  readonly allowTestChanges?: boolean | undefined
  /**
   * Must a goal be met in a sealed copy too, before a run has achieved it? `require`: without one
   * the run fails at its first check; `prefer`: it goes on, and its assurance says so. Requests can
   * only raise it. See `docs/goals.md`. @defaultValue 'prefer'
   */
  readonly sealedChecks?: SealedMode | undefined
  /**
   * Held-out tests, which runs can never read and which must pass as well: of every run whose goal
   * a command checks, or a function of the run. Requests cannot replace them. See
   * `docs/held-out-tests.md`.
   */
  readonly holdout?: HoldoutOption | undefined
  /**
   * What the model of every run is told after the system prompt, at most 128 KiB, or a function of
   * the run that returns it, null for none. Functions are called once, when a run is created; what
   * they throw fails that, see {@link InstructionsError}. See `docs/instructions.md`.
   */
  readonly instructions?: InstructionsOption | undefined
  /**
   * Returns the system prompt of a run, at most 128 KiB, in place of the engine's own, which makes
   * the model an engineer who works on a project.
   */
  readonly systemPrompt?: SystemPromptOption | undefined
  /**
   * Is the model given the project's `AGENTS.md`, that of the folder or the nearest one above it in
   * the root? Requests can only switch this off. @defaultValue true
   */
  readonly projectInstructions?: boolean | undefined
  /**
   * What stands in place of turns that no longer fit into the model's context window, for runs
   * whose requests do not say so: `summary`, one that the model writes, at the cost of a call, or
   * `drop`, nothing. See `docs/long-runs.md`. @defaultValue 'summary'
   */
  readonly compaction?: Compaction | undefined
  /**
   * Store the content of a run's folder at its start, after each iteration that changed something
   * and at its end: at most 256 MiB of content per run. Requests can only switch this off.
   *
   * @defaultValue 'auto', where the store of runs can store contents
   */
  readonly checkpoints?: 'auto' | 'off' | undefined
  /** Where contents are stored. @defaultValue beside the log, `store.objects` */
  readonly objects?: ObjectStore | undefined
  /**
   * Files that are never stored, as globs such as `data/**` or `*.sqlite`, besides `.env*`,
   * `.npmrc` and private keys: left out of checkpoints and named in them.
   */
  readonly neverStore?: readonly string[] | undefined
  /**
   * Store these files all the same: they are secrets at rest then. Never in PostgreSQL.
   *
   * @defaultValue false
   */
  readonly storeSecretFiles?: boolean | undefined
  /** Where runs work whose requests do not say so. @defaultValue 'in_place' */
  readonly workspace?: WorkspaceMode | undefined
  /**
   * Folder for the copies in which isolated runs work, private to this process; it is created.
   *
   * @defaultValue `workspaces` in the store's data folder; without one, isolated runs are refused
   */
  readonly workspaceFolder?: string | undefined
  /** Bytes of one copy, dependencies included. @defaultValue 2 GiB */
  readonly maxWorkspaceBytes?: number | undefined
  /**
   * How far runs may start others that work for them, if their requests ask for it: `depth` levels
   * (1 to 3, default 1) of at most `children` runs each (1 to 16, default 4), with the tool
   * `delegate` or `context.startRun()`. They are isolated, and spend the budget of the run that
   * starts them. @defaultValue not at all
   */
  readonly delegation?: Partial<Delegation> | undefined
  /** Folder of the files that `scripted:<file>` names; without it there are no scripted models. */
  readonly scripts?: string | undefined
  /**
   * Additional secrets, at least 6 characters each, that must not be logged, shown or sent to a
   * model. Values of environment variables such as `…_API_KEY`, `…_TOKEN` or `…_PASSWORD`, and text
   * in the format of well-known keys, are redacted anyway.
   */
  readonly secrets?: readonly string[] | undefined
  /** Receives what runs do, as spans with OpenTelemetry names. */
  readonly tracer?: Tracer | undefined
  /** Time, for tests. @defaultValue the system's clock */
  readonly clock?: Clock | undefined
  /** Numbers from 0 to 1 for the jitter of retries; for tests. @defaultValue `Math.random` */
  readonly random?: (() => number) | undefined
}

const OPTIONS: OptionKinds<EngineOptions> = {
  store: 'object! a store, such as new FileStore({ directory }) or new MemoryStore()',
  roots: 'any! the folders that runs may work in, or a function of the principal',
  defaultModel: 'string', judgeModel: 'string', providers: 'array', goals: 'array', tools: 'array',
  mcpServers: 'array', executor: 'any', maxConcurrentRuns: 'number', maxQueuedRuns: 'number',
  cwdPolicy: 'string', maxTurnsPerIteration: 'number', detectStuck: 'boolean',
  maxRecoveries: 'number', gateTimeoutMs: 'number|null', toolTimeoutMs: 'number',
  allowTestChanges: 'boolean', scripts: 'string', secrets: 'array', tracer: 'object',
  clock: 'object', random: 'function', checkpoints: 'string', objects: 'object',
  neverStore: 'array', storeSecretFiles: 'boolean', workspace: 'string', workspaceFolder: 'string',
  maxWorkspaceBytes: 'number', sealedChecks: 'string', holdout: 'any', delegation: 'object',
  instructions: 'any', systemPrompt: 'function', projectInstructions: 'boolean',
  approval: 'function', compaction: 'string', providerLimits: 'object',
}

/** Options with every default filled in. */
export interface EngineConfig {
  readonly store: RunStore
  readonly namedRootsOf: NamedRootsOf
  readonly rootsOf: RootsOf
  readonly defaultModel: string | undefined
  readonly judgeModel: string | undefined
  readonly providers: readonly ModelProvider[]
  readonly providerLimits: ProviderLimitsById
  readonly goals: readonly GoalDefinition[]
  readonly tools: ReadonlyMap<string, Tool>
  readonly mcpServers: readonly McpServerConfig[]
  readonly executor: Executor
  readonly maxConcurrentRuns: number
  readonly maxQueuedRuns: number
  readonly cwdPolicy: 'queue' | 'reject' | 'allow'
  readonly maxTurnsPerIteration: number
  readonly detectStuck: boolean
  readonly maxRecoveries: number
  readonly gateTimeoutMs: number | null
  readonly toolTimeoutMs: number
  readonly allowTestChanges: boolean
  readonly sealedChecks: SealedMode
  readonly holdout: HoldoutOption | undefined
  readonly instructions: InstructionsOption | undefined
  readonly systemPrompt: SystemPromptOption | undefined
  readonly projectInstructions: boolean
  readonly compaction: Compaction
  /** Folders that do not exist for runs. */
  readonly closed: readonly string[]
  readonly checkpoints: 'auto' | 'off'
  /** Null: there is nowhere to store contents, and runs have no checkpoints. */
  readonly objects: ObjectStore | null
  readonly neverStore: readonly string[]
  readonly storeSecretFiles: boolean
  /** Tells of which files no content may be in the log. */
  readonly holdsSecrets: (path: string) => boolean
  readonly workspace: WorkspaceMode
  /** Null: there are no isolated runs. */
  readonly workspaceFolder: string | null
  readonly maxWorkspaceBytes: number
  /** Null: runs start no others. */
  readonly delegation: Delegation | null
  /** Null: requests decide alone. */
  readonly approval: ApproveCall | null
  readonly scripts: string | undefined
  readonly secrets: readonly string[]
  readonly tracer: Tracer | null
  readonly clock: Clock
  readonly random: () => number
}

/** The defaults of {@link EngineOptions} that are plain values. */
export const ENGINE_DEFAULTS: {
  readonly maxConcurrentRuns: number
  readonly maxQueuedRuns: number
  readonly cwdPolicy: 'queue' | 'reject' | 'allow'
  readonly maxTurnsPerIteration: number
  readonly maxRecoveries: number
  readonly toolTimeoutMs: number
  readonly maxWorkspaceBytes: number
} = {
  maxConcurrentRuns: 4,
  maxQueuedRuns: 256,
  cwdPolicy: 'queue',
  maxTurnsPerIteration: 8,
  maxRecoveries: 3,
  toolTimeoutMs: 660_000,
  maxWorkspaceBytes: 2 * 1024 ** 3,
}

/**
 * Merges options with the defaults.
 *
 * @throws TypeError that names the invalid option.
 */
export function resolveEngineConfig(options: EngineOptions): EngineConfig {
  checkOptions(options, OPTIONS, 'an engine')
  if (typeof options.store.append !== 'function' || typeof options.store.open !== 'function') {
    throw new TypeError('store must be a store, such as new FileStore({ directory })')
  }
  for (const name of ['providers', 'goals', 'tools', 'mcpServers'] as const) {
    checkObjects(name, options[name] ?? [])
  }
  const cwdPolicy = options.cwdPolicy ?? ENGINE_DEFAULTS.cwdPolicy
  if (!['queue', 'reject', 'allow'].includes(cwdPolicy)) {
    throw new TypeError(`cwdPolicy must be 'queue', 'reject' or 'allow', got ${String(cwdPolicy)}`)
  }
  const gateTimeoutMs = options.gateTimeoutMs ?? null
  const namedRootsOf = resolveRoots(options.roots)
  return {
    store: options.store,
    namedRootsOf,
    rootsOf: async (owner) => (await namedRootsOf(owner)).map(({ real }) => real),
    defaultModel: options.defaultModel,
    judgeModel: options.judgeModel,
    providers: [...(options.providers ?? [])],
    providerLimits: checkProviderLimits(options.providerLimits),
    goals: [...(options.goals ?? [])],
    tools: toolsByName(options),
    mcpServers: resolveMcpServers(options, options.clock ?? systemClock),
    maxConcurrentRuns: count('maxConcurrentRuns', options.maxConcurrentRuns),
    maxQueuedRuns: count('maxQueuedRuns', options.maxQueuedRuns),
    cwdPolicy,
    maxTurnsPerIteration: count('maxTurnsPerIteration', options.maxTurnsPerIteration),
    detectStuck: options.detectStuck ?? true,
    maxRecoveries: count('maxRecoveries', options.maxRecoveries),
    gateTimeoutMs: gateTimeoutMs === null ? null : positive('gateTimeoutMs', gateTimeoutMs),
    toolTimeoutMs: count('toolTimeoutMs', options.toolTimeoutMs),
    allowTestChanges: options.allowTestChanges ?? false,
    sealedChecks: sealedMode(options.sealedChecks),
    holdout: holdoutOption(options.holdout),
    instructions: instructionsOption(options.instructions),
    systemPrompt: options.systemPrompt,
    projectInstructions: options.projectInstructions ?? true,
    compaction: compactionMode(options.compaction),
    ...workspaceConfig(options),
    delegation: delegationLimits(options.delegation),
    approval: options.approval ?? null,
    scripts: options.scripts,
    secrets: checkedSecrets(options.secrets ?? []),
    tracer: options.tracer ?? null,
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
  }
}

/** @throws TypeError that names the invalid option. */
function sealedMode(given: SealedMode = 'prefer'): SealedMode {
  if (['require', 'prefer', 'off'].includes(given)) return given
  throw new TypeError(`sealedChecks must be 'require', 'prefer' or 'off', got ${String(given)}`)
}

/** @throws TypeError that names the invalid option. */
function compactionMode(given: Compaction = 'summary'): Compaction {
  if (given === 'summary' || given === 'drop') return given
  throw new TypeError(`compaction must be 'summary' or 'drop', got ${String(given)}`)
}

const DELEGATION: OptionKinds<Partial<Delegation>> = { depth: 'number', children: 'number' }

/** @throws TypeError that names the invalid option. */
function delegationLimits(given: Partial<Delegation> | undefined): Delegation | null {
  if (given === undefined) return null
  checkOptions(given, DELEGATION, 'delegation')
  const { depth = 1, children = 4 } = given
  const bounds = { depth: [depth, MAX_DEPTH], children: [children, MAX_CHILDREN] } as const
  for (const [name, [value, most]] of Object.entries(bounds)) {
    if (Number.isInteger(value) && value >= 1 && value <= most) continue
    throw new TypeError(`delegation.${name} must be an integer from 1 to ${most}, got ${value}`)
  }
  return { depth, children }
}

/** @throws TypeError that names the invalid option. */
function holdoutOption(given: HoldoutOption | undefined): HoldoutOption | undefined {
  if (given === undefined || typeof given === 'function') return given
  if (typeof given !== 'object' || given === null)
    throw new TypeError(`holdout must be an object or a function, got ${describeValue(given)}`)
  checkHoldout(given)
  return given
}

/** @throws TypeError that names the invalid option. */
function instructionsOption(given: InstructionsOption | undefined): InstructionsOption | undefined {
  if (given === undefined || typeof given === 'function') return given
  const problem = textProblem(given)
  if (problem === null) return given
  throw new TypeError(`instructions must be a function, or ${problem}`)
}

/** @throws TypeError that names the invalid option. */
function workspaceConfig(
  options: EngineOptions,
): Pick<
  EngineConfig,
  | 'checkpoints'
  | 'closed'
  | 'executor'
  | 'objects'
  | 'neverStore'
  | 'storeSecretFiles'
  | 'holdsSecrets'
  | 'workspace'
  | 'workspaceFolder'
  | 'maxWorkspaceBytes'
> {
  const { store, checkpoints = 'auto', workspace = 'in_place', neverStore = [] } = options
  const { storeSecretFiles = false } = options
  if (!['auto', 'off'].includes(checkpoints)) {
    throw new TypeError(`checkpoints must be 'auto' or 'off', got ${String(checkpoints)}`)
  }
  if (!['in_place', 'isolated'].includes(workspace)) {
    throw new TypeError(`workspace must be 'in_place' or 'isolated', got ${String(workspace)}`)
  }
  for (const [i, glob] of neverStore.entries()) {
    if (typeof glob === 'string' && glob !== '') continue
    throw new TypeError(`neverStore[${i}] must be a glob, got ${describeValue(glob)}`)
  }
  const { objects } = options
  if (objects !== undefined && typeof objects.put !== 'function') {
    throw new TypeError('objects must be a store of contents, see ObjectStore')
  }
  const { dataFolder, closedFolders = [] } = store
  const beside = dataFolder === undefined ? null : join(dataFolder, 'workspaces')
  const { workspaceFolder = beside } = options
  const folder = workspaceFolder === null ? null : resolve(workspaceFolder)
  const closed = folder === null ? closedFolders : [...closedFolders, folder]
  return {
    closed,
    executor: executorNamed(options.executor ?? 'process', closed),
    checkpoints,
    objects: objects ?? store.objects ?? null,
    neverStore: [...neverStore],
    storeSecretFiles,
    holdsSecrets: withinSecrets({
      neverStore,
      storeSecretFiles: storeSecretFiles && store.shared === undefined,
    }),
    workspace,
    workspaceFolder: folder,
    maxWorkspaceBytes: count('maxWorkspaceBytes', options.maxWorkspaceBytes),
  }
}

function checkObjects(name: string, list: readonly unknown[]): void {
  for (const [i, one] of list.entries()) {
    if (typeof one === 'object' && one !== null) continue
    throw new TypeError(`${name}[${i}] must be an object, got ${describeValue(one)}`)
  }
}

function checkedSecrets(secrets: readonly string[]): string[] {
  const short = secrets.findIndex(
    (secret) => typeof secret !== 'string' || secret.length < SHORTEST_SECRET,
  )
  if (short < 0) return [...secrets]
  const expected = `a string of at least ${SHORTEST_SECRET} characters`
  throw new TypeError(`secrets[${short}] must be ${expected}`)
}

/** Tools of the engine, of providers and of the host. None takes another's name by accident. */
function toolsByName(options: EngineOptions): ReadonlyMap<string, Tool> {
  const { delegation, providers = [], tools: own = [] } = options
  const builtin = delegation === undefined ? builtinTools() : [...builtinTools(), delegateTool]
  const shipped = [...builtin, ...providers.flatMap(({ tools = [] }) => tools)]
  const tools = new Map<string, Tool>()
  for (const tool of shipped) {
    if (tools.has(tool.name)) throw new TypeError(`there are two tools with the name ${tool.name}`)
    tools.set(tool.name, tool)
  }
  for (const [i, tool] of own.entries()) {
    const { name, replace = false } = tool
    if (typeof name !== 'string' || typeof tool.execute !== 'function') {
      throw new TypeError(`tools[${i}] must be a tool with name and execute: use defineTool()`)
    }
    // Refuses a schema by which arguments could not be checked.
    prepareSchema(tool.parameters, `tool ${name}: parameters`)
    if (own.findIndex((other) => other.name === name) < i) {
      throw new TypeError(`there are two tools with the name ${name}`)
    }
    const isShipped = shipped.some((other) => other.name === name)
    if (isShipped && !replace) {
      throw new TypeError(`${name} is a shipped tool: choose another name, or set replace: true`)
    }
    if (replace && !isShipped) {
      const names = shipped.map((other) => other.name).join(', ')
      throw new TypeError(`tool ${name} replaces nothing: the shipped tools are ${names}`)
    }
    tools.set(name, tool)
  }
  return tools
}

type CountOption = {
  [K in keyof typeof ENGINE_DEFAULTS]: (typeof ENGINE_DEFAULTS)[K] extends number ? K : never
}[keyof typeof ENGINE_DEFAULTS]

function count(name: CountOption, value: number | undefined): number {
  return value === undefined ? ENGINE_DEFAULTS[name] : positive(name, value)
}

function positive(name: string, value: number): number {
  if (Number.isInteger(value) && value > 0) return value
  throw new TypeError(`${name} must be a positive integer, got ${value}`)
}
