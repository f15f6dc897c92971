import { mock } from 'node:test'

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
 * harm. All other timers run normally. Nothing else must use that duration.
 */
export class HeldTimers implements Disposable {
  readonly #waiting = new Set<HeldTimer>()
  readonly #mocks: { restore(): void }[]
  #started: (() => void)[] = []

  constructor(heldMs: number) {
    const { setTimeout, setInterval, clearTimeout, clearInterval } = globalThis
    const starting = (real: (...args: never[]) => unknown, repeats: boolean) =>
      (run: () => void, ms?: number, ...args: unknown[]): unknown => {
        if (ms !== heldMs) return (real as (...args: unknown[]) => unknown)(run, ms, ...args)
        const timer = new HeldTimer(this.#waiting, repeats, run)
        for (const resolve of this.#started.splice(0)) resolve()
        return timer
      }
    const clearing = (real: (timer?: never) => void) => (timer: unknown): void => {
      if (timer instanceof HeldTimer) timer.clear()
      else real(timer as never)
    }
    this.#mocks = [
      mock.method(globalThis, 'setTimeout', starting(setTimeout, false) as never).mock,
      mock.method(globalThis, 'setInterval', starting(setInterval, true) as never).mock,
      mock.method(globalThis, 'clearTimeout', clearing(clearTimeout) as never).mock,
      mock.method(globalThis, 'clearInterval', clearing(clearInterval) as never).mock,
    ]
  }

  /** How many timers are held back. */
  get size(): number {
    return this.#waiting.size
  }

  /** Resolves once a timer is held back. */
  async started(): Promise<void> {
    while (this.size === 0) await new Promise<void>((resolve) => this.#started.push(resolve))
  }

  /** Fires all timers held back; timers started meanwhile wait for the next call. */
  fire(): void {
    for (const timer of [...this.#waiting]) timer.fire()
  }

  [Symbol.dispose](): void {
    for (const one of this.#mocks) one.restore()
  }
}
