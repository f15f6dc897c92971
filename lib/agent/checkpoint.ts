/**
 * What a run did to its folder, as clients get it: checkpoints, net changes, files, and the results
 * of restoring and applying them.
 *
 * @module
 */
import type { JsonObject } from '../internal/json.js'
import type { FileGroup } from './check-files.js'
import type { CheckpointReason, RunOwner } from './events.js'
import type { LeftOut } from './tree.js'

/** The content of a run's folder at one moment. */
export interface Checkpoint {
  /** The hash of its tree, so that equal trees have equal ids. */
  readonly checkpoint_id: string
  /** The event that reports it. */
  readonly seq: number
  readonly iteration: number
  readonly reason: CheckpointReason
  /** Files and links. */
  readonly files: number
  /** Bytes of all files. */
  readonly bytes: number
  readonly left_out: readonly LeftOut[]
}

/** What became of one file between two checkpoints. */
export interface NetChange {
  /** Relative, with forward slashes. */
  readonly path: string
  /** The path before, of a renamed file; else null. */
  readonly old_path: string | null
  readonly status: 'added' | 'modified' | 'deleted' | 'renamed'
  /** Lines; 0 for binary content. */
  readonly additions: number
  readonly deletions: number
  readonly binary: boolean
  /**
   * Permissions and kind as git writes them: `100644`, `120000` for links, `040755` for folders,
   * which are listed if they are empty or their permissions changed; null for nothing.
   */
  readonly mode: { readonly before: string | null; readonly after: string | null }
  /**
   * Unified diff; empty for binary content, and null when it was left out: the content is too
   * large or not stored, or the answer has 2 MiB of diffs already.
   */
  readonly diff: string | null
  /** True when the diff does not show a secret that the file holds. */
  readonly redacted: boolean
  /**
   * How the newest verdict of the run covers the file. `verified`: the check read it as the run
   * left it. `not_read`: the check does not read it. `added`: the check passes without and with it,
   * as with a new test. `held_back`: the check passes with it as at the start, so an apply leaves
   * it out. Null if the last check did not run in a copy.
   */
  readonly group: FileGroup | null
}

/** The net changes between two checkpoints. */
export interface NetChanges {
  /** Null for a run of which nothing was kept. */
  readonly from: string | null
  /** `now` for the folder as it is. */
  readonly to: string | null
  readonly changes: readonly NetChange[]
  /** How many changes there are beyond those listed, at most 2 000. */
  readonly more: number
  /** What is not compared, because it was left out of one of both. */
  readonly left_out: readonly LeftOut[]
  /** Why there are no changes although there may have been some; null when that is not so. */
  readonly note: string | null
}

/** One entry of a folder in a checkpoint, or in the folder as it is. */
export interface FileEntry {
  readonly path: string
  readonly type: 'file' | 'folder' | 'link'
  /** Bytes; 0 for folders. */
  readonly size: number
  readonly mode: string
}

/** The entries of one folder. */
export interface FileList {
  readonly path: string
  /** A checkpoint id, or `now`. */
  readonly at: string
  readonly entries: readonly FileEntry[]
  /** Entries beyond those listed, at most 10 000. */
  readonly more: number
}

/** The bytes of one file. */
export interface FileContent {
  readonly path: string
  readonly at: string
  readonly content: Uint8Array
  readonly sha256: string
}

/** Result of a restore. */
export interface RestoreResult {
  /** The checkpoint whose content the folder has now. */
  readonly restored: string
  /** The checkpoint made before: restoring it takes the restore back. */
  readonly checkpoint_id: string
  readonly paths: readonly string[]
  /** What was left alone, because somebody else changed it meanwhile. */
  readonly skipped: readonly string[]
  /** What could not be brought back: left out of the checkpoint, or not stored. */
  readonly left_out: readonly LeftOut[]
}

/** Result of applying the changes of an isolated run. */
export interface ApplyResult {
  /** Paths that have the run's content now (with `dry_run`: would have). */
  readonly applied: readonly string[]
  /** Those of them in which both sides' lines were merged. */
  readonly merged: readonly string[]
  /** What was left alone, because somebody else changed it meanwhile. */
  readonly skipped: readonly string[]
  /** Empty unless `force` or `dry_run`: paths that both sides changed. `force` took the run's. */
  readonly conflicts: readonly string[]
  /** Files that were not applied because the verdict does not cover them. */
  readonly held_back: readonly string[]
  /** The checkpoint of the folder before; null for `dry_run`. */
  readonly checkpoint_id: string | null
}

/** Two checkpoints: ids, or `start`, `newest` or `now`, the folder as it is. */
export interface ChangeRange {
  /**
   * @defaultValue 'start'; of a fork of changes that were not applied, where these began, since
   * applying the fork brings them as well
   */
  readonly from?: string | undefined
  /** @defaultValue 'newest' */
  readonly to?: string | undefined
  /** `delivered`: without what is held back, as an apply brings it. @defaultValue everything */
  readonly only?: 'delivered' | undefined
}

/** What runs did to their folders. Every method takes the principal that calls; see `Caller`. */
export interface RunWorkspaces {
  /**
   * The checkpoints of a run, oldest first.
   *
   * @throws {@link UnknownRunError}
   */
  checkpoints(runId: string, caller?: WorkspaceCaller): Promise<readonly Checkpoint[]>
  /**
   * The net changes between two checkpoints, with secrets redacted.
   *
   * @throws {@link UnknownRunError}; {@link CheckpointError} for an unknown checkpoint.
   */
  changes(runId: string, range?: ChangeRange, caller?: WorkspaceCaller): Promise<NetChanges>
  /**
   * The same as one patch, with exact bytes, for `git apply` and `patch -p1`.
   *
   * @param range.raw - false refuses files that hold secrets
   * @throws as {@link RunWorkspaces.changes} does; {@link CheckpointError} with `redacted` and the
   * paths of files that hold secrets, with `not_kept` and the paths of those whose content is not
   * stored, with `too_large` when the patch would exceed 64 MiB.
   */
  patch(
    runId: string,
    range: ChangeRange & { readonly raw: boolean },
    caller?: WorkspaceCaller,
  ): Promise<Uint8Array>
  /**
   * The entries of a folder, sorted by name.
   *
   * @param options.at - a checkpoint id, `start`, `newest` (the default) or `now`
   * @throws as {@link RunWorkspaces.changes} does; {@link WorkspaceError} for a path that is none.
   */
  list(
    runId: string,
    options?: { readonly path?: string | undefined; readonly at?: string | undefined },
    caller?: WorkspaceCaller,
  ): Promise<FileList>
  /**
   * The bytes of a file of at most 32 MiB.
   *
   * @param options.raw - false refuses a file that holds secrets
   * @throws as {@link RunWorkspaces.list} and {@link RunWorkspaces.patch} do.
   */
  read(
    runId: string,
    path: string,
    options: { readonly at?: string | undefined; readonly raw: boolean },
    caller?: WorkspaceCaller,
  ): Promise<FileContent>
  /**
   * Gives the folder of a run that waits at a gate or has ended the content of a checkpoint.
   * Resolves when that is done; after a crash in the middle, the next start finishes it.
   *
   * @throws {@link UnknownRunError}; {@link CheckpointError}; {@link RunStateError} with `live`
   * while the run works; {@link CwdBusyError} while another run works in the folder;
   * {@link WorkspaceChangedError} when others changed files since, unless `force`.
   */
  restore(runId: string, request: JsonObject, caller?: WorkspaceCaller): Promise<RestoreResult>
  /**
   * Brings the changes of an isolated run into its `cwd`, three-way per file.
   *
   * @throws {@link UnknownRunError}; {@link RunStateError} with `live`, or with `no_changes` when
   * there is nothing to apply; {@link CwdBusyError}; {@link WorkspaceChangedError} with the paths
   * that conflict, unless `force`: nothing was written.
   */
  apply(runId: string, request: JsonObject, caller?: WorkspaceCaller): Promise<ApplyResult>
  /**
   * Removes the copy in which an isolated run worked; its changes count as discarded.
   *
   * @throws {@link UnknownRunError}; {@link RunStateError} with `live` or `no_changes`.
   */
  discard(runId: string, caller?: WorkspaceCaller): Promise<void>
}

/** The same as `Caller` of the engine. */
export interface WorkspaceCaller {
  readonly owner: RunOwner
  readonly signal?: AbortSignal | undefined
}
