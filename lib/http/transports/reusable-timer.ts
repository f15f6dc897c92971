import { MAX_TIMER_MS } from '../config.js'

/**
 * One phase's time limit, started and stopped many times over the life of a connection. Stopping
 * only marks it; the timer itself is reused, which is far cheaper than a new one for each wait.
 */
export class ReusableTimer {
  #fire: (ms: number) => void
  #timer: NodeJS.Timeout | null = null
  #ms = 0
  #running = false

  readonly #keepsAlive: boolean

  /** @param keepsAlive - Whether the process must live for it, where no socket sees to that. */
  constructor(fire: (ms: number) => void, keepsAlive = false) {
    this.#fire = fire
    this.#keepsAlive = keepsAlive
  }

  /** Gives a stopped timer to another wait. */
  reuse(fire: (ms: number) => void): this {
    this.#fire = fire
    return this
  }

  /** Starts anew; `null` means no limit. */
  start(ms: number | null): void {
    if (ms === null) {
      this.#running = false
      return
    }
    this.#running = true
    if (this.#timer !== null && this.#ms === ms) {
      this.#timer.refresh()
      return
    }
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#ms = ms
    this.#timer = setTimeout(() => this.#expired(), Math.min(ms, MAX_TIMER_MS))
    if (!this.#keepsAlive) this.#timer.unref()
  }

  /** The wait is over. */
  stop(): void {
    this.#running = false
  }

  /** Frees the timer. */
  clear(): void {
    this.#running = false
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  #expired(): void {
    if (!this.#running) return
    this.#running = false
    this.#fire(this.#ms)
  }
}

/** Timers that were stopped and wait for another use: a new one for each stream is costly. */
export class TimerPool {
  readonly #free: ReusableTimer[] = []

  acquire(fire: (ms: number) => void): ReusableTimer {
    return this.#free.pop()?.reuse(fire) ?? new ReusableTimer(fire)
  }

  release(timer: ReusableTimer): void {
    timer.stop()
    timer.reuse(() => {})
    if (this.#free.length < 128) this.#free.push(timer)
    else timer.clear()
  }

  clear(): void {
    for (const timer of this.#free.splice(0)) timer.clear()
  }
}
