/**
 * One writer per data directory. The file `lock` names its holder.
 *
 * 1. A lock is stale when its process has ended, which is decided by its pid *and* start time,
 *    since pids are reused. A holder in another pid namespace (another container) or on another
 *    machine cannot be looked up; its lock is valid as long as it is refreshed.
 * 2. Such a holder may only have been stopped, and go on later. So the lock is also a fence: its
 *    holder calls `check()` after each sync and before anything that cannot be undone, and stops
 *    for good once another process has taken the lock.
 *
 * @module
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { bootId, isRunning, pidNamespace, startOf } from '../../../internal/processes.js'
import { StoreError } from '../../errors.js'
import { readFile, SystemDisk, type Disk, type FileStat } from './disk.js'

const REFRESH_MS = 10_000
/** A remote holder that did not refresh its lock for this long counts as ended. */
const EXPIRY_MS = 30_000

/** The process that holds a lock, as the lock file names it. */
export interface LockHolder {
  readonly pid: number
  /** Start time in clock ticks since boot, or null where `/proc` is missing. */
  readonly started: string | null
  readonly boot: string | null
  readonly namespace: string | null
  readonly host: string
  /** Distinguishes two locks of one process. */
  readonly token: string
}

/** The lock of a directory, held until `release()` or until another process takes it. */
export class DirectoryLock {
  /** True when the previous holder may still run: it could not be looked up. */
  readonly isContested: boolean
  readonly #path: string
  readonly #disk: Disk
  readonly #holder: LockHolder
  readonly #file: LockFile
  readonly #refresh: NodeJS.Timeout
  readonly #lost = new AbortController()

  private constructor(path: string, disk: Disk, holder: LockHolder, acquired: Acquired) {
    this.#path = path
    this.#disk = disk
    this.#holder = holder
    this.#file = acquired.file
    this.isContested = acquired.isContested
    this.#refresh = setInterval(() => this.#renew(), REFRESH_MS).unref()
  }

  /** @throws {@link StoreError} with `ERR_AGENT_STORE_LOCKED` when a living process holds it. */
  static acquire(
    directory: string,
    disk: Disk = new SystemDisk(),
    holder: LockHolder = describeThisProcess(),
  ): DirectoryLock {
    const path = join(directory, 'lock')
    const files = new LockFiles(disk, holder)
    const file = files.create(path)
    const acquired = file === null ? files.takeOver(path) : { file, isContested: false }
    if (acquired !== null) return new DirectoryLock(path, disk, holder, acquired)
    const other = files.holderOf(path)
    const who = other === null ? 'another process' : `process ${other.pid} on ${other.host}`
    throw new StoreError(
      'ERR_AGENT_STORE_LOCKED',
      `${directory} is in use by ${who} (${path}); stop that process, or use another directory`,
    )
  }

  /** Part of the names of this holder's unfinished files, which no other process uses. */
  get token(): string {
    return this.#holder.token
  }

  /** Aborted, with a {@link StoreError} as its reason, once another process has the lock. */
  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /**
   * Does this process still hold the lock?
   *
   * @throws {@link StoreError} with `ERR_AGENT_STORE_LOCKED` when it does not; the system's error
   * when that cannot be found out.
   */
  check(): void {
    this.#lost.signal.throwIfAborted()
    if (this.#isOurs()) return
    const error = new StoreError(
      'ERR_AGENT_STORE_LOCKED',
      `another process has taken over ${this.#path}: this one was stopped for more than ` +
        `${EXPIRY_MS / 1000} s, or the lock was removed; restart this process`,
    )
    this.#lost.abort(error)
    throw error
  }

  /** Has another process taken the lock, as far as that can be found out? */
  isLost(): boolean {
    try {
      this.check()
    } catch {
      // Known now, or the disk fails.
    }
    return this.#lost.signal.aborted
  }

  /** Removes the lock, unless another process has replaced it. */
  release(): void {
    clearInterval(this.#refresh)
    try {
      if (!this.#lost.signal.aborted && this.#isOurs()) this.#disk.remove(this.#path)
    } catch {
      // The disk fails: the lock stays, and is stale when this process has ended.
    } finally {
      this.#disk.close(this.#file.fd)
    }
  }

  /** A lock is replaced, never rewritten; ours stays open, so that no other gets its inode. */
  #isOurs(): boolean {
    try {
      const { dev, ino } = this.#disk.stat(this.#path)
      return dev === this.#file.dev && ino === this.#file.ino
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
      throw error
    }
  }

  #renew(): void {
    if (!this.isLost()) void this.#disk.touch(this.#path)
  }
}

type LockFile = Pick<FileStat, 'dev' | 'ino'> & { readonly fd: number }

interface Acquired {
  readonly file: LockFile
  readonly isContested: boolean
}

/** What is known of a process that a lock names. */
type Liveness = 'alive' | 'ended' | 'unknown'

/** Creates and reads lock files on behalf of one process. */
class LockFiles {
  readonly #disk: Disk
  readonly #holder: LockHolder

  constructor(disk: Disk, holder: LockHolder) {
    this.#disk = disk
    this.#holder = holder
  }

  /** Creates a lock file atomically with its content; null when it exists. */
  create(path: string): LockFile | null {
    const draft = this.#writeDraft(path)
    try {
      this.#disk.link(draft.path, path)
    } catch (error) {
      this.#discard(draft)
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return null
      throw error
    }
    this.#removeQuietly(draft.path)
    return draft
  }

  /**
   * Replaces a stale lock with ours; null when the lock is held. Only one process at a time may
   * try: two that both saw the stale lock would otherwise each replace it.
   */
  takeOver(path: string): Acquired | null {
    if (this.#livenessOf(path) === 'alive') return null
    const guard = `${path}.takeover`
    // A process that died during its takeover must not block all others for ever. Where there is
    // no guard none is removed: it would be that of a process that begins just now.
    const isLeft = this.#identityOf(guard) !== '' && this.#livenessOf(guard) !== 'alive'
    if (isLeft) this.#disk.remove(guard)
    const guarded = this.create(guard)
    if (guarded === null) return null
    try {
      const stale = this.#identityOf(path)
      const liveness = this.#livenessOf(path)
      if (liveness === 'alive') return null
      const draft = this.#writeDraft(path)
      try {
        // This process may have been stopped for so long that another one overtook it.
        const isGuarded = this.#identityOf(guard) === `${guarded.dev}:${guarded.ino}`
        if (!isGuarded || this.#identityOf(path) !== stale) {
          this.#discard(draft)
          return null
        }
        this.#disk.rename(draft.path, path)
      } catch (error) {
        this.#discard(draft)
        throw error
      }
      return { file: draft, isContested: liveness === 'unknown' }
    } finally {
      this.#disk.close(guarded.fd)
      this.#removeQuietly(guard)
    }
  }

  #identityOf(path: string): string {
    try {
      const { dev, ino } = this.#disk.stat(path)
      return `${dev}:${ino}`
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
      throw error
    }
  }

  /** The holder that a lock file names; null when the file is missing or invalid. */
  holderOf(path: string): LockHolder | null {
    try {
      const value = JSON.parse(readFile(this.#disk, path).toString()) as Partial<LockHolder> | null
      return typeof value?.pid === 'number' && value.pid > 0 ? (value as LockHolder) : null
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === undefined || code === 'ENOENT') return null
      throw error
    }
  }

  #writeDraft(path: string): LockFile & { readonly path: string } {
    const draft = `${path}.${this.#holder.token}`
    const fd = this.#disk.open(draft, 'w')
    try {
      this.#disk.writeNow(fd, Buffer.from(`${JSON.stringify(this.#holder)}\n`), 0)
      const { dev, ino } = this.#disk.stat(draft)
      return { fd, dev, ino, path: draft }
    } catch (error) {
      this.#disk.close(fd)
      this.#removeQuietly(draft)
      throw error
    }
  }

  #discard(draft: LockFile & { readonly path: string }): void {
    this.#disk.close(draft.fd)
    this.#removeQuietly(draft.path)
  }

  /** What is left behind is small, and stale when its process has ended. */
  #removeQuietly(path: string): void {
    try {
      this.#disk.remove(path)
    } catch {
      // The disk fails; what was to be done is done, or its error is on the way.
    }
  }

  /** Of the process that wrote this lock; `unknown` if it may run but no longer refreshes it. */
  #livenessOf(path: string): Liveness {
    const holder = this.holderOf(path)
    if (holder === null) return 'unknown'
    const here = this.#holder
    // After a restart of the machine; or on another one that was given the same name.
    if (holder.boot !== here.boot && holder.host === here.host) return 'unknown'
    if (holder.boot !== here.boot || holder.namespace !== here.namespace) {
      return this.#isFresh(path) ? 'alive' : 'unknown'
    }
    return isRunning(holder.pid, holder.started) ? 'alive' : 'ended'
  }

  #isFresh(path: string): boolean {
    try {
      // A time far ahead is from before the time of day was set back.
      return Math.abs(Date.now() - this.#disk.stat(path).mtimeMs) < EXPIRY_MS
    } catch {
      return false
    }
  }
}

function describeThisProcess(): LockHolder {
  return {
    pid: process.pid,
    started: startOf(process.pid),
    boot: bootId(),
    namespace: pidNamespace(),
    host: hostname(),
    token: randomUUID(),
  }
}
