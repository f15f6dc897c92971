/**
 * Runs statements over the host's pool, and tells what may be tried again from what may not.
 *
 * @module
 */
import { backoffDelay, type Backoff } from '../../../internal/backoff.js'
import { hash } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { StoreError } from '../../errors.js'
import type { PgClient, PgPool, PgQuery, PgRow } from './pool.js'

/** Failures of the connection, of the server's state or of a race, by SQLSTATE: the same statement may succeed later. */
const TRANSIENT = /^(08|53|57P0|25P0[34]$|40001$|40P01$|55P03$|57014$|25006$)/
/** Failures of the socket under the connection, by Node's code. */
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
/** A prepared statement that the server behind a pooler does not know, or knows from another client. */
const UNPREPARED = /^(26000|42P05)$/
const BACKOFF: Backoff = { firstMs: 50, maxMs: 2_000 }
/**
 * Longest silence inside a transaction, in milliseconds. The server ends one that says nothing for
 * longer, with its locks: a process that was paused or cut off in it must not stop all others.
 */
const SILENCE_MS = 3_000

/** Clients whose `error` event is heard: without a listener a lost connection would end the process. */
const heard = new WeakSet<PgClient>()

/** How the statements of one store are run. */
export interface DatabaseOptions {
  readonly pool: PgPool
  /** Milliseconds after which a statement counts as lost, and its connection is closed. */
  readonly statementTimeoutMs: number
  /** Use prepared statements. */
  readonly prepare: boolean
}

/** A connection inside a transaction. */
export interface Transaction {
  rows(query: PgQuery): Promise<readonly PgRow[]>
}

/** Statements against the database of a store. */
export class Database {
  readonly #pool: PgPool
  readonly #timeoutMs: number
  readonly #closing = new AbortController()
  /** Names of prepared statements by their text. */
  readonly #names = new Map<string, string>()
  readonly #inUse = new Set<Promise<unknown>>()
  #prepare: boolean

  constructor({ pool, statementTimeoutMs, prepare }: DatabaseOptions) {
    setMaxListeners(0, this.#closing.signal) // one for each statement that is tried again
    this.#pool = pool
    this.#timeoutMs = statementTimeoutMs
    this.#prepare = prepare
  }

  /** Fires when the store is closed. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /**
   * The rows of one statement, tried again for up to `patienceMs` (0: once; Infinity: until the
   * store is closed) while the database cannot be reached. Only for statements that may run twice;
   * `again` is told before each further try, when the one before may have taken effect.
   *
   * @throws {@link StoreError}: `ERR_AGENT_STORE_UNAVAILABLE` when patience ends.
   */
  rows(query: PgQuery, patienceMs: number, again?: () => void): Promise<readonly PgRow[]> {
    const attempt = (client: PgClient): Promise<readonly PgRow[]> => this.#rows(client, query)
    return this.patiently(patienceMs, () => this.#checkedOut(attempt), again)
  }

  /** As {@link Database.rows} for several statements that take effect together or not at all. */
  transaction<T>(patienceMs: number, work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const attempt = (client: PgClient): Promise<T> => this.#transact(client, work)
    return this.patiently(patienceMs, () => this.#checkedOut(attempt))
  }

  /** Runs `attempt` again while it fails with `ERR_AGENT_STORE_UNAVAILABLE` and patience lasts. */
  async patiently<T>(
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

  /** Waits, or less when the store is closed. */
  async pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#closing.signal }).catch(() => undefined)
  }

  /** A connection of a pool; the caller releases it. */
  async connect(pool: PgPool = this.#pool): Promise<PgClient> {
    const connected = this.inTime(checkOut(pool), this.#timeoutMs, (late) => late.release())
    return await connected.catch((error: unknown) => {
      throw this.failure(error)
    })
  }

  /** Stops all patience: what cannot be done now fails. */
  giveUp(): void {
    this.#closing.abort()
  }

  /** Stops all patience and resolves when every statement in flight has ended. */
  async close(): Promise<void> {
    this.giveUp()
    await Promise.allSettled(this.#inUse)
  }

  /** An error of the driver as one of ours. The text of the statement and its values stay out of it. */
  failure(cause: unknown): Error {
    if (cause instanceof StoreError) return cause
    const { code = '', message = String(cause) } = cause as { code?: string; message?: string }
    if (TRANSIENT.test(code) || SOCKET.has(code) || isConnectionLoss(message)) {
      const text = `the database cannot be reached now (${message}); it is tried again`
      return new StoreError('ERR_AGENT_STORE_UNAVAILABLE', text, { cause })
    }
    return new StoreError('ERR_AGENT_STORE', `the database refused a statement: ${message}`, {
      cause,
    })
  }

  /** As {@link Database.rows}, on a connection that the caller has; it is the caller's to release. */
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
      // A connection in an unknown state is not given to the next statement.
      client?.release(true)
      throw failure
    }
  }

  async #transact<T>(client: PgClient, work: (transaction: Transaction) => Promise<T>): Promise<T> {
    await client.query({
      text: `BEGIN ISOLATION LEVEL READ COMMITTED;
        SET LOCAL idle_in_transaction_session_timeout = ${Math.ceil(Math.min(SILENCE_MS, this.#timeoutMs))};
        SET LOCAL statement_timeout = ${Math.ceil(this.#timeoutMs)}`,
    })
    const result = await work({ rows: (query) => this.#rows(client, query) })
    await client.query({ text: 'COMMIT' })
    return result
  }

  async #rows(client: PgClient, query: PgQuery): Promise<readonly PgRow[]> {
    const { name, ...plain } = query
    try {
      const { rows } = await client.query(
        this.#prepare && name !== undefined ? this.#named(query) : plain,
      )
      return rows as readonly PgRow[]
    } catch (error) {
      if (!this.#prepare || !UNPREPARED.test((error as { code?: string }).code ?? '')) throw error
      this.#prepare = false
      process.emitWarning(
        `a pooler between here and the database does not keep prepared statements (seen at ${name}); going on without them`,
      )
      throw new StoreError(
        'ERR_AGENT_STORE_UNAVAILABLE',
        'a prepared statement was lost; it is tried again',
        {
          cause: error,
        },
      )
    }
  }

  /** Stores of other schemas may use the same connection: the name tells the text as well. */
  #named(query: PgQuery): PgQuery {
    let name = this.#names.get(query.text)
    if (name === undefined) {
      name = `${query.name}_${hash('sha1', query.text).slice(0, 12)}`
      this.#names.set(query.text, name)
    }
    return { ...query, name }
  }

  /** `work`, or a failure when it takes too long; what then still comes is handed to `late`. */
  inTime<T>(
    work: Promise<T>,
    timeoutMs: number = this.#timeoutMs,
    late?: (result: T) => void,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let over = false
      const giveUp = (): void => {
        over = true
        const message = `no answer within ${timeoutMs} ms`
        reject(Object.assign(new Error(message), { code: 'ETIMEDOUT' }))
      }
      // A process that stood still finds its timers due before it reads what has come meanwhile.
      const timer = setTimeout(() => setImmediate(giveUp), timeoutMs)
      work.then(
        (result) => {
          clearTimeout(timer)
          if (over) late?.(result)
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
 * A connection of the pool. It gets a listener for its errors in the very moment in which it is
 * handed over: one that the server closes just then would otherwise end this process.
 */
export function checkOut(pool: PgPool): Promise<PgClient> {
  return new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      if (client === undefined) {
        reject(error ?? new Error('the pool gave no connection'))
        return
      }
      if (!heard.has(client)) {
        heard.add(client)
        client.on('error', () => undefined) // the statement in flight tells
      }
      resolve(client)
    })
  })
}

/** Is this a failure that may pass? */
export function isUnavailable(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'ERR_AGENT_STORE_UNAVAILABLE'
}

/** The driver reports some losses of a connection by message alone. */
function isConnectionLoss(message: string): boolean {
  return /connection terminated|terminating connection|connection timeout|timeout exceeded|client (was|has) (closed|encountered)|not queryable/i.test(
    message,
  )
}
