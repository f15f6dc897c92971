import { availableParallelism } from 'node:os'

/** Longest spin. Going to sleep and being woken costs more than an answer from nearby takes. */
const SPIN_MS = 0.4
/** Of so many waits one is done the other way, to see whether it has become the better. */
const PROBE = 32
/** Waits that are done in turn, to begin with. */
const TRIALS = 16
/** How much shorter waits must be with a spin: it takes processor time, and luck looks like a gain. */
const WORTH = 0.8

/**
 * Decides whether a wait begins with a spin. It is tried both ways now and then, and the spin is kept
 * only where it makes waits shorter: with a busy machine, or a far server, it does not. With one
 * processor there is none, since it would only hold up whoever is waited for.
 */
export class AdaptiveSpin {
  readonly #allowed = availableParallelism() > 1
  #waits = 0
  /** How long waits take of late, each way; 0 before the first. */
  #spun = 0
  #slept = 0
  /** Waits with a spin over those without. Taken at each probe, so that a change of server is no gain. */
  #ratio = 0

  /** How long to spin in the wait that begins, in ms; 0 not at all. */
  next(): number {
    if (!this.#allowed) return 0
    const wait = this.#waits++
    if (wait < TRIALS) return wait % 2 === 0 ? SPIN_MS : 0
    return this.#pays === (wait % PROBE !== 0) ? SPIN_MS : 0
  }

  /** Notes how long a wait took that was told to spin so long. */
  note(spinMs: number, waitedMs: number): void {
    if (!this.#allowed) return
    const tookMs = Math.max(waitedMs, 0.001)
    const spins = spinMs > 0
    const probe = this.#waits <= TRIALS || spins !== this.#pays
    if (spins) this.#spun = smoothed(this.#spun, tookMs)
    else this.#slept = smoothed(this.#slept, tookMs)
    if (!probe || this.#spun === 0 || this.#slept === 0) return
    this.#ratio = smoothed(this.#ratio, spins ? tookMs / this.#slept : this.#spun / tookMs)
  }

  get #pays(): boolean {
    return this.#ratio < WORTH
  }
}

/** A moving average, of which one slow answer does not make much. */
function smoothed(average: number, value: number): number {
  return average === 0 ? value : average + (Math.min(value, 3 * average) - average) / 8
}
