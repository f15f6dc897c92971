/**
 * The reads of a store: logs, heads, lists and counts. Any of them may be repeated.
 *
 * @module
 */
import { orderOf } from '../../../internal/run-sorts.js'
import { storableText } from '../../../internal/text.js'
import type { RunOwner, RunRecord, RunStatus } from '../../events.js'
import type { RunHead } from '../../run-details.js'
import type { RunPage, RunQuery } from '../../store.js'
import {
  checkQuery, decodeCursor, encodeCursor, folderKey, metadataKeys, searchWords, toMs,
  type ListKey,
} from '../list-query.js'
import type { DamagedRuns } from './damaged-runs.js'
import type { Database } from './database.js'
import { orderColumns } from './list-orders.js'
import type { PgQuery, PgRow } from './pg-types.js'
import { goalHash, HEAD_COLUMNS, isRunId, keyText, searchable } from './run-rows.js'

/** Longer than for other reads: subscriptions should survive a restart or failover. */
const LOG_PATIENCE_MS = 60_000

export class RunQueries {
  readonly #database: Database
  readonly #schema: string
  readonly #patienceMs: number
  readonly #damaged: DamagedRuns

  constructor(database: Database, schema: string, patienceMs: number, damaged: DamagedRuns) {
    this.#database = database
    this.#schema = schema
    this.#patienceMs = patienceMs
    this.#damaged = damaged
  }

  async read(runId: string, after: number, limit: number): Promise<readonly RunRecord[]> {
    if (!isRunId(runId)) return []
    this.#damaged.assertReadable(runId)
    const text = `SELECT seq, record FROM ${this.#schema}.events
      WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`
    const query: PgQuery = { name: 'runwright_read', text, values: [runId, after, limit] }
    const rows = await this.#database.rows(query, LOG_PATIENCE_MS)
    return rows.map((row) => this.#damaged.record(runId, row))
  }

  async head(runId: string): Promise<RunHead | null> {
    if (!isRunId(runId)) return null
    this.#damaged.assertReadable(runId)
    const text = `SELECT ${HEAD_COLUMNS} FROM ${this.#schema}.runs WHERE run_id = $1`
    const [row] = await this.#rows({ name: 'runwright_head', text, values: [runId] })
    return row === undefined ? null : this.#damaged.head(row)
  }

  async list(query: RunQuery): Promise<RunPage> {
    checkQuery(query)
    const { limit, sort } = query
    const values: unknown[] = []
    const value = (parameter: unknown): string => `$${values.push(parameter)}`
    const where = conditions(this.#schema, query, value)
    const { field, step } = orderOf(sort)
    const columns = orderColumns(field)
    const direction = step === 1 ? 'ASC' : 'DESC'
    const text = `SELECT ${HEAD_COLUMNS}, root_run_id, parent_run_id, role, created_ms,
        ${field === null ? `''` : columns[0]} AS order_text
      FROM ${this.#schema}.runs
      ${where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`}
      ORDER BY ${columns.map((column) => `${column} ${direction}`).join(', ')}
      LIMIT ${value(limit + 1)}`
    const rows = await this.#rows({ text, values })
    const page = rows.slice(0, limit)
    const last = page.at(-1)
    const next =
      rows.length > limit && last !== undefined
        ? encodeCursor(keyOf(last), sort)
        : null
    return { heads: page.map((row) => this.#damaged.listed(row)), next }
  }

  async counts(): Promise<Readonly<Record<RunStatus, number>>> {
    const text = `SELECT status, count(*)::integer AS runs
      FROM ${this.#schema}.runs GROUP BY status`
    const counts = { pending: 0, running: 0, awaiting_human: 0, achieved: 0, failed: 0, aborted: 0 }
    for (const row of await this.#rows({ name: 'runwright_counts', text })) {
      counts[row['status'] as RunStatus] = row['runs'] as number
    }
    return counts
  }

  async findByKey(owner: RunOwner, key: string, since: number): Promise<RunHead | null> {
    const [row] = await this.#rows(keyQuery(this.#schema, owner, key, since))
    return row === undefined ? null : this.#damaged.head(row)
  }

  /** Forgets runs that were damaged and have been deleted, by whatever process. */
  async forgetDeleted(): Promise<void> {
    const known = this.#damaged.all.map(({ runId }) => runId)
    if (known.length === 0) return
    const text = `SELECT run_id FROM ${this.#schema}.runs WHERE run_id = ANY($1)`
    const query = { name: 'runwright_damaged', text, values: [known] }
    const rows = await this.#database.rows(query, 0)
    const stored = new Set(rows.map((row) => row['run_id']))
    for (const runId of known) if (!stored.has(runId)) this.#damaged.forget(runId)
  }

  #rows(query: PgQuery): Promise<readonly Readonly<Record<string, unknown>>[]> {
    return this.#database.rows(query, this.#patienceMs)
  }
}

function keyOf(row: PgRow): ListKey {
  return {
    createdMs: row['created_ms'] as number,
    runId: row['run_id'] as string,
    order: row['order_text'] as string,
  }
}

/** Selects the newest run that was created with a key at or after `since`, in float seconds. */
export function keyQuery(
  schema: string,
  { id, tenant }: RunOwner,
  key: string,
  since: number,
): PgQuery {
  const text = `SELECT ${HEAD_COLUMNS} FROM ${schema}.runs
    WHERE idempotency_key = $1 AND owner_id IS NOT DISTINCT FROM $2
      AND tenant IS NOT DISTINCT FROM $3 AND created_ms >= $4
    ORDER BY created_ms DESC, run_id DESC LIMIT 1`
  const values = [
    keyText(key),
    id === null ? null : keyText(id),
    tenant === null ? null : keyText(tenant),
  ]
  return { name: 'runwright_key', text, values: [...values, Math.floor(toMs(since))] }
}

/** The conditions of a query; `value` adds a parameter and returns its placeholder. */
function conditions(
  schema: string,
  query: RunQuery,
  value: (parameter: unknown) => string,
): string[] {
  const { root, parent, role, cwd, endReason, metadata, sort } = query
  const { tenant, status, goal, modelName, createdAfter, createdBefore, cursor } = query
  const where: string[] = []
  if (tenant === null) where.push('tenant IS NULL')
  else if (tenant !== undefined) where.push(`tenant = ${value(keyText(tenant))}`)
  if (status !== undefined && status.length > 0) where.push(`status = ANY(${value([...status])})`)
  if (goal !== undefined) where.push(`goal_hash = ${value(goalHash(goal))}`)
  if (modelName !== undefined) where.push(`model_name = ${value(keyText(modelName))}`)
  if (root !== undefined) {
    // The ids first: whatever the planner expects of them, it reads no others.
    const id = value(keyText(root))
    where.push(`run_id = ANY (ARRAY(
      SELECT run_id FROM ${schema}.runs WHERE root_run_id = ${id} UNION ALL
      SELECT run_id FROM ${schema}.runs WHERE run_id = ${id} AND root_run_id IS NULL))`)
  }
  if (parent !== undefined) where.push(`parent_run_id = ${value(keyText(parent))}`)
  if (role !== undefined) where.push('root_run_id IS NULL')
  if (cwd !== undefined) where.push(`cwd_key = ${value(folderKey(cwd))}`)
  if (endReason !== undefined && endReason.length > 0) {
    where.push(`end_reason = ANY(${value([...endReason])})`)
  }
  if (metadata !== undefined) where.push(`metadata_keys @> ${value(metadataKeys(metadata))}`)
  for (const word of searchWords(query)) {
    where.push(`strpos(search_text, ${value(searchable(word))}) > 0`)
  }
  if (createdAfter !== undefined) {
    where.push(`created_ms >= ${value(Math.floor(toMs(createdAfter)) + 1)}`)
  }
  if (createdBefore !== undefined) {
    where.push(`created_ms < ${value(Math.ceil(toMs(createdBefore)))}`)
  }
  if (cursor !== undefined) {
    const { field, step } = orderOf(sort)
    const columns = orderColumns(field)
    const { order, createdMs, runId } = decodeCursor(cursor, sort)
    const last = [storableText(order), createdMs, storableText(runId)].slice(-columns.length)
    const isBehind = `(${columns.join(', ')}) ${step === 1 ? '>' : '<'}`
    where.push(`${isBehind} (${last.map((part) => value(part)).join(', ')})`)
  }
  return where
}
