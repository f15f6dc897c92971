import { mock } from 'node:test'
import { Timer } from '../../lib/http/timer-wheel.js'

/** A timer that only fires when the test calls `fire`. */
class HeldTimer {
  readonly #waiting: Set<HeldTimer>
  readonly #repeats: boolean
  readonly run: () => void

  constructor(waiting: Set<HeldTimer>, repeats: boolean, run: () => void) {
    this.#waiting = waiting
    this.#repeats = repeats
    this.run = run
    waiting.add(this)
  }

  fire(): void {
    if (!this.#repeats) this.#waiting.delete(this)
    this.run()
  }

  refresh(): this {
    this.#waiting.add(this)
    return this
  }

  clear(): void {
    this.#waiting.delete(this)
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }
}

/**
 * Holds back the timers of one duration until the test calls `fire`, so that a slow machine does no
 * harm: Node's and those of the timer wheel. All other timers run normally. Nothing else must use
 * that duration.
 */
export class HeldTimers implements Disposable {
  readonly #waiting = new Set<HeldTimer>()
  readonly #onWheel = new Set<Timer>()
  readonly #mocks: { restore(): void }[]
  #started: (() => void)[] = []

  constructor(heldMs: number) {
    const { setTimeout, setInterval, clearTimeout, clearInterval } = globalThis
    const starting = (real: (...args: never[]) => unknown, repeats: boolean) =>
      (run: () => void, ms?: number, ...args: unknown[]): unknown => {
        if (ms !== heldMs) return (real as (...args: unknown[]) => unknown)(run, ms, ...args)
        const timer = new HeldTimer(this.#waiting, repeats, run)
        this.#onStart()
        return timer
      }
    const { start } = Timer.prototype
    const { started, onWheel } = { started: () => this.#onStart(), onWheel: this.#onWheel }
    const startingOnWheel = function (this: Timer, ms: number | null, now?: number): void {
      start.call(this, ms, now)
      if (ms !== heldMs) return
      this.dueAt = Number.MAX_SAFE_INTEGER
      onWheel.add(this)
      started()
    }
    const clearing = (real: (timer?: never) => void) => (timer: unknown): void => {
      if (timer instanceof HeldTimer) timer.clear()
      else real(timer as never)
    }
    this.#mocks = [
      mock.method(Timer.prototype, 'start', startingOnWheel).mock,
      mock.method(globalThis, 'setTimeout', starting(setTimeout, false) as never).mock,
      mock.method(globalThis, 'setInterval', starting(setInterval, true) as never).mock,
      mock.method(globalThis, 'clearTimeout', clearing(clearTimeout) as never).mock,
      mock.method(globalThis, 'clearInterval', clearing(clearInterval) as never).mock,
    ]
  }

  /** How many timers are held back. */
  get size(): number {
    for (const timer of this.#onWheel) if (timer.dueAt === Infinity) this.#onWheel.delete(timer)
    return this.#waiting.size + this.#onWheel.size
  }

  /** Resolves once a timer is held back. */
  async started(): Promise<void> {
    while (this.size === 0) await new Promise<void>((resolve) => this.#started.push(resolve))
  }

  /** Fires all timers held back; timers started meanwhile wait for the next call. */
  fire(): void {
    const started = this.size > 0 ? [...this.#onWheel] : []
    for (const timer of [...this.#waiting]) timer.fire()
    for (const timer of started) {
      timer.clear()
      timer.expire()
    }
  }

  #onStart(): void {
    for (const resolve of this.#started.splice(0)) resolve()
  }

  [Symbol.dispose](): void {
    for (const one of this.#mocks) one.restore()
  }
}
