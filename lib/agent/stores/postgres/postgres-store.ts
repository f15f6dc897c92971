/**
 * Runs in a PostgreSQL database that any number of processes share. The database does the
 * coordination: claims with leases and fences, order, exclusivity, and notifications.
 *
 * @module
 */
import { hostname } from 'node:os'
import { uuidV7 } from '../../../internal/uuid.js'
import { StoreError } from '../../errors.js'
import type { RunOwner, RunRecord, RunStatus } from '../../events.js'
import type { RunDetails, RunHead } from '../../run-details.js'
import type { SharedRuns } from '../../shared-store.js'
import type { RunPage, RunQuery, RunStore } from '../../store.js'
import { checkPage } from '../append-checks.js'
import { admit } from './admission.js'
import { Appender, type Place } from './appender.js'
import { Changes } from './changes.js'
import { Claims, releaseAndTell } from './claims.js'
import { Database } from './database.js'
import type { PgPool } from './pool.js'
import { Pulse } from './pulse.js'
import { sweep } from './retention.js'
import { RunQueries } from './run-queries.js'
import { isRunId, keyText } from './run-rows.js'
import { checkVersion, migrate, quoteSchema } from './schema.js'
import type { Retention } from '../run-index.js'

/** Milliseconds between two looks for runs that are kept no longer. */
const SWEEP_MS = 10 * 60_000

/** Options of {@link PostgresStore}. */
export interface PostgresStoreOptions {
  /**
   * The host's pool, for example `new pg.Pool({ connectionString })`. It stays the host's and is
   * not ended by `close()`. Four connections are enough for one process, one of which it keeps.
   */
  readonly pool: PgPool
  /** Schema of the tables. Stores of different schemas know nothing of one another. @defaultValue 'runwright' */
  readonly schema?: string | undefined
  /** Make and update the tables in `open()`; otherwise call {@link PostgresStore.migrate} beforehand. @defaultValue true */
  readonly migrate?: boolean | undefined
  /**
   * Where the connection comes from that listens for notifications: it is held as long as the store
   * is open, and must not go through a pooler that hands connections out per transaction. `false`
   * listens to nothing and polls more often. @defaultValue `pool`
   */
  readonly listen?: PgPool | false | undefined
  /**
   * Milliseconds between two looks for what no notification told. @defaultValue 500, without
   * `listen` 100
   */
  readonly pollMs?: number | undefined
  /**
   * Milliseconds after its last sign of life at which the runs of a process are given to others.
   * The same for all processes. @defaultValue 10 000
   */
  readonly leaseMs?: number | undefined
  /** Runs that all processes together work on at a time; the same for all. @defaultValue no bound but their own */
  readonly maxRunning?: number | undefined
  /** What this process has that others have not, for example `['host:a', 'gpu']`. @defaultValue none */
  readonly labels?: readonly string[] | undefined
  /**
   * Labels that a process must have to work on a run, decided when it is created: for folders that
   * not every machine has. @defaultValue none
   */
  readonly labelsFor?: ((details: RunDetails) => readonly string[]) | undefined
  /** Which ended runs are kept. @defaultValue all */
  readonly retain?: Retention | undefined
  /**
   * Milliseconds for which a request waits for a database that cannot be reached, before it is
   * refused with `ERR_AGENT_STORE_UNAVAILABLE`. Runs wait as long as it takes. @defaultValue 5000
   */
  readonly patienceMs?: number | undefined
  /** Milliseconds after which a statement counts as lost. @defaultValue 15 000 */
  readonly statementTimeoutMs?: number | undefined
  /** Use prepared statements; given up by itself where a pooler does not keep them. @defaultValue true */
  readonly prepare?: boolean | undefined
}

/** Keeps runs in PostgreSQL (14 or newer), for any number of processes. */
export class PostgresStore implements RunStore {
  readonly shared: SharedRuns
  readonly #database: Database
  readonly #schema: string
  readonly #options: PostgresStoreOptions
  readonly #patienceMs: number
  readonly #claims: Claims
  readonly #changes: Changes
  readonly #appender: Appender
  readonly #queries: RunQueries
  #state: 'new' | 'open' | 'closed' = 'new'
  #closing: Promise<void> | undefined
  #sweeping: Promise<void> | undefined

  /** @throws TypeError naming the option that is wrong. */
  constructor(options: PostgresStoreOptions) {
    const { pool, listen = pool, labels = [], labelsFor = () => [] } = options
    const {
      leaseMs = 10_000,
      patienceMs = 5_000,
      statementTimeoutMs = 15_000,
      prepare = true,
    } = options
    const pollMs = options.pollMs ?? (listen === false ? 100 : 500)
    for (const [name, value] of Object.entries({
      leaseMs,
      patienceMs,
      statementTimeoutMs,
      pollMs,
    })) {
      if (!(value > 0))
        throw new TypeError(`${name} must be a positive number of milliseconds, got ${value}`)
    }
    const { maxRunning = null } = options
    if (maxRunning !== null && !(Number.isInteger(maxRunning) && maxRunning > 0)) {
      throw new TypeError(`maxRunning must be a whole number from 1 up, got ${maxRunning}`)
    }
    if (typeof pool?.connect !== 'function') {
      throw new TypeError(
        'pool must be a pool of connections with connect(), such as new pg.Pool()',
      )
    }
    const schema = quoteSchema(options.schema ?? 'runwright')
    const workerId = `${hostname()}/${process.pid}/${uuidV7(Date.now())}`
    const database = new Database({ pool, statementTimeoutMs, prepare })
    const placeOf = (head: RunHead): Place => placeIn(head, labelsFor(head.details))
    this.#options = options
    this.#database = database
    this.#schema = schema
    this.#patienceMs = patienceMs
    this.#queries = new RunQueries(database, schema, patienceMs)
    const pulse = new Pulse(database, listen === false)
    this.#claims = new Claims({
      database,
      pulse,
      schema,
      workerId,
      leaseMs,
      labels,
      maxRunning,
      patienceMs,
    })
    let claimable = (): void => undefined
    this.#changes = new Changes({
      database,
      pulse,
      schema,
      workerId,
      pollMs,
      listen: listen === false ? null : listen,
      claimable: () => claimable(),
      abortsWanted: (runIds) => void this.#claims.lookAt(runIds),
    })
    this.#appender = new Appender({
      database,
      schema,
      workerId,
      patienceMs,
      placeOf,
      claims: this.#claims,
      written: (head) => this.#written(head),
    })
    this.shared = {
      admit: async (admission) => {
        this.#checkOpen()
        const admitted = await admit({ database, schema, patienceMs, placeOf }, admission)
        if (admitted.outcome === 'admitted') this.#changes.claimable()
        return admitted
      },
      claim: async (slots) => {
        this.#checkOpen()
        return await this.#claims.claim(slots)
      },
      release: async (runId) => {
        this.#appender.forget(runId)
        await releaseAndTell(this.#claims, this.#changes, runId)
      },
      requestAbort: async (runId, by) => {
        this.#checkOpen()
        if (!(await this.#claims.requestAbort(runId, by))) return
        this.#changes.abortWanted(runId)
        this.#changes.claimable()
      },
      listen: (listener) => {
        claimable = () => listener.claimable()
        this.#claims.listen(listener)
      },
      watch: (runId, changed) => this.#changes.watch(runId, changed),
      holds: (runId) => this.#claims.fence(runId) !== undefined,
    }
  }

  /** Makes and updates the tables; done by `open()` as well unless `migrate: false`. */
  async migrate(): Promise<void> {
    await migrate(this.#database, this.#schema, this.#patienceMs)
  }

  async open(): Promise<void> {
    if (this.#state === 'closed') this.#checkOpen()
    if (this.#state === 'open') return
    if (this.#options.migrate !== false) await this.migrate()
    else await checkVersion(this.#database, this.#schema, this.#patienceMs)
    await this.#claims.start()
    this.#state = 'open'
    this.#changes.start()
    this.#sweeping = this.#keepSweeping(this.#options.retain)
  }

  async append(runId: string, records: readonly RunRecord[]): Promise<void> {
    this.#checkOpen()
    await this.#appender.append(runId, records)
  }

  async read(runId: string, after: number, limit: number): Promise<readonly RunRecord[]> {
    this.#checkOpen()
    checkPage(after, limit)
    return await this.#queries.read(runId, after, limit)
  }

  async head(runId: string): Promise<RunHead | null> {
    this.#checkOpen()
    return await this.#queries.head(runId)
  }

  async list(query: RunQuery): Promise<RunPage> {
    this.#checkOpen()
    return await this.#queries.list(query)
  }

  async counts(): Promise<Readonly<Record<RunStatus, number>>> {
    this.#checkOpen()
    return await this.#queries.counts()
  }

  async findByKey(owner: RunOwner, key: string, since: number): Promise<RunHead | null> {
    this.#checkOpen()
    return await this.#queries.findByKey(owner, key, since)
  }

  async delete(runId: string): Promise<void> {
    this.#checkOpen()
    if (!isRunId(runId)) return
    await this.#database.transaction(this.#patienceMs, async ({ rows }) => {
      await rows({ text: `DELETE FROM ${this.#schema}.runs WHERE run_id = $1`, values: [runId] })
      await rows({ text: `DELETE FROM ${this.#schema}.events WHERE run_id = $1`, values: [runId] })
    })
    this.#appender.forget(runId)
    this.#claims.forget(runId)
    this.#changes.deleted(runId)
  }

  async check(): Promise<void> {
    this.#checkOpen()
    const [row] = await this.#database.rows({ text: 'SELECT pg_is_in_recovery() AS standby' }, 0)
    if (row?.['standby'] !== true) return
    const message =
      'the database is a standby, which takes no records; it is waited for to be promoted'
    throw new StoreError('ERR_AGENT_STORE_UNAVAILABLE', message)
  }

  /** Removes ended runs that `retain` keeps no more, as is done every ten minutes; tells how many. */
  async sweep(retain: Retention = this.#options.retain ?? {}): Promise<number> {
    this.#checkOpen()
    return await sweep(this.#database, this.#schema, retain)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** Calls `close()`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #close(): Promise<void> {
    const wasOpen = this.#state === 'open'
    this.#state = 'closed'
    if (wasOpen) {
      // What still waits is given up when the database does not come back in time.
      const patience = this.#database.pause(this.#patienceMs).then(() => this.#database.giveUp())
      await this.#appender.drain()
      await this.#claims.resign()
      void patience
    }
    await this.#database.close()
    await Promise.all([this.#changes.close(), this.#claims.close(), this.#sweeping])
  }

  #written({ details }: RunHead): void {
    this.#changes.grown(details.run_id, details.last_seq)
    // Its folder, its slot or the run itself may be free now.
    if (this.#claims.fence(details.run_id) === undefined) this.#changes.claimable()
  }

  async #keepSweeping(retain: Retention | undefined): Promise<void> {
    // Without a rule only what processes left behind is removed, which is in no hurry.
    if (retain === undefined) await this.#database.pause(SWEEP_MS)
    while (!this.#database.closing.aborted) {
      await sweep(this.#database, this.#schema, retain ?? {}).catch(() => 0)
      await this.#database.pause(SWEEP_MS)
    }
  }

  #checkOpen(): void {
    if (this.#state === 'open') return
    const what = this.#state === 'new' ? 'is not open yet; call open() first' : 'is closed'
    throw new StoreError('ERR_AGENT_STORE', `the store ${what}`)
  }
}

/** The folder that a run wants for itself: one path is another folder on machines of another label. */
function placeIn({ details }: RunHead, labels: readonly string[]): Place {
  const sorted = [...new Set(labels)].sort()
  return { folder: keyText(JSON.stringify([details.cwd, ...sorted])), labels: sorted }
}
