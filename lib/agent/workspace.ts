/** One file that changed, as shown to people. */
export interface FileChange {
  /** Relative to the workspace, with forward slashes. */
  readonly path: string
  readonly change: 'created' | 'modified' | 'deleted'
  readonly added_lines: number
  readonly removed_lines: number
  /** Unified diff, at most 16 KiB; empty for content that is not text. */
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
  /** Entries below `path`, sorted, without `.git` and `node_modules`, at most `limit` (default 1000). */
  list(
    path: string,
    options?: { readonly recursive?: boolean; readonly limit?: number },
  ): Promise<readonly WorkspaceEntry[]>
}
