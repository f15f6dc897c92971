import { MAX_TIMER_MS } from '../config.js'

/**
 * A timeout that is started and stopped many times over the life of a connection. Stopping only
 * marks it: the Node timer is kept and refreshed, which is far cheaper than one for each wait.
 */
export class ReusableTimer {
  #fire: (ms: number) => void
  #timer: NodeJS.Timeout | null = null
  #ms = 0
  #running = false
  readonly #keepsAlive: boolean

  /** @param keepsAlive - Keeps the process running; for waits that have no socket to do so. */
  constructor(fire: (ms: number) => void, keepsAlive = false) {
    this.#fire = fire
    this.#keepsAlive = keepsAlive
  }

  /** Replaces the callback of a stopped timer. */
  reuse(fire: (ms: number) => void): this {
    this.#fire = fire
    return this
  }

  /** Starts or restarts; `null` stops, since there is no limit. */
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

  stop(): void {
    this.#running = false
  }

  /** Stops and frees the Node timer. */
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

const MAX_FREE_TIMERS = 128

/** Shares timers between the streams of a connection: a new one for each stream is costly. */
export class TimerPool {
  readonly #free: ReusableTimer[] = []

  acquire(fire: (ms: number) => void): ReusableTimer {
    return this.#free.pop()?.reuse(fire) ?? new ReusableTimer(fire)
  }

  release(timer: ReusableTimer): void {
    timer.stop()
    timer.reuse(() => {})
    if (this.#free.length < MAX_FREE_TIMERS) this.#free.push(timer)
    else timer.clear()
  }

  clear(): void {
    for (const timer of this.#free.splice(0)) timer.clear()
  }
}
