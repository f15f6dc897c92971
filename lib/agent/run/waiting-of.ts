import type { Waiting } from '../../internal/queues.js'
import type { RunHead } from '../run-details.js'

/** How a run waits for its turn. */
export function waitingOf({ details, owner }: RunHead): Waiting {
  return { runId: details.run_id, tenant: owner.tenant, root: details.root_run_id }
}
