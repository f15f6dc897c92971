/**
 * Gives slots to runs, in rounds over their tenants and roots: see {@link FairQueue}. Runs of one
 * tenant that are their own roots are served first come, first served.
 *
 * 1. At most `slots` runs work at a time; if folders are exclusive, never two in the same folder or
 *    in folders of which one contains the other.
 * 2. A run whose folder is busy waits, and only runs whose folders overlap with its own wait behind
 *    it: see {@link FolderQueue}.
 * 3. A restore or apply has a folder for itself, or is refused; runs wait for it, also where
 *    folders are not exclusive.
 * 4. A run keeps its folder from its first slot to its end. Runs that have begun come before the
 *    queue: those that return from a gate, and those of an earlier process. Each of both groups has
 *    rounds of its own.
 *
 * @module
 */
import { FairQueue, type QueueUse, type Waiting } from '../../internal/queues.js'
import { FolderIndex } from '../../internal/folder-index.js'
import { FolderQueue } from './folder-queue.js'

/** A run that waits for a slot. */
interface Ticket extends Waiting {
  readonly cwd: string
  start: () => void
}

/** The slots and folders of one engine; the rules are in the comment of this file. */
export class Scheduler {
  readonly #slots: number
  /** Are the folders of runs exclusive? */
  readonly #exclusive: boolean
  readonly #folders: FolderQueue
  /** All tickets, by run. */
  readonly #tickets = new Map<string, Ticket>()
  /** Tickets of runs that have begun. */
  readonly #begun = new FairQueue<Ticket>()
  /** The others; those whose folder is free are ready. */
  readonly #waiting = new FairQueue<Ticket>()
  readonly #working = new Set<string>()
  /** Runs that have begun, and the folders that they keep. */
  readonly #holders = new Map<string, string>()

  /** `exclusive`: runs whose folders are equal or nested do not work at the same time. */
  constructor(slots: number, exclusive: boolean) {
    this.#slots = slots
    this.#exclusive = exclusive
    this.#folders = new FolderQueue((runId) => this.#waiting.ready(runId))
  }

  /**
   * Runs that wait for their first slot, all and those of a tenant. Runs that others start do not
   * count: they have been let in with those.
   */
  queued(tenant: string | null): QueueUse {
    const use = { all: 0, ofTenant: 0 }
    for (const ticket of this.#tickets.values()) {
      if (ticket.root !== ticket.runId || this.#holders.has(ticket.runId)) continue
      use.all += 1
      if (ticket.tenant === tenant) use.ofTenant += 1
    }
    return use
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
  async enter(run: Waiting, cwd: string, signal: AbortSignal): Promise<void> {
    const { runId } = run
    signal.throwIfAborted()
    if (this.#working.has(runId)) return
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        this.#withdraw(runId)
        this.#fill()
        reject(signal.reason as Error)
      }
      signal.addEventListener('abort', onAbort, { once: true })
      const start = (): void => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      }
      this.queue(run, cwd, start)
    })
  }

  /**
   * Calls `start` when the run has a slot. A run that waits already keeps its position, and only
   * its last `start` is called.
   */
  queue({ runId, tenant, root }: Waiting, cwd: string, start: () => void): void {
    const known = this.#tickets.get(runId)
    if (known !== undefined) {
      known.start = start
      return
    }
    const ticket = { runId, tenant, root, cwd, start }
    this.#tickets.set(runId, ticket)
    const hasBegun = this.#holders.has(runId)
    const queue = hasBegun ? this.#begun : this.#waiting
    queue.add(ticket)
    if (this.#exclusive && !hasBegun) this.#folders.enter(runId, cwd)
    else queue.ready(runId)
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
      const next = this.#begun.next() ?? this.#nextWaiting()
      if (next === undefined) return
      this.#tickets.delete(next.runId)
      this.#working.add(next.runId)
      this.#holders.set(next.runId, next.cwd)
      next.start()
    }
  }

  /** Folders that are not exclusive are kept from runs by restores and applies only. */
  #nextWaiting(): Ticket | undefined {
    if (this.#exclusive) return this.#waiting.next()
    return this.#waiting.next(({ cwd }) => this.#folders.isFree(cwd))
  }

  /** Gives up the run's position; unless it has begun, its folder as well. */
  #withdraw(runId: string): void {
    this.#tickets.delete(runId)
    if (!this.#holders.has(runId)) this.#folders.leave(runId)
    this.#begun.remove(runId)
    this.#waiting.remove(runId)
  }
}

/** The name under which the folder of a restore or apply is taken: the run may have another one. */
function reservation(runId: string): string {
  return `files ${runId}`
}
