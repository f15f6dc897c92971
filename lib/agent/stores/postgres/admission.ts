import { exceededBound } from '../../../internal/queues.js'
import { foldHead } from '../../log/head.js'
import type { RunHead } from '../../run-details.js'
import { keyOf, type Admission, type Admitted } from '../../shared-store.js'
import { insertRunQuery, type Placement } from './append-statements.js'
import type { DamagedRuns } from './damaged-runs.js'
import type { Database, Transaction } from './database.js'
import { busyQuery, foreignQuery } from './places.js'
import { keyQuery } from './run-queries.js'
import { keyText } from './run-rows.js'

/** Collaborators of {@link admit}. */
export interface AdmissionContext {
  readonly database: Database
  /** Quoted name of the schema. */
  readonly schema: string
  readonly patienceMs: number
  readonly placementOf: (head: RunHead) => Placement
  readonly workerId: string
  /** The fence of this process's claim of a run. */
  readonly fenceOf: (runId: string) => bigint | undefined
  readonly damaged: DamagedRuns
}

/**
 * Begins a run if its terms allow it. Admissions run one at a time, so that two of them never take
 * the last slot of the queue, the same folder or the same key. One whose answer was lost can be
 * sent again: it finds the run that it began.
 */
export async function admit(context: AdmissionContext, admission: Admission): Promise<Admitted> {
  const { database, fenceOf, schema, patienceMs, placementOf } = context
  const { parent } = admission
  // A later claim of this process is another one: what began under this one has no part in it.
  const fence = parent === undefined ? undefined : fenceOf(parent)
  const head = foldHead(null, admission.created)
  const { folder, labels } = placementOf(head)
  const json = [JSON.stringify(admission.created)]
  // An isolated run works in a copy of its own, and some runs have no folder.
  const shares = admission.cwdPolicy === 'allow' || head.details.workspace !== 'in_place'
  const placement = { folder: shares ? null : folder, labels }
  return await database.transaction(patienceMs, async (transaction) => {
    const lock = `SELECT pg_advisory_xact_lock(hashtext($1), 2)`
    await transaction.rows({ name: 'runwright_admit_lock', text: lock, values: [schema] })
    if (parent !== undefined && !(await holds(transaction, context, parent, fence)))
      return { outcome: 'parent_lost' }
    const refusal = await findRefusal(transaction, context, admission, head, labels)
    if (refusal !== null) return refusal
    const records = [admission.created]
    await transaction.rows(insertRunQuery(schema, head, placement, records, json))
    return { outcome: 'admitted' }
  })
}

/** Does this process hold the run that starts this one? Nobody else claims it before the commit. */
async function holds(
  { rows }: Transaction,
  { schema, workerId }: AdmissionContext,
  parent: string,
  fence: bigint | undefined,
): Promise<boolean> {
  const text = `SELECT 1 FROM ${schema}.runs
    WHERE run_id = $1 AND claimed_by = $2 AND fence = $3 FOR SHARE`
  const values = [parent, workerId, fence?.toString() ?? null]
  return (await rows({ name: 'runwright_parent', text, values })).length > 0
}

/** Checks the terms of an admission; null when they allow the run. */
async function findRefusal(
  { rows }: Transaction,
  { damaged, schema }: AdmissionContext,
  admission: Admission,
  own: RunHead,
  labels: readonly string[],
): Promise<Admitted | null> {
  const { created, cwdPolicy, maxQueued, keysSince } = admission
  const key = keyOf(admission)
  if (key !== null) {
    const [row] = await rows(keyQuery(schema, key.owner, key.key, keysSince))
    if (row !== undefined) {
      const head = damaged.head(row)
      return head.details.run_id === created.run_id
        ? { outcome: 'admitted' }
        : { outcome: 'repeated', head }
    }
  }
  if (own.details.workspace !== 'none') {
    const foreign = await rows(foreignQuery(schema, own, labels))
    if (foreign.length > 0) return { outcome: 'foreign_folder' }
  }
  if (cwdPolicy === 'reject' && own.details.workspace === 'in_place') {
    const [row] = await rows(busyQuery(schema, own, labels))
    if (row !== undefined) return { outcome: 'cwd_busy', runId: row['run_id'] as string }
  }
  // What others have started has been let in with them.
  const text = `SELECT count(*)::integer AS waiting,
      (count(*) FILTER (WHERE tenant IS NOT DISTINCT FROM $2))::integer AS of_tenant
    FROM ${schema}.runs
    WHERE status = 'pending' AND claimed_by IS NULL AND run_id <> $1 AND root_run_id IS NULL`
  const { tenant } = own.owner
  const values = [created.run_id, tenant === null ? null : keyText(tenant)]
  const [row] = await rows({ name: 'runwright_waiting', text, values })
  const waiting = { all: row?.['waiting'] as number, ofTenant: row?.['of_tenant'] as number }
  const limit = exceededBound(waiting, tenant, maxQueued)
  return limit === null ? null : { outcome: 'queue_full', limit }
}
