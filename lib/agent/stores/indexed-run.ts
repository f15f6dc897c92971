import type { EndReason, RunStatus } from '../events.js'
import type { RunDetails, RunHead } from '../run-details.js'
import type { ChildRole } from '../run-tree.js'
import { metadataKeys } from './list-query.js'
import type { SortKey } from './ordered-runs.js'

/** Where a run is that another one started. */
export interface ChildPlace {
  /** The run at the top of its tree. */
  readonly root: string
  readonly parent: string | null
  readonly role: ChildRole
}

/** Null for a root; retries and forks are roots. */
export function childPlaceOf(
  { run_id, root_run_id, parent_run_id, role }: RunDetails,
): ChildPlace | null {
  if (role === 'root' || root_run_id === run_id) return null
  return { root: root_run_id, parent: parent_run_id, role }
}

/**
 * The fields by which a run is listed and found. Only `status`, `endedMs`, `endReason`, `operates`
 * and null ever change.
 */
export interface IndexedRun extends SortKey {
  readonly goal: string
  readonly modelName: string
  /** Empty when it cannot be known; null until it has been read. */
  cwd: string | null
  readonly ownerId: string | null
  readonly tenant: string | null
  /** Idempotency key; null for a run that was started without one. */
  readonly key: string | null
  /** Null for a root: one object for each child, and nothing for the many runs without any. */
  readonly child: ChildPlace | null
  status: RunStatus
  /** Epoch milliseconds; 0 until the run has ended. */
  endedMs: number
  /** Null until the run has ended, and while `metadata` is null. */
  endReason: EndReason | null
  /** See `metadataKeys()`; null until it has been read. */
  metadata: readonly string[] | null
  /** Has a restore or apply begun that is not finished? */
  operates: boolean
}

/** The index fields of a run, from its head. */
export function indexFields(head: RunHead): IndexedRun {
  const { details, owner, idempotency } = head
  return {
    runId: details.run_id,
    createdMs: Date.parse(details.created_at),
    goal: details.goal,
    modelName: details.model_name,
    cwd: details.cwd,
    ownerId: owner.id,
    tenant: owner.tenant,
    key: idempotency?.key ?? null,
    child: childPlaceOf(details),
    status: details.status,
    endedMs: details.ended_at === null ? 0 : Date.parse(details.ended_at),
    endReason: details.end_reason,
    metadata: metadataKeys(details.metadata),
    operates: isOperating(head),
  }
}

/** Heads of earlier versions do not have the field. */
export function isOperating({ operation }: { readonly operation?: string | null }): boolean {
  return (operation ?? null) !== null
}
