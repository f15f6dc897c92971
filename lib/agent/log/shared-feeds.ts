/**
 * Feeds of runs in a store that several processes share: one feed per run, used by every reader in
 * this process and by the run itself while it is driven here. What other processes append is read
 * from the store.
 *
 * @module
 */
import { type Clock, sleep } from '../../internal/time.js'
import { isUnavailable } from '../errors.js'
import type { LogEnd, SharedRuns } from '../shared-store.js'
import { RunFeed, type OpenFeed } from './feed.js'
import type { RecordReader } from './read-log.js'

/** Records read from the store at once. */
const PAGE = 256
/** Milliseconds until a log that could not be read is tried again. */
const RETRY_MS = 500

/** Reports records appended by other processes. */
export type LogWatch = Pick<SharedRuns, 'holds' | 'watch'>

/** The feed of a run that other processes may write to. */
export interface OpenSharedFeed extends OpenFeed {
  /**
   * Reads from the store until the feed has everything up to `lastSeq`, and to the newest end that
   * the store reported; without `lastSeq`, only to the latter.
   */
  readonly catchUp: (lastSeq?: number) => void
  /** Ends the feed for all its users: nothing more is appended to the run for now. */
  readonly end: () => void
  /** True for the first user: the feed may have missed what was appended before it was opened. */
  readonly isFresh: boolean
}

/** Opens a feed on first use and ends it when its last user has released it. */
export class SharedFeeds {
  readonly #store: RecordReader
  readonly #shared: LogWatch
  readonly #clock: Clock
  readonly #feeds = new Map<string, SharedFeed>()

  constructor(store: RecordReader, shared: LogWatch, clock: Clock) {
    this.#store = store
    this.#shared = shared
    this.#clock = clock
  }

  /** Opens the feed of a run whose log has at least `lastSeq` records. */
  open(runId: string, lastSeq: number): OpenSharedFeed {
    const known = this.#feeds.get(runId)
    const shared = known ?? this.#create(runId, lastSeq)
    shared.users += 1
    let isReleased = false
    const drop = (): void => {
      shared.close()
      if (this.#feeds.get(runId) === shared) this.#feeds.delete(runId)
    }
    return {
      feed: shared.feed,
      isFresh: known === undefined,
      catchUp: (end = 0) => shared.catchUp(end),
      end: drop,
      release: () => {
        if (isReleased) return
        isReleased = true
        shared.users -= 1
        if (shared.users === 0) drop()
      },
    }
  }

  /** Ends every feed: the engine is closing. */
  close(): void {
    for (const shared of this.#feeds.values()) shared.close()
  }

  #create(runId: string, lastSeq: number): SharedFeed {
    const feed = new RunFeed(runId, this.#store, lastSeq)
    const shared = new SharedFeed(feed, this.#store, this.#shared, this.#clock)
    this.#feeds.set(runId, shared)
    return shared
  }
}

class SharedFeed {
  readonly feed: RunFeed
  readonly #store: RecordReader
  readonly #clock: Clock
  readonly #unwatch: () => void
  users = 0
  #target = 0
  #isReading = false
  #isClosed = false

  constructor(feed: RunFeed, store: RecordReader, shared: LogWatch, clock: Clock) {
    this.feed = feed
    this.#store = store
    this.#clock = clock
    this.#unwatch = shared.watch(feed.runId, (end: LogEnd) => {
      if (end === 'deleted') this.feed.finish('deleted')
      // The log writer publishes what this process appends; only others' records are read.
      else if (!shared.holds(feed.runId)) this.catchUp(end)
      else this.#target = Math.max(this.#target, end)
    })
  }

  close(): void {
    this.#isClosed = true
    this.#unwatch()
    this.feed.finish('shutdown')
  }

  catchUp(lastSeq: number): void {
    this.#target = Math.max(this.#target, lastSeq)
    if (this.#isReading || this.#isClosed || this.feed.lastSeq >= this.#target) return
    this.#isReading = true
    void this.#read()
  }

  async #read(): Promise<void> {
    const { feed } = this
    while (!this.#isClosed && feed.lastSeq < this.#target) {
      try {
        const records = await this.#store.read(feed.runId, feed.lastSeq, PAGE)
        if (records.length === 0) break // the run was deleted meanwhile, as the watch will report
        feed.publish(records)
        if (feed.isComplete) feed.finish()
      } catch (error) {
        // A log that this process cannot read: another one may.
        if (!isUnavailable(error)) return feed.finish()
        await sleep(RETRY_MS, null, this.#clock)
      }
    }
    this.#isReading = false
  }
}
