/**
 * The live ends of logs that other processes may write: one feed per run, shared by all its readers
 * here and by the run itself while it is driven here.
 *
 * @module
 */
import type { Clock } from '../../internal/clock.js'
import { isTerminal } from '../events.js'
import { RunFeed } from './feed.js'
import type { LogEnd, SharedRuns } from '../shared-store.js'
import type { RunStore } from '../store.js'

/** Records read from the store at once. */
const PAGE = 256
/** Milliseconds until a log that could not be read is tried again. */
const RETRY_MS = 500

/** A feed in use. */
export interface OpenTail {
  readonly feed: RunFeed
  /** Reads on until the feed has everything up to `lastSeq`. */
  catchUp(lastSeq: number): void
  /** Says that the feed is needed no more; calling it twice is harmless. */
  release(): void
}

/** Feeds of runs in a store that several processes share. */
export class RunTails {
  readonly #store: RunStore
  readonly #shared: SharedRuns
  readonly #clock: Clock
  readonly #tails = new Map<string, Tail>()

  constructor(store: RunStore, shared: SharedRuns, clock: Clock) {
    this.#store = store
    this.#shared = shared
    this.#clock = clock
  }

  /** Opens the feed of a run whose log has `lastSeq` records at least. `fresh` when nobody had it open. */
  open(runId: string, lastSeq: number): OpenTail & { readonly fresh: boolean } {
    const known = this.#tails.get(runId)
    const tail =
      known ??
      new Tail(new RunFeed(runId, this.#store, lastSeq), this.#store, this.#shared, this.#clock)
    this.#tails.set(runId, tail)
    tail.users += 1
    let released = false
    return {
      feed: tail.feed,
      fresh: known === undefined,
      catchUp: (end) => tail.catchUp(end),
      release: () => {
        if (released) return
        released = true
        tail.users -= 1
        if (tail.users > 0) return
        tail.stop()
        tail.feed.finish('shutdown') // nobody is left to be told
        this.#tails.delete(runId)
      },
    }
  }

  /** Ends all feeds: the service shuts down. */
  close(): void {
    for (const tail of this.#tails.values()) {
      tail.stop()
      tail.feed.finish('shutdown')
    }
  }
}

class Tail {
  readonly feed: RunFeed
  readonly #store: RunStore
  readonly #clock: Clock
  readonly #unwatch: () => void
  users = 0
  #target = 0
  #reading = false
  #stopped = false

  constructor(feed: RunFeed, store: RunStore, shared: SharedRuns, clock: Clock) {
    this.feed = feed
    this.#store = store
    this.#clock = clock
    this.#unwatch = shared.watch(feed.runId, (end: LogEnd) => {
      if (end === 'deleted') this.feed.finish('deleted')
      // What this process appends to a run that it holds is shown without a look at the store.
      else if (!shared.holds(feed.runId)) this.catchUp(end)
    })
  }

  stop(): void {
    this.#stopped = true
    this.#unwatch()
  }

  catchUp(lastSeq: number): void {
    this.#target = Math.max(this.#target, lastSeq)
    if (this.#reading || this.#stopped || this.feed.lastSeq >= this.#target) return
    this.#reading = true
    void this.#read()
  }

  async #read(): Promise<void> {
    const { feed } = this
    while (!this.#stopped && feed.lastSeq < this.#target) {
      try {
        const records = await this.#store.read(feed.runId, feed.lastSeq, PAGE)
        if (records.length === 0) break // deleted meanwhile: the watch tells
        feed.publish(records)
        const last = records.at(-1)
        if (last?.kind === 'run_end' && isTerminal(last.payload.status)) feed.finish('run_end')
      } catch {
        await new Promise<void>((resolve) => this.#clock.setTimeout(resolve, RETRY_MS))
      }
    }
    this.#reading = false
  }
}
