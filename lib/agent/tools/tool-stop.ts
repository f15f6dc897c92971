import { setMaxListeners } from 'node:events'
import { abortListeners, type Clock, steadyNow, type Timer } from '../../internal/time.js'

/** The abort reason for a tool that takes too long. */
export class ToolTimeout extends Error {
  override name = 'ToolTimeout'
  constructor(ms: number) {
    super(`the tool did not end within ${ms / 1000} s and was stopped`)
  }
}

/** Stops one tool call, when its run is stopped or its time is up. */
export class ToolStop {
  readonly #clock: Clock
  readonly #graceMs: number
  readonly #listeners: Set<(reason: unknown) => void>
  readonly #timeoutMs: number
  #timer: Timer
  /** When the timer fires, while it runs: by the steady clock. */
  #deadline: number
  /** Created on first use: most tools never look at their signal. */
  #controller: AbortController | undefined
  #stopped: { readonly reason: unknown } | undefined
  #abandoned = false
  #hasEnded = false
  /** Waits for which the time stands still, and what was left of it when the first one began. */
  #pauses = 0
  #left = 0
  #abandon: ((reason: unknown) => void) | undefined

  /** A stopped tool that has not ended after another `graceMs` is abandoned. */
  constructor(signal: AbortSignal, clock: Clock, timeoutMs: number, graceMs: number) {
    this.#clock = clock
    this.#graceMs = graceMs
    this.#timeoutMs = timeoutMs
    this.#deadline = steadyNow(clock) + timeoutMs
    this.#timer = this.#start(timeoutMs)
    this.#listeners = abortListeners(signal).add(this.#stop)
  }

  /** Aborts when the tool is stopped. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      setMaxListeners(0, this.#controller.signal) // one per command that the tool runs
      if (this.#stopped !== undefined) this.#controller.abort(this.#stopped.reason)
    }
    return this.#controller.signal
  }

  get timedOut(): boolean {
    return this.#stopped?.reason instanceof ToolTimeout
  }

  /** Settles with the tool; rejects with the reason when the tool was stopped and abandoned. */
  race<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      work.then(resolve, reject)
      if (this.#abandoned) reject(this.#stopped?.reason)
      else this.#abandon = reject
    })
  }

  /** Settles as `waiting` does; meanwhile the tool's time stands still. */
  async pauseFor(waiting: Promise<void>): Promise<void> {
    if (this.#stopped !== undefined) return await waiting
    if (this.#pauses === 0) {
      this.#left = this.#deadline - steadyNow(this.#clock)
      this.#timer.cancel()
    }
    this.#pauses += 1
    try {
      await waiting
    } finally {
      this.#pauses -= 1
      const goesOn = this.#pauses === 0 && this.#stopped === undefined && !this.#hasEnded
      if (this.#pauses === 0) this.#deadline = steadyNow(this.#clock) + this.#left
      if (goesOn) this.#timer = this.#start(this.#left)
    }
  }

  #start(ms: number): Timer {
    return this.#clock.setTimeout(() => this.#stop(new ToolTimeout(this.#timeoutMs)), ms)
  }

  /** Called when the tool has ended: releases timer and listener. */
  end(): void {
    this.#hasEnded = true
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
