/**
 * The status machine of a run: pure, and used by the engine, the stores and recovery alike. A
 * record that does not fit the status of its run means a bug or a corrupt log.
 *
 * ```
 * pending ──start──▶ running ◀──respond── awaiting_human
 *    │                 │  └────gate────▶       │
 *    └─────────────────┴── achieve, fail, abort ┴──▶ achieved | failed | aborted   (absorbing)
 * ```
 *
 * @module
 */
import { IllegalTransitionError } from '../errors.js'
import { isTerminal, type RunRecord, type RunStatus } from '../events.js'

/** What moves a run from one status to another. */
export type Trigger = 'start' | 'gate' | 'respond' | 'achieve' | 'fail' | 'abort' | 'recover'

const TABLE: Readonly<Record<RunStatus, Readonly<Partial<Record<Trigger, RunStatus>>>>> = {
  pending: { start: 'running', fail: 'failed', abort: 'aborted', recover: 'pending' },
  running: {
    gate: 'awaiting_human',
    achieve: 'achieved',
    fail: 'failed',
    abort: 'aborted',
    recover: 'running',
  },
  awaiting_human: {
    respond: 'running',
    fail: 'failed',
    abort: 'aborted',
    recover: 'awaiting_human',
  },
  achieved: {},
  failed: {},
  aborted: {},
}

/** The status after `trigger`; null when `status` does not permit it. */
export function transition(status: RunStatus, trigger: Trigger): RunStatus | null {
  return TABLE[status][trigger] ?? null
}

/** The trigger that a record represents; null for records that leave the status as it is. */
function triggerOf(record: RunRecord): Trigger | null {
  switch (record.kind) {
    case 'run_started':
      return 'start'
    case 'run_recovered':
      return 'recover'
    case 'human_check_required':
      return 'gate'
    case 'human_check_response':
      return 'respond'
    case 'run_end':
      return END_TRIGGERS[record.payload.status] ?? null
    default:
      return null
  }
}

const END_TRIGGERS: Readonly<Partial<Record<RunStatus, Trigger>>> = {
  achieved: 'achieve',
  failed: 'fail',
  aborted: 'abort',
}

/** What people do with the files of a run that has ended. */
const AFTER_END: ReadonlySet<string> = new Set([
  'checkpoint', 'files_changing', 'files_changed', 'changes_decided',
])

/**
 * The status after `record`. Nothing follows a final status but what becomes of the run's files.
 *
 * @throws {@link IllegalTransitionError}
 */
export function statusAfter(status: RunStatus, record: RunRecord): RunStatus {
  const trigger = triggerOf(record)
  const next = trigger === null ? status : transition(status, trigger)
  const isLate = isTerminal(status) && !AFTER_END.has(record.kind)
  if (next === null || isLate) throw new IllegalTransitionError(status, record.kind)
  return next
}
