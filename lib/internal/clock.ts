/** A timer that has not fired yet. */
export interface Timer {
  /** Keeps the timer from firing; harmless after it fired and when called twice. */
  cancel(): void
}

/** The seam to time: what waits or stamps takes one, so that tests can hold time still. */
export interface Clock {
  /** Milliseconds since the Unix epoch, with fraction. */
  now(): number
  /**
   * Calls `callback` once, `ms` milliseconds from now; 0 or less means as soon as possible, and a
   * month or a year is fine too.
   */
  setTimeout(callback: () => void, ms: number): Timer
}

/** Node's timers overflow above this and would fire at once. */
const LONGEST_TIMEOUT_MS = 0x7fffffff

/** How far the steady clock may be from the wall clock before it is set anew. */
const DRIFT_MS = 2

let offset = Date.now() - performance.now()

/**
 * The time of this machine. Fractions come from the steady clock, which does not see that the wall
 * clock was set or that the machine slept, so it is held against the wall clock at each reading.
 */
export const systemClock: Clock = {
  now() {
    const wall = Date.now()
    const steady = performance.now()
    const estimate = offset + steady
    if (estimate >= wall - DRIFT_MS && estimate <= wall + 1 + DRIFT_MS) return estimate
    offset = wall - steady
    return wall
  },

  setTimeout(callback, ms) {
    let handle: NodeJS.Timeout
    const start = (rest: number): void => {
      handle =
        rest > LONGEST_TIMEOUT_MS
          ? setTimeout(() => start(rest - LONGEST_TIMEOUT_MS), LONGEST_TIMEOUT_MS)
          : setTimeout(callback, rest)
    }
    start(Math.max(0, ms))
    return { cancel: () => clearTimeout(handle) }
  },
}
