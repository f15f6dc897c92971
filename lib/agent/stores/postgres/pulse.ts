/**
 * The connection of the heartbeat. It must not wait behind others for one of the pool: a crowd of
 * readers, or whatever else the host does with its pool, would cost this process its lease.
 *
 * @module
 */
import type { Database } from './database.js'
import type { PgClient, PgQuery, PgRow } from './pool.js'

/** A connection that is there already, and what to do when it turns out to be broken. */
interface Lent {
  readonly client: PgClient
  readonly broken: () => void
}

/** Runs statements that cannot wait, one after another. */
export class Pulse {
  readonly #database: Database
  readonly #keeps: boolean
  #lent: Lent | undefined
  #kept: PgClient | undefined
  #last: Promise<unknown> = Promise.resolve()

  /** `keeps`: hold a connection for this alone, as nobody is going to lend one. */
  constructor(database: Database, keeps: boolean) {
    this.#database = database
    this.#keeps = keeps
  }

  /** The connection that listens is idle: statements go there until the result is called. */
  lend(client: PgClient, broken: () => void): () => void {
    const lent = { client, broken }
    this.#lent = lent
    return () => {
      if (this.#lent === lent) this.#lent = undefined
    }
  }

  /** As `Database.rows`; a try counts as lost after `timeoutMs`. */
  rows(query: PgQuery, patienceMs: number, timeoutMs: number): Promise<readonly PgRow[]> {
    const rows = this.#last.then(() =>
      this.#database.patiently(patienceMs, () => this.#attempt(query, timeoutMs)),
    )
    this.#last = rows.catch(() => undefined)
    return rows
  }

  /** Gives back what it keeps when its last statement has ended. */
  async close(): Promise<void> {
    await this.#last
    this.#kept?.release()
    this.#kept = undefined
  }

  async #attempt(query: PgQuery, timeoutMs: number): Promise<readonly PgRow[]> {
    const database = this.#database
    const lent = this.#lent
    if (lent !== undefined) {
      return await database.rowsOn(lent.client, query, timeoutMs).catch((error: unknown) => {
        lent.broken()
        throw error
      })
    }
    const client = this.#kept ?? (await database.connect())
    this.#kept = undefined
    try {
      const rows = await database.rowsOn(client, query, timeoutMs)
      if (this.#keeps) this.#kept = client
      else client.release()
      return rows
    } catch (error) {
      client.release(true)
      throw error
    }
  }
}
