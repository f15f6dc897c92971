import { ManualClock } from 'runwright/agent/testing'

export const HOUR = 3_600_000

/**
 * A clock whose time of day the test sets by `shiftMs`. Durations and timers follow `advance()`
 * alone; as in a new process, the steady clock begins at 0.
 */
export class ShiftedClock extends ManualClock {
  shiftMs = 0
  readonly #start: number

  constructor(now: number = Date.UTC(2026, 0, 1)) {
    super(now)
    this.#start = now
  }

  override now(): number {
    return super.now() + this.shiftMs
  }

  steady(): number {
    return super.now() - this.#start
  }
}
