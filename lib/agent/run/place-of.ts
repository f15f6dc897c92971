import type { RunDetails } from '../run-details.js'

/**
 * The folder that a run wants for itself, as the queue of folders knows it. An isolated run has a
 * copy of its own, which overlaps no other folder, and some runs have none.
 */
export function placeOf({
  run_id,
  workspace,
  cwd,
}: Pick<RunDetails, 'run_id' | 'workspace' | 'cwd'>): string {
  return workspace === 'in_place' ? cwd : `${workspace}:${run_id}`
}
