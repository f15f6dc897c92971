/**
 * Conversion of heads to rows and back. Fields that never change after the first record are in a
 * column of their own, which appends do not write again.
 *
 * @module
 */
import { hash } from '../../../internal/hash.js'
import { isStorable, storableText } from '../../../internal/text.js'
import { completeHead, type StoredHead } from '../../log/head.js'
import type { RunDetails, RunHead } from '../../run-details.js'
import type { PgRow } from './pg-types.js'

/** Fields of the details that never change. */
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
  'instructions',
  'project_instructions',
  // Null, or empty, in every head.
  'result_schema',
  'result',
  'answer',
]
const IS_FIXED = new Set<string>(FIXED)

/** The columns that {@link headOf} needs. */
export const HEAD_COLUMNS =
  'run_id, fixed::text AS fixed, head::text AS head, checkpoint_seq'

/** Content of the column `fixed`, which is written once. */
export function fixedJson(head: RunHead): string {
  const { details, owner, idempotency, hasInstructions, hasResultSchema } = head
  const fixed = Object.fromEntries(FIXED.map((name) => [name, details[name]]))
  const has = { hasInstructions, hasResultSchema }
  return JSON.stringify({ details: fixed, owner, idempotency, ...has })
}

/** Content of the column `head`, which each append writes. */
export function movingJson(whole: RunHead): string {
  const {
    details, owner: _, idempotency: __, hasInstructions: ___, hasResultSchema: ____, ...head
  } = whole
  const moving: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(details)) if (!IS_FIXED.has(name)) moving[name] = value
  return JSON.stringify({ ...head, details: moving })
}

/** The head of a row with {@link HEAD_COLUMNS}. */
export function headOf(row: PgRow): RunHead {
  const fixed = JSON.parse(row['fixed'] as string) as StoredHead
  const moving = JSON.parse(row['head'] as string) as StoredHead
  const details = { ...fixed.details, ...moving.details }
  // In a column of its own: processes of an earlier version do not write it into the head.
  const checkpointSeq = (row['checkpoint_seq'] as number | null | undefined) ?? null
  return completeHead({ ...fixed, ...moving, checkpointSeq, details })
}

/** Characters of a text that is indexed as it is; PostgreSQL limits an index key to 2704 bytes. */
const MAX_KEY_LENGTH = 600

/** Can a column hold this run id? */
export function isRunId(runId: string): boolean {
  return isColumnText(runId)
}

/** A text as an indexed column holds it: its hash when it is too long or not storable. */
export function keyText(text: string): string {
  return isColumnText(text) ? text : `sha256:${goalHash(JSON.stringify(text))}`
}

/** Does the text survive a column unchanged, and is it short enough for an index? */
function isColumnText(text: string): boolean {
  return text.length <= MAX_KEY_LENGTH && isStorable(text)
}

/** Content of the column `search_text`: goal, model and id. */
export function searchText({ goal, model_name, run_id }: RunDetails): string {
  return searchable(`${goal} ${model_name} ${run_id}`)
}

/** A text, or a word to search for, in the form of `search_text`: lower case, storable. */
export function searchable(text: string): string {
  return storableText(text.toLowerCase())
}

/** The value by which a goal is found; a goal may be too long for an index or not storable. */
export function goalHash(goal: string): string {
  return hash('sha256', goal)
}

/** Epoch milliseconds of an ISO time; null for null. */
export function epochMs(time: string | null): number | null {
  return time === null ? null : Date.parse(time)
}
