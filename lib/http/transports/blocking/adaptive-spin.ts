import os from 'node:os'

/** Longest spin. To sleep and wake up takes longer than the response of a server nearby. */
const SPIN_MS = 0.4
/** Waits that are done one way, one after the other, before both ways are compared. */
const BLOCK = 16
/** The first waits of a block do not count: processors that were asleep are slow. */
const SETTLING = 4
/** One of so many blocks is done the other way, to see whether that has become better. */
const TRIAL_INTERVAL = 32
/** Ratio of waits that justifies a spin: it costs processor time, and luck looks like a gain. */
const MAX_RATIO = 0.8

/**
 * Decides whether a wait begins with a spin. Both ways are measured now and then, and the spin is
 * kept only where it makes waits shorter; on a busy machine, or with a distant server, it does not.
 * Each way is tried in blocks, because a single spin between sleeps gains little: it is the threads
 * that stay awake which make each other fast. With one processor there is no spin: it would only
 * delay the worker.
 */
export class AdaptiveSpin {
  readonly #allowed = os.availableParallelism() > 1
  /** How this block is done, and what is done outside trials. */
  #spins = true
  #chosen = true
  #blocks = 0
  #waits: number[] = []
  /** The median wait of the last block with a spin and without, in ms; 0 before the first. */
  #withSpin = 0
  #withoutSpin = 0
  /** Waits with a spin relative to those without; 0 before both are known. */
  #ratio = 0

  /** How long the next wait should spin, in ms; 0 for not at all. */
  next(): number {
    return this.#allowed && this.#spins ? SPIN_MS : 0
  }

  /** Records how long a wait took. */
  record(waitedMs: number): void {
    if (!this.#allowed) return
    this.#waits.push(waitedMs)
    if (this.#waits.length < BLOCK) return
    const counted = this.#waits.slice(SETTLING).sort((a, b) => a - b)
    this.#waits = []
    const median = Math.max(counted[counted.length >> 1]!, 0.001)
    if (this.#spins) this.#withSpin = median
    else this.#withoutSpin = median
    if (this.#spins !== this.#chosen || this.#ratio === 0) this.#compare()
    const trial = ++this.#blocks % TRIAL_INTERVAL === 1
    this.#spins = trial ? !this.#chosen : this.#chosen
  }

  #compare(): void {
    if (this.#withSpin === 0 || this.#withoutSpin === 0) return
    const ratio = this.#withSpin / this.#withoutSpin
    this.#ratio = this.#ratio === 0 ? ratio : (this.#ratio + Math.min(ratio, 2)) / 2
    this.#chosen = this.#ratio < MAX_RATIO
  }
}
