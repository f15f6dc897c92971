import { TotalTimeoutError } from './errors.js'
import { Timer } from './timer-wheel.js'

/** A signal that aborts when `timeout.total` of one call passes or the caller's signal aborts. */
export class Deadline {
  readonly #controller = new AbortController()
  readonly #timer: Timer
  readonly #outer: AbortSignal | null
  readonly #onOuterAbort: () => void

  constructor(totalMs: number, outer: AbortSignal | null) {
    this.#outer = outer
    this.#onOuterAbort = () => this.#controller.abort(outer!.reason)
    const expire = (): void => this.#controller.abort(totalTimeout(totalMs))
    this.#timer = new Timer(expire, { keepsAlive: true, patient: false })
    this.#timer.start(totalMs)
    if (outer?.aborted === true) this.#onOuterAbort()
    else outer?.addEventListener('abort', this.#onOuterAbort, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Stops the timer and leaves the caller's signal; called when the call ends. */
  clear(): void {
    this.#timer.clear()
    this.#outer?.removeEventListener('abort', this.#onOuterAbort)
  }
}

/** The error for a call that exceeded `timeout.total`. `hint` is appended to its message. */
export function totalTimeout(totalMs: number, hint = ''): TotalTimeoutError {
  const message = `the call did not complete within ${totalMs} ms (timeout.total)${hint}`
  return new TotalTimeoutError(message, totalMs)
}
