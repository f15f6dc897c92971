import { availableParallelism } from 'node:os'

/** Longest spin. Going to sleep and being woken costs more than an answer from nearby takes. */
const SPIN_MS = 0.4
/** Of so many waits one is done the other way, to see whether it has become the better. */
const PROBE = 32
/** Waits that are done in turn, to begin with. */
const TRIALS = 16
/** How much shorter waits must be with a spin, for the processor time that it takes. */
const WORTH = 0.9

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

  /** How long to spin in the wait that begins, in ms; 0 not at all. */
  next(): number {
    if (!this.#allowed) return 0
    const wait = this.#waits++
    if (wait < TRIALS) return wait % 2 === 0 ? SPIN_MS : 0
    const better = this.#spun < this.#slept * WORTH
    return better === (wait % PROBE !== 0) ? SPIN_MS : 0
  }

  /** Notes how long a wait took that was told to spin so long. */
  note(spinMs: number, tookMs: number): void {
    if (!this.#allowed) return
    if (spinMs > 0) this.#spun = smoothed(this.#spun, tookMs)
    else this.#slept = smoothed(this.#slept, tookMs)
  }
}

/** A moving average, of which one slow answer does not make much. */
function smoothed(average: number, value: number): number {
  return average === 0 ? value : average + (Math.min(value, 3 * average) - average) / 8
}
