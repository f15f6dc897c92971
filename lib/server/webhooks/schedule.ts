import { steadyNow, type Clock, type Timer } from '../../internal/time.js'

/**
 * How a run's turn ended: it has nothing left, there is more to do at once, or an attempt failed
 * and the next one is due in so many milliseconds.
 */
export type TurnEnd = 'idle' | 'more' | number

/** Runs that are worked on concurrently. */
const SLOTS = 8
/** How many of them may be retries. */
const RETRY_SLOTS = 4
/** Waiting runs that may be looked through per millisecond. */
const SWEPT_PER_MS = 100

/**
 * Which run of an endpoint has its turn. A run waits for a slot in order of arrival, and holds none
 * between two attempts. Retries have slots of their own, so that neither they nor new runs keep the
 * other from being delivered.
 */
export class Schedule {
  readonly #work: (runId: string) => Promise<TurnEnd>
  readonly #clock: Clock
  readonly #fresh = new Set<string>()
  /** Runs whose retry is due. */
  readonly #due = new Set<string>()
  /** When the retry of a run is due, by the steady clock. */
  readonly #waiting = new Map<string, number>()
  readonly #working = new Map<string, Promise<void>>()
  #retrying = 0
  #timer: (Timer & { readonly at: number }) | null = null
  #closed = false

  /** @param work - one turn of a run; does not reject. */
  constructor(work: (runId: string) => Promise<TurnEnd>, clock: Clock) {
    this.#work = work
    this.#clock = clock
  }

  /** There is something to do for a run. If it waits for a retry, it goes on waiting. */
  add(runId: string): void {
    if (this.#waiting.has(runId) || this.#due.has(runId)) return
    this.#fresh.add(runId)
    this.#fill()
  }

  /** Lets a run wait for `ms` milliseconds. */
  retryIn(runId: string, ms: number): void {
    const at = steadyNow(this.#clock) + ms
    this.#fresh.delete(runId)
    this.#waiting.set(runId, at)
    this.#arm(at)
  }

  /** Starts no more turns; resolves once those in progress have ended. */
  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.cancel()
    await Promise.all(this.#working.values())
  }

  #fill(): void {
    while (!this.#closed && this.#working.size < SLOTS) {
      const [retry] = this.#retrying < RETRY_SLOTS ? this.#due : []
      const runId = retry ?? this.#nextFresh()
      if (runId === undefined) return
      const from = retry === undefined ? this.#fresh : this.#due
      from.delete(runId)
      this.#working.set(runId, this.#turn(runId, retry !== undefined))
    }
  }

  /** Skips runs that have their turn: the events of a run are delivered in order. */
  #nextFresh(): string | undefined {
    for (const runId of this.#fresh) if (!this.#working.has(runId)) return runId
    return undefined
  }

  async #turn(runId: string, isRetry: boolean): Promise<void> {
    if (isRetry) this.#retrying += 1
    const end = await this.#work(runId)
    if (isRetry) this.#retrying -= 1
    this.#working.delete(runId)
    if (end === 'more') this.#fresh.add(runId)
    else if (end !== 'idle') this.retryIn(runId, end)
    this.#fill()
  }

  /** One timer for all: a hundred thousand would take more memory than the runs themselves. */
  #arm(at: number): void {
    if (this.#closed) return
    const now = steadyNow(this.#clock)
    const ms = Math.max(at - now, this.#waiting.size / SWEPT_PER_MS)
    if (this.#timer !== null && this.#timer.at <= now + ms) return
    this.#timer?.cancel()
    const { cancel } = this.#clock.setTimeout(() => this.#sweep(), ms)
    this.#timer = { cancel, at: now + ms }
  }

  #sweep(): void {
    this.#timer = null
    const now = steadyNow(this.#clock)
    let earliest = Infinity
    for (const [runId, at] of this.#waiting) {
      if (at <= now) {
        this.#waiting.delete(runId)
        this.#due.add(runId)
      } else earliest = Math.min(earliest, at)
    }
    if (this.#waiting.size > 0) this.#arm(earliest)
    this.#fill()
  }
}
