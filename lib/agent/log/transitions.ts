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
import type { RunStatus } from '../events.js'

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
