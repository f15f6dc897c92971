/**
 * Which process drives which run.
 *
 * 1. A process has a lease, which its heartbeats renew. A run whose holder has no lease is free.
 * 2. Each claim of a run increments the run's fence. Every write names the fence of its claim, so a
 *    process that lost its lease without noticing cannot write any more.
 * 3. A process knows until when its lease is valid at least: it ends no earlier than `leaseMs`
 *    after a successful heartbeat was sent. Before that, without another heartbeat, it stops its
 *    commands; after that, it starts nothing until a heartbeat has confirmed its claims.
 * 4. The lease is over when the steady clock says so or the time of day does, because the former
 *    stands still while the machine is suspended. If only the time of day does, it may have been
 *    set: a heartbeat is sent at once, and commands are stopped a second later unless it succeeds.
 *
 * @module
 */
import { isUnavailable, StoreError } from '../../errors.js'
import type { Claim, Occupied, SharedRunsListener } from '../../shared-store.js'
import { chooseRuns, ENDS, NOW_MS, unclaimed } from './candidates.js'
import type { Database, Transaction } from './database.js'
import { KNOWN_FORMAT } from './formats.js'
import type { HeartbeatConnection } from './heartbeat-connection.js'
import type { PgQuery, PgRow } from './pg-types.js'
import { holderQuery } from './places.js'
import { turnWhenClaimed } from './trees.js'

/** Milliseconds before the end of a lease at which commands are stopped: SIGTERM, 2 s, SIGKILL. */
const STOP_MS = 3_000

/** How often the time of day is looked at between two heartbeats. */
const LOOK_MS = 1_000

/** Options of {@link Claims}. */
export interface ClaimsOptions {
  readonly database: Database
  readonly heartbeat: HeartbeatConnection
  /** Quoted name of the schema. */
  readonly schema: string
  readonly workerId: string
  readonly leaseMs: number
  readonly labels: readonly string[]
  /** How many runs all processes together drive; null for no common bound. */
  readonly maxRunning: number | null
  readonly patienceMs: number
}

/** The runs that this process holds, and the lease by which it keeps them. */
export class Claims {
  readonly #options: ClaimsOptions
  /** Fence by run. */
  readonly #held = new Map<string, bigint>()
  /** Held runs whose abort request was passed to the listener. */
  readonly #abortReported = new Set<string>()
  #listener: SharedRunsListener | undefined
  /** True after a lost answer: this process may hold claims in the database that are not here. */
  #inDoubt = false
  /** Settles when the claims so far have: they are made one after another. */
  #turn: Promise<unknown> = Promise.resolve()
  #heartbeats: Promise<void> | undefined
  #lease: Lease = NO_LEASE
  #doubtTimer: NodeJS.Timeout | undefined
  #confirming: Promise<void> | undefined

  constructor(options: ClaimsOptions) {
    this.#options = options
  }

  /** The fence of this process's claim; undefined when it does not hold the run. */
  fence(runId: string): bigint | undefined {
    return this.#held.get(runId)
  }

  /** Sets the listener for abort requests and lost claims. */
  listen(listener: SharedRunsListener): void {
    this.#listener = listener
  }

  /** Acquires the lease and renews it until the database is closed. @throws {@link StoreError} */
  async start(): Promise<void> {
    await this.#beat(this.#options.patienceMs)
    this.#heartbeats = this.#keepBeating()
  }

  /** Resolves once heartbeats have ended, after `Database.giveUp()`. */
  async close(): Promise<void> {
    await this.#heartbeats
    clearTimeout(this.#doubtTimer)
    await this.#options.heartbeat.close()
  }

  /** Ends the lease, so that other processes need not wait until it runs out. */
  async resign(): Promise<void> {
    const { database, schema, workerId } = this.#options
    const text = `DELETE FROM ${schema}.workers WHERE worker_id = $1`
    await database.rows({ text, values: [workerId] }, 0).catch(() => [])
  }

  /** Is it certain that no other process has taken over the runs of this one? */
  get #isCertain(): boolean {
    return isValid(this.#lease)
  }

  /** As `SharedRuns.confirm`. */
  async confirm(runId: string): Promise<void> {
    const { database, leaseMs } = this.#options
    while (this.#held.has(runId)) {
      if (this.#isCertain) return
      // Not one beat without limit: others wait for their turn behind it.
      this.#confirming ??= this.#beat(leaseMs / 3).finally(() => (this.#confirming = undefined))
      await this.#confirming.catch((error: unknown) => {
        if (!isUnavailable(error) || database.closing.aborted) throw error
      })
    }
    throw claimLost(runId)
  }

  /** As `SharedRuns.claim`. */
  claim(slots: number, except: readonly string[]): Promise<readonly Claim[]> {
    return this.#inTurn(() => this.#claim(slots, except))
  }

  /** As `SharedRuns.occupy`. */
  occupy(runId: string, folder: boolean): Promise<Occupied> {
    return this.#inTurn(() => this.#occupy(runId, folder))
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work)
    this.#turn = done.catch(() => undefined)
    return done
  }

  async #claim(slots: number, except: readonly string[]): Promise<readonly Claim[]> {
    const { database } = this.#options
    if (!this.#isCertain) await this.#beat(0)
    const lease = this.#lease
    if (!this.#inDoubt) {
      const rows = (query: PgQuery): Promise<readonly PgRow[]> => database.rows(query, 0)
      if ((await chooseRuns(rows, this.#options, slots, except)).length === 0) return []
    }
    try {
      const rows = await database.transaction(0, (transaction) =>
        this.#claimWithin(transaction, slots, except),
      )
      this.#inDoubt = false
      // A heartbeat of meanwhile has not confirmed these claims.
      if (!isValid(lease)) this.#lease = NO_LEASE
      return rows.map((row) => this.#addClaim(row))
    } catch (error) {
      this.#inDoubt = true
      throw error
    }
  }

  async #occupy(runId: string, folder: boolean): Promise<Occupied> {
    const { database, patienceMs } = this.#options
    if (!this.#isCertain) await this.#beat(patienceMs)
    const lease = this.#lease
    try {
      const row = await database.transaction(patienceMs, (transaction) =>
        this.#occupyWithin(transaction, runId, folder),
      )
      if (!isValid(lease)) this.#lease = NO_LEASE
      if (row === undefined) return { outcome: 'held' }
      const holder = row['holder'] as string | null
      if (holder !== null) return { outcome: 'cwd_busy', runId: holder }
      this.#held.set(runId, BigInt(row['fence'] as string))
      return { outcome: 'occupied' }
    } catch (error) {
      this.#inDoubt = true
      throw error
    }
  }

  /** The fence of the run's row, or who holds its folder; undefined when it cannot be claimed. */
  async #occupyWithin(
    { rows }: Transaction,
    runId: string,
    folder: boolean,
  ): Promise<PgRow | undefined> {
    const { schema, workerId } = this.#options
    await rows(this.#claimLock())
    if (this.#inDoubt) await rows(this.#releaseUnknown())
    const fence = this.#held.get(runId)?.toString() ?? null
    const own = '(claimed_by = $1 AND fence = $3)'
    if (folder) {
      const [holder] = await rows(holderQuery(schema, runId))
      if (holder !== undefined) return holder
    }
    const text = `UPDATE ${schema}.runs SET claimed_by = $1, operates = true,
        fence = CASE WHEN ${own} THEN fence ELSE fence + 1 END,
        holds_folder = holds_folder OR $4
      WHERE run_id = $2 AND (${own} OR (
        $3::bigint IS NULL AND (ended_ms IS NOT NULL OR status = 'awaiting_human')
        AND ${unclaimed(schema)}
      ))
      RETURNING fence::text AS fence, NULL AS holder`
    const values = [workerId, runId, fence, folder]
    const [row] = await rows({ name: 'runwright_occupy', text, values })
    return row
  }

  /** Forgets a claim that an append has cleared in the database. */
  forget(runId: string): void {
    this.#held.delete(runId)
    this.#abortReported.delete(runId)
  }

  /** Forgets a claim that another process has taken over, and reports the loss. */
  lose(runId: string): void {
    if (!this.#held.has(runId)) return
    this.forget(runId)
    this.#listener?.lost(runId)
  }

  /**
   * As `SharedRuns.release`; resolves with true when there was a claim. A run that has not begun
   * gives its folder back.
   */
  async release(runId: string): Promise<boolean> {
    const { database, schema, workerId, patienceMs } = this.#options
    const fence = this.#held.get(runId)
    if (fence === undefined) return false
    this.forget(runId)
    const text = `UPDATE ${schema}.runs SET claimed_by = NULL, operates = operation_open,
        holds_folder = holds_folder AND status <> 'pending'
          AND (ended_ms IS NULL OR operation_open)
      WHERE run_id = $1 AND claimed_by = $2 AND fence = $3`
    try {
      await database.rows({ text, values: [runId, workerId, String(fence)] }, patienceMs)
    } catch (error) {
      this.#inDoubt = true
      throw error
    }
    return true
  }

  /** Records an abort request; resolves with false when the run has ended or already has one. */
  async requestAbort(runId: string, by: string | null): Promise<boolean> {
    const { database, schema, patienceMs } = this.#options
    const text = `UPDATE ${schema}.runs SET abort_wanted = true, abort_by = $2
      WHERE run_id = $1 AND ended_ms IS NULL AND NOT abort_wanted RETURNING run_id`
    const rows = await database.rows({ text, values: [runId, by] }, patienceMs)
    if (rows.length > 0 && this.#held.has(runId)) this.#reportAbort(runId, by)
    return rows.length > 0
  }

  /** Reads abort requests, by an extra heartbeat, if this process holds one of the runs. */
  async checkAborts(runIds: readonly string[]): Promise<void> {
    const isNew = (runId: string): boolean =>
      this.#held.has(runId) && !this.#abortReported.has(runId)
    if (runIds.some(isNew)) await this.#beat(0).catch(() => undefined)
  }

  #reportAbort(runId: string, by: string | null): void {
    if (this.#abortReported.has(runId)) return
    this.#abortReported.add(runId)
    this.#listener?.abortRequested(runId, { by })
  }

  async #keepBeating(): Promise<void> {
    const { database, leaseMs } = this.#options
    while (!database.closing.aborted) {
      await this.#pauseUntilBeat()
      if (database.closing.aborted) return
      let renewed = false
      while (!renewed && !database.closing.aborted) {
        renewed = await this.#beat(leaseMs / 3).then(() => true, () => false)
        if (!renewed) await database.pause(leaseMs / 30)
      }
    }
  }

  async #pauseUntilBeat(): Promise<void> {
    const { database, leaseMs } = this.#options
    let left = leaseMs / 3
    do {
      await database.pause(Math.min(left, LOOK_MS))
      left -= LOOK_MS
    } while (left > 0 && this.#isCertain && !database.closing.aborted)
    const isOverByTime = !this.#isCertain && performance.now() < this.#lease.steadyUntil
    if (isOverByTime) this.#doubtIn(Math.min(LOOK_MS, this.#untilDoubt))
  }

  async #beat(patienceMs: number): Promise<void> {
    const { heartbeat, schema, workerId, leaseMs } = this.#options
    let sent = NO_LEASE
    let before: ReadonlyMap<string, bigint> = new Map()
    // The locks and a claim elsewhere exclude each other; appends pass them.
    const text = `WITH beat AS (
        INSERT INTO ${schema}.workers (worker_id, expires_at, format)
        VALUES ($1, clock_timestamp() + $2 * interval '1 millisecond', ${KNOWN_FORMAT})
        ON CONFLICT (worker_id) DO UPDATE SET expires_at = excluded.expires_at
      )
      SELECT run_id, fence::text AS fence, abort_wanted, abort_by
      FROM ${schema}.runs WHERE run_id = ANY($3) FOR KEY SHARE`
    const query = (): PgQuery => {
      sent = { steadyUntil: performance.now() + leaseMs, timeUntil: Date.now() + leaseMs }
      before = new Map(this.#held)
      return { name: 'runwright_beat', text, values: [workerId, leaseMs, [...before.keys()]] }
    }
    const rows = await heartbeat.rows(query, patienceMs, leaseMs / 3)
    const found = new Map(rows.map((row) => [row['run_id'] as string, row]))
    for (const [runId, fence] of before) {
      if (this.#held.get(runId) !== fence) continue // released meanwhile
      const row = found.get(runId)
      if (row === undefined || BigInt(row['fence'] as string) !== fence) this.lose(runId)
      else if (row['abort_wanted'] === true)
        this.#reportAbort(runId, row['abort_by'] as string | null)
    }
    this.#renewed(sent)
  }

  #renewed(lease: Lease): void {
    this.#lease = lease
    this.#doubtIn(this.#untilDoubt)
  }

  /** Milliseconds until commands are stopped, by the steady clock. */
  get #untilDoubt(): number {
    const stopMs = Math.min(STOP_MS, this.#options.leaseMs / 2)
    return this.#lease.steadyUntil - stopMs - performance.now()
  }

  /** Stops the commands of all runs after so many milliseconds, unless the lease is renewed. */
  #doubtIn(ms: number): void {
    clearTimeout(this.#doubtTimer)
    const doubt = (): void => {
      for (const runId of this.#held.keys()) this.#listener?.doubtful(runId)
    }
    this.#doubtTimer = setTimeout(doubt, Math.max(0, ms)).unref()
  }

  async #claimWithin(
    { rows }: Transaction,
    slots: number,
    except: readonly string[],
  ): Promise<readonly PgRow[]> {
    const { schema, workerId, maxRunning } = this.#options
    await rows(this.#claimLock())
    // Under the lock, because a claim that timed out here may still have been running there.
    if (this.#inDoubt) await rows(this.#releaseUnknown())
    let free = slots
    if (maxRunning !== null) {
      const [row] = await rows(this.#countRunning())
      free = Math.min(free, Math.max(0, maxRunning - (row?.['working'] as number)))
    }
    const runIds = await chooseRuns(rows, this.#options, free, except)
    if (runIds.length === 0) return []
    // Rows may have changed since they were read: check again, and skip those being written.
    const text = `UPDATE ${schema}.runs r
      SET claimed_by = $1, fence = r.fence + 1, turn = coalesce(c.turn, r.turn),
        holds_folder = (r.operates AND r.holds_folder)
          OR (r.folder IS NOT NULL AND (r.holds_folder OR NOT c.ends))
      FROM (
        SELECT *, ${turnWhenClaimed(schema)} AS turn FROM (
          SELECT run_id, claimed_by AS before, ${ENDS} OR ended_ms IS NOT NULL AS ends
          FROM ${schema}.runs
          WHERE run_id = ANY($2) AND (ended_ms IS NULL OR operates) AND ${unclaimed(schema)}
          ORDER BY array_position($2, run_id) FOR UPDATE SKIP LOCKED
        ) AS in_order
      ) c
      WHERE r.run_id = c.run_id
      RETURNING r.run_id, r.fence::text AS fence, c.before, r.abort_wanted, r.abort_by,
        EXISTS (SELECT 1 FROM ${schema}.messages m
          WHERE m.run_id = r.run_id AND m.answer IS NULL) AS has_messages,
        r.status = 'awaiting_human' AND coalesce(r.gate_deadline_ms <= ${NOW_MS}, false) AS overdue`
    const claimed = await rows({ name: 'runwright_claim', text, values: [workerId, runIds] })
    await this.#checkHolders(rows, claimed)
    const order = new Map(runIds.map((runId, i) => [runId, i]))
    return [...claimed].sort(
      (a, b) => (order.get(String(a['run_id'])) ?? 0) - (order.get(String(b['run_id'])) ?? 0),
    )
  }

  #claimLock(): PgQuery {
    const text = `SELECT pg_advisory_xact_lock(hashtext($1), 1)`
    return { name: 'runwright_claim_lock', text, values: [this.#options.schema] }
  }

  /** A holder whose lease had ended may have renewed it before its runs were locked here. */
  async #checkHolders(rows: Transaction['rows'], claimed: readonly PgRow[]): Promise<void> {
    const holders = claimed.map((row) => row['before']).filter((holder) => holder !== null)
    if (holders.length === 0) return
    const text = `SELECT 1 FROM ${this.#options.schema}.workers
      WHERE worker_id = ANY($1) AND expires_at > clock_timestamp() LIMIT 1`
    const renewed = await rows({ name: 'runwright_holders', text, values: [holders] })
    if (renewed.length === 0) return
    const message = 'a process renewed its lease while its runs were claimed; try again later'
    throw new StoreError('ERR_AGENT_STORE_UNAVAILABLE', message)
  }

  #addClaim(row: PgRow): Claim {
    const runId = row['run_id'] as string
    this.#held.set(runId, BigInt(row['fence'] as string))
    this.#abortReported.delete(runId)
    const wanted = row['abort_wanted'] === true
    if (wanted) this.#abortReported.add(runId)
    const abort = wanted ? { by: row['abort_by'] as string | null } : null
    return {
      runId,
      abandoned: row['before'] !== null,
      abort,
      hasMessages: row['has_messages'] === true,
      overdue: row['overdue'] === true,
    }
  }

  /** Releases claims of this process in the database that it does not know of. */
  #releaseUnknown(): PgQuery {
    const { schema, workerId } = this.#options
    const text = `UPDATE ${schema}.runs SET claimed_by = NULL
      WHERE claimed_by = $1 AND NOT run_id = ANY($2)`
    return { text, values: [workerId, [...this.#held.keys()]] }
  }

  /** Runs that work: those that wait for others that they have started do not. */
  #countRunning(): PgQuery {
    const { schema } = this.#options
    const text = `SELECT count(*)::integer AS working FROM ${schema}.runs r
      WHERE claimed_by IS NOT NULL AND ended_ms IS NULL AND NOT ${ENDS}
        AND NOT ${unclaimed(schema)}
        AND NOT EXISTS (SELECT 1 FROM ${schema}.runs c
          WHERE c.parent_run_id = r.run_id AND c.ended_ms IS NULL)`
    return { name: 'runwright_working', text }
  }
}

/** Until when a lease is valid at least. */
interface Lease {
  /** By `performance.now()`. */
  readonly steadyUntil: number
  /** In epoch milliseconds. */
  readonly timeUntil: number
}

const NO_LEASE: Lease = { steadyUntil: -Infinity, timeUntil: -Infinity }

function isValid({ steadyUntil, timeUntil }: Lease): boolean {
  return performance.now() < steadyUntil && Date.now() < timeUntil
}

/** The error for a run that another process holds, or none. */
export function claimLost(runId: string): StoreError {
  return new StoreError(
    'ERR_AGENT_CLAIM_LOST',
    `run ${runId} is held by another process: this one cannot append to it`,
  )
}
