/**
 * Writes one run's log. Appending gives records their place and time and folds them at once, so
 * that what follows is decided on the newest state; readers see them when they have become durable.
 *
 * @module
 */
import type { Clock } from '../internal/clock.js'
import { RECORD_VERSION, type RecordDraft, type RunRecord } from './events.js'
import { foldState, type RunState } from './state.js'
import type { RunFeed } from './run-feed.js'
import type { RunStore } from './store.js'

/** The writer of one run's log; there is one at a time. */
export class RunLog {
  readonly runId: string
  readonly feed: RunFeed
  readonly #store: RunStore
  readonly #clock: Clock
  #state: RunState
  /** Settles when everything appended so far is durable and shown; rejects when it could not be. */
  #tail: Promise<void> = Promise.resolve()

  /** `state` is the fold of the records that the log has already. */
  constructor(store: RunStore, clock: Clock, feed: RunFeed, state: RunState) {
    this.runId = feed.runId
    this.feed = feed
    this.#store = store
    this.#clock = clock
    this.#state = state
  }

  /** The state after everything appended, durable or not. */
  get state(): RunState {
    return this.#state
  }

  /**
   * Appends records as one atomic group: `drafts`, then what `more` makes of the state after them.
   * Folds them before it returns; resolves once they are durable and shown.
   *
   * @throws {@link StoreError} (by rejection, here and from {@link RunLog.flush}) when they could
   * not be made durable; the state is then ahead of the log, and the run must be taken up anew.
   */
  append(
    drafts: readonly RecordDraft[],
    more?: (state: RunState) => readonly RecordDraft[],
  ): Promise<void> {
    const records = drafts.map((draft) => this.#fold(draft))
    if (more !== undefined) for (const draft of more(this.#state)) records.push(this.#fold(draft))
    const stored = this.#store.append(this.runId, records)
    this.#tail = Promise.all([stored, this.#tail]).then(() => this.feed.publish(records))
    this.#tail.catch(() => undefined) // told to whoever awaits this append or flush()
    return this.#tail
  }

  /** Resolves once everything appended so far is durable. */
  flush(): Promise<void> {
    return this.#tail
  }

  #fold(draft: RecordDraft): RunRecord {
    const { details, last_ts } = this.#state.head
    const record = stamp(draft, this.runId, details.last_seq + 1, last_ts, this.#clock)
    this.#state = foldState(this.#state, record)
    return record
  }
}

/** A record from a draft; its time is never earlier than `notBefore` (float seconds). */
export function stamp(
  draft: RecordDraft,
  runId: string,
  seq: number,
  notBefore: number,
  clock: Clock,
): RunRecord {
  const { kind, iteration, payload } = draft
  const ts = Math.max(notBefore, clock.now() / 1000)
  const fields = { v: RECORD_VERSION, seq, run_id: runId, kind, iteration, ts, payload }
  const hidden = 'private' in draft ? { private: draft.private } : undefined
  return { ...fields, ...hidden } as RunRecord
}
