/**
 * Gives slots to runs, first come, first served.
 *
 * 1. At most `slots` runs work at a time; if folders are exclusive, never two in the same folder or
 *    in folders of which one contains the other.
 * 2. A run whose folder is busy waits, and only runs whose folders overlap with its own wait behind
 *    it: see {@link FolderQueue}.
 * 3. A restore or apply has a folder for itself, or is refused; runs wait for it, also where
 *    folders are not exclusive.
 * 4. A run keeps its folder from its first slot to its end. Runs that have begun come before the
 *    queue: those that return from a gate, and those of an earlier process.
 *
 * @module
 */
import { FolderIndex } from '../../internal/folder-index.js'
import { FolderQueue } from './folder-queue.js'

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
  /** Are the folders of runs exclusive? */
  readonly #exclusive: boolean
  readonly #folders: FolderQueue
  #order = 0
  /** All tickets, by run. */
  readonly #tickets = new Map<string, Ticket>()
  /** Tickets of runs that have begun. */
  readonly #begun: Ticket[] = []
  /** The others whose folder is free, in their order. */
  readonly #ready: Ticket[] = []
  readonly #working = new Set<string>()
  /** Runs that have begun, and the folders that they keep. */
  readonly #holders = new Map<string, string>()

  /** `exclusive`: runs whose folders are equal or nested do not work at the same time. */
  constructor(slots: number, exclusive: boolean) {
    this.#slots = slots
    this.#exclusive = exclusive
    this.#folders = new FolderQueue((runId) => this.#onFree(runId))
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
        this.#fill()
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
    if (this.#holders.has(runId)) this.#begun.push(ticket)
    else if (!this.#exclusive) this.#ready.push(ticket)
    else this.#folders.enter(runId, cwd)
    this.#fill()
  }

  /** Gives the run its folder without a slot: for runs that had begun before a restart. */
  hold(runId: string, cwd: string): void {
    this.#holders.set(runId, cwd)
    if (this.#exclusive) this.#folders.take(runId, cwd)
  }

  /**
   * Reserves a folder for a restore or apply of a run, unless the run has it anyway; null then,
   * else the run that has or wants the folder, one above or one below.
   */
  reserve(runId: string, folder: string): string | null {
    const own = this.#holders.get(runId)
    if (this.#exclusive && own === folder) return null
    if (!this.#exclusive) {
      const used = new FolderIndex<string>()
      for (const [holder, cwd] of this.#holders) used.add(holder, cwd)
      const holder = used.find(folder, runId)
      if (holder !== undefined) return holder
    }
    const holder = this.#folders.tryTake(reservation(runId), folder)
    return holder === null ? null : holder.slice(holder.indexOf(' ') + 1)
  }

  /** Ends a reservation; does nothing without one. */
  release(runId: string): void {
    this.#folders.leave(reservation(runId))
    this.#fill()
  }

  /** Frees the run's slot; it keeps its folder. */
  pause(runId: string): void {
    if (this.#working.delete(runId)) this.#fill()
  }

  /** Frees the run's slot, folder and position: it has ended or is suspended. */
  leave(runId: string): void {
    this.#holders.delete(runId)
    this.#working.delete(runId)
    this.#withdraw(runId)
    this.#fill()
  }

  #fill(): void {
    while (!this.isFull) {
      const next = this.#begun.shift() ?? this.#nextReady()
      if (next === undefined) return
      this.#tickets.delete(next.runId)
      this.#working.add(next.runId)
      this.#holders.set(next.runId, next.cwd)
      next.start()
    }
  }

  /** Folders that are not exclusive are kept from runs by restores and applies only. */
  #nextReady(): Ticket | undefined {
    if (this.#exclusive) return this.#ready.shift()
    const at = this.#ready.findIndex(({ cwd }) => this.#folders.isFree(cwd))
    return at < 0 ? undefined : this.#ready.splice(at, 1)[0]
  }

  #onFree(runId: string): void {
    const ticket = this.#tickets.get(runId)
    if (ticket !== undefined) insert(this.#ready, ticket)
  }

  /** Gives up the run's position; unless it has begun, its folder as well. */
  #withdraw(runId: string): void {
    const ticket = this.#tickets.get(runId)
    this.#tickets.delete(runId)
    if (!this.#holders.has(runId)) this.#folders.leave(runId)
    if (ticket === undefined) return
    for (const queue of [this.#begun, this.#ready]) {
      const index = queue.indexOf(ticket)
      if (index >= 0) queue.splice(index, 1)
    }
  }
}

/** The name under which the folder of a restore or apply is taken: the run may have another one. */
function reservation(runId: string): string {
  return `files ${runId}`
}

/** Inserts a ticket at its position. */
function insert(queue: Ticket[], ticket: Ticket): void {
  let low = 0
  let high = queue.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((queue[middle] as Ticket).order < ticket.order) low = middle + 1
    else high = middle
  }
  queue.splice(low, 0, ticket)
}
