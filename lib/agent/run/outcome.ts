import type { EndReason, RunStatus } from '../events.js'

export interface Outcome {
  readonly status: Extract<RunStatus, 'achieved' | 'failed' | 'aborted'>
  readonly endReason: EndReason
  /** For people, as `run_end` shows it. */
  readonly reason: string
}

/** The end of a run after an abort request; `why`: its tree has asked for it. */
export function aborted(why: string | null = null): Outcome {
  const reason = why === null ? 'aborted on request' : `aborted: ${why}`
  return { status: 'aborted', endReason: 'cancelled', reason }
}

/** The end of a run whose gate was answered with `abort`. */
export const ABORTED_BY_HUMAN: Outcome = {
  status: 'aborted',
  endReason: 'human_abort',
  reason: 'aborted by a human at a gate',
}
