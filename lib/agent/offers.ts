/**
 * What a form gets before a run is started: folders to choose from, and what a request would begin.
 *
 * @module
 */
import type { WorkspaceMode } from './events.js'
import type { TestReporter } from './test-outcomes.js'

/** One folder in which a run may work. */
export interface OfferedFolder {
  /** As `cwd` of a request takes it: the real path. */
  readonly path: string
  readonly name: string
}

/** Folders to choose from: those in `path`, or the roots. */
export interface FolderOffer {
  /** The real path; null for the roots. */
  readonly path: string | null
  /** By name; at most 200. */
  readonly folders: readonly OfferedFolder[]
  /** Folders beyond these, as far as they were counted. */
  readonly more: number
  /**
   * Folders that are not named: hidden ones, dependencies and caches, links, and those in, above or
   * below which runs of other tenants have worked.
   */
  readonly left_out: number
}

/** What a request would begin, as it would be frozen in the log. */
export interface ResolvedRequest {
  /** Empty for a run without a folder. */
  readonly cwd: string
  readonly workspace: WorkspaceMode
  readonly model_name: string
  readonly max_iterations: number
  readonly goal: {
    /** A registered name, `shell`, `result`, or `text`. */
    readonly name: string
    /** The command of its check; empty where a model judges or a result is checked. */
    readonly command: string
    readonly timeout_ms: number
    /** The test runner whose report is read; null where the exit code counts. */
    readonly reporter: TestReporter | null
    /** Globs of files that must not change; `!` excludes paths. */
    readonly protected: readonly string[]
    readonly allow_test_changes: boolean
    /** The model that judges in place of a command; null for none. */
    readonly judge_model: string | null
    /** Is the goal a result that matches a schema? */
    readonly by_result: boolean
  }
}
