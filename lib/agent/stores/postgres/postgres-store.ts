/**
 * Runs in a PostgreSQL database that any number of processes share. The database coordinates them:
 * claims with leases and fences, the order of runs, exclusive folders, and notifications.
 *
 * @module
 */
import { hostname } from 'node:os'
import { uuidV7 } from '../../../internal/hash.js'
import { StoreError } from '../../errors.js'
import type { RunOwner, RunRecord, RunStatus } from '../../events.js'
import type { HoldoutStore } from '../../holdout-store.js'
import type { ObjectStore } from '../../object-store.js'
import type { RunHead } from '../../run-details.js'
import type { SharedRuns, SharedRunsListener } from '../../shared-store.js'
import type { RunPage, RunQuery, RunStore, StoreDamage } from '../../store.js'
import { checkPage } from '../append-checks.js'
import { checkRetention, type Retention } from '../retention.js'
import { unreadableHead } from '../unreadable-head.js'
import { admit } from './admission.js'
import { type Placement, placementOf } from './append-statements.js'
import { Appender } from './appender.js'
import { Claims } from './claims.js'
import { DamagedRuns } from './damaged-runs.js'
import { Database } from './database.js'
import { FORMAT_LABELS } from './formats.js'
import { HeartbeatConnection } from './heartbeat-connection.js'
import { PostgresHoldouts } from './holdouts.js'
import { Messages } from './messages.js'
import { Notifications } from './notifications.js'
import { PostgresObjects } from './objects.js'
import {
  type PostgresStoreOptions, type ResolvedPostgresStoreOptions, resolvePostgresStoreOptions,
} from './options.js'
import type { PgPool } from './pg-types.js'
import { foreignQuery } from './places.js'
import { noteRemoval, Removals } from './removals.js'
import { sweep } from './retention.js'
import { RunQueries } from './run-queries.js'
import { isRunId } from './run-rows.js'
import { checkVersion, migrate } from './schema.js'

export type { PostgresStoreOptions } from './options.js'

const SWEEP_INTERVAL_MS = 10 * 60_000

/** Keeps runs in PostgreSQL (14 or newer), for any number of processes. */
export class PostgresStore implements RunStore {
  readonly shared: SharedRuns
  readonly objects: ObjectStore
  readonly holdouts: HoldoutStore
  readonly #options: ResolvedPostgresStoreOptions
  readonly #database: Database
  readonly #placementOf: (head: RunHead) => Placement
  readonly #claims: Claims
  readonly #notifications: Notifications
  readonly #messages: Messages
  readonly #appender: Appender
  readonly #damaged = new DamagedRuns()
  readonly #queries: RunQueries
  readonly #objects: PostgresObjects
  readonly #removals: Removals
  #listener: SharedRunsListener | undefined
  #state: 'new' | 'open' | 'closed' = 'new'
  #closing: Promise<void> | undefined
  #sweeping: Promise<void> | undefined
  #endReservation: (() => void) | undefined

  /** @throws TypeError that names an invalid option. */
  constructor(options: PostgresStoreOptions) {
    const resolved = resolvePostgresStoreOptions(options)
    const { schema, patienceMs, leaseMs, labels, maxRunning, listen, pollMs } = resolved
    const workerId = `${hostname()}/${process.pid}/${uuidV7(Date.now())}`
    const database = new Database(resolved)
    const heartbeat = new HeartbeatConnection(database, listen === null)
    const common = { database, schema, workerId, heartbeat, patienceMs }
    this.#options = resolved
    this.#database = database
    this.#placementOf = (head) => placementOf(head, resolved.labelsFor(head.details))
    this.#queries = new RunQueries(database, schema, patienceMs, this.#damaged)
    const checkOpen = (): void => this.#checkOpen()
    this.objects = this.#objects = new PostgresObjects({ ...common, checkOpen })
    this.holdouts = new PostgresHoldouts({ ...common, checkOpen })
    const claims = { leaseMs, maxRunning, labels: [...labels, ...FORMAT_LABELS] }
    this.#claims = new Claims({ ...common, ...claims })
    this.#removals = new Removals(common)
    this.#notifications = new Notifications({
      ...common,
      listen,
      pollMs,
      onPoll: () => this.#removals.look(),
      onClaimable: () => this.#listener?.claimable(),
      onAbortsRequested: (runIds) => void this.#claims.checkAborts(runIds),
      onMessages: (runId) => {
        if (this.#claims.fence(runId) !== undefined) this.#listener?.messagesLeft(runId)
        this.#messages.answered(runId)
      },
    })
    this.#messages = new Messages({
      ...common,
      leaseMs,
      onChanged: (runId) => this.#notifications.messages(runId),
      onFreed: () => this.#notifications.claimable(),
    })
    this.#appender = new Appender({
      ...common,
      claims: this.#claims,
      damaged: this.#damaged,
      placementOf: this.#placementOf,
      onWritten: (head) => this.#onWritten(head),
    })
    this.shared = this.#sharedRuns(workerId)
  }

  #sharedRuns(workerId: string): SharedRuns {
    const { schema, patienceMs } = this.#options
    const claims = this.#claims
    const notifications = this.#notifications
    const admissions = {
      database: this.#database,
      schema,
      patienceMs,
      placementOf: this.#placementOf,
      workerId,
      fenceOf: (runId: string) => claims.fence(runId),
      damaged: this.#damaged,
    }
    return {
      admit: async (admission) => {
        this.#checkOpen()
        const admitted = await admit(admissions, admission)
        if (admitted.outcome === 'admitted') notifications.claimable()
        return admitted
      },
      claim: async (slots, except = []) => {
        this.#checkOpen()
        return await claims.claim(slots, except)
      },
      occupy: async (runId, folder) => {
        this.#checkOpen()
        return await claims.occupy(runId, folder)
      },
      release: async (runId) => {
        this.#appender.forget(runId)
        if (await claims.release(runId)) notifications.claimable()
      },
      requestAbort: async (runId, by) => {
        this.#checkOpen()
        if (!(await claims.requestAbort(runId, by))) return
        notifications.abortRequested(runId)
        notifications.claimable()
      },
      leaveMessage: async (runId, message) => {
        this.#checkOpen()
        return await this.#messages.leave(runId, message)
      },
      takeMessages: (runId) => this.#messages.take(runId),
      answerMessage: (...answer) => this.#messages.answer(...answer),
      listen: (listener) => {
        this.#listener = listener
        claims.listen(listener)
      },
      watch: (runId, changed) => notifications.watch(runId, changed),
      holds: (runId) => claims.fence(runId) !== undefined,
      confirm: (runId) => claims.confirm(runId),
    }
  }

  /** Creates and updates the tables; `open()` does so too unless `migrate` is false. */
  async migrate(): Promise<void> {
    const { schema, patienceMs } = this.#options
    await migrate(this.#database, schema, patienceMs)
  }

  async open(): Promise<void> {
    if (this.#state === 'closed') this.#checkOpen()
    if (this.#state === 'open') return
    const { schema, patienceMs, retain, pool, listen } = this.#options
    const endReservation = reserveConnections(pool, listen)
    try {
      if (this.#options.migrate) await this.migrate()
      else await checkVersion(this.#database, schema, patienceMs)
      await this.#claims.start()
    } catch (error) {
      endReservation()
      throw error
    }
    this.#endReservation = endReservation
    this.#state = 'open'
    this.#notifications.start()
    this.#sweeping = this.#keepSweeping(retain)
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

  async hasForeignRun(folder: string, tenant: string | null): Promise<boolean> {
    this.#checkOpen()
    const { schema, patienceMs } = this.#options
    const { details, ...head } = unreadableHead('')
    const own = { ...head, owner: { id: null, tenant }, details: { ...details, cwd: folder } }
    const query = foreignQuery(schema, own, this.#placementOf(own).labels)
    return (await this.#database.rows(query, patienceMs)).length > 0
  }

  async delete(runId: string): Promise<void> {
    this.#checkOpen()
    if (!isRunId(runId)) return
    const { schema, patienceMs } = this.#options
    await this.#database.transaction(patienceMs, async ({ rows }) => {
      await rows({ text: `DELETE FROM ${schema}.runs WHERE run_id = $1`, values: [runId] })
      await rows({ text: `DELETE FROM ${schema}.events WHERE run_id = $1`, values: [runId] })
      await rows({ text: `DELETE FROM ${schema}.holdouts WHERE run_id = $1`, values: [runId] })
      await rows(noteRemoval(schema))
    })
    this.#appender.forget(runId)
    this.#claims.forget(runId)
    this.#damaged.forget(runId)
    this.#notifications.deleted(runId)
    this.#removals.here()
  }

  onRemoved(listener: (here: boolean) => void): void {
    this.#removals.listen(listener)
  }

  async check(): Promise<void> {
    this.#checkOpen()
    const [row] = await this.#database.rows({ text: 'SELECT pg_is_in_recovery() AS standby' }, 0)
    if (row?.['standby'] === true) {
      const message = 'the database is a read-only standby; promote it or connect to the primary'
      throw new StoreError('ERR_AGENT_STORE_UNAVAILABLE', message)
    }
    await this.#queries.forgetDeleted()
  }

  damage(): StoreDamage {
    return { runs: this.#damaged.all, files: this.#objects.problems }
  }

  /**
   * Removes ended runs that `retain` no longer keeps and returns how many. The store does so by
   * itself every ten minutes.
   */
  async sweep(retain: Retention = this.#options.retain ?? {}): Promise<number> {
    const kept = checkRetention(retain)
    this.#checkOpen()
    return await this.#sweep(kept)
  }

  async #sweep(kept: Retention): Promise<number> {
    const { schema } = this.#options
    return await sweep(this.#database, schema, kept, () => this.#removals.here())
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** For `await using`; the same as `close()`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #close(): Promise<void> {
    const wasOpen = this.#state === 'open'
    this.#state = 'closed'
    if (wasOpen) {
      // Pending appends fail when the database stays unavailable for this long.
      void this.#database.pause(this.#options.patienceMs).then(() => this.#database.giveUp())
      await Promise.all([this.#appender.drain(), this.#objects.close()])
      await this.#claims.resign()
    }
    await this.#database.close()
    await Promise.all([this.#notifications.close(), this.#claims.close(), this.#sweeping])
    this.#endReservation?.()
  }

  #onWritten({ details }: RunHead): void {
    this.#notifications.grown(details.run_id, details.last_seq)
    // The append may have freed the run, its folder or its slot.
    if (this.#claims.fence(details.run_id) === undefined) this.#notifications.claimable()
  }

  async #keepSweeping(retain: Retention | null): Promise<void> {
    // Without retention only rows of ended processes are removed, which is not urgent.
    if (retain === null) await this.#database.pause(SWEEP_INTERVAL_MS)
    while (!this.#database.closing.aborted) {
      await this.#sweep(retain ?? {}).catch(() => 0)
      await this.#database.pause(SWEEP_INTERVAL_MS)
    }
  }

  #checkOpen(): void {
    if (this.#state === 'open') return
    const what = this.#state === 'new' ? 'is not open yet; call open() first' : 'is closed'
    throw new StoreError('ERR_AGENT_STORE', `the store ${what}`)
  }
}

/** Connections that open stores keep, of each pool. */
const kept = new WeakMap<PgPool, number>()

/**
 * Reserves the connection that a store keeps while it is open: the one that listens and carries the
 * heartbeat, of `listen` or else of `pool`. Stores on one pool must leave one for statements, or
 * each statement would wait for a connection that never becomes free.
 *
 * @returns a function that ends the reservation.
 * @throws {@link StoreError} when a pool is too small.
 */
function reserveConnections(pool: PgPool, listen: PgPool | null): () => void {
  const keeping = listen ?? pool
  assertRoom('pool', pool, (kept.get(pool) ?? 0) + (keeping === pool ? 2 : 1))
  if (keeping !== pool) assertRoom('listen', keeping, (kept.get(keeping) ?? 0) + 1)
  kept.set(keeping, (kept.get(keeping) ?? 0) + 1)
  return () => void kept.set(keeping, (kept.get(keeping) ?? 1) - 1)
}

function assertRoom(name: string, { options }: PgPool, needed: number): void {
  const max = options?.max ?? Infinity
  if (max >= needed) return
  throw new StoreError(
    'ERR_AGENT_STORE',
    `max of ${name} is ${max}, but the stores that use it need ${needed} connections: each keeps ` +
      'one to listen and for its heartbeat, and statements need another; ' +
      `set max to ${needed} or more (4 are enough for one store)`,
  )
}
