import type { Waiting } from '../../internal/queues.js'
import type { RunDetails, RunHead } from '../run-details.js'

/** How a run waits for its turn. */
export function waitingOf({ details, owner }: RunHead): Waiting {
  return { runId: details.run_id, tenant: owner.tenant, root: details.root_run_id }
}

/**
 * The folder that a run wants for itself, as the queue of folders knows it. An isolated run has a
 * copy of its own, which overlaps no other folder, and some runs have none.
 */
export function folderKey({
  run_id,
  workspace,
  cwd,
}: Pick<RunDetails, 'run_id' | 'workspace' | 'cwd'>): string {
  return workspace === 'in_place' ? cwd : `${workspace}:${run_id}`
}
