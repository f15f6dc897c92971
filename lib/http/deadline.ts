import { MAX_TIMER_MS } from './config.js'
import { TotalTimeoutError } from './errors.js'

/** `timeout.total` of one call as a signal, together with the caller's own. */
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

  /** The call is over. */
  clear(): void {
    clearTimeout(this.#timer)
    this.#outer?.removeEventListener('abort', this.#onOuterAbort)
  }
}

/** The error for a call that passed its limit. */
export function totalTimeout(totalMs: number, hint = ''): TotalTimeoutError {
  const message = `the call was not over within ${totalMs} ms (timeout.total)${hint}`
  return new TotalTimeoutError(message, totalMs)
}
