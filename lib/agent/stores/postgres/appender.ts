/**
 * Appends records to logs.
 *
 * 1. Appends of many runs are batched into one statement, which is one commit; further appends
 *    queue up while it is in flight. A run has one statement in flight at a time, which keeps the
 *    order of its records.
 * 2. A statement advances a run's row from the sequence number before the records to the one after
 *    them, under the fence of this process, and inserts records of the advanced rows only. When
 *    its answer is lost it can be sent again: it takes effect once.
 *
 * @module
 */
import { isUnavailable, StoreError } from '../../errors.js'
import type { RunRecord } from '../../events.js'
import { foldHead } from '../../log/head.js'
import type { RunHead } from '../../run-details.js'
import { checkAppend } from '../append-checks.js'
import {
  insertRunQuery,
  keepsClaim,
  updateRunsQuery,
  type Placement,
} from './append-statements.js'
import { claimLost, type Claims } from './claims.js'
import type { DamagedRuns } from './damaged-runs.js'
import type { Database } from './database.js'
import { formatOf } from './formats.js'
import type { PgRow } from './pg-types.js'
import { HEAD_COLUMNS, isRunId } from './run-rows.js'

const STATEMENTS_IN_FLIGHT = 2
const RUNS_PER_STATEMENT = 256
/** A single append may exceed this. */
const CHARACTERS_PER_STATEMENT = 4 << 20
/** How often a run's row is read again because another process changed it first. */
const MAX_RACES = 20

/** One call of `append()` whose caller waits. */
interface PendingAppend {
  readonly records: readonly RunRecord[]
  readonly json: readonly string[]
  /** True when this process held the run as it appended. */
  readonly held: boolean
  /** True once the answer to a statement with these records was lost: they may be stored. */
  inDoubt: boolean
  races: number
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/** The row of a run, as this process last read or wrote it. */
interface RunRow {
  readonly head: RunHead
  readonly fence: string
  readonly claimed: boolean
}

/** What to write for one run. */
interface RunUpdate {
  readonly runId: string
  readonly appends: readonly PendingAppend[]
  /** Null for a new run. */
  readonly row: RunRow | null
  /** The head after the appends. */
  readonly head: RunHead
}

type Batch = ReadonlyMap<string, readonly PendingAppend[]>

/** Options of {@link Appender}. */
export interface AppenderOptions {
  readonly database: Database
  /** Quoted name of the schema. */
  readonly schema: string
  readonly workerId: string
  readonly claims: Claims
  readonly damaged: DamagedRuns
  /** How long, in milliseconds, to retry appends to runs that this process does not hold. */
  readonly patienceMs: number
  /** Called for each new run. */
  readonly placementOf: (head: RunHead) => Placement
  /** Called after each commit, once per run. */
  readonly onWritten: (head: RunHead) => void
}

/** Appends the records of all runs of this process. */
export class Appender {
  readonly #options: AppenderOptions
  readonly #queues = new Map<string, PendingAppend[]>()
  /** Runs with a statement in flight. */
  readonly #busy = new Set<string>()
  /** Rows of the runs that this process holds, which only it changes. */
  readonly #rows = new Map<string, RunRow>()
  readonly #writers = new Set<Promise<void>>()

  constructor(options: AppenderOptions) {
    this.#options = options
  }

  /** As `RunStore.append`. */
  async append(runId: string, records: readonly RunRecord[]): Promise<void> {
    if (!isRunId(runId)) {
      const message = 'a run id has at most 600 characters, without NUL and lone surrogates'
      throw new StoreError('ERR_AGENT_STORE', message)
    }
    this.#options.damaged.assertReadable(runId)
    const json = records.map((record) => JSON.stringify(record))
    const held = this.#options.claims.fence(runId) !== undefined
    await new Promise<void>((resolve, reject) => {
      const given = { records: [...records], json, held }
      this.#enqueue(runId, [{ ...given, inDoubt: false, races: 0, resolve, reject }])
      this.#startWriter()
    })
  }

  /** Forgets the row of a run that this process no longer holds. */
  forget(runId: string): void {
    this.#rows.delete(runId)
  }

  /** Resolves once all earlier appends have settled. */
  async drain(): Promise<void> {
    while (this.#writers.size > 0) await Promise.all(this.#writers)
  }

  #enqueue(runId: string, appends: readonly PendingAppend[]): void {
    const queue = this.#queues.get(runId)
    if (queue === undefined) this.#queues.set(runId, [...appends])
    else queue.push(...appends)
  }

  #startWriter(): void {
    if (this.#writers.size >= STATEMENTS_IN_FLIGHT) return
    const writer = this.#writeQueues().finally(() => this.#writers.delete(writer))
    this.#writers.add(writer)
  }

  async #writeQueues(): Promise<void> {
    await null // appends called in the same tick join the first batch
    for (;;) {
      const batch = this.#nextBatch()
      if (batch.size === 0) return
      for (const runId of batch.keys()) this.#busy.add(runId)
      try {
        await this.#write(batch)
      } catch (error) {
        for (const append of [...batch.values()].flat()) append.reject(error as Error)
        for (const runId of batch.keys()) this.#rows.delete(runId)
      }
      for (const runId of batch.keys()) this.#busy.delete(runId)
    }
  }

  /** Queued appends of runs that this process holds, else of all others: never both in a batch. */
  #nextBatch(): Batch {
    const held = this.#takeBatch((runId) => this.#options.claims.fence(runId) !== undefined)
    return held.size > 0 ? held : this.#takeBatch(() => true)
  }

  #takeBatch(wanted: (runId: string) => boolean): Batch {
    const batch = new Map<string, PendingAppend[]>()
    let characters = 0
    for (const [runId, appends] of this.#queues) {
      if (this.#busy.has(runId) || !wanted(runId)) continue
      this.#queues.delete(runId)
      batch.set(runId, appends)
      for (const { json } of appends) for (const text of json) characters += text.length
      if (batch.size === RUNS_PER_STATEMENT || characters > CHARACTERS_PER_STATEMENT) break
    }
    return batch
  }

  async #write(batch: Batch): Promise<void> {
    const { claims, patienceMs } = this.#options
    let remaining = batch
    while (remaining.size > 0) {
      const held = [...remaining.keys()].some((runId) => claims.fence(runId) !== undefined)
      // A run of this process waits for the database however long that takes.
      const patience = held ? Infinity : patienceMs
      const rows = await this.#load([...remaining.keys()], patience)
      const updates: RunUpdate[] = []
      for (const [runId, appends] of remaining) {
        const row = rows.get(runId) ?? null
        if (row instanceof StoreError) {
          for (const append of appends) append.reject(row)
          continue
        }
        const update = await this.#plan(runId, appends, row, patience)
        if (update !== null) updates.push(update)
      }
      if (updates.length === 0) return
      remaining = await this.#store(updates, patience)
    }
  }

  /** The rows of these runs, read from the database where they are not known, or why not. */
  async #load(
    runIds: readonly string[],
    patience: number,
  ): Promise<ReadonlyMap<string, RunRow | StoreError>> {
    const { database, schema, claims } = this.#options
    const found = new Map<string, RunRow | StoreError>()
    for (const runId of runIds) {
      const row = this.#rows.get(runId)
      if (row !== undefined && row.fence === claims.fence(runId)?.toString()) found.set(runId, row)
    }
    const unknown = runIds.filter((runId) => !found.has(runId))
    if (unknown.length === 0) return found
    const text = `SELECT ${HEAD_COLUMNS}, fence::text AS fence, claimed_by IS NOT NULL AS claimed
      FROM ${schema}.runs WHERE run_id = ANY($1)`
    const rows = await database.rows({ name: 'runwright_rows', text, values: [unknown] }, patience)
    for (const row of rows) found.set(row['run_id'] as string, this.#rowOf(row))
    return found
  }

  #rowOf(row: PgRow): RunRow | StoreError {
    try {
      const head = this.#options.damaged.head(row)
      return { head, fence: row['fence'] as string, claimed: row['claimed'] === true }
    } catch (error) {
      return error as StoreError
    }
  }

  /** Settles what needs no writing and folds the rest; null when nothing is left to write. */
  async #plan(
    runId: string,
    appends: readonly PendingAppend[],
    row: RunRow | null,
    patience: number,
  ): Promise<RunUpdate | null> {
    const storedSeq = row?.head.details.last_seq ?? 0
    let head = row?.head ?? null
    const accepted: PendingAppend[] = []
    const claimError = this.#checkClaim(runId, row)
    for (const [i, append] of appends.entries()) {
      const lastSeq = append.records.at(-1)?.seq ?? 0
      const mayBeStored = append.inDoubt && lastSeq <= storedSeq
      if (row !== null && mayBeStored && (await this.#isStored(runId, append, patience))) {
        await this.#acknowledge(row.head, [append])
        continue
      }
      try {
        if (claimError !== null) throw claimError
        checkAppend(runId, append.records, head?.details.last_seq ?? 0)
      } catch (error) {
        append.reject(error as Error)
        continue
      }
      const folded = foldAll(head, append.records)
      if (folded instanceof Error) {
        append.reject(folded)
        // The head is half folded: queue the other appends again, on a row read from the database.
        this.#rows.delete(runId)
        const others = [...accepted, ...appends.slice(i + 1)]
        if (others.length > 0) this.#enqueue(runId, others)
        return null
      }
      head = folded
      accepted.push(append)
    }
    return accepted.length === 0 || head === null ? null : { runId, appends: accepted, row, head }
  }

  /** The error for a run that another process holds; null when this process may append. */
  #checkClaim(runId: string, row: RunRow | null): StoreError | null {
    const fence = this.#options.claims.fence(runId)
    if (fence !== undefined) {
      if (row?.fence === String(fence)) return null
      this.#options.claims.lose(runId)
    } else if (row?.claimed !== true) return null
    return claimLost(runId)
  }

  async #isStored(
    runId: string,
    { records, json }: PendingAppend,
    patience: number,
  ): Promise<boolean> {
    const { database, schema } = this.#options
    const text = `SELECT record FROM ${schema}.events
      WHERE run_id = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq`
    const values = [runId, records[0]?.seq, records.at(-1)?.seq]
    const rows = await database.rows({ text, values }, patience)
    return rows.length === json.length && rows.every((row, i) => row['record'] === json[i])
  }

  /** Writes the updates. Returns the appends of runs that another process changed first. */
  async #store(updates: readonly RunUpdate[], patience: number): Promise<Batch> {
    const { claims, onWritten } = this.#options
    const { written, refused } = await this.#send(updates, patience)
    const raced = new Map<string, readonly PendingAppend[]>()
    for (const update of updates) {
      const { runId, appends, head, row } = update
      this.#rows.delete(runId)
      if (refused.has(update)) continue
      if (!written.has(runId)) {
        const retried = appends.filter((append) => !rejectAfterRaces(runId, append))
        if (retried.length > 0) raced.set(runId, retried)
        continue
      }
      if (!keepsClaim(head)) claims.forget(runId)
      else if (row !== null && claims.fence(runId) !== undefined) {
        this.#rows.set(runId, { ...row, head })
      }
      onWritten(head)
      await this.#acknowledge(head, appends)
    }
    return raced
  }

  /**
   * Resolves appends whose records are stored. A holder that goes on after them may run commands,
   * so one that was paused or cut off since must find out first whether it still is the holder.
   */
  async #acknowledge(head: RunHead, appends: readonly PendingAppend[]): Promise<void> {
    const { claims } = this.#options
    for (const append of appends) {
      try {
        if (append.held && keepsClaim(head)) await claims.confirm(head.details.run_id)
        append.resolve()
      } catch (error) {
        append.reject(error as Error)
      }
    }
  }

  /** Resolves with the ids of the runs that were written and the updates that were rejected. */
  async #send(
    updates: readonly RunUpdate[],
    patience: number,
  ): Promise<{ readonly written: Set<unknown>; readonly refused: Set<RunUpdate> }> {
    const written = new Set<unknown>()
    const refused = new Set<RunUpdate>()
    for (const update of updates) {
      if (update.row === null && (await this.#insert(update, patience))) written.add(update.runId)
    }
    const known = updates.filter(({ row }) => row !== null)
    if (known.length > 0) {
      for (const runId of await this.#updateEach(known, patience, refused)) written.add(runId)
    }
    return { written, refused }
  }

  async #insert({ runId, appends, head }: RunUpdate, patience: number): Promise<boolean> {
    const { database, schema, placementOf } = this.#options
    const json = appends.flatMap((append) => append.json)
    const records = appends.flatMap((append) => append.records)
    const query = insertRunQuery(schema, head, placementOf(head), records, json)
    const rows = await database.rows(query, patience, () => markInDoubt(appends))
    return rows.some((row) => row['run_id'] === runId)
  }

  /** As `#update`; when the database refuses a statement, only the run at fault is rejected. */
  async #updateEach(
    updates: readonly RunUpdate[],
    patience: number,
    refused: Set<RunUpdate>,
  ): Promise<readonly unknown[]> {
    try {
      return await this.#update(updates, patience)
    } catch (error) {
      if (isUnavailable(error)) throw error
      const [first] = updates
      if (updates.length === 1 && first !== undefined) {
        refused.add(first)
        for (const append of first.appends) append.reject(error as Error)
        return []
      }
    }
    const written: unknown[] = []
    for (const update of updates) {
      written.push(...(await this.#updateEach([update], patience, refused)))
    }
    return written
  }

  async #update(updates: readonly RunUpdate[], patience: number): Promise<readonly unknown[]> {
    const { database, schema, workerId, claims } = this.#options
    const rowUpdates = updates.map(({ runId, appends, row, head }) => {
      const json = appends.flatMap((append) => append.json)
      const held = claims.fence(runId) !== undefined
      const format = formatOf(appends.flatMap(({ records }) => records))
      return { runId, fence: row?.fence ?? '', held, head, json, format }
    })
    const query = updateRunsQuery(schema, workerId, rowUpdates)
    const again = (): void => updates.forEach(({ appends }) => markInDoubt(appends))
    const rows = await database.rows(query, patience, again)
    return rows.map((row) => row['run_id'])
  }
}

/** The head after the records, or why they cannot be folded; `head` is changed either way. */
function foldAll(head: RunHead | null, records: readonly RunRecord[]): RunHead | null | Error {
  try {
    return records.reduce(foldHead, head)
  } catch (error) {
    return error as Error
  }
}

/** The answer was lost: whether these records are stored has to be looked up. */
function markInDoubt(appends: readonly PendingAppend[]): void {
  for (const append of appends) append.inDoubt = true
}

/** Counts a lost race; rejects the append and returns true after too many. */
function rejectAfterRaces(runId: string, append: PendingAppend): boolean {
  append.races += 1
  if (append.races <= MAX_RACES) return false
  const message =
    `other processes append to run ${runId} all the time: ` +
    `gave up after ${MAX_RACES} attempts; try again`
  append.reject(new StoreError('ERR_AGENT_STORE_UNAVAILABLE', message))
  return true
}
