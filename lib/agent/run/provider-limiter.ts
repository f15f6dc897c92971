/**
 * Lets calls of a provider begin within its limits.
 *
 * 1. Calls wait in rounds over the tenants and roots of their runs, and first come, first served
 *    within a root: see {@link FairQueue}. Whose turn it is begins before all others, however large
 *    it is.
 * 2. A call that ends, or that gives up waiting, lets the next ones begin at once.
 * 3. Memory is bounded by the calls that wait, which are at most one for each run.
 *
 * @module
 */
import { steadyNow, type Clock, type Timer } from '../../internal/time.js'
import { FairQueue, type Waiting } from '../../internal/queues.js'
import type { ProviderLimits } from '../models/provider-limits.js'
import { MinuteWindow } from './minute-window.js'

/** A call that asks to begin. */
export interface LimitedCall extends Waiting {
  /** Estimated. */
  readonly tokens: number
  readonly signal: AbortSignal
}

/** The place of a call that has begun. */
export interface CallPlace {
  /** The call is over; `tokens`: what it used, null when nobody knows. Later calls do nothing. */
  end(tokens: number | null): void
}

interface Ticket extends LimitedCall {
  readonly begin: () => void
}

/** The limits of one provider, in one process; the rules are in the comment of this file. */
export class ProviderLimiter {
  readonly #clock: Clock
  readonly #limits: ProviderLimits
  readonly #requests: MinuteWindow | null
  readonly #tokens: MinuteWindow | null
  readonly #queue = new FairQueue<Ticket>()
  /** Whose turn it is. */
  #head: Ticket | undefined
  #working = 0
  #timer: Timer | undefined

  constructor(limits: ProviderLimits, clock: Clock) {
    this.#limits = { ...limits }
    this.#clock = clock
    const { requestsPerMinute: requests, tokensPerMinute: tokens } = limits
    this.#requests = requests === undefined ? null : new MinuteWindow(requests)
    this.#tokens = tokens === undefined ? null : new MinuteWindow(tokens)
  }

  /** Do calls need an estimate of their tokens? */
  get countsTokens(): boolean {
    return this.#tokens !== null
  }

  /** The place of a call that may begin now; null when it has to {@link ProviderLimiter.wait}. */
  tryEnter(call: LimitedCall): CallPlace | null {
    if (this.#head !== undefined || this.#untilFree(call.tokens) > 0) return null
    return this.#begin(call)
  }

  /**
   * Resolves with the place of the call once it may begin.
   *
   * @throws the signal's reason when it fires first.
   */
  async wait(call: LimitedCall): Promise<CallPlace> {
    const { signal } = call
    signal.throwIfAborted()
    return await new Promise<CallPlace>((resolve, reject) => {
      const onAbort = (): void => {
        this.#queue.remove(call.runId)
        if (this.#head === ticket) this.#head = undefined
        this.#fill()
        reject(signal.reason as Error)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      const begin = (): void => {
        signal.removeEventListener('abort', onAbort)
        resolve(this.#begin(call))
      }
      const ticket = { ...call, begin }
      this.#queue.add(ticket)
      this.#queue.ready(call.runId)
      this.#fill()
    })
  }

  /** The limit for which the next call waits, for people. */
  get reason(): string {
    const { concurrent, requestsPerMinute, tokensPerMinute } = this.#limits
    const now = steadyNow(this.#clock)
    if (this.#isFull) return `${concurrent} calls at the same time`
    const waits = (this.#requests?.untilRoom(1, now) ?? 0) > 0
    return waits ? `${requestsPerMinute} calls a minute` : `${tokensPerMinute} tokens a minute`
  }

  get #isFull(): boolean {
    return this.#working >= (this.#limits.concurrent ?? Infinity)
  }

  /** Milliseconds until a call may begin; Infinity: when another one has ended. */
  #untilFree(tokens: number): number {
    if (this.#isFull) return Infinity
    const now = steadyNow(this.#clock)
    return Math.max(
      this.#requests?.untilRoom(1, now) ?? 0,
      this.#tokens?.untilRoom(tokens, now) ?? 0,
    )
  }

  #begin({ tokens }: LimitedCall): CallPlace {
    const began = steadyNow(this.#clock)
    this.#working += 1
    this.#requests?.add(1, began)
    this.#tokens?.add(tokens, began)
    let isOver = false
    return {
      end: (used) => {
        if (isOver) return
        isOver = true
        this.#working -= 1
        const now = steadyNow(this.#clock)
        const more = (used ?? tokens) - tokens
        if (more > 0) this.#tokens?.add(more, now)
        else if (more < 0) this.#tokens?.takeBack(-more, began, now)
        this.#fill()
      },
    }
  }

  /** Lets those begin whose turn it is. */
  #fill(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    for (;;) {
      this.#head ??= this.#queue.next()
      if (this.#head === undefined) return
      const wait = this.#untilFree(this.#head.tokens)
      if (wait > 0) {
        if (wait < Infinity) this.#timer = this.#clock.setTimeout(() => this.#fill(), wait)
        return
      }
      const { begin } = this.#head
      this.#head = undefined
      begin()
    }
  }
}

const limiters = new WeakMap<ProviderLimits, ProviderLimiter>()

/** The limiter of these limits: the same for all engines that got the same object. */
export function limiterOf(limits: ProviderLimits, clock: Clock): ProviderLimiter {
  const limiter = limiters.get(limits) ?? new ProviderLimiter(limits, clock)
  limiters.set(limits, limiter)
  return limiter
}
