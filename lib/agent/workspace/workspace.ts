/**
 * The folder that a run works in, and nothing outside it.
 *
 * @module
 */

/** One file that changed, as shown to people. */
export interface FileChange {
  /** Relative to the workspace, with forward slashes. */
  readonly path: string
  readonly change: 'created' | 'modified' | 'deleted' | 'renamed'
  /** The path before, of a file that was renamed. */
  readonly from?: string
  readonly added_lines: number
  readonly removed_lines: number
  /** SHA-256 of the content before, null when there was none; absent when it was too large to read. */
  readonly before_sha256?: string | null
  /** SHA-256 of the content after, null when there is none. */
  readonly after_sha256?: string | null
  /**
   * Unified diff, at most 16 KiB, after lines such as `old mode 100644` and `rename from a`; empty
   * for content that is not text, or too large.
   */
  readonly diff: string
}

/** One entry of a folder listing. */
export interface WorkspaceEntry {
  /** Relative to the workspace, with forward slashes. */
  readonly path: string
  readonly type: 'file' | 'directory' | 'symlink' | 'other'
  /** Octets; 0 for anything but a file. */
  readonly size: number
}

/**
 * The folder that a run works in. Paths are relative to `root` (or absolute inside it) and are
 * confined to it by their real path: through `..`, symlinks or dangling links nothing outside is
 * read or written. Violations throw `WorkspaceError` with code `ERR_AGENT_OUTSIDE_WORKSPACE`.
 */
export interface Workspace {
  /** Real path of the folder. */
  readonly root: string
  /** The real absolute path of `path`; with `forWriting`, its parent need not exist yet. */
  resolve(path: string, options?: { readonly forWriting?: boolean }): Promise<string>
  /** The octets of a file. Files over `maxBytes` (default 2 MiB) are refused. */
  readFile(path: string, options?: { readonly maxBytes?: number }): Promise<Uint8Array>
  /** Replaces or creates a file (and its folders) atomically. Refused under `.git`. */
  writeFile(path: string, content: Uint8Array | string): Promise<FileChange>
  /** Entries below `path`, sorted, without `.git` and `node_modules`; `limit` is 1000 by default. */
  list(
    path: string,
    options?: { readonly recursive?: boolean; readonly limit?: number },
  ): Promise<readonly WorkspaceEntry[]>
  /**
   * Files that differ from the last call, whoever changed them; none at the first call. Looks at 20
   * 000 entries at most, without version control, dependencies and caches; reads only what differs;
   * keeps 16 MiB of text to compare with; tells 200 changes with 128 KiB of diffs at most.
   */
  changes(): Promise<readonly FileChange[]>
}

/** How {@link openWorkspace} confines. */
export interface WorkspaceOptions {
  /** Folders under whose real paths the workspace must lie. Omitted: anywhere. */
  readonly roots?: readonly string[] | undefined
  /** Folders that nobody may enter, such as the service's data: to tools they do not exist. */
  readonly closed?: readonly string[] | undefined
}
