import type { ChildRole } from '../run-tree.js'
import type { RunDetails } from '../run-details.js'

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
