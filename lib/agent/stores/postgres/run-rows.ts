/**
 * A run's head as a row, and back. What never changes after the first record stands in columns of
 * its own, so that an append does not write it again.
 *
 * @module
 */
import { hash } from 'node:crypto'
import { toUSVString } from 'node:util'
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

/** Longest text that goes into an index as it is: a key of PostgreSQL's has 2704 octets at most. */
const LONGEST_KEY = 600

/** Can a run have this id in a database? */
export function isRunId(runId: string): boolean {
  return isColumnText(runId)
}

/** What a text is found by in a column: itself, or its hash when a column or its index does not take it. */
export function keyText(text: string): string {
  return isColumnText(text) ? text : `sha256:${goalHash(JSON.stringify(text))}`
}

/** Is the text what a column gives back, short enough for an index? */
function isColumnText(text: string): boolean {
  return text.length <= LONGEST_KEY && !text.includes('\0') && toUSVString(text) === text
}

/** The column `search_text`, in which words are searched: goal, model and id, in lower case. */
export function searchText({ goal, model_name, run_id }: RunDetails): string {
  return searchable(`${goal} ${model_name} ${run_id}`)
}

/** A text, or a word to search for, as it stands in `search_text`. */
export function searchable(text: string): string {
  return toUSVString(text.toLowerCase().replaceAll('\0', '\ufffd'))
}

/** What a goal is found by: goals may be longer than an index takes, and hold octets that columns do not. */
export function goalHash(goal: string): string {
  return hash('sha256', goal)
}

/** Epoch milliseconds of an ISO time, null of none. */
export function epochMs(time: string | null): number | null {
  return time === null ? null : Date.parse(time)
}
