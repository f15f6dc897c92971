import type { RunDetails } from '../run-details.js'

/** Where a run is in its tree of runs. */
export interface TreePlace {
  /** The run at the top; a root is its own. */
  readonly root: string
  /** The run that started it; null for a root. */
  readonly parent: string | null
  /** What the run is to its parent; null for a root. */
  readonly role: string | null
}

/** Runs of versions that know no trees are roots, and so are retries and forks. */
export function treePlaceOf({ run_id, parent_run_id, ...details }: RunDetails): TreePlace {
  const { root_run_id: root, role } = details as { root_run_id?: unknown; role?: unknown }
  const isChild = typeof root === 'string' && root !== run_id
  if (!isChild) return { root: run_id, parent: null, role: null }
  return { root, parent: parent_run_id, role: typeof role === 'string' ? role : null }
}
