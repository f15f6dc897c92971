import type { Clock, Timer } from '../../internal/time.js'

interface ManualTimer extends Timer {
  readonly at: number
  readonly callback: () => void
}

/**
 * A clock that moves only by `advance()`, for tests of deadlines, retries and budgets.
 *
 * @example
 * ```ts
 * import { ManualClock } from 'runwright/agent/testing'
 *
 * const clock = new ManualClock()
 * clock.setTimeout(() => console.log('a minute has passed'), 60_000)
 * clock.advance(60_000)
 * ```
 */
export class ManualClock implements Clock {
  #now: number
  #timers: ManualTimer[] = []
  #waiters: { readonly count: number; readonly resolve: () => void }[] = []

  /** Starts at `now`, in milliseconds since the epoch. @defaultValue 2024-01-01T00:00:00Z */
  constructor(now: number = Date.UTC(2024, 0, 1)) {
    this.#now = now
  }

  /** Milliseconds since the Unix epoch: the start plus all advances. */
  now(): number {
    return this.#now
  }

  /** Calls `callback` during the `advance()` that reaches `ms` milliseconds from now. */
  setTimeout(callback: () => void, ms: number): Timer {
    const timer: ManualTimer = {
      at: this.#now + Math.max(0, ms),
      callback,
      cancel: () => {
        this.#timers = this.#timers.filter((other) => other !== timer)
      },
    }
    const later = this.#timers.findIndex((other) => other.at > timer.at)
    this.#timers.splice(later === -1 ? this.#timers.length : later, 0, timer)
    this.#waiters = this.#waiters.filter(({ count, resolve }) => {
      if (this.#timers.length < count) return true
      resolve()
      return false
    })
    return timer
  }

  /** Number of timers that have neither fired nor been cancelled. */
  get pending(): number {
    return this.#timers.length
  }

  /** Resolves once at least `count` timers are pending, that is, the code under test waits. */
  whenPending(count = 1): Promise<void> {
    if (this.#timers.length >= count) return Promise.resolve()
    return new Promise((resolve) => this.#waiters.push({ count, resolve }))
  }

  /**
   * Advances the time by `ms` milliseconds. Due timers fire in order of time, then of creation, and
   * see their own time in `now()`. So do timers set by these callbacks, if due within `ms`.
   *
   * @throws RangeError when `ms` is negative or not a number.
   */
  advance(ms: number): void {
    if (!(ms >= 0)) throw new RangeError(`ms must be 0 or more, got ${ms}`)
    const end = this.#now + ms
    for (let due = this.#timers[0]; due !== undefined && due.at <= end; due = this.#timers[0]) {
      this.#timers.shift()
      this.#now = Math.max(this.#now, due.at)
      due.callback()
    }
    this.#now = end
  }
}
