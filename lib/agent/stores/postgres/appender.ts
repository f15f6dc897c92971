/**
 * Writes logs. Appends of many runs go out as one statement, which is one commit: while it is on
 * its way, the next ones gather. A run has one statement on its way at a time, so that its records
 * keep their order.
 *
 * The statement moves the row of a run from the sequence number before the records to the one after
 * them, under the fence of this process, and adds the records of just those runs that it moved. It
 * may therefore be sent again when its outcome was lost: it takes effect once.
 *
 * @module
 */
import { StoreError } from '../../errors.js'
import { isTerminal, type RunRecord } from '../../events.js'
import { foldHead } from '../../log/head.js'
import type { RunHead } from '../../run-details.js'
import { checkAppend } from '../append-checks.js'
import type { Claims } from './claims.js'
import { isUnavailable, type Database } from './database.js'
import type { PgRow } from './pool.js'
import {
  epochMs,
  fixedJson,
  goalHash,
  HEAD_COLUMNS,
  headOf,
  isRunId,
  keyText,
  movingJson,
  searchText,
} from './run-rows.js'

/** Statements on their way at a time. */
const LANES = 2
/** Bounds of one statement: runs, and characters unless one append has more. */
const RUNS_PER_STATEMENT = 256
const CHARACTERS_PER_STATEMENT = 4 << 20
/** Times that the row of a run is read again because somebody else was faster. */
const MAX_RACES = 20

/** Records that go together, and the caller who waits for them. */
interface Group {
  readonly records: readonly RunRecord[]
  readonly json: readonly string[]
  /** True once the answer to a statement with these records was lost: they may be stored already. */
  inDoubt: boolean
  races: number
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/** The row of a run, as it was last seen or written by this process. */
interface Row {
  readonly head: RunHead
  readonly fence: string
  readonly claimed: boolean
}

/** What has to be written of one run. */
interface Move {
  readonly runId: string
  readonly groups: readonly Group[]
  readonly row: Row | null
  readonly from: number
  readonly head: RunHead
}

/** Options of {@link Appender}. */
export interface AppenderOptions {
  readonly database: Database
  /** Quoted name of the schema. */
  readonly schema: string
  readonly workerId: string
  readonly claims: Claims
  /** Milliseconds for which appends to runs that this process does not hold are tried. */
  readonly patienceMs: number
  /** Folder and labels of a run that begins. */
  readonly placeOf: (head: RunHead) => Place
  /** Told after each commit, once per run. */
  readonly written: (head: RunHead) => void
}

/** Where a run may work, and which folder it wants for itself. */
export interface Place {
  readonly folder: string | null
  readonly labels: readonly string[]
}

/** Appends records of all runs of this process. */
export class Appender {
  readonly #options: AppenderOptions
  readonly #waiting = new Map<string, Group[]>()
  readonly #busy = new Set<string>()
  /** Rows of the runs that this process holds: it alone changes them. */
  readonly #rows = new Map<string, Row>()
  readonly #lanes = new Set<Promise<void>>()

  constructor(options: AppenderOptions) {
    this.#options = options
  }

  /** As `RunStore.append`. */
  async append(runId: string, records: readonly RunRecord[]): Promise<void> {
    if (!isRunId(runId)) {
      const message = 'a run id has at most 600 characters, none of them NUL or half of one'
      throw new StoreError('ERR_AGENT_STORE', message)
    }
    const json = records.map((record) => JSON.stringify(record))
    await new Promise<void>((resolve, reject) => {
      const copy = [...records]
      this.#enqueue(runId, [{ records: copy, json, inDoubt: false, races: 0, resolve, reject }])
      this.#open()
    })
  }

  /** Forgets what it knows of a run that this process holds no more. */
  forget(runId: string): void {
    this.#rows.delete(runId)
  }

  /** Resolves once everything appended so far has settled. */
  async drain(): Promise<void> {
    while (this.#lanes.size > 0) await Promise.all(this.#lanes)
  }

  #enqueue(runId: string, groups: readonly Group[]): void {
    const waiting = this.#waiting.get(runId)
    if (waiting === undefined) this.#waiting.set(runId, [...groups])
    else waiting.push(...groups)
  }

  #open(): void {
    if (this.#lanes.size >= LANES) return
    const lane = this.#drive().finally(() => this.#lanes.delete(lane))
    this.#lanes.add(lane)
  }

  async #drive(): Promise<void> {
    await null // whatever else is appended in this tick goes along
    for (;;) {
      const batch = this.#next()
      if (batch.size === 0) return
      for (const runId of batch.keys()) this.#busy.add(runId)
      try {
        await this.#write(batch)
      } catch (error) {
        for (const groups of batch.values())
          for (const group of groups) group.reject(error as Error)
        for (const runId of batch.keys()) this.#rows.delete(runId)
      }
      for (const runId of batch.keys()) this.#busy.delete(runId)
    }
  }

  /** Runs with something to write: held ones first, and never both kinds in one statement. */
  #next(): Map<string, Group[]> {
    const held = this.#take((runId) => this.#options.claims.fence(runId) !== undefined)
    return held.size > 0 ? held : this.#take(() => true)
  }

  #take(wanted: (runId: string) => boolean): Map<string, Group[]> {
    const batch = new Map<string, Group[]>()
    let characters = 0
    for (const [runId, groups] of this.#waiting) {
      if (this.#busy.has(runId) || !wanted(runId)) continue
      this.#waiting.delete(runId)
      batch.set(runId, groups)
      for (const { json } of groups) for (const text of json) characters += text.length
      if (batch.size === RUNS_PER_STATEMENT || characters > CHARACTERS_PER_STATEMENT) break
    }
    return batch
  }

  async #write(batch: ReadonlyMap<string, readonly Group[]>): Promise<void> {
    const { claims, patienceMs } = this.#options
    let left = batch
    while (left.size > 0) {
      const held = [...left.keys()].some((runId) => claims.fence(runId) !== undefined)
      // A run of this process goes on when the database is back, however long that takes.
      const patience = held ? Infinity : patienceMs
      const rows = await this.#load([...left.keys()], patience)
      const moves: Move[] = []
      for (const [runId, groups] of left) {
        const move = await this.#plan(runId, groups, rows.get(runId) ?? null, patience)
        if (move !== null) moves.push(move)
      }
      if (moves.length === 0) return
      left = await this.#move(moves, patience)
    }
  }

  /** The rows of these runs, read where they are not known. */
  async #load(runIds: readonly string[], patience: number): Promise<ReadonlyMap<string, Row>> {
    const { database, schema, claims } = this.#options
    const found = new Map<string, Row>()
    for (const runId of runIds) {
      const row = this.#rows.get(runId)
      if (row !== undefined && row.fence === claims.fence(runId)?.toString()) found.set(runId, row)
    }
    const unknown = runIds.filter((runId) => !found.has(runId))
    if (unknown.length === 0) return found
    const text = `SELECT ${HEAD_COLUMNS}, fence::text AS fence, claimed_by IS NOT NULL AS claimed
      FROM ${schema}.runs WHERE run_id = ANY($1)`
    const rows = await database.rows({ name: 'runwright_rows', text, values: [unknown] }, patience)
    for (const row of rows) found.set(row['run_id'] as string, rowOf(row))
    return found
  }

  /** What is to be written of a run; null when nothing is left, as all its groups have settled. */
  async #plan(
    runId: string,
    groups: readonly Group[],
    row: Row | null,
    patience: number,
  ): Promise<Move | null> {
    const from = row?.head.details.last_seq ?? 0
    let head = row?.head ?? null
    const todo: Group[] = []
    const refusal = this.#refusal(runId, row)
    for (const [place, group] of groups.entries()) {
      const last = group.records.at(-1)?.seq ?? 0
      if (group.inDoubt && last <= from && (await this.#isStored(runId, group, patience))) {
        group.resolve()
        continue
      }
      try {
        if (refusal !== null) throw refusal
        checkAppend(runId, group.records, head?.details.last_seq ?? 0)
      } catch (error) {
        group.reject(error as Error)
        continue
      }
      const folded = foldAll(head, group.records)
      if (folded instanceof Error) {
        group.reject(folded)
        // The head is of no use any more: what was to go with it waits for the row to be read again.
        this.#rows.delete(runId)
        const others = [...todo, ...groups.slice(place + 1)]
        if (others.length > 0) this.#enqueue(runId, others)
        return null
      }
      head = folded
      todo.push(group)
    }
    return todo.length === 0 || head === null ? null : { runId, groups: todo, row, from, head }
  }

  /** Why this process may not append to the run, if so. */
  #refusal(runId: string, row: Row | null): StoreError | null {
    const fence = this.#options.claims.fence(runId)
    if (fence !== undefined) {
      if (row?.fence === String(fence)) return null
      this.#options.claims.lose(runId)
    } else if (row?.claimed !== true) return null
    return new StoreError(
      'ERR_AGENT_CLAIM_LOST',
      `run ${runId} is worked on by another process: nothing can be appended to it here`,
    )
  }

  async #isStored(runId: string, { records, json }: Group, patience: number): Promise<boolean> {
    const { database, schema } = this.#options
    const text = `SELECT record FROM ${schema}.events WHERE run_id = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq`
    const values = [runId, records[0]?.seq, records.at(-1)?.seq]
    const rows = await database.rows({ text, values }, patience)
    return rows.length === json.length && rows.every((row, i) => row['record'] === json[i])
  }

  /** Writes the moves; answers with the groups of the runs that somebody else was faster with. */
  async #move(moves: readonly Move[], patience: number): Promise<Map<string, readonly Group[]>> {
    const { claims, written } = this.#options
    const moved = new Set<unknown>()
    const begun = moves.filter(({ row }) => row === null)
    for (const move of begun) if (await this.#begin(move, patience)) moved.add(move.runId)
    const grown = moves.filter(({ row }) => row !== null)
    const refused = new Set<Move>()
    if (grown.length > 0)
      for (const runId of await this.#growApart(grown, patience, refused)) moved.add(runId)
    const missed = new Map<string, readonly Group[]>()
    for (const move of moves) {
      const { runId, groups, head, row } = move
      this.#rows.delete(runId)
      if (refused.has(move)) continue
      if (!moved.has(runId)) {
        const late = groups.filter((group) => !gaveUp(runId, group))
        if (late.length > 0) missed.set(runId, late)
        continue
      }
      if (!keepsClaim(head)) claims.forget(runId)
      else if (row !== null && claims.fence(runId) !== undefined)
        this.#rows.set(runId, { ...row, head })
      written(head)
      for (const group of groups) group.resolve()
    }
    return missed
  }

  async #begin({ runId, groups, head }: Move, patience: number): Promise<boolean> {
    const query = beginQuery(
      this.#options.schema,
      head,
      this.#options.placeOf(head),
      groups.flatMap(({ json }) => json),
    )
    const rows = await this.#options.database.rows(query, patience, () => doubt(groups))
    return rows.some((row) => row['run_id'] === runId)
  }

  /** As `#grow`; what the database refuses of one run costs that run alone. */
  async #growApart(
    moves: readonly Move[],
    patience: number,
    refused: Set<Move>,
  ): Promise<readonly unknown[]> {
    try {
      return await this.#grow(moves, patience)
    } catch (error) {
      if (isUnavailable(error)) throw error
      const [first] = moves
      if (moves.length === 1 && first !== undefined) {
        refused.add(first)
        for (const group of first.groups) group.reject(error as Error)
        return []
      }
    }
    const moved: unknown[] = []
    for (const move of moves) moved.push(...(await this.#growApart([move], patience, refused)))
    return moved
  }

  async #grow(moves: readonly Move[], patience: number): Promise<readonly unknown[]> {
    const { database, schema, workerId, claims } = this.#options
    const records: { readonly runId: string; readonly seq: number; readonly json: string }[] = []
    for (const { runId, groups, from } of moves) {
      let seq = from
      for (const group of groups)
        for (const json of group.json) records.push({ runId, seq: (seq += 1), json })
    }
    const values = [
      moves.map(({ runId }) => runId),
      moves.map(({ row }) => row?.fence),
      moves.map(({ runId }) => claims.fence(runId) !== undefined),
      moves.map(({ from }) => from),
      moves.map(({ head }) => head.details.last_seq),
      moves.map(({ head }) => head.details.status),
      moves.map(({ head }) => movingJson(head)),
      moves.map(({ head }) => epochMs(head.details.gate?.deadline ?? null)),
      moves.map(({ head }) => epochMs(head.details.ended_at)),
      moves.map(({ head }) => keepsClaim(head)),
      records.map(({ runId }) => runId),
      records.map(({ seq }) => seq),
      records.map(({ json }) => json),
      workerId,
    ]
    const text = `WITH moved AS (
        UPDATE ${schema}.runs r SET
          last_seq = m.last_seq, status = m.status, head = m.head, gate_deadline_ms = m.gate_deadline_ms,
          ended_ms = m.ended_ms,
          claimed_by = CASE WHEN m.keeps THEN r.claimed_by END,
          holds_folder = r.holds_folder AND m.ended_ms IS NULL,
          abort_wanted = r.abort_wanted AND m.ended_ms IS NULL
        FROM unnest($1::text[], $2::bigint[], $3::boolean[], $4::integer[], $5::integer[], $6::text[], $7::json[],
          $8::double precision[], $9::double precision[], $10::boolean[])
          AS m(run_id, fence, held, from_seq, last_seq, status, head, gate_deadline_ms, ended_ms, keeps)
        WHERE r.run_id = m.run_id AND r.last_seq = m.from_seq AND r.fence = m.fence
          AND r.claimed_by IS NOT DISTINCT FROM CASE WHEN m.held THEN $14 END
        RETURNING r.run_id
      ), added AS (
        INSERT INTO ${schema}.events (run_id, seq, record)
        SELECT e.run_id, e.seq, e.record FROM unnest($11::text[], $12::integer[], $13::text[]) AS e(run_id, seq, record)
        JOIN moved USING (run_id)
      )
      SELECT run_id FROM moved`
    const again = (): void => moves.forEach(({ groups }) => doubt(groups))
    const rows = await database.rows({ name: 'runwright_append', text, values }, patience, again)
    return rows.map((row) => row['run_id'])
  }
}

/** Stores a run that begins, unless there is one of this id. */
export function beginQuery(
  schema: string,
  head: RunHead,
  { folder, labels }: Place,
  json: readonly string[],
): { readonly name: string; readonly text: string; readonly values: unknown[] } {
  const { details, owner, idempotency } = head
  const text = `WITH begun AS (
      INSERT INTO ${schema}.runs (run_id, created_ms, ended_ms, status, goal_hash, model_name, owner_id, tenant,
        idempotency_key, fixed, head, last_seq, gate_deadline_ms, folder, labels, search_text)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $17)
      ON CONFLICT (run_id) DO NOTHING
      RETURNING run_id
    ), added AS (
      INSERT INTO ${schema}.events (run_id, seq, record)
      SELECT begun.run_id, e.seq, e.record
      FROM begun, unnest($16::text[]) WITH ORDINALITY AS e(record, seq)
    )
    SELECT run_id FROM begun`
  const values = [
    details.run_id,
    epochMs(details.created_at),
    epochMs(details.ended_at),
    details.status,
    goalHash(details.goal),
    keyText(details.model_name),
    owner.id === null ? null : keyText(owner.id),
    owner.tenant === null ? null : keyText(owner.tenant),
    idempotency === null ? null : keyText(idempotency.key),
    fixedJson(head),
    movingJson(head),
    details.last_seq,
    epochMs(details.gate?.deadline ?? null),
    folder,
    [...labels],
    [...json],
    searchText(details),
  ]
  return { name: 'runwright_begin', text, values }
}

function rowOf(row: PgRow): Row {
  return { head: headOf(row), fence: row['fence'] as string, claimed: row['claimed'] === true }
}

/** The head after the records, or why they do not fit; `head` is changed either way. */
function foldAll(head: RunHead | null, records: readonly RunRecord[]): RunHead | null | Error {
  try {
    return records.reduce(foldHead, head)
  } catch (error) {
    return error as Error
  }
}

/** Whether these records are stored is not known until it was looked up. */
function doubt(groups: readonly Group[]): void {
  for (const group of groups) group.inDoubt = true
}

/** Nobody works on a run that waits for a human or has ended. */
function keepsClaim({ details: { status } }: RunHead): boolean {
  return status !== 'awaiting_human' && !isTerminal(status)
}

/** Rejects a group that was overtaken too often; true when it did. */
function gaveUp(runId: string, group: Group): boolean {
  group.races += 1
  if (group.races <= MAX_RACES) return false
  const message = `run ${runId} changes too fast: its records could not be appended`
  group.reject(new StoreError('ERR_AGENT_STORE_UNAVAILABLE', message))
  return true
}
