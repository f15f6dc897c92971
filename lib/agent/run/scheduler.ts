/**
 * Gives slots to runs, first come, first served.
 *
 * 1. At most `slots` runs work at a time; if folders are exclusive, one per folder.
 * 2. A run whose folder is busy waits without holding up the runs behind it.
 * 3. A run keeps its folder from its first slot to its end, and returns from a gate before the
 *    queue.
 *
 * @module
 */

interface Waiting {
  readonly runId: string
  readonly cwd: string
  readonly start: () => void
}

/** The slots and folders of one engine; the rules are in the comment of this file. */
export class Scheduler {
  readonly #slots: number
  readonly #exclusive: boolean
  readonly #queue: Waiting[] = []
  /** Runs that return from a gate. */
  readonly #returning: Waiting[] = []
  readonly #working = new Set<string>()
  readonly #folders = new Map<string, string>()
  /** The runs of each folder: the inverse of `#folders`. */
  readonly #holders = new Map<string, Set<string>>()

  /** `exclusive`: at most one run per folder. */
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
   * Resolves when the run has a slot.
   *
   * @throws the signal's reason when it fires first; the run then leaves the queue.
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

  /** Gives the run its folder without a slot: for runs that had begun before a restart. */
  hold(runId: string, cwd: string): void {
    this.#folders.set(runId, cwd)
    const holders = this.#holders.get(cwd) ?? new Set()
    this.#holders.set(cwd, holders.add(runId))
  }

  /** Frees the run's slot; it keeps its folder. */
  pause(runId: string): void {
    if (this.#working.delete(runId)) this.#fill()
  }

  /** Frees the run's slot and folder: it has ended or is suspended. */
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
