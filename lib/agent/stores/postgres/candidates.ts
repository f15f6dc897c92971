/**
 * Which runs a process claims next.
 *
 * 1. Runs that only have to be ended come first, then runs that have begun, then the others.
 * 2. Among each, tenants take turns, and the roots of a tenant among themselves: see
 *    {@link FairQueue}. A turn comes in the order of admission of the first run that waits, but not
 *    before those of all runs that waited when a run of that tenant or root was claimed.
 * 3. Of runs that wait for folders of which one contains the other, none passes one before it.
 *
 * @module
 */
import { FairQueue, type Waiting } from '../../../internal/queues.js'
import { FolderIndex } from '../../../internal/folder-index.js'
import type { Transaction } from './database.js'
import type { PgQuery, PgRow } from './pg-types.js'
import { SHARES } from './places.js'

/** Runs per claim that only have to be ended, for which no slot is needed. */
const MAX_ENDINGS = 64
/** Runs of each tenant that are read first, beyond one for each slot. */
const MORE = 16

/** The database's clock, in epoch milliseconds: clocks of processes need not agree. */
export const NOW_MS = '(extract(epoch FROM clock_timestamp()) * 1000)'
/** Condition: the run only has to be ended. */
export const ENDS = `(abort_wanted OR status = 'awaiting_human')`

/** Condition: no process with a lease holds the run. */
export function unclaimed(schema: string): string {
  return `(claimed_by IS NULL OR claimed_by NOT IN (
    SELECT worker_id FROM ${schema}.workers WHERE expires_at > clock_timestamp()
  ))`
}

/** For whom runs are chosen. */
export interface Claimant {
  /** Quoted name of the schema. */
  readonly schema: string
  readonly labels: readonly string[]
}

/** Runs that may be claimed now, in order. */
export async function chooseRuns(
  rows: Transaction['rows'],
  claimant: Claimant,
  slots: number,
  except: readonly string[],
): Promise<readonly string[]> {
  for (let limit = slots + MORE; ; limit *= 8) {
    const found = await rows(candidates(claimant, slots, limit, except))
    const chosen = choose(found, slots)
    if (chosen !== null) return chosen
  }
}

/** Null when runs that were not read may come before some of these. */
function choose(rows: readonly PgRow[], slots: number): readonly string[] | null {
  const endings: string[] = []
  const [begun, others] = [new FairQueue<Waiting>(), new FairQueue<Waiting>()]
  /** Tenants of which there are more. */
  const cut = new Set<string | null>()
  const earlier = new FolderIndex<true>()
  for (const row of rows) {
    const [runId, tenant] = [row['run_id'] as string, row['tenant'] as string]
    const place = row['place'] as string | null
    if (row['is_cut'] === true) cut.add(tenant)
    if (row['ends'] === true) {
      endings.push(runId)
      continue
    }
    const needsPlace = place !== null && row['shares'] !== true
    const isBehind = needsPlace && earlier.find(place) !== undefined
    const queue = row['begun'] === true ? begun : others
    queue.add({ runId, tenant, root: row['root'] as string })
    if (row['held'] !== true && !isBehind) queue.ready(runId)
    if (needsPlace) earlier.add(true, place)
  }
  const chosen: string[] = []
  for (const queue of [begun, others]) {
    const roots = new Set<string>()
    while (chosen.length < slots) {
      const next = queue.next()
      if (next === undefined) break
      // Another root of this tenant may come before the second run of this one.
      if (cut.has(next.tenant) && roots.has(next.root)) return null
      roots.add(next.root)
      chosen.push(next.runId)
    }
  }
  if (chosen.length < slots && cut.size > 0) return null
  return [...endings.slice(0, MAX_ENDINGS), ...chosen]
}

/**
 * Runs that wait, in order, of each tenant at most `limit`; `is_cut` marks those of tenants that
 * have more. `ends` marks runs that only have to be ended, which any process may do, as the machine
 * with the run's labels may be gone, and changes of files to be finished, which need that machine.
 * Without slots only these. `place` is null when the run needs no folder or has it; `held`: another
 * run has it, one above or one below; `shares`: the run waits for restores and applies only.
 */
function candidates(
  { schema, labels }: Claimant,
  slots: number,
  limit: number,
  except: readonly string[],
): PgQuery {
  const columns = `run_id, queue_number, root_run_id, ${TENANT} AS tenant,
    ${ENDS} OR ended_ms IS NOT NULL AS ends,
    CASE WHEN NOT (${ENDS} OR holds_folder OR folder IS NULL AND NOT ${SHARES}) THEN place END
      AS place, ${SHARES} AS shares,
    holds_folder OR status <> 'pending' AS begun`
  const free = `${unclaimed(schema)} AND NOT run_id = ANY($4)`
  const isOperation = `operates AND (ended_ms IS NOT NULL OR status = 'awaiting_human')`
  const open = `ended_ms IS NULL AND (${ENDS} OR ($3 AND labels <@ $1))
    AND NOT (${isOperation}) AND ${free}`
  const select = (which: string): string => `SELECT ${columns} FROM ${schema}.runs WHERE ${which}`
  const isRoot = `${IS_QUEUED} AND root_run_id IS NULL`
  const tenantAfter = (condition: string): string =>
    `SELECT ${TENANT} FROM ${schema}.runs WHERE ${isRoot} ${condition} ORDER BY ${TENANT} LIMIT 1`
  // Each has an index. Of the runs that may be many, no more are read than are needed.
  const text = `WITH RECURSIVE tenants (tenant) AS (
      (${tenantAfter('')})
      UNION ALL SELECT (${tenantAfter(`AND ${TENANT} > before.tenant`)}) FROM tenants AS before
        WHERE before.tenant IS NOT NULL
    ), waiting AS MATERIALIZED (
      ${select(`abort_wanted AND ${open}`)}
      UNION ALL ${select(`status = 'running' AND NOT abort_wanted AND ${open}`)}
      UNION ALL ${select(`holds_folder AND status = 'pending' AND NOT abort_wanted AND ${open}`)}
      UNION ALL ${select(`${IS_QUEUED} AND root_run_id IS NOT NULL AND ${open}`)}
      UNION ALL SELECT queued.* FROM tenants, LATERAL (
        ${select(`${isRoot} AND ${TENANT} = tenants.tenant AND ${open}`)}
        ORDER BY queue_number LIMIT $2::bigint + 1
      ) AS queued
      UNION ALL ${select(`status = 'awaiting_human' AND NOT abort_wanted
        AND gate_deadline_ms <= ${NOW_MS} AND ${open}`)}
      UNION ALL ${select(`${isOperation} AND labels <@ $1 AND ${free}`)}
    ), turns AS MATERIALIZED (
      SELECT root_run_id, (
        SELECT max(turn) FROM ${schema}.runs AS r WHERE r.root_run_id = roots.root_run_id
      ) AS turn
      FROM (SELECT DISTINCT root_run_id FROM waiting WHERE root_run_id IS NOT NULL) AS roots
    ), tenant_turns AS MATERIALIZED (
      SELECT tenant, (
        SELECT max(turn) FROM ${schema}.runs AS r
        WHERE coalesce(r.tenant, '') = those.tenant AND r.turn IS NOT NULL
      ) AS tenant_turn
      FROM (SELECT DISTINCT tenant FROM waiting) AS those
    ), ranked AS (
      SELECT waiting.*, greatest(queue_number, turn) AS turn,
        row_number() OVER (PARTITION BY tenant
          ORDER BY ends DESC, begun DESC, greatest(queue_number, turn), queue_number) AS rank,
        count(*) OVER (PARTITION BY tenant) > $2::bigint AS is_cut,
        greatest(tenant_turn, min(queue_number) OVER (PARTITION BY tenant, ends, begun))
          AS tenant_turn
      FROM waiting LEFT JOIN turns USING (root_run_id) LEFT JOIN tenant_turns USING (tenant)
    ), page AS MATERIALIZED (SELECT * FROM ranked WHERE rank <= $2::bigint)
    SELECT run_id, tenant, ends, begun, coalesce(root_run_id, run_id) AS root, place, shares, held,
      is_cut
    FROM page LEFT JOIN (
      SELECT place, ${schema}.is_held(place, '') AS held
      FROM (SELECT DISTINCT place FROM page WHERE place IS NOT NULL) AS places
    ) AS places USING (place)
    ORDER BY ends DESC, begun DESC, tenant_turn, tenant, turn, queue_number`
  const values = [[...labels], limit, slots > 0, except]
  return { name: 'runwright_candidates', text, values }
}

/** Condition: the run has not been claimed yet. */
const IS_QUEUED = `status = 'pending' AND NOT abort_wanted AND NOT holds_folder`
/** Expression for rounds: runs without a tenant are those of one. */
const TENANT = `coalesce(tenant, '')`
