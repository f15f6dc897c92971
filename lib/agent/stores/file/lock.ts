/**
 * One writer per data directory. The file `lock` names its holder. It is stale when that process
 * has ended, which is decided by its pid *and* start time, since pids are reused.
 *
 * A holder in another pid namespace (another container) or on another machine cannot be looked up;
 * its lock is valid as long as it is refreshed.
 *
 * @module
 */
import { randomUUID } from 'node:crypto'
import {
  linkSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  utimes,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { StoreError } from '../../errors.js'

const REFRESH_MS = 10_000
/** A remote holder that did not refresh its lock for this long counts as ended. */
const EXPIRY_MS = 30_000

interface Holder {
  readonly pid: number
  /** Start time in clock ticks since boot, or null where `/proc` is missing. */
  readonly started: string | null
  readonly boot: string | null
  readonly namespace: string | null
  readonly host: string
  /** Distinguishes two locks of one process. */
  readonly token: string
}

/** The lock of a directory, held until `release()`. */
export class DirectoryLock {
  readonly #path: string
  readonly #holder: Holder
  readonly #refresh: NodeJS.Timeout

  private constructor(path: string, holder: Holder) {
    this.#path = path
    this.#holder = holder
    this.#refresh = setInterval(() => {
      const now = new Date()
      utimes(path, now, now, () => {})
    }, REFRESH_MS).unref()
  }

  /** @throws {@link StoreError} with `ERR_AGENT_STORE_LOCKED` when a living process holds it. */
  static acquire(directory: string): DirectoryLock {
    const path = join(directory, 'lock')
    const holder = describeThisProcess()
    if (create(path, holder) || takeOver(path, holder)) return new DirectoryLock(path, holder)
    const other = readHolder(path)
    const who = other === null ? 'another process' : `process ${other.pid} on ${other.host}`
    throw new StoreError(
      'ERR_AGENT_STORE_LOCKED',
      `${directory} is in use by ${who} (${path}); stop that process, or use another directory`,
    )
  }

  /** Removes the lock, unless another process has replaced it. */
  release(): void {
    clearInterval(this.#refresh)
    if (readHolder(this.#path)?.token === this.#holder.token) rmSync(this.#path, { force: true })
  }
}

/** Creates a lock file atomically with its content; false when it exists. */
function create(path: string, holder: Holder): boolean {
  const draft = `${path}.${holder.token}`
  writeFileSync(draft, `${JSON.stringify(holder)}\n`, { mode: 0o600 })
  try {
    linkSync(draft, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

/**
 * Replaces a stale lock with ours. Only one process at a time may try: two that both saw the stale
 * lock would otherwise each replace it.
 */
function takeOver(path: string, holder: Holder): boolean {
  if (isHeld(path)) return false
  const guard = `${path}.takeover`
  // A process that died during its takeover must not block all others for ever.
  if (!isHeld(guard)) rmSync(guard, { force: true })
  if (!create(guard, holder)) return false
  try {
    if (isHeld(path)) return false
    const draft = `${path}.${holder.token}`
    writeFileSync(draft, `${JSON.stringify(holder)}\n`, { mode: 0o600 })
    renameSync(draft, path)
    return true
  } finally {
    rmSync(guard, { force: true })
  }
}

/** Is the process that wrote this lock still running? */
function isHeld(path: string): boolean {
  const holder = readHolder(path)
  if (holder === null) return false
  const here = describeThisProcess()
  if (holder.boot !== here.boot && holder.host === here.host) return false
  if (holder.boot !== here.boot || holder.namespace !== here.namespace) return isFresh(path)
  if (!isAlive(holder.pid)) return false
  return holder.started === null || holder.started === startOf(holder.pid)
}

function isFresh(path: string): boolean {
  try {
    return Date.now() - statSync(path).mtimeMs < EXPIRY_MS
  } catch {
    return false
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it is running as another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** The holder that a lock file names; null when the file is missing or invalid. */
function readHolder(path: string): Holder | null {
  try {
    const value = JSON.parse(readFileSync(path, 'utf8')) as Partial<Holder> | null
    return typeof value?.pid === 'number' && value.pid > 0 ? (value as Holder) : null
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined || code === 'ENOENT') return null
    throw error
  }
}

function describeThisProcess(): Holder {
  return {
    pid: process.pid,
    started: startOf(process.pid),
    boot: attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    namespace: attempt(() => readlinkSync('/proc/self/ns/pid')),
    host: hostname(),
    token: randomUUID(),
  }
}

/** Start time of a process: field 22 of its `stat`, counted after the name, which may hold `)`. */
function startOf(pid: number): string | null {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  if (stat === null) return null
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // A zombie has ended; its parent has not waited for it yet.
  return fields[0] === 'Z' ? 'ended' : (fields[19] ?? null)
}

function attempt(read: () => string): string | null {
  try {
    return read()
  } catch {
    return null
  }
}
