/**
 * Copies of folders, complete and private: see `tree-copy.ts` for what a copy is.
 *
 * @module
 */
import { realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { WorkspaceTooLargeError } from '../errors.js'
import { performTask, taskError } from './folder-threads.js'
import { realOrAsIs } from './paths.js'
import type { CopyResult } from './tree-copy.js'

/** How a folder is copied. */
export interface CopyPolicy {
  /** Where the copy will be found, if it gets its name once it is complete. @defaultValue `to` */
  readonly place?: string | undefined
  /** Folders that are not copied. @defaultValue none */
  readonly closed?: readonly string[] | undefined
  /** Bytes of all files, and 256 for each entry. @defaultValue no limit */
  readonly maxBytes?: number | undefined
  /**
   * Lets large `node_modules` stay empty, to be mounted read-only, where the file system cannot
   * share blocks and nothing in them leads back into the original. @defaultValue false
   */
  readonly mounts?: boolean | undefined
  /** Other folders that are copied: what leads into them leads into their copies. */
  readonly others?: readonly { readonly from: string; readonly to: string }[] | undefined
  /**
   * Gives all that is copied access time 0, so that a later one tells that it was read; see
   * `touched-files.ts`. @defaultValue false
   */
  readonly unread?: boolean | undefined
  /**
   * For a sealed check: repositories are only there to be read (see `bare-repository.ts`), and
   * bytecode of Python and caches in `node_modules` are left out. @defaultValue false
   */
  readonly sealed?: boolean | undefined
  /** Relative paths of what is not copied; no link on the way is followed. @defaultValue none */
  readonly without?: readonly string[] | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * Copies a folder with all that is in it: links as links, permissions, times, hard links, holes,
 * empty folders, names in any encoding. Not copied are closed folders, sockets, pipes and devices,
 * owners, and attributes beyond permissions. What leads back into the original leads into the copy.
 *
 * Rejects with nothing left at `to`.
 *
 * @param from its real path
 * @param to must not exist; the folder above it must
 * @throws {@link WorkspaceTooLargeError}; {@link WorkspaceError} when the folder cannot be copied,
 * for example because the disk is full, with `ERR_AGENT_WORKSPACE_LOST` when its path does not lead
 * to a folder any more, or leads through a link; `signal`'s reason.
 */
export async function copyTree(
  from: string,
  to: string,
  policy: CopyPolicy = {},
): Promise<CopyResult> {
  const { maxBytes = Infinity, mounts = false, others = [], closed = [], signal } = policy
  const { unread = false, sealed = false, without = [] } = policy
  signal?.throwIfAborted()
  const target = join(await realpath(dirname(resolve(to))), basename(to))
  const job = {
    from,
    to: target,
    copies: [{ from, to: policy.place ?? target }, ...others],
    closed: await Promise.all(closed.map(realOrAsIs)),
    maxBytes,
    mounts,
    unread,
    sealed,
    without: without.map((path) => join(from, path)),
  }
  signal?.throwIfAborted()
  let isWhole = false
  try {
    const report = await performTask<CopyResult>({ t: 'copy', folder: from, job }, signal)
    if ('failed' in report) throw new WorkspaceTooLargeError(from, maxBytes)
    if ('error' in report) throw taskError(`${from} cannot be copied to ${to}`, report)
    isWhole = true
    return report.result
  } finally {
    if (!isWhole) await removeFolder(target)
  }
}

/**
 * Finds out early that a copy would be too large; it may still turn out so later.
 *
 * @throws as {@link copyTree} does.
 */
export async function assertFits(
  folder: string,
  policy: Pick<CopyPolicy, 'maxBytes' | 'closed' | 'mounts'>,
): Promise<void> {
  const { maxBytes = Infinity, closed = [], mounts = false } = policy
  // What is mounted is not copied.
  const skipped = mounts ? ['node_modules'] : []
  const report = await performTask({ t: 'measure', folder, args: [maxBytes, closed, skipped] })
  if ('error' in report) throw taskError(`${folder} cannot be copied`, report)
  if ('failed' in report) throw new WorkspaceTooLargeError(folder, maxBytes)
}

/**
 * Removes a folder with all that is in it, whatever its permissions and depth.
 *
 * @throws {@link WorkspaceError} when something cannot be removed.
 */
export async function removeFolder(folder: string): Promise<void> {
  const report = await performTask({ t: 'remove', folder })
  if ('error' in report) throw taskError(`${folder} cannot be removed`, report)
}
