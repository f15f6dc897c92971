/**
 * The live end of one run's log. Events are encoded once, after they have become durable, and
 * subscriptions pull them: what a reader has not taken waits in the log, not in a queue per reader.
 *
 * 1. Only durable events are visible. A feed ends with `run_end` only after the record of that kind
 *    was published: how the run looks to the process that drives it does not count.
 * 2. The newest events are cached here, encoded, within one bound per run and one for the process;
 *    older events are read from the store.
 * 3. A subscription reads by position alone, so nothing is skipped or repeated at the boundary
 *    between the store and the cache.
 *
 * @module
 */
import { channel } from 'node:diagnostics_channel'
import { publicEvent, type RunRecord } from '../events.js'
import type { RecordReader } from './read-log.js'
import type {
  EncodedDelta, EncodedEvent, RunSubscription, StreamItem, SubscriptionEnd,
} from './subscription.js'

/** Bounds of one batch: events, and characters unless a single event has more. */
const BATCH = 256
const BATCH_CHARACTERS = 1 << 20
/** Records read from the store at first: they may be large. */
const STORE_PAGE = 64
/** A page with fewer characters doubles the next page, up to a whole batch. */
const SMALL_PAGE_CHARACTERS = 1 << 18
/** Bounds of the events cached per subscribed run. */
const CACHED_EVENTS = 512
const CACHED_BYTES = 1 << 20
/** Bound of the events cached by all feeds of this process together. */
const CACHED_BYTES_OF_ALL = 32 << 20
/** A cache is trimmed when it exceeds its bounds by this factor, not on every event. */
const SLACK = 1.25

/** Approximate memory of a cached event: its text, the frame encoded from it, and both objects. */
function bytesOf({ json }: EncodedEvent): number {
  return 2 * json.length + 400
}

/** Publishes every durable `AgentEvent` of this process; events of one run arrive in order. */
const events = channel('runwright.event')

/** A feed in use; the user releases it. */
export interface OpenFeed {
  readonly feed: RunFeed
  /** Calling it twice is harmless. */
  readonly release: () => void
}

function encodeEvent(record: RunRecord): EncodedEvent {
  return { seq: record.seq, kind: record.kind, json: JSON.stringify(publicEvent(record)) }
}

/** Keeps the caches of all feeds of this process within one bound. */
class CacheBudget {
  /** Feeds with a cache, least recently active first, with the bytes they cache. */
  readonly #feeds = new Map<RunFeed, number>()
  #bytes = 0

  /**
   * Notes that `feed` caches `bytes` now; over the bound, the least active feeds drop their caches.
   */
  note(feed: RunFeed, bytes: number): void {
    this.#account(feed, bytes)
    for (const [quiet] of this.#feeds) {
      if (this.#bytes <= CACHED_BYTES_OF_ALL) return
      quiet.dropCache()
      this.#account(quiet, 0)
    }
  }

  #account(feed: RunFeed, bytes: number): void {
    this.#bytes += bytes - (this.#feeds.get(feed) ?? 0)
    this.#feeds.delete(feed)
    if (bytes > 0) this.#feeds.set(feed, bytes)
  }
}

const cacheBudget = new CacheBudget()

/** The live end of one run's log; every reader has a subscription of its own. */
export class RunFeed {
  readonly runId: string
  readonly #store: RecordReader
  #cached: EncodedEvent[] = []
  #cachedBytes = 0
  /** Records of the next read from the store. */
  #page = STORE_PAGE
  #lastSeq: number
  /** True once `run_end` was published: no event can follow. */
  #isComplete: boolean
  #end: SubscriptionEnd | undefined
  #waiting = new Set<() => void>()
  /** True after the first subscription: until then no event is encoded. */
  #isSubscribed = false
  readonly #deltaQueues = new Set<DeltaQueue>()

  /**
   * A feed whose readers find the records up to `lastSeq` in the store. `isComplete`: the last of
   * them is `run_end`.
   */
  constructor(runId: string, store: RecordReader, lastSeq: number, isComplete = false) {
    this.runId = runId
    this.#store = store
    this.#lastSeq = lastSeq
    this.#isComplete = isComplete
  }

  /** `seq` of the newest durable event. */
  get lastSeq(): number {
    return this.#lastSeq
  }

  /** True once `run_end` is durable and was published. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** Why there will be no more events; undefined while there may be. */
  get end(): SubscriptionEnd | undefined {
    return this.#end
  }

  /**
   * Publishes durable records. Those published before are skipped; records missing in between are
   * read from the store by the subscriptions that need them.
   */
  publish(records: readonly RunRecord[]): void {
    for (const record of records) {
      if (record.seq <= this.#lastSeq) continue
      if (record.seq > this.#lastSeq + 1) this.dropCache()
      this.#lastSeq = record.seq
      if (record.kind === 'run_end') this.#isComplete = true
      if (this.#isSubscribed) this.#cache(encodeEvent(record))
      if (events.hasSubscribers) events.publish(publicEvent(record))
    }
    if (this.#isSubscribed && this.#end === undefined) cacheBudget.note(this, this.#cachedBytes)
    this.#wake()
  }

  /**
   * Ends the feed: it gets no more events. The first reason counts. Readers of a complete feed
   * learn `run_end` in place of `shutdown`, and no others ever do.
   */
  finish(end: 'deleted' | 'shutdown' = 'shutdown'): void {
    this.#end ??= end === 'shutdown' && this.#isComplete ? 'run_end' : end
    // The cache stays for the remaining readers and is freed together with the feed.
    cacheBudget.note(this, 0)
    this.#wake()
  }

  /**
   * Subscribes a reader that has everything up to `after`; with `deltas`, it gets those as well.
   * `onEnd` is called when the subscription has ended or was closed, possibly more than once.
   */
  subscribe(after: number, deltas: boolean, onEnd?: () => void): RunSubscription<StreamItem>
  subscribe(after: number): RunSubscription
  subscribe(
    after: number,
    deltas = false,
    onEnd: () => void = () => undefined,
  ): RunSubscription<StreamItem> {
    this.#isSubscribed = true
    return new FeedSubscription(this, after, deltas ? new DeltaQueue() : null, onEnd)
  }

  /** True while a subscription asks for deltas. */
  get wantsDeltas(): boolean {
    return this.#deltaQueues.size > 0
  }

  /**
   * Queues a delta, after the events published so far, for the subscriptions that asked for deltas.
   */
  publishDelta(delta: EncodedDelta): void {
    for (const queue of this.#deltaQueues) queue.push(this.#lastSeq, delta)
    this.#wake()
  }

  /** Fills `queue` from now on; the returned function stops that. */
  addDeltaQueue(queue: DeltaQueue): () => void {
    this.#deltaQueues.add(queue)
    return () => this.#deltaQueues.delete(queue)
  }

  /**
   * Durable events after `after`, at most 256 and about 1 MiB: synchronously from the cache, else a
   * promise of what the store returns.
   */
  take(after: number): readonly EncodedEvent[] | Promise<readonly EncodedEvent[]> {
    const from = after + 1 - (this.#cached[0]?.seq ?? Infinity)
    return from >= 0 ? bounded(this.#cached.slice(from, from + BATCH)) : this.#read(after)
  }

  async #read(after: number): Promise<readonly EncodedEvent[]> {
    const records = await this.#store.read(this.runId, after, this.#page)
    // The store may be ahead of what was published here.
    const events = records.filter(({ seq }) => seq <= this.#lastSeq).map(encodeEvent)
    const characters = events.reduce((sum, { json }) => sum + json.length, 0)
    this.#page = characters < SMALL_PAGE_CHARACTERS ? Math.min(2 * this.#page, BATCH) : STORE_PAGE
    return bounded(events)
  }

  /** Calls `wake` once, on the next change; the returned function cancels that. */
  onceChanged(wake: () => void): () => void {
    this.#waiting.add(wake)
    return () => this.#waiting.delete(wake)
  }

  /** Frees the cache: readers that are behind continue from the store. */
  dropCache(): void {
    this.#cached = []
    this.#cachedBytes = 0
  }

  #cache(event: EncodedEvent): void {
    this.#cached.push(event)
    this.#cachedBytes += bytesOf(event)
    const events = this.#cached.length
    if (events <= SLACK * CACHED_EVENTS && this.#cachedBytes <= SLACK * CACHED_BYTES) return
    let [from, bytes] = [0, this.#cachedBytes]
    while (this.#cached.length - from > CACHED_EVENTS || bytes > CACHED_BYTES) {
      bytes -= bytesOf(this.#cached[from]!)
      from += 1
    }
    this.#cached = this.#cached.slice(from)
    this.#cachedBytes = bytes
  }

  #wake(): void {
    if (this.#waiting.size === 0) return
    const waiting = this.#waiting
    this.#waiting = new Set()
    for (const wake of waiting) wake()
  }
}

/** The first events that fit into one batch, at least one. */
function bounded(events: readonly EncodedEvent[]): readonly EncodedEvent[] {
  let characters = 0
  const end = events.findIndex(({ json }) => (characters += json.length) > BATCH_CHARACTERS)
  return end < 0 ? events : events.slice(0, Math.max(end, 1))
}

class FeedSubscription implements RunSubscription<StreamItem> {
  readonly runId: string
  readonly #feed: RunFeed
  readonly #deltas: DeltaQueue | null
  readonly #stopDeltas: () => void
  readonly #onEnd: () => void
  #position: number
  #end: SubscriptionEnd | undefined
  #closed = false
  #wakeUp: (() => void) | undefined

  constructor(feed: RunFeed, after: number, deltas: DeltaQueue | null, onEnd: () => void) {
    this.runId = feed.runId
    this.#feed = feed
    this.#position = after
    this.#deltas = deltas
    this.#onEnd = onEnd
    this.#stopDeltas = deltas === null ? () => undefined : feed.addDeltaQueue(deltas)
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
        const taken = this.#feed.take(this.#position)
        const events = taken instanceof Promise ? await this.#read(taken) : this.#upToDeltas(taken)
        if (events === null) return this.#finish('shutdown')
        const last = events.at(-1)
        if (last !== undefined) {
          this.#position = last.seq
          return events
        }
        // Published events that the store does not have any more: the run was deleted.
        if (this.#position < this.#feed.lastSeq) return this.#finish('deleted')
      }
      if (this.#feed.end !== undefined) return this.#finish(this.#feed.end)
      await this.#wait()
    }
  }

  close(): void {
    this.#closed = true
    this.#stopDeltas()
    this.#onEnd()
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

  /** Events from the store; null when the store was closed together with the engine. */
  async #read(reading: Promise<readonly EncodedEvent[]>): Promise<readonly EncodedEvent[] | null> {
    try {
      return this.#upToDeltas(await reading)
    } catch (error) {
      if (this.#feed.end === 'shutdown') return null
      throw error
    }
  }

  /** Stops at the event that waiting deltas follow: they belong between two events. */
  #upToDeltas(events: readonly EncodedEvent[]): readonly EncodedEvent[] {
    const limit = this.#deltas?.nextAfter ?? Infinity
    return limit === Infinity ? events : events.filter(({ seq }) => seq <= limit)
  }

  #wait(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#feed.onceChanged(resolve)
      this.#wakeUp = () => {
        cancel()
        resolve()
      }
    })
  }

  #finish(end: SubscriptionEnd): null {
    this.#end ??= end
    this.#onEnd()
    this.#stopDeltas()
    return null
  }
}

/** Bounds of what waits for one reader. */
const MAX_WAITING = 256
const MAX_WAITING_CHARACTERS = 65_536

/** The deltas that wait for one reader, each with the last event that was published before it. */
class DeltaQueue {
  #waiting: { readonly after: number; readonly delta: EncodedDelta }[] = []
  #characters = 0

  /** Adds a delta; a full queue drops it. One delta always fits into an empty queue. */
  push(after: number, delta: EncodedDelta): void {
    const characters = this.#characters + delta.json.length
    const hasRoom = this.#waiting.length === 0 || characters <= MAX_WAITING_CHARACTERS
    if (!hasRoom || this.#waiting.length >= MAX_WAITING) return
    this.#waiting.push({ after, delta })
    this.#characters = characters
  }

  /** Takes the deltas that follow event `position`, and drops those that came before it. */
  take(position: number): readonly EncodedDelta[] {
    const later = this.#waiting.findIndex(({ after }) => after > position)
    const due = later < 0 ? this.#waiting : this.#waiting.slice(0, later)
    if (due.length === 0) return []
    this.#waiting = later < 0 ? [] : this.#waiting.slice(later)
    this.#characters = this.#waiting.reduce((sum, { delta }) => sum + delta.json.length, 0)
    return due.filter(({ after }) => after === position).map(({ delta }) => delta)
  }

  /** The last event before the first waiting delta; Infinity when none waits. */
  get nextAfter(): number {
    return this.#waiting[0]?.after ?? Infinity
  }
}
