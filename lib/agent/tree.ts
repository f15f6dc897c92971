/**
 * The content of a folder at one moment: files and links by path, each with the hash of its
 * content, and folders. `workspace/tracked-folder.ts` makes trees of folders,
 * `workspace/tree-objects.ts` stores them.
 *
 * @module
 */

/** One file or link. */
export interface TreeEntry {
  readonly kind: 'file' | 'link'
  /** Permission bits, such as 0o644; 0o777 for links. */
  readonly mode: number
  /** SHA-256 in hexadecimal, of the content or of the link's target. */
  readonly sha256: string
  /** Bytes of the content or of the link's target. */
  readonly size: number
  /**
   * False for content that is not in the object store, because the run's share of it was used up:
   * the file can be compared, but not brought back. Absent means true.
   */
  readonly stored?: false
}

/**
 * Why something is no part of a tree, although it exists: its name says that it holds secrets, it
 * is larger than 32 MiB, the tree has over 200 000 entries, it is neither file nor link, or it
 * cannot be read. `budget`: part of the tree, but its content is not stored. Two reasons are listed
 * by checkpoints and do not change the tree. `passed_over`: version control, dependencies and
 * caches, which are not the work of the run. `hard_link`: a file with more than one name, in the
 * folder or elsewhere; its content is stored, the link between the names is not.
 */
export type LeftOutReason =
  | 'secret' | 'size' | 'count' | 'kind' | 'unreadable' | 'budget' | 'passed_over'
  | 'hard_link'

/** What was left out for one reason. */
export interface LeftOut {
  readonly reason: LeftOutReason
  readonly count: number
  /** The first 1000 paths; of what was passed over, 100. */
  readonly paths: readonly string[]
}

/** See the comment of this file. */
export interface Tree {
  /**
   * By path: relative, with forward slashes, in the order of its bytes. A byte that is not UTF-8
   * becomes the lone surrogate U+DC00 + byte, so that every name of a file has a text.
   */
  readonly entries: ReadonlyMap<string, TreeEntry>
  /**
   * Permission bits of the folders by path, the top not included. Absent: the tree was stored by an
   * earlier version, and says nothing about folders.
   */
  readonly folders?: ReadonlyMap<string, number> | undefined
  /** At most one for each reason, in alphabetical order. */
  readonly leftOut: readonly LeftOut[]
}

/** Gives the content of a file, or the target of a link. */
export type ContentOf = (entry: TreeEntry) => Promise<Uint8Array>
