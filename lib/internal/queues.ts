/**
 * Queues and slots that their users share fairly.
 *
 * @module
 */
import { abortListeners } from './time.js'

/**
 * Binary search: the first of `count` indexes for which `isBefore` is false, or `count`. `isBefore`
 * must not become true again after it was false.
 */
export function lowerBound(count: number, isBefore: (at: number) => boolean): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isBefore(middle)) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * Runs that wait for their turn, in rounds over their tenants and, within each, over their roots:
 * no tenant and no tree of runs keeps others waiting.
 *
 * 1. A tenant's turn comes when the run with which it came would have had its own, and so does a
 *    root's among those of its tenant. After each turn both go behind all others that wait.
 * 2. Runs of one root have their turns in the order in which they came, but for those that cannot
 *    start.
 * 3. Runs of one tenant that are their own roots therefore have their turns in the order in which
 *    they came.
 *
 * A turn costs no look at the other runs.
 */

/** A run that waits. */
export interface Waiting {
  readonly runId: string
  /** Null for a run of no tenant. */
  readonly tenant: string | null
  /** The run at the top of its tree, or itself. */
  readonly root: string
}

/** A run, the runs of a root, those of a tenant, or all. */
interface Member<W> {
  readonly key: string | null
  /** What it is part of; null for all. */
  readonly group: Member<W> | null
  /** Smaller numbers come first. */
  order: number
  /** Null for a group. */
  readonly run: W | null
  /** The parts of a group that wait, those that cannot start included. */
  readonly parts: Map<string | null, Member<W>>
  /** Those that can start. */
  readonly ready: Member<W>[]
}

/** The queue; its rules are in the comment of this file. */
export class FairQueue<W extends Waiting> {
  /** Runs that come and groups that go behind the others get their numbers from the same count. */
  #count = 0
  readonly #runs = new Map<string, Member<W>>()
  readonly #all: Member<W> = member<W>(null, null, 0)

  /** Adds a run, which cannot start until {@link FairQueue.ready} is called. */
  add(run: W): void {
    const order = this.#count++
    let group = this.#all
    for (const key of [run.tenant, run.root]) {
      const part = group.parts.get(key) ?? member(key, group, order)
      group.parts.set(key, part)
      group = part
    }
    const own = member(run.runId, group, order, run)
    group.parts.set(run.runId, own)
    this.#runs.set(run.runId, own)
  }

  /** From now on this run can start. */
  ready(runId: string): void {
    let part = this.#runs.get(runId)
    while (part !== undefined && part.group !== null) {
      const { group } = part
      insert(group.ready, part)
      if (group.ready.length > 1) return
      part = group
    }
  }

  /** Removes the run whose turn it is, of those that `may` accepts. */
  next(may: (run: W) => boolean = () => true): W | undefined {
    for (const tenant of this.#all.ready) {
      for (const root of tenant.ready) {
        const found = root.ready.find(({ run }) => may(run!))
        if (found === undefined) continue
        this.#drop(found)
        for (const group of [root, tenant]) this.#goBehind(group)
        return found.run!
      }
    }
    return undefined
  }

  /** Removes a run; does nothing when it is not in the queue. */
  remove(runId: string): void {
    const own = this.#runs.get(runId)
    if (own !== undefined) this.#drop(own)
  }

  #drop(own: Member<W>): void {
    this.#runs.delete(own.run!.runId)
    for (let part = own; part.group !== null; part = part.group) {
      if (part.parts.size === 0) part.group.parts.delete(part.key)
      if (part.ready.length === 0) remove(part.group.ready, part)
    }
  }

  #goBehind(part: Member<W>): void {
    const { ready } = part.group!
    const hasMore = remove(ready, part)
    part.order = this.#count++
    if (hasMore) ready.push(part)
  }
}

function member<W>(
  key: string | null,
  group: Member<W> | null,
  order: number,
  run: W | null = null,
): Member<W> {
  return { key, group, order, run, parts: new Map(), ready: [] }
}

/** Runs that wait for a slot: all, and those of the tenant whose run comes now. */
export interface QueueUse {
  readonly all: number
  readonly ofTenant: number
}

/**
 * The bound that a run which comes now would exceed; null when it may wait. Runs of one tenant take
 * no more places than they leave free, so that there is one for every other tenant.
 */
export function exceededBound(
  { all, ofTenant }: QueueUse,
  tenant: string | null,
  maxQueued: number,
): number | null {
  if (all >= maxQueued) return maxQueued
  return tenant !== null && ofTenant >= maxQueued - all ? ofTenant : null
}

interface Ordered {
  readonly order: number
}

/** The index of the first item that does not come before `order`. */
function indexOf(items: readonly Ordered[], order: number): number {
  return lowerBound(items.length, (at) => items[at]!.order < order)
}

function insert<T extends Ordered>(items: T[], item: T): void {
  items.splice(indexOf(items, item.order), 0, item)
}

/** False when the item is not there. */
function remove<T extends Ordered>(items: T[], item: T): boolean {
  const index = indexOf(items, item.order)
  if (items[index] !== item) return false
  items.splice(index, 1)
  return true
}

/**
 * Slots that callers share, so that none of them keeps the others waiting.
 *
 * 1. At most `slots` pieces of work are done at a time.
 * 2. Callers that wait have their turns in rounds. Work of one caller starts in the order in which
 *    it came.
 * 3. While others wait, no caller gets more than half of the slots.
 * 4. Work whose signal aborts while it waits leaves at once.
 *
 * A turn costs no look at all of those that wait.
 */

interface Caller {
  working: number
  /** What starts its work, in order. */
  readonly waiting: Set<() => void>
}

export class FairSlots {
  readonly #slots: number
  readonly #half: number
  #free: number
  #waiting = 0
  /** Those with work that is done or waits. */
  readonly #callers = new Map<string, Caller>()
  /** Those with work that waits, in the order of their turns. */
  readonly #turns = new Map<string, Caller>()

  constructor(slots: number) {
    this.#slots = slots
    this.#half = Math.max(1, Math.floor(slots / 2))
    this.#free = slots
  }

  get slots(): number {
    return this.#slots
  }

  /** How many pieces of work wait, of all callers. */
  get waiting(): number {
    return this.#waiting
  }

  /** How many pieces of work of this caller wait. */
  waitingOf(caller: string): number {
    return this.#callers.get(caller)?.waiting.size ?? 0
  }

  /**
   * Does `work` once its caller has a slot, and frees the slot when it is over.
   *
   * @throws the signal's reason if it aborts before that; then `work` is not called.
   */
  async run<T>(caller: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted()
    const known = this.#callers.get(caller) ?? { working: 0, waiting: new Set() }
    this.#callers.set(caller, known)
    if (this.#free > 0) this.#take(known)
    else await this.#turn(caller, known, signal)
    try {
      return await work()
    } finally {
      this.#free += 1
      known.working -= 1
      this.#forget(caller, known)
      this.#fill()
    }
  }

  #take(caller: Caller): void {
    this.#free -= 1
    caller.working += 1
  }

  async #turn(name: string, caller: Caller, signal: AbortSignal | undefined): Promise<void> {
    const stops = signal === undefined ? null : abortListeners(signal)
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        caller.waiting.delete(start)
        this.#waiting -= 1
        if (caller.waiting.size === 0) this.#turns.delete(name)
      }
      const start = (): void => {
        stops?.delete(stop)
        leave()
        this.#take(caller)
        resolve()
      }
      const stop = (reason: unknown): void => {
        leave()
        this.#forget(name, caller)
        reject(reason as Error)
      }
      stops?.add(stop)
      caller.waiting.add(start)
      this.#waiting += 1
      this.#turns.set(name, caller)
    })
  }

  #forget(name: string, caller: Caller): void {
    if (caller.working === 0 && caller.waiting.size === 0) this.#callers.delete(name)
  }

  #fill(): void {
    while (this.#free > 0) {
      const next = this.#next()
      if (next === undefined) return
      const [name, caller] = next
      const [start] = caller.waiting
      start!()
      // Behind all others that wait.
      if (!this.#turns.delete(name)) continue
      this.#turns.set(name, caller)
    }
  }

  /** The caller whose turn it is. Few are passed over: only those that have half of the slots. */
  #next(): [string, Caller] | undefined {
    let first: [string, Caller] | undefined
    for (const entry of this.#turns) {
      if (entry[1].working < this.#half) return entry
      first ??= entry
    }
    return first
  }
}
