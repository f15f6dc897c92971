import type { Model } from './model.js'
import type { Tool } from './tool.js'

/** A family of models, by whose id the engine resolves names of the form `provider:model`. */
export interface ModelProvider {
  /** The part before the colon, for example `openai`. */
  readonly id: string
  /** One line for people. */
  readonly description: string
  /** False for programs, such as `scripted` and `replay`. */
  readonly isLanguageModel: boolean
  /** Names to offer in a form, without the prefix; other names are passed to `create` as well. */
  readonly suggestions: readonly string[]
  /** Matches bare names that belong to this provider, for example `/^gpt-/`. */
  readonly family?: RegExp | undefined
  /** Tools that its models are made for. An engine with this provider offers them to its runs. */
  readonly tools?: readonly Tool[] | undefined
  /**
   * Makes the model of that name, without the prefix.
   *
   * @throws {@link ModelError} or TypeError that says what is wrong with the name.
   */
  create(name: string): Model
}
