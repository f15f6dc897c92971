import type { Retention } from '../retention.js'
import type { Database, Transaction } from './database.js'
import type { PgRow } from './pg-types.js'
import { noteRemoval } from './removals.js'

/** Bounds of one transaction, so that it holds its locks only briefly. */
const RUNS_PER_BATCH = 200
/** A single run may have more. */
const EVENTS_PER_BATCH = 20_000
const MS_PER_DAY = 86_400_000

/** Selects the next runs to remove. */
type Expired = (transaction: Transaction) => Promise<readonly PgRow[]>

/**
 * Selects the runs of trees whose roots meet a condition, trees in this order, and in each the
 * children first: a batch may end within a tree. A child whose root is gone is a tree of its own.
 * None of a tree goes as long as one of its runs has not ended, or has its files changed.
 */
function treesQuery(schema: string, condition: string, order: string): string {
  return `WITH tops AS MATERIALIZED (
      SELECT run_id, row_number() OVER (ORDER BY ${order}) AS place FROM ${schema}.runs r
      WHERE ended_ms IS NOT NULL AND NOT operates AND ${condition}
        AND (SELECT run_id FROM ${schema}.runs WHERE run_id = r.root_run_id) IS NULL
        AND (SELECT 1 FROM ${schema}.runs c WHERE c.root_run_id = r.run_id
          AND (c.ended_ms IS NULL OR c.operates) LIMIT 1) IS NULL
      ORDER BY ${order} LIMIT ${RUNS_PER_BATCH}
    )
    SELECT m.run_id, m.last_seq FROM tops, LATERAL (
      SELECT run_id, last_seq, 1 AS level FROM ${schema}.runs WHERE root_run_id = tops.run_id
      UNION ALL
      SELECT run_id, last_seq, 2 FROM ${schema}.runs WHERE run_id = tops.run_id
    ) AS m
    ORDER BY place, level LIMIT ${RUNS_PER_BATCH}`
}

/**
 * Removes ended runs that `retain` no longer keeps, oldest first, and rows of processes that ended
 * long ago. One process at a time does this; for the others there is nothing left to do.
 *
 * @param onRemoved called whenever some were removed
 * @returns how many runs were removed.
 */
export async function sweep(
  database: Database,
  schema: string,
  { days, runs }: Retention,
  onRemoved: () => void,
): Promise<number> {
  let removed = 0
  const remove = async (expired: Expired): Promise<void> => {
    const once = (transaction: Transaction): Promise<number> =>
      removeBatch(transaction, schema, expired)
    for (let batch = 1; batch > 0 && !database.closing.aborted; removed += batch) {
      batch = await database.transaction(0, once)
      if (batch > 0) onRemoved()
    }
  }
  await remove(async ({ rows }) => {
    await rows({
      text: `DELETE FROM ${schema}.workers w WHERE expires_at < now() - interval '1 hour'
        AND NOT EXISTS (SELECT 1 FROM ${schema}.runs r WHERE r.claimed_by = w.worker_id)`,
    })
    // Of runs that were not created, or that a process of an earlier version has deleted.
    await rows({
      text: `DELETE FROM ${schema}.holdouts h WHERE created_at < now() - interval '1 hour'
        AND NOT EXISTS (SELECT 1 FROM ${schema}.runs r WHERE r.run_id = h.run_id)`,
    })
    return []
  })
  if (days !== undefined) {
    const isOld = `ended_ms < extract(epoch FROM clock_timestamp()) * 1000 - $1::double precision`
    const text = treesQuery(schema, isOld, 'ended_ms')
    await remove(({ rows }) => rows({ text, values: [days * MS_PER_DAY] }))
  }
  if (runs !== undefined) {
    // The newest root to remove: looked up once, as finding it reads all that are kept.
    const newest = `SELECT created_ms, run_id FROM ${schema}.runs
      WHERE ended_ms IS NOT NULL AND root_run_id IS NULL
      ORDER BY created_ms DESC, run_id DESC OFFSET $1 LIMIT 1`
    const [row] = await database.rows({ text: newest, values: [runs] }, 0)
    const text = treesQuery(schema, '(created_ms, run_id) <= ($1, $2)', 'created_ms, run_id')
    const values = [row?.['created_ms'], row?.['run_id']]
    if (row !== undefined) await remove(({ rows }) => rows({ text, values }))
  }
  return removed
}

async function removeBatch(
  transaction: Transaction,
  schema: string,
  expired: Expired,
): Promise<number> {
  const { rows } = transaction
  const lock = `SELECT pg_try_advisory_xact_lock(hashtext($1), 3) AS mine`
  const [answer] = await rows({ text: lock, values: [schema] })
  if (answer?.['mine'] !== true) return 0
  const runIds: unknown[] = []
  let events = 0
  for (const row of await expired(transaction)) {
    events += row['last_seq'] as number
    if (runIds.length > 0 && events > EVENTS_PER_BATCH) break
    runIds.push(row['run_id'])
  }
  if (runIds.length === 0) return 0
  await rows({ text: `DELETE FROM ${schema}.events WHERE run_id = ANY($1)`, values: [runIds] })
  await rows({ text: `DELETE FROM ${schema}.holdouts WHERE run_id = ANY($1)`, values: [runIds] })
  await rows({ text: `DELETE FROM ${schema}.runs WHERE run_id = ANY($1)`, values: [runIds] })
  await rows(noteRemoval(schema))
  return runIds.length
}
