import { abortListeners } from '../../internal/abort.js'
import type { Clock, Timer } from '../../internal/clock.js'

/** The reason with which a tool is stopped that takes too long. */
export class ToolTimeout extends Error {
  override name = 'ToolTimeout'
  constructor(ms: number) {
    super(`the tool did not end within ${ms / 1000} s and was stopped`)
  }
}

/** Stops one tool: when its run is stopped, or when its time is up. */
export class ToolStop {
  readonly #clock: Clock
  readonly #graceMs: number
  readonly #listeners: Set<(reason: unknown) => void>
  #timer: Timer
  /** Made for tools that look at their signal; most are done before anybody could stop them. */
  #controller: AbortController | undefined
  #stopped: { readonly reason: unknown } | undefined
  #abandoned = false
  #abandon: ((reason: unknown) => void) | undefined

  /** A tool that was stopped is left to itself after `graceMs` more. */
  constructor(signal: AbortSignal, clock: Clock, timeoutMs: number, graceMs: number) {
    this.#clock = clock
    this.#graceMs = graceMs
    this.#timer = clock.setTimeout(() => this.#stop(new ToolTimeout(timeoutMs)), timeoutMs)
    this.#listeners = abortListeners(signal).add(this.#stop)
  }

  /** Fires when the tool is stopped. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#stopped !== undefined) this.#controller.abort(this.#stopped.reason)
    }
    return this.#controller.signal
  }

  get timedOut(): boolean {
    return this.#stopped?.reason instanceof ToolTimeout
  }

  /** Settles as the tool does; rejects with the reason once it was stopped and its grace is over. */
  race<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      work.then(resolve, reject)
      if (this.#abandoned) reject(this.#stopped?.reason)
      else this.#abandon = reject
    })
  }

  /** The tool has ended. */
  end(): void {
    this.#timer.cancel()
    this.#listeners.delete(this.#stop)
  }

  readonly #stop = (reason: unknown): void => {
    if (this.#stopped !== undefined) return
    this.#stopped = { reason }
    this.#controller?.abort(reason)
    this.#timer.cancel()
    this.#timer = this.#clock.setTimeout(() => {
      this.#abandoned = true
      this.#abandon?.(reason)
    }, this.#graceMs)
  }
}
