/**
 * Writes one run's log. Appending gives records their place and time and folds them at once, so
 * that what follows is decided on the newest state; readers see them when they have become durable.
 * Secrets are taken out before anything else happens.
 *
 * 1. What is only noted goes to the store together with the next append, or at the end of this turn
 *    of the event loop: quick steps cost one write, and slow ones are seen while they last.
 * 2. Once an append has failed nothing more is written: the folded state is ahead of the log.
 *
 * @module
 */
import type { Clock } from '../../internal/clock.js'
import { RECORD_VERSION, type RecordDraft, type RunRecord } from '../events.js'
import type { Redactor } from '../redaction/redactor.js'
import { foldState, type RunState } from './state.js'
import type { Observers } from './observer.js'
import type { RunFeed } from './feed.js'
import type { RunStore } from '../store.js'

/** What a log needs of its engine. */
export interface LogWriterOptions {
  readonly store: RunStore
  readonly clock: Clock
  readonly redactor: Redactor
  readonly observers: Observers
}

/** The writer of one run's log; there is one at a time. */
export class LogWriter {
  readonly runId: string
  readonly feed: RunFeed
  readonly #store: RunStore
  readonly #clock: Clock
  readonly redactor: Redactor
  readonly #observers: Observers
  #state: RunState
  /** Folded, and not given to the store yet. */
  #noted: RunRecord[] = []
  /** True while the end of this turn is waited for, to write what was noted. */
  #armed = false
  #failed = false
  /** Settles when everything given to the store is durable and shown; rejects when it could not be. */
  #tail: Promise<void> = Promise.resolve()

  /** `state` is the fold of the records that the log has already. */
  constructor(
    { store, clock, redactor, observers }: LogWriterOptions,
    feed: RunFeed,
    state: RunState,
  ) {
    this.runId = feed.runId
    this.feed = feed
    this.#store = store
    this.#clock = clock
    this.redactor = redactor
    this.#observers = observers
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
   * @throws {@link StoreError} (by rejection, here and from {@link LogWriter.flush}) when they could
   * not be made durable; the state is then ahead of the log, and the run must be taken up anew.
   */
  append(
    drafts: readonly RecordDraft[],
    more?: (state: RunState) => readonly RecordDraft[],
  ): Promise<void> {
    this.#fold(drafts)
    if (more !== undefined) this.#fold(more(this.#state))
    return this.#write()
  }

  /** Appends a record that nobody waits for; it is on its way at the end of this turn at the latest. */
  note(draft: RecordDraft): void {
    this.#fold([draft])
    if (this.#armed) return
    this.#armed = true
    setImmediate(() => {
      this.#armed = false
      void this.flush()
    })
  }

  /** Resolves once everything appended or noted so far is durable. */
  flush(): Promise<void> {
    return this.#noted.length === 0 ? this.#tail : this.#write()
  }

  #fold(drafts: readonly RecordDraft[]): void {
    for (const draft of drafts) {
      const { details, last_ts } = this.#state.head
      const clean = this.redactor.draft(draft)
      const record = stamp(clean, this.runId, details.last_seq + 1, last_ts, this.#clock)
      this.#state = foldState(this.#state, record)
      this.#noted.push(record)
    }
  }

  #write(): Promise<void> {
    if (this.#failed) return this.#tail
    const records = this.#noted
    this.#noted = []
    this.#tail = this.#show(records, this.#store.append(this.runId, records), this.#tail)
    this.#tail.catch(() => undefined) // told to whoever awaits this append or flush()
    return this.#tail
  }

  async #show(
    records: readonly RunRecord[],
    stored: Promise<void>,
    before: Promise<void>,
  ): Promise<void> {
    const began = performance.now()
    try {
      await stored
      await before
    } catch (error) {
      this.#failed = true
      throw error
    }
    this.feed.publish(records)
    this.#observers.tell(this.#state.head.details, records, performance.now() - began)
  }
}

/** A record from a draft; its time is never earlier than `notBefore` (float seconds). */
export function stamp<D extends RecordDraft>(
  draft: D,
  runId: string,
  seq: number,
  notBefore: number,
  clock: Clock,
): Extract<RunRecord, { kind: D['kind'] }> {
  const { kind, iteration, payload } = draft
  const ts = Math.max(notBefore, clock.now() / 1000)
  const v = RECORD_VERSION
  const record =
    'private' in draft
      ? { v, seq, run_id: runId, kind, iteration, ts, payload, private: draft.private }
      : { v, seq, run_id: runId, kind, iteration, ts, payload }
  return record as Extract<RunRecord, { kind: D['kind'] }>
}
