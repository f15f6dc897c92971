/**
 * The statements by which logs grow. Each writes a run's row and its new records together, and has
 * no effect when it is sent a second time.
 *
 * @module
 */
import { isTerminal, type RunRecord } from '../../events.js'
import type { RunHead } from '../../run-details.js'
import { childPlaceOf } from '../indexed-run.js'
import { formatOf, LABELS_AFTER, labelsFor } from './formats.js'
import type { PgQuery } from './pg-types.js'
import { epochMs, fixedJson, goalHash, keyText, movingJson, searchText } from './run-rows.js'

/** Where a run may be driven, and the folder that it wants for itself. */
export interface Placement {
  /** Null when the run does not claim its folder. */
  readonly folder: string | null
  /** Labels that a process must have. */
  readonly labels: readonly string[]
}

/** The new state of a run's row, and the records that lead to it. */
export interface RowUpdate {
  readonly runId: string
  /** The fence that the row must still have. */
  readonly fence: string
  /** True when this process holds the run, false when no process does. */
  readonly held: boolean
  /** The head after the records. */
  readonly head: RunHead
  /** JSON of each record, in the order of `seq`. */
  readonly json: readonly string[]
  /** See `formatOf()`. */
  readonly format: number
}

/** The `last_seq` that the row must still have. */
function lastSeqBefore({ head, json }: RowUpdate): number {
  return head.details.last_seq - json.length
}

/** The folder key of a run: the same path is another folder on machines with other labels. */
export function placementOf({ details }: RunHead, labels: readonly string[]): Placement {
  const sorted = [...new Set(labels)].sort()
  return { folder: keyText(JSON.stringify([details.cwd, ...sorted])), labels: sorted }
}

/**
 * Does a run keep its claim after an append? While it waits for a human, and after its end, only as
 * long as its files are being changed.
 */
export function keepsClaim({ details: { status }, operation }: RunHead): boolean {
  return operation !== null || (status !== 'awaiting_human' && !isTerminal(status))
}

/** Inserts a new run with its first records, unless the id is taken. Returns the id if inserted. */
export function insertRunQuery(
  schema: string,
  head: RunHead,
  { folder, labels }: Placement,
  records: readonly RunRecord[],
  json: readonly string[],
): PgQuery {
  const { details, owner, idempotency } = head
  const child = childPlaceOf(details)
  const rowLabels = [...labels, ...labelsFor(formatOf(records))]
  const text = `WITH begun AS (
      INSERT INTO ${schema}.runs (run_id, created_ms, ended_ms, status, goal_hash, model_name,
        owner_id, tenant, idempotency_key, fixed, head, last_seq, gate_deadline_ms, folder, labels,
        search_text, checkpoint_seq, root_run_id, parent_run_id, role, shares_folder)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $17, $18, $19, $20,
        $21, $22)
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
    rowLabels,
    [...json],
    searchText(details),
    head.checkpointSeq,
    child === null ? null : keyText(child.root),
    child?.parent == null ? null : keyText(child.parent),
    child?.role ?? null,
    folder === null && details.workspace === 'in_place',
  ]
  return { name: 'runwright_begin', text, values }
}

/** Updates the rows that are as expected, and inserts their records. Returns the ids of these. */
export function updateRunsQuery(
  schema: string,
  workerId: string,
  updates: readonly RowUpdate[],
): PgQuery {
  const records = updates.flatMap((update) => {
    const firstSeq = lastSeqBefore(update) + 1
    return update.json.map((text, i) => ({ runId: update.runId, seq: firstSeq + i, text }))
  })
  const text = `WITH moved AS (
      UPDATE ${schema}.runs r SET
        last_seq = m.last_seq, status = m.status, head = m.head,
        gate_deadline_ms = m.gate_deadline_ms, ended_ms = m.ended_ms,
        claimed_by = CASE WHEN m.keeps THEN r.claimed_by END,
        holds_folder = r.holds_folder AND (m.ended_ms IS NULL OR m.operates),
        operates = m.operates, operation_open = m.operates, checkpoint_seq = m.checkpoint_seq,
        abort_wanted = r.abort_wanted AND m.ended_ms IS NULL,
        labels = ${LABELS_AFTER}
      FROM unnest($1::text[], $2::bigint[], $3::boolean[], $4::integer[], $5::integer[],
        $6::text[], $7::json[], $8::double precision[], $9::double precision[], $10::boolean[],
        $15::boolean[], $16::integer[], $17::integer[])
        AS m(run_id, fence, held, from_seq, last_seq, status, head, gate_deadline_ms, ended_ms,
          keeps, operates, checkpoint_seq, format)
      WHERE r.run_id = m.run_id AND r.last_seq = m.from_seq AND r.fence = m.fence
        AND r.claimed_by IS NOT DISTINCT FROM CASE WHEN m.held THEN $14 END
      RETURNING r.run_id
    ), added AS (
      INSERT INTO ${schema}.events (run_id, seq, record)
      SELECT e.run_id, e.seq, e.record
      FROM unnest($11::text[], $12::integer[], $13::text[]) AS e(run_id, seq, record)
      JOIN moved USING (run_id)
    )
    SELECT run_id FROM moved`
  const values = [
    updates.map(({ runId }) => runId),
    updates.map(({ fence }) => fence),
    updates.map(({ held }) => held),
    updates.map(lastSeqBefore),
    updates.map(({ head }) => head.details.last_seq),
    updates.map(({ head }) => head.details.status),
    updates.map(({ head }) => movingJson(head)),
    updates.map(({ head }) => epochMs(head.details.gate?.deadline ?? null)),
    updates.map(({ head }) => epochMs(head.details.ended_at)),
    updates.map(({ head }) => keepsClaim(head)),
    records.map(({ runId }) => runId),
    records.map(({ seq }) => seq),
    records.map(({ text }) => text),
    workerId,
    updates.map(({ head }) => head.operation !== null),
    updates.map(({ head }) => head.checkpointSeq),
    updates.map(({ format }) => format),
  ]
  return { name: 'runwright_append', text, values }
}
