/**
 * What a host gives to the engine, every default, and how both are merged and checked.
 *
 * @module
 */
import { realpathSync, statSync } from 'node:fs'
import { systemClock, type Clock } from '../internal/clock.js'
import type { Executor } from './executor.js'
import { executorNamed, type ExecutorName } from './executors/named.js'
import type { GoalDefinition } from './goal.js'
import type { McpServerConfig, McpServerOptions } from './mcp/options.js'
import { resolveMcpServers } from './mcp/servers.js'
import type { ModelProvider } from './model-provider.js'
import { DEFAULT_MODEL } from './models/registry.js'
import type { RunStore } from './store.js'
import { SHORTEST_SECRET } from './redaction/redactor.js'
import type { Tool } from './tool.js'
import { builtinTools } from './tools/index.js'
import type { Tracer } from './tracing/tracing.js'

/** What a host gives to the engine. */
export interface EngineOptions {
  readonly store: RunStore
  /** Folders under whose real paths runs may work; at least one, the first is the default `cwd`. */
  readonly roots: readonly string[]
  /** Model of requests that name none. @defaultValue `builtin:repair` */
  readonly defaultModel?: string | undefined
  /**
   * The model that judges goals in free text that have no check, by its name; it sees the changes and
   * the output of commands, and nothing of what the worker says. Without one such goals are refused.
   */
  readonly judgeModel?: string | undefined
  /** Providers by which model names are resolved, besides the built-in ones. */
  readonly providers?: readonly ModelProvider[] | undefined
  /** Goals besides the shipped ones. */
  readonly goals?: readonly GoalDefinition[] | undefined
  /** Tools besides the shipped ones; one of the same name replaces it. */
  readonly tools?: readonly Tool[] | undefined
  /**
   * Model Context Protocol servers whose tools runs may use. They are opened with the engine and
   * closed with it; a run has the tools that there were when this process took it up.
   */
  readonly mcpServers?: readonly McpServerOptions[] | undefined
  /**
   * How commands of tools and checks run: `process` (process groups of this user, no confinement),
   * `bubblewrap` (a sandbox without network, to which the store's data is closed), `auto`
   * (bubblewrap where it works, else process), or an executor of the host's. @defaultValue 'process'
   */
  readonly executor?: ExecutorName | Executor | undefined
  /** Runs that work at the same time. @defaultValue 4 */
  readonly maxConcurrentRuns?: number | undefined
  /** Runs that may wait for a slot. @defaultValue 256 */
  readonly maxQueuedRuns?: number | undefined
  /** What happens to a run whose folder has a live run. @defaultValue 'queue' */
  readonly cwdPolicy?: 'queue' | 'reject' | 'allow' | undefined
  /** Model turns of one iteration. @defaultValue 8 */
  readonly maxTurnsPerIteration?: number | undefined
  /**
   * End a run as `stuck` when its model repeats what it has done, cannot be understood, or asks for
   * nothing: see "Why a run ended" in `docs/errors.md`. @defaultValue true
   */
  readonly detectStuck?: boolean | undefined
  /** Milliseconds until an unanswered gate aborts its run; null waits for ever. @defaultValue null */
  readonly gateTimeoutMs?: number | null | undefined
  /** Milliseconds after which any tool call is stopped. @defaultValue 660 000 */
  readonly toolTimeoutMs?: number | undefined
  /** Let goals be met although tests were changed. @defaultValue false */
  readonly allowTestChanges?: boolean | undefined
  /** Folder whose files `scripted:<file>` may name; without it there are no scripted models. */
  readonly scripts?: string | undefined
  /**
   * Texts that must never be logged, shown or told to a model, at least 6 characters each: keys of
   * your own that no variable with a telling name holds. Values of variables such as `…_API_KEY`,
   * `…_TOKEN` or `…_PASSWORD` and texts of the shape of a well-known key are kept out anyway.
   */
  readonly secrets?: readonly string[] | undefined
  /** Told of what runs do, as spans with the names of OpenTelemetry. */
  readonly tracer?: Tracer | undefined
  /** Time, for tests. @defaultValue the system's clock */
  readonly clock?: Clock | undefined
  /** Numbers from 0 to 1 for the jitter of retries, for tests. @defaultValue Math.random */
  readonly random?: (() => number) | undefined
}

/** Options with every default filled in. */
export interface EngineConfig {
  readonly store: RunStore
  readonly roots: readonly string[]
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
  readonly gateTimeoutMs: number | null
  readonly toolTimeoutMs: number
  readonly allowTestChanges: boolean
  readonly scripts: string | undefined
  readonly secrets: readonly string[]
  readonly tracer: Tracer | null
  readonly clock: Clock
  readonly random: () => number
}

/** Every default of the engine. */
export const ENGINE_DEFAULTS: {
  readonly defaultModel: string
  readonly maxConcurrentRuns: number
  readonly maxQueuedRuns: number
  readonly cwdPolicy: 'queue' | 'reject' | 'allow'
  readonly maxTurnsPerIteration: number
  readonly toolTimeoutMs: number
} = {
  defaultModel: DEFAULT_MODEL,
  maxConcurrentRuns: 4,
  maxQueuedRuns: 256,
  cwdPolicy: 'queue',
  maxTurnsPerIteration: 8,
  toolTimeoutMs: 660_000,
}

/**
 * Merges options with the defaults.
 *
 * @throws TypeError naming the option that is wrong.
 */
export function resolveEngineConfig(options: EngineOptions): EngineConfig {
  const cwdPolicy = options.cwdPolicy ?? ENGINE_DEFAULTS.cwdPolicy
  if (!['queue', 'reject', 'allow'].includes(cwdPolicy)) {
    throw new TypeError(`cwdPolicy must be 'queue', 'reject' or 'allow', got ${String(cwdPolicy)}`)
  }
  const gateTimeoutMs = options.gateTimeoutMs ?? null
  return {
    store: options.store,
    roots: realRoots(options.roots),
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

function realRoots(roots: readonly string[]): string[] {
  if (roots.length === 0) throw new TypeError('roots must name at least one folder, got none')
  return roots.map((root) => {
    let real: string
    try {
      real = realpathSync(root)
    } catch (cause) {
      throw new TypeError(`roots: there is no folder ${root}`, { cause })
    }
    if (!statSync(real).isDirectory()) throw new TypeError(`roots: ${root} is no folder`)
    return real
  })
}

function checkedSecrets(secrets: readonly string[]): string[] {
  const short = secrets.findIndex(
    (secret) => typeof secret !== 'string' || secret.length < SHORTEST_SECRET,
  )
  if (short < 0) return [...secrets]
  throw new TypeError(`secrets[${short}] must be a text of ${SHORTEST_SECRET} characters or more`)
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
  throw new TypeError(`${name} must be a whole number from 1 up, got ${value}`)
}
