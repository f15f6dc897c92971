/**
 * Who may work now: at most so many runs at a time, first come first served, and one run per
 * folder. A run whose folder is busy waits without holding up those behind it.
 *
 * @module
 */

interface Waiting {
  readonly runId: string
  readonly cwd: string
  readonly start: () => void
}

/** Gives slots to runs. */
export class Scheduler {
  readonly #slots: number
  readonly #exclusive: boolean
  readonly #queue: Waiting[] = []
  /** Runs that come back from a gate: they have their folder and go before the queue. */
  readonly #returning: Waiting[] = []
  readonly #working = new Set<string>()
  /** Folder by run, and runs by folder, from a run's first start to its end. */
  readonly #folders = new Map<string, string>()
  readonly #holders = new Map<string, Set<string>>()

  /** `exclusive`: one run per folder. */
  constructor(slots: number, exclusive: boolean) {
    this.#slots = slots
    this.#exclusive = exclusive
  }

  /** Runs that wait for their first slot. */
  get queued(): number {
    return this.#queue.length
  }

  /** Does the run hold a slot? */
  isWorking(runId: string): boolean {
    return this.#working.has(runId)
  }

  /**
   * Resolves when the run may work. Runs that hold their folder already come first.
   *
   * @throws the signal's reason when it fires first; the run then waits no longer.
   */
  async enter(runId: string, cwd: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#working.has(runId)) return
    const queue = this.#folders.has(runId) ? this.#returning : this.#queue
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        const index = queue.indexOf(waiting)
        if (index >= 0) queue.splice(index, 1)
        reject(signal.reason as Error)
      }
      const start = (): void => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      }
      const waiting: Waiting = { runId, cwd, start }
      signal.addEventListener('abort', onAbort, { once: true })
      queue.push(waiting)
      this.#fill()
    })
  }

  /** Gives the run its folder without a slot: for runs that were waiting for a human before a restart. */
  hold(runId: string, cwd: string): void {
    this.#folders.set(runId, cwd)
    const holders = this.#holders.get(cwd) ?? new Set()
    this.#holders.set(cwd, holders.add(runId))
  }

  /** The run works no more for now, and keeps its folder. */
  pause(runId: string): void {
    if (this.#working.delete(runId)) this.#fill()
  }

  /** The run has ended. */
  leave(runId: string): void {
    this.#working.delete(runId)
    const cwd = this.#folders.get(runId)
    if (cwd !== undefined) {
      this.#folders.delete(runId)
      const holders = this.#holders.get(cwd)
      holders?.delete(runId)
      if (holders?.size === 0) this.#holders.delete(cwd)
    }
    this.#fill()
  }

  #fill(): void {
    while (this.#working.size < this.#slots) {
      const next = this.#returning.shift() ?? this.#takeFromQueue()
      if (next === undefined) return
      this.#working.add(next.runId)
      this.hold(next.runId, next.cwd)
      next.start()
    }
  }

  #takeFromQueue(): Waiting | undefined {
    const index = this.#queue.findIndex(({ cwd }) => !this.#exclusive || !this.#holders.has(cwd))
    return index < 0 ? undefined : this.#queue.splice(index, 1)[0]
  }
}
