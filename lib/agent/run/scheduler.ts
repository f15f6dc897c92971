/**
 * Gives slots to runs, first come, first served.
 *
 * 1. At most `slots` runs work at a time; if folders are exclusive, one per folder.
 * 2. A run whose folder is busy waits without holding up the runs behind it.
 * 3. A run keeps its folder from its first slot to its end. Runs that have begun come before the
 *    queue: those that return from a gate, and those of an earlier process.
 *
 * @module
 */

/** A run that waits for a slot. */
interface Ticket {
  readonly runId: string
  readonly cwd: string
  /** Its position: tickets are numbered as they come. */
  readonly order: number
  start: () => void
}

/** The slots and folders of one engine; the rules are in the comment of this file. */
export class Scheduler {
  readonly #slots: number
  readonly #exclusive: boolean
  #order = 0
  /** All tickets, by run. */
  readonly #tickets = new Map<string, Ticket>()
  /** Tickets of runs that have begun. */
  readonly #begun: Ticket[] = []
  /** The others whose folder is not known to be busy, in their order. */
  readonly #queue: Ticket[] = []
  /** The others, by their folder: each is looked at again only when that is free. */
  readonly #blocked = new Map<string, Ticket[]>()
  readonly #working = new Set<string>()
  readonly #folders = new Map<string, string>()
  /** The runs of each folder: the inverse of `#folders`. */
  readonly #holders = new Map<string, Set<string>>()

  /** `exclusive`: at most one run per folder. */
  constructor(slots: number, exclusive: boolean) {
    this.#slots = slots
    this.#exclusive = exclusive
  }

  /** Runs that wait for a slot. */
  get waiting(): number {
    return this.#tickets.size
  }

  /** Must a run that comes now wait, whatever its folder? */
  get isFull(): boolean {
    return this.#working.size >= this.#slots
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
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        this.#withdraw(runId)
        reject(signal.reason as Error)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      this.queue(runId, cwd, () => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      })
    })
  }

  /**
   * Calls `start` when the run has a slot. A run that waits already keeps its position, and only
   * its last `start` is called.
   */
  queue(runId: string, cwd: string, start: () => void): void {
    const known = this.#tickets.get(runId)
    if (known !== undefined) {
      known.start = start
      return
    }
    const ticket = { runId, cwd, order: this.#order++, start }
    this.#tickets.set(runId, ticket)
    const queue = this.#folders.has(runId) ? this.#begun : this.#queue
    queue.push(ticket)
    this.#fill()
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

  /** Frees the run's slot, folder and position: it has ended or is suspended. */
  leave(runId: string): void {
    this.#withdraw(runId)
    this.#working.delete(runId)
    const cwd = this.#folders.get(runId)
    if (cwd !== undefined) {
      this.#folders.delete(runId)
      const holders = this.#holders.get(cwd)
      holders?.delete(runId)
      if (holders?.size === 0) this.#holders.delete(cwd)
      this.#unblock(cwd)
    }
    this.#fill()
  }

  #fill(): void {
    while (!this.isFull) {
      const next = this.#begun.shift() ?? this.#takeFromQueue()
      if (next === undefined) return
      this.#tickets.delete(next.runId)
      this.#working.add(next.runId)
      this.hold(next.runId, next.cwd)
      next.start()
    }
  }

  #takeFromQueue(): Ticket | undefined {
    for (;;) {
      const ticket = this.#queue.shift()
      if (ticket === undefined || !this.#isBusy(ticket.cwd)) return ticket
      const blocked = this.#blocked.get(ticket.cwd)
      if (blocked === undefined) this.#blocked.set(ticket.cwd, [ticket])
      else insert(blocked, ticket)
    }
  }

  #isBusy(cwd: string): boolean {
    return this.#exclusive && this.#holders.has(cwd)
  }

  /** Moves the first run that waits for a folder back to the queue if the folder is free. */
  #unblock(cwd: string): void {
    const blocked = this.#blocked.get(cwd)
    if (blocked === undefined || this.#isBusy(cwd)) return
    insert(this.#queue, blocked.shift() as Ticket)
    if (blocked.length === 0) this.#blocked.delete(cwd)
  }

  #withdraw(runId: string): void {
    const ticket = this.#tickets.get(runId)
    if (ticket === undefined) return
    this.#tickets.delete(runId)
    const { cwd } = ticket
    const blocked = this.#blocked.get(cwd) ?? []
    for (const queue of [this.#begun, this.#queue, blocked]) {
      const index = queue.indexOf(ticket)
      if (index >= 0) queue.splice(index, 1)
    }
    if (blocked.length === 0) this.#blocked.delete(cwd)
    // The next one may have been waiting for this one only.
    this.#unblock(cwd)
  }
}

/** Inserts a ticket at its position; most belong at one of the ends. */
function insert(queue: Ticket[], ticket: Ticket): void {
  if (ticket.order < (queue[0]?.order ?? Infinity)) {
    queue.unshift(ticket)
    return
  }
  const before = queue.findLastIndex(({ order }) => order < ticket.order)
  queue.splice(before + 1, 0, ticket)
}
