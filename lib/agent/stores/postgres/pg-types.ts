/**
 * The part of `pg.Pool` that the store uses, by shape: nothing here imports a driver.
 *
 * @module
 */

/** One row, by column name. */
export type PgRow = Readonly<Record<string, unknown>>

/** The part of `pg.QueryResult` that the store relies on. */
export interface PgResult {
  readonly rows: readonly unknown[]
  readonly rowCount: number | null
}

/** A statement with its values; a named one is prepared once per connection. */
export interface PgQuery {
  readonly text: string
  readonly values?: unknown[]
  readonly name?: string
}

/** A notification that a listening connection received. */
export interface PgNotification {
  readonly channel: string
  readonly payload?: string | undefined
}

/** One connection, as `pg.PoolClient` has it. */
export interface PgClient {
  /** Runs one statement; rejects with an error whose `code` is the SQLSTATE or the socket's. */
  query(query: PgQuery): Promise<PgResult>
  /** Returns the connection to the pool; with `true` or an error, closes it instead. */
  release(destroy?: Error | boolean): void
  /** Called for each notification on a channel that the connection listens to. */
  on(event: 'notification', listener: (message: PgNotification) => void): unknown
  /** Called when the connection breaks while no statement is in flight. */
  on(event: 'error', listener: (error: Error) => void): unknown
  /** Called when the connection has ended. */
  on(event: 'end', listener: () => void): unknown
}

/** A pool of connections, such as `pg.Pool`. The host owns it: the store never ends it. */
export interface PgPool {
  /** `max` is the number of connections; without it, there are taken to be enough. */
  readonly options?: { readonly max?: number | undefined } | undefined
  /** Calls back with a connection, whose `error` event may fire in the same tick. */
  connect(callback: (error: Error | undefined, client: PgClient | undefined) => void): void
}
