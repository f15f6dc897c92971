import { steadyNow, type Clock } from '../../internal/time.js'
import { HAND_OVER_MS } from './steps/suspend.js'

/** The abort reason of a run that stops here and is resumed later. */
class Suspended extends Error {
  override name = 'Suspended'
}

/**
 * Interrupts the steps of a run: on an abort, at the end of its time, when its folder was replaced,
 * when the service shuts down, or when another process takes the run over.
 *
 * 1. `signal` aborts the current step. After it, `renew()` allows the next one, unless the run is
 *    over here.
 * 2. A suspended run stores what it did and is resumed by the next start. A run that was left is
 *    not touched any more: its log and its folder belong to another process.
 */
export class Interruption {
  readonly #clock: Clock
  #stop = new AbortController()
  readonly #lost = new AbortController()
  /** When the files of a suspended run must be stored, in ms of the steady clock. */
  #suspendBy: number | null = null
  #hasLeft = false
  #wake: (() => void) | undefined
  /** Why the folder of the run must not be used any more. */
  lostFolder: Error | undefined
  /** True once the run has spent its time. */
  isOutOfTime = false
  /** True when tools and checks were stopped because the claim on the run is in doubt. */
  isHalted = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Aborts the current step. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** Aborts when neither the log nor the folder may be used any more. */
  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /** True once the service shuts down: the next start resumes the run. */
  get isSuspending(): boolean {
    return this.#suspendBy !== null
  }

  /** True when this process must not touch the run any more: it is parked, or was taken over. */
  get hasLeft(): boolean {
    return this.#hasLeft
  }

  /** True when this process performs no further step. */
  get isOver(): boolean {
    return this.isSuspending || this.#hasLeft
  }

  /** Milliseconds that are left to store the files of a suspended run. */
  get handOverMs(): number {
    return (this.#suspendBy ?? 0) - steadyNow(this.#clock)
  }

  /** True while the run waits in {@link Interruption.wait}. */
  get isWaiting(): boolean {
    return this.#wake !== undefined
  }

  /** Stops the current step. */
  stop(reason: Error): void {
    this.#stop.abort(reason)
    this.wake()
  }

  suspend(): void {
    this.#suspendBy ??= steadyNow(this.#clock) + HAND_OVER_MS
    this.stop(new Suspended('the service is shutting down'))
  }

  /** Stops the run for good: another process has it, or none. */
  lose(reason: Error): void {
    this.#hasLeft = true
    this.#lost.abort(reason)
    this.stop(new Suspended(reason.message))
  }

  /** Leaves a run that waits for a human to any process that continues it. */
  park(): void {
    this.#hasLeft = true
  }

  /** Allows a next step after one that was stopped, unless the run is over here. */
  renew(): void {
    if (!this.isOver && this.signal.aborted) this.#stop = new AbortController()
  }

  /** Resolves after `ms` milliseconds, or when the run is stopped or woken; null sets no limit. */
  async wait(ms: number | null): Promise<void> {
    let timer: { cancel(): void } | undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      if (ms !== null) timer = this.#clock.setTimeout(resolve, ms)
      if (this.signal.aborted) resolve()
    })
    this.#wake = undefined
    timer?.cancel()
  }

  wake(): void {
    this.#wake?.()
  }
}
