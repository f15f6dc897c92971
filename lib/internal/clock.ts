/** A timer that has not fired yet. */
export interface Timer {
  /** Keeps the timer from firing. May be called twice, or after the timer has fired. */
  cancel(): void
}

/**
 * The source of time for everything that waits or takes timestamps; tests pass a manual one.
 *
 * 1. `now()` is for points in time: what is stored, shown, or compared with another process's. It
 *    jumps when the time of day is set.
 * 2. `steady()` is for durations within this process. It never jumps, and stands still while the
 *    machine is suspended. Timers follow it.
 */
export interface Clock {
  /** Milliseconds since the Unix epoch, not rounded. */
  now(): number
  /** Milliseconds since some moment in the past, not rounded. @defaultValue `now()` */
  steady?(): number
  /**
   * Calls `callback` once after `ms` milliseconds; 0 or less means as soon as possible. Delays of
   * months or years are supported.
   */
  setTimeout(callback: () => void, ms: number): Timer
}

/** Above this, Node's timers overflow and fire at once. */
const LONGEST_TIMEOUT_MS = 0x7fffffff

/** How far the steady clock may drift from the wall clock before it is adjusted. */
const DRIFT_MS = 2

let offset = Date.now() - performance.now()

/**
 * The time of this machine. Fractions of milliseconds come from the steady clock. That clock misses
 * adjustments of the wall clock and sleep of the machine, so each reading is compared with the wall
 * clock.
 */
export const systemClock: Clock = {
  steady: () => performance.now(),

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

/** Milliseconds by the steady clock, to measure durations with. */
export function steadyNow(clock: Clock): number {
  return clock.steady?.() ?? clock.now()
}

/**
 * Returns a function that continues the present time of day by the steady clock, in milliseconds
 * since the epoch: for durations within this process whose beginning is a stored point in time.
 */
export function steadyTime(clock: Clock): () => number {
  const offset = clock.now() - steadyNow(clock)
  return () => offset + steadyNow(clock)
}

/**
 * Returns a function for ages, in milliseconds since the epoch: the time of day, or what it would
 * be by the steady clock if that is less. So nothing is removed too early because the time of day
 * was set forward in this process's life.
 */
export function cautiousTime(clock: Clock): () => number {
  const steady = steadyTime(clock)
  return () => Math.min(clock.now(), steady())
}
