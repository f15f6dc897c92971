/**
 * Slots that callers share, so that none of them keeps the others waiting.
 *
 * 1. At most `slots` pieces of work are done at a time.
 * 2. Callers that wait have their turns in rounds. Work of one caller starts in the order in which
 *    it came.
 * 3. While others wait, no caller gets more than half of the slots.
 * 4. Work whose signal aborts while it waits leaves at once.
 *
 * A turn costs no look at all of those that wait.
 *
 * @module
 */
import { abortListeners } from './abort.js'

interface Caller {
  working: number
  /** What starts its work, in order. */
  readonly waiting: Set<() => void>
}

export class FairSlots {
  readonly #slots: number
  readonly #half: number
  #free: number
  #waiting = 0
  /** Those with work that is done or waits. */
  readonly #callers = new Map<string, Caller>()
  /** Those with work that waits, in the order of their turns. */
  readonly #turns = new Map<string, Caller>()

  constructor(slots: number) {
    this.#slots = slots
    this.#half = Math.max(1, Math.floor(slots / 2))
    this.#free = slots
  }

  get slots(): number {
    return this.#slots
  }

  /** How many pieces of work wait, of all callers. */
  get waiting(): number {
    return this.#waiting
  }

  /** How many pieces of work of this caller wait. */
  waitingOf(caller: string): number {
    return this.#callers.get(caller)?.waiting.size ?? 0
  }

  /**
   * Does `work` once its caller has a slot, and frees the slot when it is over.
   *
   * @throws the signal's reason if it aborts before that; then `work` is not called.
   */
  async run<T>(caller: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted()
    const known = this.#callers.get(caller) ?? { working: 0, waiting: new Set() }
    this.#callers.set(caller, known)
    if (this.#free > 0) this.#take(known)
    else await this.#turn(caller, known, signal)
    try {
      return await work()
    } finally {
      this.#free += 1
      known.working -= 1
      this.#forget(caller, known)
      this.#fill()
    }
  }

  #take(caller: Caller): void {
    this.#free -= 1
    caller.working += 1
  }

  async #turn(name: string, caller: Caller, signal: AbortSignal | undefined): Promise<void> {
    const stops = signal === undefined ? null : abortListeners(signal)
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        caller.waiting.delete(start)
        this.#waiting -= 1
        if (caller.waiting.size === 0) this.#turns.delete(name)
      }
      const start = (): void => {
        stops?.delete(stop)
        leave()
        this.#take(caller)
        resolve()
      }
      const stop = (reason: unknown): void => {
        leave()
        this.#forget(name, caller)
        reject(reason as Error)
      }
      stops?.add(stop)
      caller.waiting.add(start)
      this.#waiting += 1
      this.#turns.set(name, caller)
    })
  }

  #forget(name: string, caller: Caller): void {
    if (caller.working === 0 && caller.waiting.size === 0) this.#callers.delete(name)
  }

  #fill(): void {
    while (this.#free > 0) {
      const next = this.#next()
      if (next === undefined) return
      const [name, caller] = next
      const [start] = caller.waiting
      start!()
      // Behind all others that wait.
      if (!this.#turns.delete(name)) continue
      this.#turns.set(name, caller)
    }
  }

  /** The caller whose turn it is. Few are passed over: only those that have half of the slots. */
  #next(): [string, Caller] | undefined {
    let first: [string, Caller] | undefined
    for (const entry of this.#turns) {
      if (entry[1].working < this.#half) return entry
      first ??= entry
    }
    return first
  }
}
