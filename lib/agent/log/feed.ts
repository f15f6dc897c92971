/**
 * The live end of one run's log. Events are encoded once, when they have become durable, and
 * readers pull them: what a reader has not taken waits in the log, not in a queue of its own.
 *
 * 1. Only durable events are ever seen.
 * 2. The newest events are kept here, encoded, up to a bound for each run and one for all of them;
 *    older ones are read from the store.
 * 3. A reader goes by its position alone, so that nothing is skipped or doubled where the store
 *    ends and the live part begins.
 *
 * @module
 */
import { channel } from 'node:diagnostics_channel'
import { DeltaQueue } from './deltas.js'
import { publicEvent, type RunRecord } from '../events.js'
import type { RunStore } from '../store.js'
import type {
  EncodedDelta,
  EncodedEvent,
  RunSubscription,
  StreamItem,
  SubscriptionEnd,
} from './subscription.js'

/** Bounds of what is handed out at once: events, and characters unless one event has more. */
const BATCH = 256
const BATCH_CHARACTERS = 1 << 20
/** Records read from the store at once: they may be large. */
const STORE_PAGE = 64
/** A page with less than this is followed by one twice as long, up to a whole batch. */
const SMALL_PAGE_CHARACTERS = 1 << 18
/** Bounds of what is kept encoded per run that somebody follows, in events and about in octets. */
const KEPT_EVENTS = 512
const KEPT_OCTETS = 1 << 20
/** As much over its bound a feed gets before it is cut, so that not every event cuts it. */
const SLACK = 1.25

/** About how many octets an event takes while it is kept: its text, the frame made of it, and both objects. */
function octetsOf({ json }: EncodedEvent): number {
  return 2 * json.length + 400
}

/** Messages are {@link AgentEvent}s, durable, of every run of this process, in the order of each run. */
const events = channel('runwright.event')

/** Encodes a record for its readers. */
export function encodeEvent(record: RunRecord): EncodedEvent {
  return { seq: record.seq, kind: record.kind, json: JSON.stringify(publicEvent(record)) }
}

/** Sees to it that all feeds of this process together keep no more than one bound. */
class KeptByAll {
  readonly #bound = 32 << 20
  /** Those that keep something; the one that has been quiet for the longest time stands first. */
  readonly #feeds = new Map<RunFeed, number>()
  #octets = 0

  /** A feed keeps this much now: those that were quiet give up what they have when that is too much. */
  note(feed: RunFeed, octets: number): void {
    this.#account(feed, octets)
    for (const [quiet] of this.#feeds) {
      if (this.#octets <= this.#bound) return
      quiet.forget()
      this.#account(quiet, 0)
    }
  }

  #account(feed: RunFeed, octets: number): void {
    this.#octets += octets - (this.#feeds.get(feed) ?? 0)
    this.#feeds.delete(feed)
    if (octets > 0) this.#feeds.set(feed, octets)
  }
}

const keptByAll = new KeptByAll()

/** The live end of one run's log. */
export class RunFeed {
  readonly runId: string
  readonly #store: RunStore
  #kept: EncodedEvent[] = []
  #keptOctets = 0
  /** Records of the next read from the store. */
  #page = STORE_PAGE
  #lastSeq: number
  #end: SubscriptionEnd | undefined
  #waiting = new Set<() => void>()
  /** True once somebody has subscribed: until then nothing is encoded. */
  #watched = false
  readonly #deltaReaders = new Set<DeltaQueue>()

  constructor(runId: string, store: RunStore, lastSeq: number) {
    this.runId = runId
    this.#store = store
    this.#lastSeq = lastSeq
  }

  /** `seq` of the newest durable event. */
  get lastSeq(): number {
    return this.#lastSeq
  }

  /** Why there will be no more events; undefined while there may be. */
  get end(): SubscriptionEnd | undefined {
    return this.#end
  }

  /**
   * Shows durable records to the readers. What was shown before is left out; what lies between is
   * read from the store by those that need it.
   */
  publish(records: readonly RunRecord[]): void {
    for (const record of records) {
      if (record.seq <= this.#lastSeq) continue
      if (record.seq > this.#lastSeq + 1) this.forget()
      this.#lastSeq = record.seq
      if (this.#watched) this.#keep(encodeEvent(record))
      if (events.hasSubscribers) events.publish(publicEvent(record))
    }
    if (this.#watched && this.#end === undefined) keptByAll.note(this, this.#keptOctets)
    this.#wake()
  }

  /** No more events will come. */
  finish(end: SubscriptionEnd): void {
    this.#end ??= end
    // What it keeps goes with its last reader.
    keptByAll.note(this, 0)
    this.#wake()
  }

  /**
   * A reader that has everything up to `after`, and is told what the model writes, if it wants.
   * `left` is called when it has come to its end or was closed.
   */
  subscribe(after: number, deltas: boolean, left?: () => void): RunSubscription<StreamItem>
  subscribe(after: number): RunSubscription
  subscribe(
    after: number,
    deltas = false,
    left: () => void = () => undefined,
  ): RunSubscription<StreamItem> {
    this.#watched = true
    return new FeedSubscription(this, after, deltas ? new DeltaQueue() : null, left)
  }

  /** True while somebody wants to be told what the model writes. */
  get wantsDeltas(): boolean {
    return this.#deltaReaders.size > 0
  }

  /** Tells what the model writes to those that want to know, after the events shown so far. */
  publishDelta(delta: EncodedDelta): void {
    for (const queue of this.#deltaReaders) queue.push(this.#lastSeq, delta)
    this.#wake()
  }

  /** Adds to a reader's queue from now on. The result ends that. */
  listen(queue: DeltaQueue): () => void {
    this.#deltaReaders.add(queue)
    return () => this.#deltaReaders.delete(queue)
  }

  /**
   * Events after `after` that are durable now, at most 256 and about 1 MiB of them: at once when they
   * are kept here, else as a promise.
   */
  take(after: number): readonly EncodedEvent[] | Promise<readonly EncodedEvent[]> {
    const from = after + 1 - (this.#kept[0]?.seq ?? Infinity)
    return from >= 0 ? bounded(this.#kept.slice(from, from + BATCH)) : this.#read(after)
  }

  async #read(after: number): Promise<readonly EncodedEvent[]> {
    const records = await this.#store.read(this.runId, after, this.#page)
    // The store may be ahead of what was shown: its tail comes when it is published.
    const events = records.filter(({ seq }) => seq <= this.#lastSeq).map(encodeEvent)
    const characters = events.reduce((sum, { json }) => sum + json.length, 0)
    this.#page = characters < SMALL_PAGE_CHARACTERS ? Math.min(2 * this.#page, BATCH) : STORE_PAGE
    return bounded(events)
  }

  /** Calls back once, when something happens. The result takes the wish back. */
  wait(wake: () => void): () => void {
    this.#waiting.add(wake)
    return () => this.#waiting.delete(wake)
  }

  /** Gives up what is kept: readers that are behind go on from the store. */
  forget(): void {
    this.#kept = []
    this.#keptOctets = 0
  }

  #keep(event: EncodedEvent): void {
    this.#kept.push(event)
    this.#keptOctets += octetsOf(event)
    const isFull = this.#kept.length > SLACK * KEPT_EVENTS || this.#keptOctets > SLACK * KEPT_OCTETS
    if (!isFull) return
    let [from, octets] = [0, this.#keptOctets]
    while (this.#kept.length - from > KEPT_EVENTS || octets > KEPT_OCTETS) {
      octets -= octetsOf(this.#kept[from]!)
      from += 1
    }
    this.#kept = this.#kept.slice(from)
    this.#keptOctets = octets
  }

  #wake(): void {
    if (this.#waiting.size === 0) return
    const waiting = this.#waiting
    this.#waiting = new Set()
    for (const wake of waiting) wake()
  }
}

/** The first of the events that stay within the bound of a batch, one at least. */
function bounded(events: readonly EncodedEvent[]): readonly EncodedEvent[] {
  let characters = 0
  const end = events.findIndex(({ json }) => (characters += json.length) > BATCH_CHARACTERS)
  return end < 0 ? events : events.slice(0, Math.max(end, 1))
}

/** One reader of a feed. */
class FeedSubscription implements RunSubscription<StreamItem> {
  readonly runId: string
  readonly #feed: RunFeed
  readonly #deltas: DeltaQueue | null
  readonly #forgetDeltas: () => void
  readonly #left: () => void
  #position: number
  #end: SubscriptionEnd | undefined
  #closed = false
  #wakeUp: (() => void) | undefined

  constructor(feed: RunFeed, after: number, deltas: DeltaQueue | null, left: () => void) {
    this.runId = feed.runId
    this.#feed = feed
    this.#position = after
    this.#deltas = deltas
    this.#left = left
    this.#forgetDeltas = deltas === null ? () => undefined : feed.listen(deltas)
  }

  get position(): number {
    return this.#position
  }

  get end(): SubscriptionEnd | undefined {
    return this.#end
  }

  async next(): Promise<readonly StreamItem[] | null> {
    for (;;) {
      if (this.#closed) return this.#finish('closed')
      const deltas = this.#deltas?.take(this.#position) ?? []
      if (deltas.length > 0) return deltas
      if (this.#position < this.#feed.lastSeq && this.#feed.end !== 'deleted') {
        const kept = this.#feed.take(this.#position)
        const events = kept instanceof Promise ? await this.#read(kept) : this.#upToDeltas(kept)
        if (events === null) return this.#finish('shutdown')
        const last = events.at(-1)
        if (last !== undefined) {
          this.#position = last.seq
          return events
        }
        // Events that were announced and are gone: the run was deleted meanwhile.
        if (this.#position < this.#feed.lastSeq) return this.#finish('deleted')
      }
      if (this.#feed.end !== undefined) return this.#finish(this.#feed.end)
      await this.#wait()
    }
  }

  close(): void {
    this.#closed = true
    this.#forgetDeltas()
    this.#left()
    this.#wakeUp?.()
  }

  [Symbol.asyncIterator](): AsyncIterator<readonly StreamItem[], void> {
    return {
      next: async () => {
        let value: readonly StreamItem[] | null = null
        try {
          value = await this.next()
        } finally {
          if (value === null) this.close()
        }
        return value === null ? { done: true, value: undefined } : { done: false, value }
      },
      return: () => {
        this.close()
        return Promise.resolve({ done: true, value: undefined })
      },
    }
  }

  /** Events from the store; null when the engine has closed the store that holds them. */
  async #read(reading: Promise<readonly EncodedEvent[]>): Promise<readonly EncodedEvent[] | null> {
    try {
      return this.#upToDeltas(await reading)
    } catch (error) {
      if (this.#feed.end === 'shutdown') return null
      throw error
    }
  }

  /** Not beyond the place at which deltas wait: they belong between two events. */
  #upToDeltas(events: readonly EncodedEvent[]): readonly EncodedEvent[] {
    const limit = this.#deltas?.nextAfter ?? Infinity
    return limit === Infinity ? events : events.filter(({ seq }) => seq <= limit)
  }

  #wait(): Promise<void> {
    return new Promise((resolve) => {
      const forget = this.#feed.wait(resolve)
      this.#wakeUp = () => {
        forget()
        resolve()
      }
    })
  }

  #finish(end: SubscriptionEnd): null {
    this.#end ??= end
    this.#left()
    this.#forgetDeltas()
    return null
  }
}
