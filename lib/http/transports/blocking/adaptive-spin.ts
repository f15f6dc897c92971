import { availableParallelism } from 'node:os'

/** Longest spin. To sleep and wake up takes longer than the response of a server nearby. */
const SPIN_MS = 0.4
/** One of so many waits is done the other way, to see whether that has become better. */
const PROBE_INTERVAL = 32
/** The first waits alternate between both ways. */
const INITIAL_WAITS = 16
/** Ratio of waits that justifies a spin: it costs processor time, and luck looks like a gain. */
const MAX_RATIO = 0.8

/**
 * Decides whether a wait begins with a spin. Both ways are measured now and then, and the spin is
 * kept only where it makes waits shorter; on a busy machine, or with a distant server, it does not.
 * With one processor there is no spin: it would only delay the worker.
 */
export class AdaptiveSpin {
  readonly #allowed = availableParallelism() > 1
  #waits = 0
  /** Recent length of waits with and without a spin, in ms; 0 before the first. */
  #withSpin = 0
  #withoutSpin = 0
  /** Waits with a spin relative to those without. Only probes update it: servers change. */
  #ratio = 0

  /** How long the next wait should spin, in ms; 0 for not at all. */
  next(): number {
    if (!this.#allowed) return 0
    const wait = this.#waits++
    if (wait < INITIAL_WAITS) return wait % 2 === 0 ? SPIN_MS : 0
    return this.#pays === (wait % PROBE_INTERVAL !== 0) ? SPIN_MS : 0
  }

  /** Records how long a wait took; `spinMs` is what `next()` returned for it. */
  record(spinMs: number, waitedMs: number): void {
    if (!this.#allowed) return
    const tookMs = Math.max(waitedMs, 0.001)
    const spins = spinMs > 0
    const probe = this.#waits <= INITIAL_WAITS || spins !== this.#pays
    if (spins) this.#withSpin = smoothed(this.#withSpin, tookMs)
    else this.#withoutSpin = smoothed(this.#withoutSpin, tookMs)
    if (!probe || this.#withSpin === 0 || this.#withoutSpin === 0) return
    const ratio = spins ? tookMs / this.#withoutSpin : this.#withSpin / tookMs
    this.#ratio = smoothed(this.#ratio, ratio)
  }

  get #pays(): boolean {
    return this.#ratio < MAX_RATIO
  }
}

/** A moving average that limits the weight of a single slow wait. */
function smoothed(average: number, value: number): number {
  return average === 0 ? value : average + (Math.min(value, 3 * average) - average) / 8
}
