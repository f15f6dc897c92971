import type { Waiting } from '../../../lib/internal/queues.js'

/** A run without a tenant that is its own root. */
export function single(runId: string): Waiting {
  return { runId, tenant: null, root: runId }
}
