import type { GoalDefinition } from './goal.js'
import type { Executor } from './executor.js'
import type { Model } from './model.js'
import type { RunStore } from './store.js'
import type { Tool } from './tool.js'

/** A family of models that the engine resolves names with: `provider:model`. */
export interface ModelProvider {
  /** The part before the colon, for example `openai`. */
  readonly id: string
  /** One line for people. */
  readonly description: string
  /** False for `builtin`, `scripted` and `replay`. */
  readonly isLanguageModel: boolean
  /** Names worth offering in a form, without the prefix; others are tried as well. */
  readonly suggestions: readonly string[]
  /** Bare names that belong to this provider, for example /^gpt-/. */
  readonly family?: RegExp | undefined
  /** Makes the model, or throws a {@link ModelError} or TypeError that says what is wrong with the name. */
  create(name: string): Model
}

/** What a host gives to the engine. */
export interface EngineOptions {
  readonly store: RunStore
  /** Folders under whose real paths runs may work; at least one. */
  readonly roots: readonly string[]
  /** Model of requests that name none. @defaultValue `builtin:repair` */
  readonly defaultModel?: string | undefined
  /** Providers by which model names are resolved, besides the built-in ones. */
  readonly providers?: readonly ModelProvider[] | undefined
  /** Goals besides the shipped ones. */
  readonly goals?: readonly GoalDefinition[] | undefined
  /** Tools besides the shipped ones. */
  readonly tools?: readonly Tool[] | undefined
  /** How commands run. @defaultValue process groups */
  readonly executor?: Executor | undefined
  /** Runs that work at the same time. @defaultValue 4 */
  readonly maxConcurrentRuns?: number | undefined
  /** Runs that may wait for a slot. @defaultValue 256 */
  readonly maxQueuedRuns?: number | undefined
  /** What happens to a run whose folder has a live run. @defaultValue 'queue' */
  readonly cwdPolicy?: 'queue' | 'reject' | 'allow' | undefined
  /** Model turns of one iteration. @defaultValue 8 */
  readonly maxTurnsPerIteration?: number | undefined
  /** Milliseconds until an unanswered gate aborts its run; null waits for ever. @defaultValue null */
  readonly gateTimeoutMs?: number | null | undefined
  /** Let goals be met although tests were changed. @defaultValue false */
  readonly allowTestChanges?: boolean | undefined
}
