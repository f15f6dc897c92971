/**
 * The seam to goals: what a run pursues, and how that is checked. A goal is resolved once, when the
 * run is created, to a frozen {@link GoalSpec} in the log. It is never read from the workspace
 * again, where the agent could edit its own check.
 *
 * @module
 */
import type { Assurance } from './run-status.js'
import type { KeptTests, TestCounts, TestReporter } from './test-outcomes.js'
import type { Executor } from './executor.js'
import type { Deed } from './check-files.js'
import type { ModelPrices } from './usage.js'

export type {
  HashedTests,
  KeptTests,
  TestCounts,
  TestOutcome,
  TestOutcomes,
  TestReporter,
} from './test-outcomes.js'

/** The definition of a goal, frozen in the log. */
export interface GoalSpec {
  /** A registered name, `shell`, `result`, or `text` for free text with a check command. */
  readonly name: string
  /** The goal as written in the request. */
  readonly goal: string
  /** The shell command that checks it, run by the executor in the workspace. */
  readonly command: string
  readonly env: Readonly<Record<string, string>>
  readonly timeout_ms: number
  /** The exit code that counts as success. */
  readonly success_exit_code: number
  /** The runner whose report has test names and counts; null when only the exit code counts. */
  readonly reporter: TestReporter | null
  /**
   * Globs of files (relative to the workspace) that must not change; a glob that begins with `!`
   * excludes paths.
   */
  readonly protected: readonly string[]
  /** Globs of files, such as runner configuration, that must neither change nor be added. */
  readonly sealed?: readonly string[]
  /** Folders that must not change at all: the runner's own packages. */
  readonly runner?: readonly string[]
  /** Longest permitted duration of the command in milliseconds, best of three runs; for `perf`. */
  readonly max_duration_ms?: number
  /** True when the host lets runs change tests. */
  readonly allow_test_changes: boolean
  /** The model that judges the goal in place of `command`, with its prices at that time. */
  readonly judge?: { readonly model: string; readonly prices: ModelPrices | null }
  /** True for a goal that a valid result meets, in place of `command`. */
  readonly by_result?: true
  /** For the prompt: how the goal is met, in words for the model. */
  readonly instructions: string
}

/** The workspace when the run started, with which later checks compare it. */
export interface GoalBaseline {
  /** SHA-256 of each protected file (for package.json, of its relevant part) by relative path. */
  readonly files: { readonly [path: string]: string }
}

export type { Assurance }

/** The result of one check; a check that cannot run at all throws instead. */
export interface GoalVerdict {
  readonly achieved: boolean
  /** One line for people, for example `3 of 11 tests fail` or `tests changed: …`. */
  readonly reason: string
  readonly assurance: Assurance
  readonly exit_code: number
  readonly duration_ms: number
  readonly counts: TestCounts | null
  /** Of a big suite, only those of the first check, by hash. */
  readonly tests: KeptTests | null
  /** Files that reported tests. */
  readonly test_files: readonly string[]
  /** What files of the workspace did to the runner, in its memory. */
  readonly deeds: readonly Deed[]
  /** Output of the check for the model: head and tail, at most 32 KiB. */
  readonly output: string
}

/** What one check gets from its run; the goal itself is frozen in its {@link GoalSpec}. */
export interface GoalCheckContext {
  readonly executor: Executor
  /** Real path of the workspace. */
  readonly cwd: string
  /** The path by which files of the workspace are opened. @defaultValue `cwd` */
  readonly via?: string | undefined
  /** See {@link CommandOptions.mark}. */
  readonly mark: string
  /** Aborts the check; its promise then rejects with the signal's reason. */
  readonly signal: AbortSignal
  /**
   * Repeats `work` while the machine is at fault, as when a disk is full; rejects when the check is
   * aborted. @defaultValue waits as runs do
   */
  readonly untilPossible?: (<T>(work: () => Promise<T>) => Promise<T>) | undefined
  /** Tests seen by the first check of the run, none of which may go missing; null before it. */
  readonly baselineTests: KeptTests | null
  /** True if these are of a later check, since the first one saw none. */
  readonly areTestsLate?: boolean | undefined
  /** True for the first check of a run, before any work: what can never be met is an error. */
  readonly isFirst?: boolean | undefined
  readonly baseline: GoalBaseline
}

/** A named goal offered by the host. */
export interface GoalDefinition {
  readonly name: string
  readonly description: string
  /** How to write it in a request, for forms. */
  readonly usage: string
  /**
   * Resolves the goal for a workspace. `argument` is what follows `name:` in the request, or empty.
   *
   * @throws `GoalError` when the workspace has no such check.
   */
  resolve(cwd: string, argument: string): Promise<GoalSpec>
}
