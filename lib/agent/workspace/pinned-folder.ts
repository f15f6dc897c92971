/**
 * The folder of one run while this process works in it.
 *
 * 1. It is pinned when the run first works here: from then on it is the folder that was opened, not
 *    whatever its path leads to.
 * 2. Its real path must go on leading to it. If anything else is found there once (a link, a file,
 *    another folder, nothing), the folder is lost for good, even if it is put back.
 * 3. On Linux it is used through its descriptor, which no rename can redirect; comparing it after
 *    use only reports the loss. Elsewhere it is used by its path, and compared before and after
 *    use: a swap that is undone in between is not noticed.
 *
 * @module
 */
import type { BigIntStats } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { WorkspaceError } from '../errors.js'
import { throwIfExhausted } from '../exhaustion.js'
import { codeOf, HAS_PROC, openedFolder, type OpenFolder } from './paths.js'

/**
 * What a folder is recognised by when a run is resumed. Device numbers are given when a file system
 * is mounted, so inodes are compared only if those are equal: after a restart of the machine or in
 * another container, the real path has to suffice.
 */
export interface FolderIdentity {
  readonly device: string
  readonly inode: string
}

/** Those that are open: closing one by garbage collection, with its engine, would be an error. */
const open = new Set<OpenFolder>()

/** See the comment of this file. */
export class PinnedFolder implements AsyncDisposable {
  /** Its real path. */
  readonly real: string
  readonly identity: FolderIdentity
  readonly #folder: OpenFolder
  readonly #onLost: (error: WorkspaceError) => void
  #lost: WorkspaceError | null = null
  /** The comparison that is under way. */
  #checking: Promise<void> | undefined

  private constructor(
    folder: OpenFolder,
    identity: FolderIdentity,
    onLost: (error: WorkspaceError) => void,
  ) {
    this.real = folder.real
    this.identity = identity
    this.#folder = folder
    this.#onLost = onLost
    open.add(folder)
  }

  /**
   * Pins the folder at a real path.
   *
   * @param before what it was recognised by when an earlier process worked in it
   * @param onLost called once, when the folder is lost
   * @throws {@link WorkspaceError} with `ERR_AGENT_WORKSPACE_LOST` when the path leads through a
   * link, or to another folder than before.
   */
  static async open(
    real: string,
    before: FolderIdentity | null,
    onLost: (error: WorkspaceError) => void,
  ): Promise<PinnedFolder> {
    const folder = await openedFolder(real).catch((error: unknown) => {
      throwIfExhausted(error)
      throw lost(real, PROBLEMS[codeOf(error) ?? ''] ?? 'cannot be reached', error)
    })
    try {
      const identity = identityOf(await folder.stat())
      if (before?.device === identity.device && before.inode !== identity.inode) {
        throw lost(real, 'is not the folder any more in which this run began')
      }
      // Opening has compared them just now.
      return new PinnedFolder(folder, identity, onLost)
    } catch (error) {
      open.delete(folder)
      await folder[Symbol.asyncDispose]()
      throw error
    }
  }

  /** A path to the folder that no rename redirects; on systems without that, its real path. */
  get path(): string {
    return this.#folder.path
  }

  /**
   * Compares what the path leads to with the folder. Calls at the same time share one comparison.
   *
   * @throws {@link WorkspaceError} with `ERR_AGENT_WORKSPACE_LOST`.
   */
  async check(): Promise<void> {
    if (this.#lost !== null) throw this.#lost
    this.#checking ??= this.#compare().finally(() => (this.#checking = undefined))
    await this.#checking
  }

  /** Does work in the folder, and throws if the folder is lost by then; see rule 3. */
  async guard<T>(work: () => Promise<T>): Promise<T> {
    if (!HAS_PROC) await this.check()
    else if (this.#lost !== null) throw this.#lost
    try {
      return await work()
    } finally {
      await this.check()
    }
  }

  async #compare(): Promise<void> {
    try {
      const [location, found] = await Promise.all([
        this.#folder.location(),
        lstat(this.real, { bigint: true }),
      ])
      const { device, inode } = identityOf(found)
      const isSame = device === this.identity.device && inode === this.identity.inode
      if (isSame && location === this.real) return
      this.#lost = lost(this.real, isSame ? 'was moved' : `was replaced by ${kindOf(found)}`)
    } catch (error) {
      throwIfExhausted(error)
      this.#lost = lost(this.real, PROBLEMS[codeOf(error) ?? ''] ?? 'cannot be reached', error)
    }
    this.#onLost(this.#lost)
    throw this.#lost
  }

  async [Symbol.asyncDispose](): Promise<void> {
    open.delete(this.#folder)
    await this.#folder[Symbol.asyncDispose]()
  }
}

/** What steps need of the folder of their run; `identity` is null for a run without one. */
export interface UsedFolder
  extends Pick<PinnedFolder, 'real' | 'path' | 'check' | 'guard' | typeof Symbol.asyncDispose> {
  readonly identity: FolderIdentity | null
}

/** What has happened to a folder whose path leads to an error with one of these codes. */
const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'was moved or deleted',
  ENOTDIR: 'was replaced by a link or a file',
  ELOOP: 'was replaced by a link',
  ERR_AGENT_OUTSIDE_WORKSPACE: 'was replaced by a link',
}

function identityOf({ dev, ino }: BigIntStats): FolderIdentity {
  return { device: String(dev), inode: String(ino) }
}

function kindOf(stats: BigIntStats): string {
  if (stats.isSymbolicLink()) return 'a link'
  return stats.isDirectory() ? 'another folder' : 'a file'
}

function lost(real: string, problem: string, cause?: unknown): WorkspaceError {
  const code = cause instanceof WorkspaceError ? undefined : codeOf(cause)
  const reason = code === undefined ? '' : ` (${code})`
  return new WorkspaceError(
    'ERR_AGENT_WORKSPACE_LOST',
    `the run's folder ${real} ${problem}${reason}, so nothing more was done; ` +
      'put the folder back, find out who moved it, and retry the run',
    cause === undefined ? undefined : { cause },
  )
}
