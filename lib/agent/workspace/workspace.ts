/** One file that changed, as shown to people. */
export interface FileChange {
  /** Relative to the workspace, with forward slashes. */
  readonly path: string
  readonly change: 'created' | 'modified' | 'deleted' | 'renamed'
  /** The previous path of a renamed file. */
  readonly from?: string
  readonly added_lines: number
  readonly removed_lines: number
  /** SHA-256 of the content before; null for a new file, absent when it was too large to read. */
  readonly before_sha256?: string | null
  /** SHA-256 of the content after; null for a deleted file. */
  readonly after_sha256?: string | null
  /**
   * Unified diff of at most 16 KiB, after lines such as `old mode 100644` and `rename from a`;
   * empty for content that is too large or not text.
   */
  readonly diff: string
}

/** One entry of a folder listing. */
export interface WorkspaceEntry {
  /** Relative to the workspace, with forward slashes. */
  readonly path: string
  readonly type: 'file' | 'directory' | 'symlink' | 'other'
  /** Bytes; 0 for anything but a file. */
  readonly size: number
}

/**
 * The folder that a run works in. Paths are relative to `root` (or absolute inside it) and are
 * confined to it by their real path: neither `..` nor symbolic links, dangling ones included, reach
 * anything outside. Violations throw `WorkspaceError` with code `ERR_AGENT_OUTSIDE_WORKSPACE`.
 *
 * What belongs to git (anything under a `.git`, and folders with `HEAD`, `objects` and `refs`) is
 * neither read, nor listed, nor written. In a run, every call throws `ERR_AGENT_WORKSPACE_LOST`
 * once the folder is not the one any more in which the run works, and the run ends.
 */
export interface Workspace {
  /** Real path of the folder. */
  readonly root: string
  /** The real absolute path of `path`; with `forWriting`, its parent need not exist yet. */
  resolve(path: string, options?: { readonly forWriting?: boolean }): Promise<string>
  /** The bytes of a file. Files over `maxBytes` (default 2 MiB) are refused. */
  readFile(path: string, options?: { readonly maxBytes?: number }): Promise<Uint8Array>
  /** Replaces a file atomically, or creates it with its folders. */
  writeFile(path: string, content: Uint8Array | string): Promise<FileChange>
  /**
   * Sorted entries below `path`; `limit` defaults to 1000. Passed over are the names that
   * `changes()` passes over: dependencies, virtual environments, caches; `onPassedOver` is called
   * with the path of each. One of them that is itself `path` is listed.
   */
  list(
    path: string,
    options?: {
      readonly recursive?: boolean
      readonly limit?: number
      onPassedOver?(path: string): void
    },
  ): Promise<readonly WorkspaceEntry[]>
  /**
   * Files that changed since the last call, by any process; none at the first call. Examines at
   * most 20 000 entries outside version control, dependencies and caches, reads only files that may
   * have changed, and keeps 16 MiB of content to compare with. Returns at most 200 changes with 128
   * KiB of diffs.
   */
  changes(): Promise<readonly FileChange[]>
}

/** What `openWorkspace` confines a workspace to. */
export interface WorkspaceOptions {
  /** Folders that the workspace must lie in, by real path. Omitted: anywhere. */
  readonly roots?: readonly string[] | undefined
  /** Folders that must not be entered, such as the service's data: to tools they do not exist. */
  readonly closed?: readonly string[] | undefined
}
