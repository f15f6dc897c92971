import { checkOptions, type OptionKinds } from '../../../internal/options.js'
import type { RunDetails } from '../../run-details.js'
import { checkRetention, type Retention } from '../retention.js'
import type { PgPool } from './pg-types.js'
import { quoteSchema } from './schema.js'

/** Options of {@link PostgresStore}. */
export interface PostgresStoreOptions {
  /**
   * The host's pool, for example `new pg.Pool({ connectionString })`. The host keeps owning it:
   * `close()` does not end it. Four connections are enough for one process; the store keeps one
   * and refuses to open on a pool whose `max` leaves none beside that.
   */
  readonly pool: PgPool
  /** Schema of the tables, for example one per service. @defaultValue 'runwright' */
  readonly schema?: string | undefined
  /**
   * Create and update the tables in `open()`; otherwise call {@link PostgresStore.migrate} first.
   * @defaultValue true
   */
  readonly migrate?: boolean | undefined
  /**
   * The pool for the connection that listens for notifications: it is held as long as the store is
   * open, and must not go through a pooler that assigns connections per transaction. `false`
   * disables notifications and polls more often. @defaultValue `pool`
   */
  readonly listen?: PgPool | false | undefined
  /**
   * Milliseconds between two polls for changes that no notification reported. @defaultValue 500,
   * without `listen` 100
   */
  readonly pollMs?: number | undefined
  /**
   * Milliseconds after its last heartbeat at which other processes take over the runs of a process.
   * Must be the same in all processes. @defaultValue 10 000
   */
  readonly leaseMs?: number | undefined
  /**
   * How many runs all processes together drive at a time; must be the same in all processes.
   * @defaultValue no bound besides that of each process
   */
  readonly maxRunning?: number | undefined
  /** Capabilities of this process, for example `['host:a', 'gpu']`. @defaultValue none */
  readonly labels?: readonly string[] | undefined
  /**
   * Labels that a process must have to drive a run, decided when the run is created: for folders
   * that exist on some machines only. @defaultValue none
   */
  readonly labelsFor?: ((details: RunDetails) => readonly string[]) | undefined
  /** Which ended runs are kept. @defaultValue all */
  readonly retain?: Retention | undefined
  /**
   * Milliseconds for which a request retries while the database is unavailable, before it fails
   * with `ERR_AGENT_STORE_UNAVAILABLE`. Runs retry without limit. @defaultValue 5000
   */
  readonly patienceMs?: number | undefined
  /** Milliseconds after which a statement without an answer counts as lost. @defaultValue 15 000 */
  readonly statementTimeoutMs?: number | undefined
  /**
   * Use prepared statements. They are disabled automatically where a pooler does not keep them.
   * @defaultValue true
   */
  readonly prepare?: boolean | undefined
}

const OPTIONS: OptionKinds<PostgresStoreOptions> = {
  pool: 'object! a connection pool, such as new pg.Pool()', schema: 'string', migrate: 'boolean',
  listen: 'any', pollMs: 'number', leaseMs: 'number', maxRunning: 'number', labels: 'array',
  labelsFor: 'function', retain: 'object', patienceMs: 'number', statementTimeoutMs: 'number',
  prepare: 'boolean',
}

type Nullable = 'listen' | 'maxRunning' | 'retain'
type Field<K extends keyof PostgresStoreOptions> = Exclude<PostgresStoreOptions[K], undefined>

/** {@link PostgresStoreOptions} with every default filled in; the schema is quoted. */
export type ResolvedPostgresStoreOptions = {
  readonly [K in Exclude<keyof PostgresStoreOptions, Nullable>]-?: Field<K>
} & {
  /** Null: no notifications, no common bound, all runs. */
  readonly [K in Nullable]: Exclude<Field<K>, false> | null
}

/** Fills in defaults. @throws TypeError that names an invalid option. */
export function resolvePostgresStoreOptions(
  options: PostgresStoreOptions,
): ResolvedPostgresStoreOptions {
  checkOptions(options, OPTIONS, 'new PostgresStore()')
  const { pool, listen = pool, leaseMs = 10_000, patienceMs = 5_000 } = options
  const { statementTimeoutMs = 15_000, pollMs = listen === false ? 100 : 500 } = options
  const { maxRunning = null, migrate = true, prepare = true } = options
  for (const [name, value] of Object.entries({ leaseMs, patienceMs, statementTimeoutMs, pollMs })) {
    if (value > 0) continue
    throw new TypeError(`${name} must be a positive number of milliseconds, got ${value}`)
  }
  if (maxRunning !== null && !(Number.isInteger(maxRunning) && maxRunning > 0)) {
    throw new TypeError(`maxRunning must be a positive integer, got ${maxRunning}`)
  }
  if (typeof pool.connect !== 'function') {
    throw new TypeError('pool must be a connection pool with connect(), such as new pg.Pool()')
  }
  return {
    pool,
    schema: quoteSchema(options.schema ?? 'runwright'),
    migrate,
    listen: listen === false ? null : listen,
    pollMs,
    leaseMs,
    maxRunning,
    labels: options.labels ?? [],
    labelsFor: options.labelsFor ?? (() => []),
    retain: options.retain === undefined ? null : checkRetention(options.retain),
    patienceMs,
    statementTimeoutMs,
    prepare,
  }
}
