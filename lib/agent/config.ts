/**
 * The options of an engine, every default, and how both are merged and checked.
 *
 * @module
 */
import { systemClock, type Clock } from '../internal/clock.js'
import type { Executor } from './executor.js'
import { executorNamed, type ExecutorName } from './executors/named.js'
import type { GoalDefinition } from './goal.js'
import type { McpServerConfig, McpServerOptions } from './mcp/options.js'
import { resolveMcpServers } from './mcp/servers.js'
import type { ModelProvider } from './model-provider.js'
import { DEFAULT_MODEL } from './models/registry.js'
import { SHORTEST_SECRET } from './redaction/redactor.js'
import { resolveRoots, type Roots, type RootsOf } from './request/roots.js'
import type { RunStore } from './store.js'
import type { Tool } from './tool.js'
import { builtinTools } from './tools/builtin.js'
import type { Tracer } from './tracing/tracing.js'

/** What a host gives to the engine. */
export interface EngineOptions {
  readonly store: RunStore
  /**
   * Folders that runs may work in, by real path; at least one. The first is the default `cwd`. A
   * function returns the folders of a principal, as absolute paths of folders that exist; it gets
   * null for callers without one. It is called for each new run, and when a run begins to work. An
   * error that it throws is the caller's answer: for a response other than 500, `ProblemError`.
   */
  readonly roots: Roots
  /** Model of requests that name none. @defaultValue 'builtin:repair' */
  readonly defaultModel?: string | undefined
  /**
   * Name of the model that judges free-text goals without a check. It sees the changes and the
   * output of commands, but not what the worker says. Without it, such goals are refused.
   */
  readonly judgeModel?: string | undefined
  /** Providers besides the built-in ones. */
  readonly providers?: readonly ModelProvider[] | undefined
  /** Goals besides the shipped ones. */
  readonly goals?: readonly GoalDefinition[] | undefined
  /** Tools besides the shipped ones; a tool of the same name replaces a shipped one. */
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
  /** Runs that may wait for a slot. @defaultValue 256 */
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
  /** Milliseconds until an unanswered gate aborts its run; null never does. @defaultValue null */
  readonly gateTimeoutMs?: number | null | undefined
  /** Milliseconds after which a tool call is stopped. @defaultValue 660 000 */
  readonly toolTimeoutMs?: number | undefined
  /** Let goals be met even if tests were changed. @defaultValue false */
  readonly allowTestChanges?: boolean | undefined
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
  /** For tests. @defaultValue the system's clock */
  readonly clock?: Clock | undefined
  /** Numbers from 0 to 1 for the jitter of retries; for tests. @defaultValue Math.random */
  readonly random?: (() => number) | undefined
}

/** Options with every default filled in. */
export interface EngineConfig {
  readonly store: RunStore
  readonly rootsOf: RootsOf
  readonly defaultModel: string
  readonly judgeModel: string | undefined
  readonly providers: readonly ModelProvider[]
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
  readonly scripts: string | undefined
  readonly secrets: readonly string[]
  readonly tracer: Tracer | null
  readonly clock: Clock
  readonly random: () => number
}

/** The defaults of {@link EngineOptions} that are plain values. */
export const ENGINE_DEFAULTS: {
  readonly defaultModel: string
  readonly maxConcurrentRuns: number
  readonly maxQueuedRuns: number
  readonly cwdPolicy: 'queue' | 'reject' | 'allow'
  readonly maxTurnsPerIteration: number
  readonly maxRecoveries: number
  readonly toolTimeoutMs: number
} = {
  defaultModel: DEFAULT_MODEL,
  maxConcurrentRuns: 4,
  maxQueuedRuns: 256,
  cwdPolicy: 'queue',
  maxTurnsPerIteration: 8,
  maxRecoveries: 3,
  toolTimeoutMs: 660_000,
}

/**
 * Merges options with the defaults.
 *
 * @throws TypeError that names the invalid option.
 */
export function resolveEngineConfig(options: EngineOptions): EngineConfig {
  const cwdPolicy = options.cwdPolicy ?? ENGINE_DEFAULTS.cwdPolicy
  if (!['queue', 'reject', 'allow'].includes(cwdPolicy)) {
    throw new TypeError(`cwdPolicy must be 'queue', 'reject' or 'allow', got ${String(cwdPolicy)}`)
  }
  const gateTimeoutMs = options.gateTimeoutMs ?? null
  return {
    store: options.store,
    rootsOf: resolveRoots(options.roots),
    defaultModel: options.defaultModel ?? ENGINE_DEFAULTS.defaultModel,
    judgeModel: options.judgeModel,
    providers: [...(options.providers ?? [])],
    goals: [...(options.goals ?? [])],
    tools: toolsByName([...builtinTools(), ...(options.tools ?? [])]),
    mcpServers: resolveMcpServers(options.mcpServers ?? [], options.clock ?? systemClock),
    executor: executorNamed(options.executor ?? 'process', options.store.closedFolders ?? []),
    maxConcurrentRuns: count('maxConcurrentRuns', options.maxConcurrentRuns),
    maxQueuedRuns: count('maxQueuedRuns', options.maxQueuedRuns),
    cwdPolicy,
    maxTurnsPerIteration: count('maxTurnsPerIteration', options.maxTurnsPerIteration),
    detectStuck: options.detectStuck ?? true,
    maxRecoveries: count('maxRecoveries', options.maxRecoveries),
    gateTimeoutMs: gateTimeoutMs === null ? null : positive('gateTimeoutMs', gateTimeoutMs),
    toolTimeoutMs: count('toolTimeoutMs', options.toolTimeoutMs),
    allowTestChanges: options.allowTestChanges ?? false,
    scripts: options.scripts,
    secrets: checkedSecrets(options.secrets ?? []),
    tracer: options.tracer ?? null,
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
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

function toolsByName(tools: readonly Tool[]): ReadonlyMap<string, Tool> {
  return new Map(tools.map((tool) => [tool.name, tool]))
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
