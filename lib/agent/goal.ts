/**
 * The seam to goals: what a run pursues, and how it is checked. A goal resolves once, when the run
 * is created, to a frozen {@link GoalSpec} in the log; nothing of it is ever read again from the
 * workspace, where the agent could edit its own grader.
 *
 * @module
 */
import type { TestCounts, TestOutcomes, TestReporter } from './test-outcomes.js'
import type { Executor } from './executor.js'
import type { ModelPrices } from './model.js'

export type { TestCounts, TestOutcome, TestOutcomes, TestReporter } from './test-outcomes.js'

/** The frozen definition of a goal. */
export interface GoalSpec {
  /** A registered name, `shell`, or `text` for free text with a check command. */
  readonly name: string
  /** The goal as it was written in the request. */
  readonly goal: string
  /** The shell line that checks it, run by the executor in the workspace. */
  readonly command: string
  readonly env: Readonly<Record<string, string>>
  readonly timeout_ms: number
  /** The exit code that counts as success. */
  readonly success_exit_code: number
  /** Whose report gives test names and counts; null when only the exit code counts. */
  readonly reporter: TestReporter | null
  /**
   * Globs of files (relative to the workspace) that must stay as they were; one that begins with
   * `!` takes paths out again.
   */
  readonly protected: readonly string[]
  /** Globs of files, such as runner configuration, that must neither change nor newly appear. */
  readonly sealed?: readonly string[]
  /** Folders that must stay as they were, as a whole: the runner's own packages. */
  readonly runner?: readonly string[]
  /** Milliseconds that the command may take at most (best of three runs); for `perf`. */
  readonly max_duration_ms?: number
  /** The host's choice: tests may change. */
  readonly allow_test_changes: boolean
  /** The model that judges the goal in place of `command`, and its prices when the run began. */
  readonly judge?: { readonly model: string; readonly prices: ModelPrices | null }
  /** What the model is told about the goal. */
  readonly instructions: string
}

/** What held when the run started, to compare with. */
export interface GoalBaseline {
  /** SHA-256 of each protected file (of the relevant part, for package.json) by relative path. */
  readonly files: { readonly [path: string]: string }
}

/** The outcome of one check. */
export interface GoalVerdict {
  readonly achieved: boolean
  /** One line for people, for example `3 of 11 tests fail` or `tests changed: …`. */
  readonly reason: string
  readonly verified_by: 'command' | 'judge'
  readonly exit_code: number
  readonly duration_ms: number
  readonly counts: TestCounts | null
  readonly tests: TestOutcomes | null
  /** What the check printed (head and tail, at most 32 KiB), for the model. */
  readonly output: string
}

/** What a check may use. */
export interface GoalCheckContext {
  readonly executor: Executor
  /** Real path of the workspace. */
  readonly cwd: string
  readonly mark: string
  /** Ends the check; its promise then rejects with the signal's reason. */
  readonly signal: AbortSignal
  /** Tests seen by the first check of the run; null before it. None of them may go missing. */
  readonly baselineTests: TestOutcomes | null
  readonly baseline: GoalBaseline
}

/** A named goal that the host offers. */
export interface GoalDefinition {
  readonly name: string
  readonly description: string
  /** Example of how it is written in a request, for forms. */
  readonly usage: string
  /**
   * Makes the frozen definition for a workspace. `argument` is what follows `name:` in the request
   * (empty when nothing does).
   *
   * @throws `GoalError` when the workspace has no such check.
   */
  resolve(cwd: string, argument: string): Promise<GoalSpec>
}
