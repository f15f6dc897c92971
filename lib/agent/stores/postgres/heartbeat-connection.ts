/**
 * The connection for heartbeats, which do not wait for one of the pool: with a busy pool the
 * process would lose its lease.
 *
 * @module
 */
import type { Database } from './database.js'
import type { PgClient, PgQuery, PgRow } from './pg-types.js'

/** The connection that listens for notifications, and a callback for when it proves broken. */
interface Shared {
  readonly client: PgClient
  readonly onBroken: () => void
}

/** Runs statements one after another on a connection that is always available. */
export class HeartbeatConnection {
  readonly #database: Database
  readonly #dedicated: boolean
  #shared: Shared | undefined
  #own: PgClient | undefined
  #last: Promise<unknown> = Promise.resolve()

  /** @param dedicated - keep a connection of its own, for stores without notifications. */
  constructor(database: Database, dedicated: boolean) {
    this.#database = database
    this.#dedicated = dedicated
  }

  /** Uses the otherwise idle connection that listens, until the returned function is called. */
  share(client: PgClient, onBroken: () => void): () => void {
    const shared = { client, onBroken }
    this.#shared = shared
    return () => {
      if (this.#shared === shared) this.#shared = undefined
    }
  }

  /** As `Database.rows`; `query` is called for each attempt, which is lost after `timeoutMs`. */
  rows(query: () => PgQuery, patienceMs: number, timeoutMs: number): Promise<readonly PgRow[]> {
    const rows = this.#last.then(() =>
      this.#database.retryWhileUnavailable(patienceMs, () => this.#attempt(query, timeoutMs)),
    )
    this.#last = rows.catch(() => undefined)
    return rows
  }

  /** Releases its own connection after the last statement. */
  async close(): Promise<void> {
    await this.#last
    this.#own?.release()
    this.#own = undefined
  }

  async #attempt(query: () => PgQuery, timeoutMs: number): Promise<readonly PgRow[]> {
    const database = this.#database
    const shared = this.#shared
    if (shared !== undefined) {
      return await database.rowsOn(shared.client, query(), timeoutMs).catch((error: unknown) => {
        shared.onBroken()
        throw error
      })
    }
    const client = this.#own ?? (await database.connect())
    this.#own = undefined
    try {
      const rows = await database.rowsOn(client, query(), timeoutMs)
      if (this.#dedicated) this.#own = client
      else client.release()
      return rows
    } catch (error) {
      client.release(true)
      throw error
    }
  }
}
