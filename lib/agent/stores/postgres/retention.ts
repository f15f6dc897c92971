import type { Retention } from '../run-index.js'
import type { Database } from './database.js'

/** Runs that are removed in one transaction: short ones, so that nobody waits for them. */
const BATCH = 200
const MS_PER_DAY = 86_400_000

/**
 * Removes ended runs that `retain` keeps no more, oldest first, and what processes left that are
 * long gone. One process at a time does it; the others find it done.
 *
 * @returns how many runs were removed.
 */
export async function sweep(database: Database, schema: string, retain: Retention): Promise<number> {
  let removed = 0
  for (let batch = BATCH; batch === BATCH && !database.closing.aborted; removed += batch) {
    batch = await database.transaction(0, async ({ rows }) => {
      const lock = `SELECT pg_try_advisory_xact_lock(hashtext($1), 3) AS mine`
      const [answer] = await rows({ text: lock, values: [schema] })
      if (answer?.['mine'] !== true) return 0
      await rows({
        text: `DELETE FROM ${schema}.workers w WHERE expires_at < now() - interval '1 hour'
          AND NOT EXISTS (SELECT 1 FROM ${schema}.runs r WHERE r.claimed_by = w.worker_id)`,
      })
      const expired = await rows({ text: expiredRuns(schema), values: limits(retain) })
      const runIds = expired.map((row) => row['run_id'])
      if (runIds.length === 0) return 0
      await rows({ text: `DELETE FROM ${schema}.events WHERE run_id = ANY($1)`, values: [runIds] })
      await rows({ text: `DELETE FROM ${schema}.runs WHERE run_id = ANY($1)`, values: [runIds] })
      return runIds.length
    })
  }
  return removed
}

function expiredRuns(schema: string): string {
  return `SELECT run_id FROM ${schema}.runs
    WHERE ended_ms IS NOT NULL AND (
      ended_ms < extract(epoch FROM clock_timestamp()) * 1000 - $1::double precision
      OR (created_ms, run_id) <= (
        SELECT created_ms, run_id FROM ${schema}.runs WHERE ended_ms IS NOT NULL
        ORDER BY created_ms DESC, run_id DESC OFFSET $2 LIMIT 1
      )
    )
    ORDER BY created_ms, run_id LIMIT ${BATCH}`
}

/** Age in milliseconds and number; null, which compares with nothing, for no limit. */
function limits({ days, runs }: Retention): unknown[] {
  return [days === undefined ? null : days * MS_PER_DAY, runs ?? Number.MAX_SAFE_INTEGER]
}
