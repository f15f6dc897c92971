/**
 * Writes one run's log. Appending stamps records with their sequence number and time and folds them
 * at once, so that what follows is decided on the newest state; subscriptions get them when they
 * are durable. Secrets are redacted before anything else happens.
 *
 * 1. Noted records go to the store with the next append, or at the end of this turn of the event
 *    loop: quick steps cost one write, and slow steps are visible while they run.
 * 2. After a failed append nothing more is written: the folded state is ahead of the log.
 *
 * @module
 */
import type { Clock } from '../../internal/clock.js'
import { RECORD_VERSION, type RecordDraft, type RunCreated, type RunRecord } from '../events.js'
import type { Redactor } from '../redaction/redactor.js'
import type { RunHead } from '../run-details.js'
import type { RunStore } from '../store.js'
import type { RunFeed } from './feed.js'
import { copyHead, foldHead } from './head.js'
import type { Observers } from './observer.js'
import { foldState, type RunState } from './state.js'

/** What a log needs of its engine. */
export interface LogWriterOptions {
  readonly store: RunStore
  readonly clock: Clock
  readonly redactor: Redactor
  readonly observers: Observers
}

/** The writer of one run's log; a log has one writer at a time. */
export class LogWriter {
  readonly runId: string
  readonly feed: RunFeed
  readonly #options: LogWriterOptions
  /** `last_seq` of a run that was taken over when this process had written nothing yet; else 0. */
  readonly #takenOverAt: number
  #state: RunState
  /** The head after what is durable, for observers. */
  #durable: RunHead | null
  /** Folded, and not passed to the store yet. */
  #noted: RunRecord[] = []
  /** True while a write of the noted records is scheduled. */
  #isScheduled = false
  #hasFailed = false
  /** Settles when everything passed to the store is durable and published, or could not be. */
  #tail: Promise<void> = Promise.resolve()

  /**
   * Continues a log whose fold is `state`. `isTakenOver`: the run had begun, and no process drove
   * it since its last record.
   */
  constructor(options: LogWriterOptions, feed: RunFeed, state: RunState, isTakenOver = false) {
    this.runId = feed.runId
    this.feed = feed
    this.#options = options
    this.#state = state
    this.#durable = copyHead(state.head)
    this.#takenOverAt = isTakenOver ? state.head.details.last_seq : 0
  }

  /** Begins a log with its first record, which becomes durable with {@link LogWriter.flush}. */
  static begin(options: LogWriterOptions, feed: RunFeed, created: RunCreated): LogWriter {
    const log = new LogWriter(options, feed, foldState(null, created))
    log.#durable = null
    log.#noted.push(created)
    return log
  }

  get redactor(): Redactor {
    return this.#options.redactor
  }

  /** The state after everything appended or noted, durable or not. */
  get state(): RunState {
    return this.#state
  }

  /**
   * The time by which budgets are measured (epoch ms). For a run that was taken over, it stands
   * still until the first append: the time without a process is not the run's.
   */
  now(): number {
    const { details, last_ts } = this.#state.head
    return details.last_seq === this.#takenOverAt ? last_ts * 1000 : this.#options.clock.now()
  }

  /**
   * Appends records as one atomic group: `drafts`, then what `more` returns for the state after
   * them. Folds them before it returns; resolves once they are durable and published.
   *
   * @throws {@link StoreError} (by rejection, here and from {@link LogWriter.flush}) when they
   * could not be made durable; the state is then ahead of the log, and the run must be loaded
   * again.
   */
  append(
    drafts: readonly RecordDraft[],
    more?: (state: RunState) => readonly RecordDraft[],
  ): Promise<void> {
    this.#fold(drafts)
    if (more !== undefined) this.#fold(more(this.#state))
    return this.#write()
  }

  /** Appends a record without waiting; it is written by the end of this turn of the event loop. */
  note(draft: RecordDraft): void {
    this.#fold([draft])
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      void this.flush()
    })
  }

  /** Resolves once everything appended or noted so far is durable. */
  flush(): Promise<void> {
    return this.#noted.length === 0 ? this.#tail : this.#write()
  }

  #fold(drafts: readonly RecordDraft[]): void {
    const { clock, redactor } = this.#options
    for (const draft of drafts) {
      const { details, last_ts } = this.#state.head
      const clean = redactor.draft(draft)
      const record = stamp(clean, this.runId, details.last_seq + 1, last_ts, clock)
      this.#state = foldState(this.#state, record)
      this.#noted.push(record)
    }
  }

  #write(): Promise<void> {
    if (this.#hasFailed) return this.#tail
    const records = this.#noted
    this.#noted = []
    const stored = this.#options.store.append(this.runId, records)
    this.#tail = this.#publish(records, stored, this.#tail)
    this.#tail.catch(() => undefined) // the callers of append() and flush() get the rejection
    return this.#tail
  }

  async #publish(
    records: readonly RunRecord[],
    stored: Promise<void>,
    before: Promise<void>,
  ): Promise<void> {
    const began = performance.now()
    try {
      await stored
      await before
    } catch (error) {
      this.#hasFailed = true
      throw error
    }
    this.feed.publish(records)
    const head = records.reduce(foldHead, this.#durable)!
    this.#durable = head
    this.#options.observers.notify(head.details, records, performance.now() - began)
  }
}

/** Makes a record of a draft; its time is never earlier than `notBefore` (float seconds). */
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
