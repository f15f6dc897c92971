/**
 * What is used of the host's `pg.Pool`, by shape: nothing here imports a driver.
 *
 * @module
 */

/** One row, by column name. */
export type PgRow = Readonly<Record<string, unknown>>

/** What a query answers with. */
export interface PgResult {
  readonly rows: readonly unknown[]
  readonly rowCount: number | null
}

/** A statement with its values; one with a name is prepared once per connection. */
export interface PgQuery {
  readonly text: string
  readonly values?: unknown[]
  readonly name?: string
}

/** A notification, as a listening connection gets it. */
export interface PgNotification {
  readonly channel: string
  readonly payload?: string | undefined
}

/** One connection, as `pg.PoolClient` has it. */
export interface PgClient {
  /** Runs one statement. */
  query(query: PgQuery): Promise<PgResult>
  /** Back to the pool; with `true` or an error it is closed instead. */
  release(destroy?: Error | boolean): void
  /** Calls back for each notification of a channel that is listened to. */
  on(event: 'notification', listener: (message: PgNotification) => void): unknown
  /** Calls back when the connection breaks while nothing is asked. */
  on(event: 'error', listener: (error: Error) => void): unknown
  /** Calls back when the connection has ended. */
  on(event: 'end', listener: () => void): unknown
}

/** A pool of connections, as `pg.Pool` has it. It stays the host's: the store never ends it. */
export interface PgPool {
  /** Calls back with a connection at once when it has one: an error may follow in the same breath. */
  connect(callback: (error: Error | undefined, client: PgClient | undefined) => void): void
}
