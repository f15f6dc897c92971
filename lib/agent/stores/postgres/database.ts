/**
 * Runs statements on the host's pool, and distinguishes failures that may pass from others.
 *
 * @module
 */
import { backoffDelay, type Backoff } from '../../../internal/time.js'
import { setMaxListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { hash } from '../../../internal/hash.js'
import { warn } from '../../../internal/errors.js'
import { isUnavailable, StoreError } from '../../errors.js'
import type { PgClient, PgPool, PgQuery, PgRow } from './pg-types.js'

/** SQLSTATEs after which the same statement may succeed later: connection, server state, races. */
const TRANSIENT = /^(08|53|57P0|25P0[34]$|40001$|40P01$|55P03$|57014$|25006$)/
/** Socket errors after which the same statement may succeed later. */
const SOCKET = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'ENOBUFS',
  'EMFILE',
  'ENOENT',
])
/** The driver reports some lost connections by message alone. */
const CONNECTION_LOSS = new RegExp(
  'connection terminated|terminating connection|connection timeout|timeout exceeded|' +
    'client (was|has) (closed|encountered)|not queryable',
  'i',
)
/** A pooler lost a prepared statement (26000), or another client's has its name (42P05). */
const UNPREPARED = /^(26000|42P05)$/
const BACKOFF: Backoff = { firstMs: 50, maxMs: 2_000 }
/**
 * The server aborts a transaction that is idle for longer, and so releases its locks: a process
 * that was paused or cut off must not block all others.
 */
const MAX_IDLE_IN_TRANSACTION_MS = 3_000

/** Clients with an `error` listener; without one, a lost connection would end the process. */
const listenedTo = new WeakSet<PgClient>()

/** Options of {@link Database}. */
export interface DatabaseOptions {
  readonly pool: PgPool
  /** Milliseconds after which a statement counts as lost, and its connection is closed. */
  readonly statementTimeoutMs: number
  /** Use prepared statements, until a pooler turns out not to keep them. */
  readonly prepare: boolean
}

/** Valid only within the callback that receives it. */
export interface Transaction {
  rows(query: PgQuery): Promise<readonly PgRow[]>
}

/** Statements against the database of a store. */
export class Database {
  readonly #pool: PgPool
  readonly #timeoutMs: number
  readonly #closing = new AbortController()
  /** Names of prepared statements by text. */
  readonly #names = new Map<string, string>()
  readonly #inUse = new Set<Promise<unknown>>()
  #prepare: boolean

  constructor({ pool, statementTimeoutMs, prepare }: DatabaseOptions) {
    setMaxListeners(0, this.#closing.signal) // one per statement that waits for a retry
    this.#pool = pool
    this.#timeoutMs = statementTimeoutMs
    this.#prepare = prepare
  }

  /** Aborted by {@link giveUp}, when the store is closed. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /**
   * Runs one statement, and retries for up to `patienceMs` (0: never; Infinity: until the store is
   * closed) while the database is unavailable. Only for statements that may run twice; `again` is
   * called before each retry, when the previous attempt may have taken effect.
   *
   * @throws {@link StoreError} with `ERR_AGENT_STORE_UNAVAILABLE` after `patienceMs`.
   */
  rows(query: PgQuery, patienceMs: number, again?: () => void): Promise<readonly PgRow[]> {
    const attempt = (client: PgClient): Promise<readonly PgRow[]> => this.#rows(client, query)
    return this.retryWhileUnavailable(patienceMs, () => this.#checkedOut(attempt), again)
  }

  /** As {@link Database.rows}, for several statements in one transaction. */
  transaction<T>(patienceMs: number, work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const attempt = (client: PgClient): Promise<T> => this.#transact(client, work)
    return this.retryWhileUnavailable(patienceMs, () => this.#checkedOut(attempt))
  }

  /** Retries `attempt` for up to `patienceMs` while it fails with `ERR_AGENT_STORE_UNAVAILABLE`. */
  async retryWhileUnavailable<T>(
    patienceMs: number,
    attempt: () => Promise<T>,
    again?: () => void,
  ): Promise<T> {
    const deadline = performance.now() + patienceMs
    for (let retry = 1; ; retry++) {
      const wait = backoffDelay(retry, BACKOFF)
      try {
        return await attempt()
      } catch (error) {
        if (!isUnavailable(error) || this.#closing.signal.aborted) throw error
        if (performance.now() + wait > deadline) throw error
      }
      again?.()
      await this.pause(wait)
    }
  }

  /** Waits; returns early when the store is closed. */
  async pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#closing.signal }).catch(() => undefined)
  }

  /** Checks a connection out of the pool; the caller releases it. */
  async connect(pool: PgPool = this.#pool): Promise<PgClient> {
    const connected = this.inTime(checkOut(pool), this.#timeoutMs, (late) => late.release())
    return await connected.catch((error: unknown) => {
      throw this.failure(error)
    })
  }

  /** Ends all retries: statements that fail from now on reject. */
  giveUp(): void {
    this.#closing.abort()
  }

  /** Ends all retries and resolves once every statement in flight has ended. */
  async close(): Promise<void> {
    this.giveUp()
    await Promise.allSettled(this.#inUse)
  }

  /** Converts an error of the driver, without the text and values of the statement. */
  failure(cause: unknown): StoreError {
    if (cause instanceof StoreError) return cause
    const { code = '', message = String(cause) } = cause as { code?: string; message?: string }
    if (TRANSIENT.test(code) || SOCKET.has(code) || CONNECTION_LOSS.test(message)) {
      const text = `the database is unavailable (${message}); try again later`
      return new StoreError('ERR_AGENT_STORE_UNAVAILABLE', text, { cause })
    }
    const text = `the database rejected a statement: ${message}`
    return new StoreError('ERR_AGENT_STORE', text, { cause })
  }

  /** Runs one statement once, on a connection that the caller holds and releases. */
  async rowsOn(client: PgClient, query: PgQuery, timeoutMs: number): Promise<readonly PgRow[]> {
    try {
      return await this.inTime(this.#rows(client, query), timeoutMs)
    } catch (error) {
      throw this.failure(error)
    }
  }

  async #checkedOut<T>(work: (client: PgClient) => Promise<T>): Promise<T> {
    const use = this.#use(work)
    this.#inUse.add(use)
    try {
      return await use
    } finally {
      this.#inUse.delete(use)
    }
  }

  async #use<T>(work: (client: PgClient) => Promise<T>): Promise<T> {
    let client: PgClient | undefined
    try {
      client = await this.connect()
      const result = await this.inTime(work(client))
      client.release()
      return result
    } catch (error) {
      const failure = this.failure(error)
      // The connection may be in any state: close it.
      client?.release(true)
      throw failure
    }
  }

  async #transact<T>(client: PgClient, work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const idleMs = Math.ceil(Math.min(MAX_IDLE_IN_TRANSACTION_MS, this.#timeoutMs))
    await client.query({
      text: `BEGIN ISOLATION LEVEL READ COMMITTED;
        SET LOCAL idle_in_transaction_session_timeout = ${idleMs};
        SET LOCAL statement_timeout = ${Math.ceil(this.#timeoutMs)}`,
    })
    const result = await work({ rows: (query) => this.#rows(client, query) })
    await client.query({ text: 'COMMIT' })
    return result
  }

  async #rows(client: PgClient, query: PgQuery): Promise<readonly PgRow[]> {
    const { name, ...plain } = query
    const named = this.#prepare && name !== undefined
    try {
      const { rows } = await client.query(named ? this.#named(query) : plain)
      return rows as readonly PgRow[]
    } catch (error) {
      if (!this.#prepare || !UNPREPARED.test((error as { code?: string }).code ?? '')) throw error
      this.#prepare = false
      warn(
        'the pooler in front of the database does not keep prepared statements ' +
          `(seen at ${name}): they are disabled; set prepare: false to avoid this warning`,
      )
      const problem = 'the pooler lost a prepared statement; try again without it'
      throw new StoreError('ERR_AGENT_STORE_UNAVAILABLE', problem, { cause: error })
    }
  }

  /** The name contains a hash of the text, as stores of other schemas may share the connection. */
  #named(query: PgQuery): PgQuery {
    let name = this.#names.get(query.text)
    if (name === undefined) {
      name = `${query.name}_${hash('sha1', query.text).slice(0, 12)}`
      this.#names.set(query.text, name)
    }
    return { ...query, name }
  }

  /** Rejects when `work` takes longer than `timeoutMs`; `late` receives a result after that. */
  inTime<T>(
    work: Promise<T>,
    timeoutMs: number = this.#timeoutMs,
    late?: (result: T) => void,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let timedOut = false
      const giveUp = (): void => {
        timedOut = true
        const message = `no answer within ${timeoutMs} ms`
        reject(Object.assign(new Error(message), { code: 'ETIMEDOUT' }))
      }
      // After a pause of the process, timers fire before it reads an answer that has arrived.
      const timer = setTimeout(() => setImmediate(giveUp), timeoutMs)
      work.then(
        (result) => {
          clearTimeout(timer)
          if (timedOut) late?.(result)
          else resolve(result)
        },
        (error: unknown) => {
          clearTimeout(timer)
          reject(error as Error)
        },
      )
    })
  }
}

/**
 * Checks out a connection and adds an `error` listener in the same tick: an unhandled `error` event
 * would end this process.
 */
function checkOut(pool: PgPool): Promise<PgClient> {
  return new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      if (client === undefined) {
        reject(error ?? new Error('the pool returned no connection'))
        return
      }
      if (!listenedTo.has(client)) {
        listenedTo.add(client)
        client.on('error', () => undefined) // the statement in flight rejects as well
      }
      resolve(client)
    })
  })
}
