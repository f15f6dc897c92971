import { RECORD_VERSION, type RunRecord } from '../events.js'
import { foldHead } from '../log/head.js'
import type { RunHead } from '../run-details.js'
import type { ChildPlace } from './indexed-run.js'

/** Digits of a UUID of version 7 that hold its time: epoch milliseconds, 48 bits. */
const UUID_V7_TIME = /^([0-9a-f]{8})-([0-9a-f]{4})-7/i

/** Stands in lists for the head of a run of which nothing but the id, and its place, is known. */
export function unreadableHead(runId: string, child: ChildPlace | null = null): RunHead {
  const [, high = '0', low = '0'] = UUID_V7_TIME.exec(runId) ?? []
  const unknown = { goal: '', model_name: '', cwd: '' }
  const place = child && { root_run_id: child.root, role: child.role }
  const created: RunRecord = {
    v: RECORD_VERSION,
    seq: 1,
    run_id: runId,
    kind: 'run_created',
    iteration: 0,
    ts: Number.parseInt(high + low, 16) / 1000,
    payload: {
      ...unknown,
      max_iterations: 0,
      hitl_enabled: false,
      parent_run_id: child?.parent ?? null,
      ...place,
    },
  }
  const head = foldHead(null, created)
  const { details } = head
  // Whatever it was, it will not go on; and retention never drops a quarantined run.
  details.status = 'failed'
  details.ended_at = details.created_at
  details.last_seq = 0
  return head
}
