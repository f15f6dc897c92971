import { MAX_TIMER_MS } from './config.js'
import { TotalTimeoutError } from './errors.js'

/** A signal that aborts when `timeout.total` of one call passes or the caller's signal aborts. */
export class Deadline {
  readonly #controller = new AbortController()
  readonly #timer: NodeJS.Timeout
  readonly #outer: AbortSignal | null
  readonly #onOuterAbort: () => void

  constructor(totalMs: number, outer: AbortSignal | null) {
    this.#outer = outer
    this.#onOuterAbort = () => this.#controller.abort(outer!.reason)
    this.#timer = setTimeout(
      () => this.#controller.abort(totalTimeout(totalMs)),
      Math.min(totalMs, MAX_TIMER_MS),
    )
    if (outer?.aborted === true) this.#onOuterAbort()
    else outer?.addEventListener('abort', this.#onOuterAbort, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Stops the timer and leaves the caller's signal; called when the call ends. */
  clear(): void {
    clearTimeout(this.#timer)
    this.#outer?.removeEventListener('abort', this.#onOuterAbort)
  }
}

/** The error for a call that exceeded `timeout.total`. `hint` is appended to its message. */
export function totalTimeout(totalMs: number, hint = ''): TotalTimeoutError {
  const message = `the call did not complete within ${totalMs} ms (timeout.total)${hint}`
  return new TotalTimeoutError(message, totalMs)
}
