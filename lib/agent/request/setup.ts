import type { PrivatePayloads } from '../events.js'

/**
 * True if the folder of a run has nothing of what its `setup` makes, because that is made in a
 * copy. Runs that begin with a copy of that folder need it from elsewhere.
 */
export function lacksSetup({ fork, request }: PrivatePayloads['run_created']): boolean {
  if (request.setup === undefined || request.workspace !== 'isolated') return false
  return fork === undefined || fork.lacks_setup === true
}
