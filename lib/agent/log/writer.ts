/**
 * Writes one run's log. Appending stamps records with their sequence number and time and folds them
 * at once, so that what follows is decided on the newest state; subscriptions get them when they
 * are durable. Secrets are redacted before anything else happens.
 *
 * 1. Noted records go to the store with the next append, or at the end of this turn of the event
 *    loop: quick steps cost one write, and slow steps are visible while they run.
 * 2. Records that an unavailable store refuses are passed to it again, the same ones and in order,
 *    until it takes them: nothing that the run did is lost, or done again.
 * 3. After any other failure nothing more is written: the folded state is ahead of the log.
 *
 * @module
 */
import { backoffDelay, type Clock } from '../../internal/time.js'
import { mapTexts } from '../../internal/json.js'
import { storableName, storableText } from '../../internal/text.js'
import { isUnavailable, StoreError } from '../errors.js'
import { BACKOFF } from '../exhaustion.js'
import type { RecordDraft, RunRecord } from '../events.js'
import { versionOf } from './changes/index.js'
import { redactedDraft } from './redacted-draft.js'
import type { Redactor } from '../redaction/redactor.js'
import type { RunHead } from '../run-details.js'
import type { RunStore } from '../store.js'
import type { RunFeed } from './feed.js'
import { copyHead, foldHead } from './head.js'
import type { Observers } from './observer.js'
import type { RecordReader } from './read-log.js'
import type { RunState } from './run-state.js'
import { RunTime, type Moment, type OpenGate } from './run-time.js'
import { foldState } from './state.js'

/** What a log needs of its engine. */
export interface LogWriterOptions {
  readonly store: RunStore
  readonly clock: Clock
  readonly redactor: Redactor
  readonly observers: Observers
}

/** For how long the store's last confirmation is good enough for a command to begin. */
const FRESH_MS = 1_000

/** The writer of one run's log; a log has one writer at a time. */
export class LogWriter implements RecordReader {
  readonly runId: string
  readonly feed: RunFeed
  readonly #options: LogWriterOptions
  #state: RunState
  /** The head after what is durable, for observers. */
  #durable: RunHead
  /** Folded, and not passed to the store yet. */
  #noted: RunRecord[] = []
  /** True while a write of the noted records is scheduled. */
  #isScheduled = false
  /** True after a record that could not be folded: the state may have taken in a part of it. */
  #isStateBroken = false
  /** Settles when everything passed to the store is durable and published, or could not be. */
  #tail: Promise<void> = Promise.resolve()
  /** Why nothing is written any more. */
  #failure: unknown = null
  /** Why the store refuses what is passed to it again and again; null while it does not. */
  #refusal: StoreError | null = null
  /** Refusals so far. */
  #refusals = 0
  /** Called with each refusal. */
  readonly #onRefusal = new Set<(refusal: StoreError) => void>()
  /** End the pauses between attempts. */
  readonly #wakers = new Set<() => void>()
  readonly #giveUp = new AbortController()
  /** When the store last took records, by `performance.now()`. */
  #confirmedAt = -Infinity
  readonly #time: RunTime

  /** Continues a log whose fold is `state`. `gate`: its open gate, if this process knows it. */
  constructor(
    options: LogWriterOptions,
    feed: RunFeed,
    state: RunState,
    gate: OpenGate | null = null,
  ) {
    this.runId = feed.runId
    this.feed = feed
    this.#options = options
    this.#state = state
    this.#durable = copyHead(state.head)
    this.#time = new RunTime(options.clock, state.head.last_ts, gate)
    this.untilExpiry()
  }

  get redactor(): Redactor {
    return this.#options.redactor
  }

  /** The state after everything appended or noted, durable or not. */
  get state(): RunState {
    return this.#state
  }

  /** Why the store refuses records of this run right now; null while it does not. */
  get refusal(): StoreError | null {
    return this.#refusal
  }

  /** True when nothing is written any more: the state may be ahead of the log. */
  get hasFailed(): boolean {
    return this.#failure !== null
  }

  /** The time by which budgets are measured (epoch ms): it stands still in {@link idleWhile}. */
  now(): number {
    return this.#time.budgetNow
  }

  /** The `ts` of an event that happens now, in float seconds since the epoch. */
  get ts(): number {
    return this.#time.read().ts
  }

  /** Milliseconds until the open gate expires; null if there is none, or it never does. */
  untilExpiry(): number | null {
    const { gate } = this.#state.head.details
    return gate === null ? null : this.#time.untilExpiry(gate)
  }

  /** Settles as `waiting` does; that time is no work of the run. */
  async idleWhile<T>(waiting: Promise<T>): Promise<T> {
    this.#time.beginWait()
    try {
      return await waiting
    } finally {
      this.#endWait()
    }
  }

  /**
   * Appends records as one atomic group: `drafts`, then what `more` returns for the state after
   * them. Folds them before it returns; resolves once they are durable and published, however long
   * the store is unavailable.
   *
   * @throws {@link StoreError} (by rejection, here and from {@link LogWriter.flush}) when they
   * could not be made durable; the state is then ahead of the log, and the run must be loaded
   * again. Whatever redaction or the fold throws: nothing of the group is then written, and the
   * run must be loaded again as well.
   */
  append(
    drafts: readonly RecordDraft[],
    more?: (state: RunState) => readonly RecordDraft[],
  ): Promise<void> {
    this.#foldGroup(drafts, more)
    return this.#write()
  }

  /** Appends a record without waiting; it is written by the end of this turn of the event loop. */
  note(draft: RecordDraft): void {
    this.#foldGroup([draft])
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

  /**
   * As {@link flush}, for callers that do not wait for an unavailable store: tries at once, and
   * rejects with its refusal. The records are still passed to it again.
   */
  confirm(): Promise<void> {
    const durable = this.flush()
    return new Promise((resolve, reject) => {
      this.#onRefusal.add(reject)
      const over = (): boolean => this.#onRefusal.delete(reject)
      durable.then(resolve, reject).finally(over)
      this.#wake()
    })
  }

  /**
   * Appends records only if the store takes them now: they are folded once they are durable, and
   * never if they were refused. Nothing else may be appended meanwhile.
   */
  async offer(drafts: readonly RecordDraft[]): Promise<void> {
    await this.confirm()
    const { last_seq } = this.#state.head.details
    const moment = this.#time.read()
    const records = drafts.map((draft, index) => {
      const idleMs = index === 0 ? this.#time.idleMs(moment) : 0
      return this.#stamp(draft, last_seq + 1 + index, moment, idleMs)
    })
    const began = performance.now()
    await this.#store(records)
    for (const record of records) this.#foldRecord(record, moment)
    this.#publish(records, began)
  }

  /**
   * Resolves once everything so far is durable, and the store has confirmed just now that it takes
   * records of this process: no other one has taken it over.
   */
  async verify(): Promise<void> {
    await this.flush()
    const { store } = this.#options
    if (store.check === undefined || performance.now() - this.#confirmedAt < FRESH_MS) return
    await this.#retryWhileUnavailable(() => store.check!())
  }

  /** Records of the store's runs, however long it is unavailable. */
  read(runId: string, after: number, limit: number): Promise<readonly RunRecord[]> {
    return this.#retryWhileUnavailable(() => this.#options.store.read(runId, after, limit))
  }

  /** What `attempt`, which reads from the store, resolves with, however long it is unavailable. */
  whenAvailable<T>(attempt: () => Promise<T>): Promise<T> {
    return this.#retryWhileUnavailable(attempt)
  }

  /** Does not wait for an unavailable store any more: what it refuses now fails. */
  giveUp(): void {
    this.#giveUp.abort()
    this.#wake()
  }

  /** Aborted by {@link LogWriter.giveUp}. */
  get givenUp(): AbortSignal {
    return this.#giveUp.signal
  }

  /** Passes nothing more to the store: another process may write the log. */
  abandon(reason: Error): void {
    this.#failure ??= reason
    this.#wake()
  }

  #wake(): void {
    for (const wake of this.#wakers) wake()
  }

  /** Folds a group as a whole, or leaves nothing of it to be written. */
  #foldGroup(
    drafts: readonly RecordDraft[],
    more?: (state: RunState) => readonly RecordDraft[],
  ): void {
    if (this.#isStateBroken) {
      const message = `the log of run ${this.runId} must be loaded again before it continues`
      throw new StoreError('ERR_AGENT_STORE', message)
    }
    const noted = this.#noted.length
    try {
      this.#fold(drafts)
      if (more !== undefined) this.#fold(more(this.#state))
    } catch (error) {
      this.#noted.length = noted
      this.#isStateBroken = true
      throw error
    }
  }

  #fold(drafts: readonly RecordDraft[]): void {
    for (const draft of drafts) {
      const { last_seq } = this.#state.head.details
      const moment = this.#time.read()
      const record = this.#stamp(draft, last_seq + 1, moment, this.#time.idleMs(moment))
      this.#foldRecord(record, moment)
      this.#noted.push(record)
    }
  }

  #foldRecord(record: RunRecord, moment: Moment): void {
    this.#state = foldState(this.#state, record)
    this.#time.advance(moment)
    this.untilExpiry()
  }

  #stamp(draft: RecordDraft, seq: number, { ts }: Moment, idleMs: number): RunRecord {
    const record = stamp(redactedDraft(draft, this.redactor), this.runId, seq, ts)
    // Without the field, the fold takes all the time before these records for idle.
    const isExplicit = this.#state.suspended || draft.kind === 'run_recovered'
    return idleMs < 1 && !isExplicit ? record : { ...record, idle_ms: Math.round(idleMs) }
  }

  #write(): Promise<void> {
    const records = this.#noted
    this.#noted = []
    const before = this.#tail
    // Behind records that are refused, these would be refused as well.
    const stored =
      this.#refusal === null ? this.#store(records) : before.then(() => this.#store(records))
    this.#tail = this.#commit(records, stored, before)
    this.#tail.catch(() => undefined) // the callers of append() and flush() get the rejection
    return this.#tail
  }

  #store(records: readonly RunRecord[]): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure as Error)
    return this.#options.store.append(this.runId, records)
  }

  async #commit(
    records: readonly RunRecord[],
    stored: Promise<void>,
    before: Promise<void>,
  ): Promise<void> {
    const began = performance.now()
    const refusals = this.#refusals
    try {
      const error: unknown = await stored.then(
        () => null,
        (reason: unknown) => reason,
      )
      const refusal = isUnavailable(error) ? error : null
      if (refusal !== null) this.#refuse(refusal)
      await before
      // A store that refused the records before these also refuses these, as out of sequence.
      if (error !== null && refusals === this.#refusals) throw error
      if (error !== null) await this.#retryWhileUnavailable(() => this.#store(records), refusal)
    } catch (error) {
      this.#failure ??= error
      throw error
    }
    this.#publish(records, began)
  }

  /** Calls `attempt` until the store is available; `refusal`: of an attempt that was just made. */
  async #retryWhileUnavailable<T>(
    attempt: () => Promise<T>,
    refusal: StoreError | null = null,
  ): Promise<T> {
    let problem = refusal
    try {
      for (let retry = 0; ; ) {
        if (problem !== null) {
          if (retry === 0) this.#time.beginWait()
          await this.#pause((retry += 1), problem)
        }
        if (this.#failure !== null) throw this.#failure
        try {
          return await attempt()
        } catch (error) {
          if (!isUnavailable(error)) throw error
          this.#refuse(error)
          problem = error
        }
      }
    } finally {
      if (problem !== null) this.#endWait()
    }
  }

  #endWait(): void {
    if (this.#time.endWait()) this.#refusal = null
  }

  #refuse(refusal: StoreError): void {
    this.#refusal = refusal
    this.#refusals += 1
    for (const call of this.#onRefusal) call(refusal)
  }

  /** @throws `refusal` once nobody waits for the store any more. */
  async #pause(retry: number, refusal: StoreError): Promise<void> {
    if (this.givenUp.aborted) throw refusal
    let wake: () => void = () => undefined
    const woken = new Promise<void>((resolve) => (wake = resolve))
    const timer = this.#options.clock.setTimeout(wake, backoffDelay(retry, BACKOFF))
    this.#wakers.add(wake)
    await woken
    this.#wakers.delete(wake)
    timer.cancel()
  }

  #publish(records: readonly RunRecord[], began: number): void {
    this.#confirmedAt = performance.now()
    this.feed.publish(records)
    this.#durable = records.reduce(foldHead, this.#durable)
    const { details } = this.#durable
    this.#options.observers.notify(details, records, this.#confirmedAt - began)
  }
}

/**
 * Makes a record of a draft. Every record is made here, so here its texts become storable, whoever
 * wrote them.
 */
export function stamp<D extends RecordDraft>(
  draft: D,
  runId: string,
  seq: number,
  ts: number,
): Extract<RunRecord, { kind: D['kind'] }> {
  const { kind, iteration } = draft
  const payload = storable(draft.payload)
  const v = versionOf(draft)
  const record =
    'private' in draft
      ? { v, seq, run_id: runId, kind, iteration, ts, payload, private: storable(draft.private) }
      : { v, seq, run_id: runId, kind, iteration, ts, payload }
  return record as Extract<RunRecord, { kind: D['kind'] }>
}

/** Fields with names of files, in which halves of characters may stand for bytes. */
const WITH_NAMES: ReadonlySet<string> = new Set([
  'allowed', 'baseline', 'changed_tests', 'changes', 'conflicts', 'files', 'folder', 'held_back',
  'in_place', 'left_out', 'paths', 'plan', 'seal', 'skipped',
])

function storable<T extends object>(fields: T): T {
  // Nearly all are: this is on the path of every append.
  if (mapTexts(fields, storableText, '\ufffd') === fields) return fields
  const entries = Object.entries(fields).map(([name, field]: [string, unknown]) => {
    if (name === 'fork') return [name, storable(field as object)]
    return [name, mapTexts(field, WITH_NAMES.has(name) ? storableName : storableText, '\ufffd')]
  })
  return Object.fromEntries(entries) as T
}
