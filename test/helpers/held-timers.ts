import { mock } from 'node:test'

/** One timer that was held back. */
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
 * Holds back the timers of one duration: they pass when the test says so, however slow the machine
 * is. All others run as ever. The duration has to be one that nothing else uses.
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
        for (const tell of this.#started.splice(0)) tell()
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

  /** How many wait to be fired. */
  get size(): number {
    return this.#waiting.size
  }

  /** Resolves once one waits. */
  async started(): Promise<void> {
    while (this.size === 0) await new Promise<void>((resolve) => this.#started.push(resolve))
  }

  /** The time of all that wait is over; those that are started by it wait for the next call. */
  fire(): void {
    for (const timer of [...this.#waiting]) timer.fire()
  }

  [Symbol.dispose](): void {
    for (const one of this.#mocks) one.restore()
  }
}
