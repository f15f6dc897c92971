/**
 * A run's head as a row, and back. What never changes after the first record stands in columns of
 * its own, so that an append does not write it again.
 *
 * @module
 */
import { hash } from 'node:crypto'
import type { RunDetails, RunHead } from '../../run-details.js'
import type { PgRow } from './pool.js'

/** Fields of the details that are the same for the whole life of a run. */
const FIXED: readonly (keyof RunDetails)[] = [
  'run_id',
  'goal',
  'model_name',
  'max_iterations',
  'hitl_enabled',
  'cwd',
  'created_at',
  'parent_run_id',
  'metadata',
  'check',
  'approval',
  'max_total_tokens',
  'max_cost_usd',
  'max_seconds',
]
const IS_FIXED = new Set<string>(FIXED)

/** The columns from which {@link headOf} makes a head. */
export const HEAD_COLUMNS = 'run_id, fixed::text AS fixed, head::text AS head'

/** The column `fixed`: written once. */
export function fixedJson({ details, owner, idempotency }: RunHead): string {
  const fixed = Object.fromEntries(FIXED.map((name) => [name, details[name]]))
  return JSON.stringify({ details: fixed, owner, idempotency })
}

/** The column `head`: written with each append. */
export function movingJson({ details, recoveries, last_ts, lastDecision }: RunHead): string {
  const moving: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(details)) if (!IS_FIXED.has(name)) moving[name] = value
  return JSON.stringify({ details: moving, recoveries, last_ts, lastDecision })
}

/** The head of a row with {@link HEAD_COLUMNS}. */
export function headOf(row: PgRow): RunHead {
  const fixed = JSON.parse(row['fixed'] as string) as RunHead
  const moving = JSON.parse(row['head'] as string) as RunHead
  return { ...fixed, ...moving, details: { ...fixed.details, ...moving.details } }
}

/** What a goal is found by: goals may be longer than an index takes, and hold octets that columns do not. */
export function goalHash(goal: string): string {
  return hash('sha256', goal)
}

/** Epoch milliseconds of an ISO time, null of none. */
export function epochMs(time: string | null): number | null {
  return time === null ? null : Date.parse(time)
}
