/**
 * Which runs a process claims next.
 *
 * 1. Runs that only have to be ended come first, then runs that have begun, then the others.
 * 2. Among each, roots take turns. A root's turn comes in the order of admission of its first run
 *    that waits, but not before those of all runs that waited when one of its runs was claimed.
 *    Runs that are their own roots are therefore claimed in the order of their admission.
 * 3. Of runs that wait for folders of which one contains the other, none passes one before it.
 *
 * @module
 */
import { FolderIndex } from '../../../internal/folder-index.js'
import type { Transaction } from './database.js'
import type { PgQuery } from './pg-types.js'
import { SHARES } from './places.js'

/** Runs per claim that only have to be ended, for which no slot is needed. */
const MAX_ENDINGS = 64

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
  const endings: string[] = []
  const others = new Rounds(slots)
  const earlier = new FolderIndex<true>()
  for (let [limit, offset] = [slots + MAX_ENDINGS, 0]; ; offset += limit, limit *= 8) {
    const page = await rows(candidates(claimant, slots, limit, offset, except))
    for (const row of page) {
      const runId = row['run_id'] as string
      const place = row['place'] as string | null
      if (row['ends'] === true) {
        if (endings.length < MAX_ENDINGS) endings.push(runId)
        continue
      }
      const shares = row['shares'] === true
      const isBehind = place !== null && !shares && earlier.find(place) !== undefined
      if (row['held'] !== true && !isBehind)
        others.add(runId, row['root'] as string, row['begun'] === true)
      if (others.isFull) return [...endings, ...others.first()]
      if (place !== null && !shares) earlier.add(true, place)
    }
    if (page.length < limit) return [...endings, ...others.first()]
  }
}

/** As many runs as there are slots: the first of each root, then the second of each, … */
class Rounds {
  readonly #slots: number
  readonly #runs: { readonly runId: string; readonly begun: boolean; readonly round: number }[] = []
  readonly #ofRoot = new Map<string, number>()
  /** Runs that none of a later page comes before. */
  #settled = 0

  constructor(slots: number) {
    this.#slots = slots
  }

  get isFull(): boolean {
    return this.#settled === this.#slots
  }

  /** Runs that have begun are added before the others, and those of one root in their order. */
  add(runId: string, root: string, begun: boolean): void {
    if (!begun && this.#runs.at(-1)?.begun === true) {
      this.#settled = Math.min(this.#slots, this.#runs.length)
      this.#ofRoot.clear()
      if (this.isFull) return
    }
    const round = this.#ofRoot.get(root) ?? 0
    this.#ofRoot.set(root, round + 1)
    this.#runs.push({ runId, begun, round })
    if (round === 0) this.#settled += 1
  }

  first(): readonly string[] {
    const inOrder = this.#runs.sort(
      (a, b) => Number(b.begun) - Number(a.begun) || a.round - b.round,
    )
    return inOrder.slice(0, this.#slots).map(({ runId }) => runId)
  }
}

/**
 * Runs that wait, in order. `ends` marks runs that only have to be ended, which any process may
 * do, as the machine with the run's labels may be gone, and changes of files to be finished,
 * which need that machine. Without slots only these. `place` is null when the run needs no folder
 * or has it; `held`: another run has it, one above or one below; `shares`: the run waits for
 * restores and applies only.
 */
function candidates(
  { schema, labels }: Claimant,
  slots: number,
  limit: number,
  offset: number,
  except: readonly string[],
): PgQuery {
  const columns = `run_id, queue_number, root_run_id, ${ENDS} OR ended_ms IS NOT NULL AS ends,
    CASE WHEN NOT (${ENDS} OR holds_folder OR folder IS NULL AND NOT ${SHARES}) THEN place END
      AS place, ${SHARES} AS shares,
    holds_folder OR status <> 'pending' AS begun`
  const free = `${unclaimed(schema)} AND NOT run_id = ANY($4)`
  const isOperation = `operates AND (ended_ms IS NOT NULL OR status = 'awaiting_human')`
  const open = `ended_ms IS NULL AND (${ENDS} OR ($3 AND labels <@ $1))
    AND NOT (${isOperation}) AND ${free}`
  const select = (which: string): string => `SELECT ${columns} FROM ${schema}.runs WHERE ${which}`
  // Each has an index. Of the runs that may be many, no more are read than are needed.
  const text = `WITH waiting AS MATERIALIZED (
      ${select(`abort_wanted AND ${open}`)}
      UNION ALL ${select(`status = 'running' AND NOT abort_wanted AND ${open}`)}
      UNION ALL ${select(`holds_folder AND status = 'pending' AND NOT abort_wanted AND ${open}`)}
      UNION ALL ${select(`${IS_QUEUED} AND root_run_id IS NOT NULL AND ${open}`)}
      UNION ALL (${select(`${IS_QUEUED} AND root_run_id IS NULL AND ${open}`)}
        ORDER BY queue_number LIMIT $2::bigint + $5::bigint)
      UNION ALL ${select(`status = 'awaiting_human' AND NOT abort_wanted
        AND gate_deadline_ms <= ${NOW_MS} AND ${open}`)}
      UNION ALL ${select(`${isOperation} AND labels <@ $1 AND ${free}`)}
    ), turns AS MATERIALIZED (
      SELECT root_run_id, (
        SELECT max(turn) FROM ${schema}.runs AS r WHERE r.root_run_id = roots.root_run_id
      ) AS turn
      FROM (SELECT DISTINCT root_run_id FROM waiting WHERE root_run_id IS NOT NULL) AS roots
    ), page AS MATERIALIZED (
      SELECT waiting.*, greatest(queue_number, turn) AS turn
      FROM waiting LEFT JOIN turns USING (root_run_id)
      ORDER BY ends DESC, begun DESC, greatest(queue_number, turn), queue_number
      LIMIT $2 OFFSET $5
    )
    SELECT run_id, ends, begun, coalesce(root_run_id, run_id) AS root, place, shares, held
    FROM page LEFT JOIN (
      SELECT place, ${schema}.is_held(place, '') AS held
      FROM (SELECT DISTINCT place FROM page WHERE place IS NOT NULL) AS places
    ) AS places USING (place)
    ORDER BY ends DESC, begun DESC, turn, queue_number`
  const values = [[...labels], limit, slots > 0, except, offset]
  return { name: 'runwright_candidates', text, values }
}

/** Condition: the run has not been claimed yet. */
const IS_QUEUED = `status = 'pending' AND NOT abort_wanted AND NOT holds_folder`
