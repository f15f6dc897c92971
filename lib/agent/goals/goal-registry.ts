import type { GoalSpec } from '../goal.js'
import type { ModelPrices } from '../usage.js'

/** A goal as forms offer it. */
export interface ListedGoal {
  readonly name: string
  readonly description: string
  readonly usage: string
}

/** What decides how a goal is resolved, besides the goal itself. */
export interface ResolveOptions {
  /** Command that verifies a free-text goal; null or omitted when there is none. */
  readonly check?: string | null | undefined
  /** The model that judges free text without a check; null or omitted when there is none. */
  readonly judge?:
    { readonly model: string; readonly prices: ModelPrices | null } | null | undefined
  /** The host's choice: changed tests do not fail the goal. @defaultValue false */
  readonly allowTestChanges?: boolean | undefined
}

/** The goals that a host offers: the shipped ones and its own. */
export interface GoalRegistry {
  /** All goals, shipped ones first. */
  list(): readonly ListedGoal[]
  /**
   * Makes the frozen definition of a goal for a workspace from a registered name (`node-test`), a
   * name with an argument (`shell: npm run check`), or free text with a check command or a judge.
   *
   * @throws {@link GoalError} `unsuitable` when the workspace has no such check, `not_verifiable`
   * for free text with neither, `unknown` for text that can only be a mistyped name.
   */
  resolve(goal: string, cwd: string, options?: ResolveOptions): Promise<GoalSpec>
}
