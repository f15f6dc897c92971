import type { Limits } from '../config.js'
import { CloseError, PoolTimeoutError } from '../errors.js'
import { Timer } from '../timer-wheel.js'
import type { WaitLimits } from './connect.js'

/** A connection, as the pool uses it. */
export interface PooledConnection {
  /** Whether it can take another exchange now. */
  readonly usable: boolean
  /** `performance.now()` when it last became idle. */
  readonly idleSince: number
  /** The server's own idle timeout in ms; null when unknown. */
  readonly keepAliveHint: number | null
  /** Reserves an exchange, where a connection takes several at a time. */
  claim?(): void
  /** Fails open exchanges with `error`, and closes. */
  destroy(error?: unknown): void
}

interface Waiter {
  readonly key: string
  readonly take: (connection: PooledConnection | null) => void
}

/** The connections of one key. */
interface Bucket {
  /** The most recently used last. */
  readonly idle: PooledConnection[]
  /** Connections that take several exchanges at a time (HTTP/2), idle or not. */
  readonly shared: PooledConnection[]
  /** Connections that are open or being opened. */
  open: number
}

/** Subtracted from the server's idle timeout, so that we close a connection before it does. */
const HINT_MARGIN_MS = 1_000

/**
 * Connections by key (origin and proxy), under {@link Limits}.
 *
 * 1. `open` counts connections and permits to open one; it never exceeds a limit.
 * 2. Waiters are served in order; one that is blocked only by the limit of its own origin does not
 *    block the others.
 * 3. A waiter for another origin may close an idle connection to take its slot.
 */
export class ConnectionPool {
  readonly #limits: Limits
  readonly #buckets = new Map<string, Bucket>()
  readonly #owners = new Map<PooledConnection, string>()
  readonly #waiters = new Set<Waiter>()
  #open = 0
  #idle = 0
  /** Runs while there are idle connections that expire. */
  readonly #sweeper = new Timer(() => this.#sweep())
  #sweeping = false
  #closed = false

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** Connections that are open or being opened, callers that wait for one, idle connections. */
  get stats(): { readonly open: number; readonly idle: number; readonly waiting: number } {
    return { open: this.#open, idle: this.#idle, waiting: this.#waiters.size }
  }

  /**
   * Returns a connection for `key`, or null as a permit to open one: the caller must then call
   * `add` with the connection, or `forfeit` when it cannot be opened.
   */
  acquire(
    key: string,
    limits: WaitLimits,
  ): PooledConnection | null | Promise<PooledConnection | null> {
    if (this.#closed) throw closedError()
    if (this.#waiters.size === 0 || !this.#mustQueue(key)) {
      const ready = this.#takeReady(key)
      if (ready !== null) return ready
      if (this.#reserve(key)) return null
    }
    return this.#wait(key, limits)
  }

  /** Registers a connection opened with a permit. It counts as in use. */
  add(key: string, connection: PooledConnection, shared = false): void {
    if (this.#closed) {
      this.forfeit(key)
      connection.destroy(closedError())
      return
    }
    this.#owners.set(connection, key)
    if (shared) {
      connection.claim?.()
      this.#bucket(key).shared.push(connection)
      this.#serve()
    }
  }

  /** Returns a permit when the connection could not be opened, so that another waiter gets it. */
  forfeit(key: string): void {
    this.#release(key)
    this.#serve()
  }

  /** Called when the connection can take an exchange again. */
  release(connection: PooledConnection, shared = false): void {
    const key = this.#owners.get(connection)
    if (key === undefined) return
    if (shared) {
      this.#serve()
      return
    }
    if (this.#closed || this.#limits.maxKeepaliveConnections === 0) {
      connection.destroy()
      return
    }
    this.#bucket(key).idle.push(connection)
    this.#idle++
    this.#serve()
    const most = this.#limits.maxKeepaliveConnections
    if (most !== null && this.#idle > most) this.#evictOldest()
    this.#armSweeper()
  }

  /** Called once when the connection is closed. */
  remove(connection: PooledConnection): void {
    const key = this.#owners.get(connection)
    if (key === undefined) return
    this.#owners.delete(connection)
    const bucket = this.#bucket(key)
    if (takeFrom(bucket.idle, connection)) this.#idle--
    takeFrom(bucket.shared, connection)
    this.#release(key)
    this.#serve()
  }

  /** Closes every connection; exchanges in flight fail with {@link CloseError}. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#sweeper.clear()
    for (const connection of [...this.#owners.keys()]) connection.destroy(closedError())
    for (const waiter of [...this.#waiters]) waiter.take(null)
  }

  #bucket(key: string): Bucket {
    let bucket = this.#buckets.get(key)
    if (bucket === undefined) this.#buckets.set(key, (bucket = { idle: [], shared: [], open: 0 }))
    return bucket
  }

  /** Whether an earlier waiter could use what a caller for `key` would take. */
  #mustQueue(key: string): boolean {
    for (const waiter of this.#waiters) {
      if (waiter.key === key || !this.#isOriginFull(waiter.key)) return true
    }
    return false
  }

  #isOriginFull(key: string): boolean {
    const most = this.#limits.maxConnectionsPerOrigin
    return most !== null && this.#bucket(key).open >= most
  }

  #takeReady(key: string): PooledConnection | null {
    const bucket = this.#buckets.get(key)
    if (bucket === undefined) return null
    for (const connection of bucket.shared) {
      if (!connection.usable) continue
      connection.claim?.()
      return connection
    }
    for (;;) {
      const connection = bucket.idle.pop()
      if (connection === undefined) return null
      this.#idle--
      if (connection.usable && performance.now() < this.#expiresAt(connection)) return connection
      connection.destroy()
    }
  }

  #reserve(key: string): boolean {
    if (this.#isOriginFull(key)) return false
    const most = this.#limits.maxConnections
    while (most !== null && this.#open >= most) if (!this.#evictOldest()) return false
    this.#open++
    this.#bucket(key).open++
    return true
  }

  #release(key: string): void {
    this.#open--
    const bucket = this.#bucket(key)
    bucket.open--
    if (bucket.open === 0 && bucket.idle.length === 0) this.#buckets.delete(key)
  }

  #evictOldest(): boolean {
    let oldest: PooledConnection | undefined
    for (const { idle } of this.#buckets.values()) {
      const first = idle[0]
      if (first !== undefined && (oldest === undefined || first.idleSince < oldest.idleSince)) {
        oldest = first
      }
    }
    oldest?.destroy()
    return oldest !== undefined
  }

  #wait(key: string, limits: WaitLimits): Promise<PooledConnection | null> {
    const { timeoutMs, signal } = limits
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiters.delete(waiter)
        timer.clear()
        signal?.removeEventListener('abort', onAbort)
      }
      const waiter: Waiter = {
        key,
        take: (connection) => {
          leave()
          if (this.#closed) reject(closedError())
          else resolve(connection)
        },
      }
      const onAbort = (): void => {
        leave()
        reject(signal!.reason as Error)
      }
      const onTimeout = (): void => {
        leave()
        const text =
          `no connection became free within ${timeoutMs} ms; ${this.#open} are in use: ` +
          'read or close responses, or raise limits.maxConnections'
        reject(new PoolTimeoutError(text, timeoutMs!))
      }
      const timer = new Timer(onTimeout, { keepsAlive: true })
      timer.start(timeoutMs)
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#waiters.add(waiter)
    })
  }

  /** Hands free connections and permits to waiters, the oldest first. */
  #serve(): void {
    if (this.#waiters.size === 0) return
    for (const waiter of this.#waiters) {
      const ready = this.#takeReady(waiter.key)
      if (ready !== null) waiter.take(ready)
      else if (this.#isOriginFull(waiter.key)) continue
      else if (this.#reserve(waiter.key)) waiter.take(null)
      else return
    }
  }

  #expiresAt(connection: PooledConnection): number {
    const { keepaliveExpiry } = this.#limits
    const hint = connection.keepAliveHint
    const ourLimit = keepaliveExpiry ?? Infinity
    const serverLimit = hint === null ? Infinity : Math.max(hint - HINT_MARGIN_MS, hint / 2)
    return connection.idleSince + Math.min(ourLimit, serverLimit)
  }

  #armSweeper(): void {
    if (this.#sweeping || this.#idle === 0) return
    let next = Infinity
    for (const { idle } of this.#buckets.values()) {
      for (const connection of idle) next = Math.min(next, this.#expiresAt(connection))
    }
    if (next === Infinity) return
    this.#sweeping = true
    this.#sweeper.start(Math.max(next - performance.now(), 10))
  }

  #sweep(): void {
    this.#sweeping = false
    const now = performance.now()
    for (const { idle } of [...this.#buckets.values()]) {
      for (const connection of [...idle])
        if (now >= this.#expiresAt(connection)) connection.destroy()
    }
    this.#armSweeper()
  }
}

function takeFrom(list: PooledConnection[], connection: PooledConnection): boolean {
  const at = list.indexOf(connection)
  if (at === -1) return false
  list.splice(at, 1)
  return true
}

function closedError(): CloseError {
  return new CloseError('the transport was closed')
}
