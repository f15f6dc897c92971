/**
 * The seam to private copies of a run's workspace, in which a tool can try things; see
 * {@link ToolContext.copies}.
 *
 * @module
 */
import type { CommandResult } from './executor.js'
import type { ToolCommandOptions } from './tool-command.js'

/** Edits of one {@link WorkspaceCopy.withEdits}, and open copies of one run, at most. */
export const MAX_EDITS = 16
export const MAX_COPIES = 16

/** Replaces one piece of text in a file. */
export interface TextEdit {
  /** Relative to the workspace. */
  readonly path: string
  /** Occurs only once in the file, unless `occurrence` selects one. */
  readonly old_text: string
  readonly new_text: string
  /** Counted from 1; 0 replaces all. */
  readonly occurrence?: number | undefined
}

/**
 * The private copies of one run's workspace. Commands never see the run's own folder in place of a
 * copy, and nothing that happens in a copy reaches that folder. The engine removes all copies when
 * the run ends or leaves this process.
 */
export interface WorkspaceCopies {
  /** Commands that may run in copies at the same time, in all runs of the engine; others wait. */
  readonly slots: number
  /**
   * Opens the copy of this name. A copy that an earlier call of the run left open is reused unless
   * the workspace has changed since; otherwise a new copy of the workspace is made.
   *
   * @param name 1 to 32 lower-case letters, digits and `-`; at most 16 copies are open at a time
   * @throws TypeError for an invalid name, and beyond the limit; {@link WorkspaceError} when the
   * workspace can't be copied; {@link ExhaustedError} when the disk is full or fails; the signal's
   * reason when the call is stopped.
   */
  open(name: string): Promise<WorkspaceCopy>
}

/** How {@link WorkspaceCopy.withEdits} ended. */
export type Edited<T> =
  | { readonly made: true; readonly value: T }
  /** Nothing was called: an edit is impossible. The problem is worded for models. */
  | { readonly made: false; readonly problem: string }

/** One private copy, for the call that opened it. Methods throw as {@link WorkspaceCopies.open}. */
export interface WorkspaceCopy {
  /** Real path. No other copy has had it: a tool can tell by it whether a copy is a new one. */
  readonly root: string
  /** The state of the workspace that was copied: equal for all copies of the same state. */
  readonly version: number
  /**
   * Runs a command in the copy as soon as a slot is free, with the strongest executor available, as
   * sealed checks do. In its output, the path of the copy is replaced by that of the workspace. The
   * command is stopped with the call, or by `options.signal`. Defaults as {@link ToolContext.run}.
   */
  run(command: string, options?: ToolCommandOptions): Promise<CommandResult>
  /**
   * Makes at most 16 edits one after the other, calls `work`, and restores the edited files,
   * whether `work` succeeds or fails.
   *
   * @throws what `work` throws.
   */
  withEdits<T>(edits: readonly TextEdit[], work: () => Promise<T>): Promise<Edited<T>>
  /**
   * Paths of files that were changed or removed since the copy was made, other than by `withEdits`;
   * new files, dependencies and caches don't count. A file that couldn't be restored is among them.
   * Empty for workspaces of more than 20 000 entries, which are not compared.
   */
  changed(): Promise<readonly string[]>
  /**
   * Calls `work` with the real path of an empty private folder outside the workspace and the copy,
   * and removes the folder afterwards. Commands may write to it if it is in `options.writable`.
   *
   * @throws what `work` throws; {@link ExhaustedError} if that is an error of the system which says
   * that a disk is full, fails or denies access.
   */
  withFolder<T>(work: (folder: string) => Promise<T>): Promise<T>
  /** Removes the copy; the next `open` of its name makes a new one. No-op the second time. */
  remove(): Promise<void>
}
