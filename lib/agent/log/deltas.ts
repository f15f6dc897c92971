/**
 * Text that a model writes just now, on its way to readers that asked for it. Nothing of it is
 * stored or counted: what a turn said is told by its `model_turn`, and a delta that is lost is lost.
 *
 * @module
 */
import type { Clock } from '../../internal/clock.js'
import { StreamRedactor } from '../redaction/stream-redactor.js'
import type { Redactor } from '../redaction/redactor.js'
import type { RunFeed } from './feed.js'
import type { DeltaPayload, EncodedDelta } from './subscription.js'

/** UTF-16 units of one delta; longer pieces are parted. */
const PIECE = 16_384
/** Bounds of what waits for one reader. */
const MAX_WAITING = 256
const MAX_WAITING_CHARACTERS = 65_536

/** The call whose text is told. */
export interface DeltaSource {
  readonly iteration: number
  readonly turn: number
  readonly attempt: number
}

/** Passes the text of one model call on while it is made, without the secrets in it. */
export class DeltaWriter {
  readonly #feed: RunFeed
  readonly #clock: Clock
  readonly #source: DeltaSource
  readonly #redacted: StreamRedactor
  #offset = 0
  #closed = false

  constructor(feed: RunFeed, clock: Clock, redactor: Redactor, source: DeltaSource) {
    this.#feed = feed
    this.#clock = clock
    this.#redacted = new StreamRedactor(redactor)
    this.#source = source
  }

  /** Tells a piece of text, but for an end that may be the beginning of a secret. */
  readonly write = (text: string): void => {
    if (!this.#closed && typeof text === 'string') this.#tell(this.#redacted.push(text))
  }

  /** Tells what was held back: the call has succeeded, and its text is whole. */
  end(): void {
    if (!this.#closed) this.#tell(this.#redacted.end())
    this.#closed = true
  }

  /** What a model still writes after its call has failed is not told, nor what was held back. */
  close(): void {
    this.#closed = true
  }

  #tell(text: string): void {
    for (let at = 0; this.#feed.wantsDeltas && at < text.length; at += PIECE) {
      const offset = this.#offset + at
      this.#feed.publishDelta(this.#encode({ offset, text: text.slice(at, at + PIECE) }))
    }
    this.#offset += text.length
  }

  #encode(piece: Pick<DeltaPayload, 'offset' | 'text'>): EncodedDelta {
    const { iteration, turn, attempt } = this.#source
    const payload: DeltaPayload = { turn, attempt, ...piece }
    const ts = this.#clock.now() / 1000
    const fields = { kind: 'model_delta', run_id: this.#feed.runId, iteration, ts, payload }
    return { seq: null, kind: 'model_delta', json: JSON.stringify(fields) }
  }
}

/** The deltas that wait for one reader, each with the last event that was shown before it. */
export class DeltaQueue {
  #waiting: { readonly after: number; readonly delta: EncodedDelta }[] = []
  #characters = 0

  /** Adds a delta, unless the reader is too slow for those before it. */
  push(after: number, delta: EncodedDelta): void {
    const characters = this.#characters + delta.json.length
    const room = this.#waiting.length === 0 || characters <= MAX_WAITING_CHARACTERS
    if (!room || this.#waiting.length >= MAX_WAITING) return
    this.#waiting.push({ after, delta })
    this.#characters = characters
  }

  /** Takes those whose turn it is for a reader that has everything up to `position`. */
  take(position: number): readonly EncodedDelta[] {
    const later = this.#waiting.findIndex(({ after }) => after > position)
    const due = later < 0 ? this.#waiting : this.#waiting.slice(0, later)
    if (due.length === 0) return []
    this.#waiting = later < 0 ? [] : this.#waiting.slice(later)
    this.#characters = this.#waiting.reduce((sum, { delta }) => sum + delta.json.length, 0)
    return due.filter(({ after }) => after === position).map(({ delta }) => delta)
  }

  /** The last event before the first delta that waits; Infinity when none does. */
  get nextAfter(): number {
    return this.#waiting[0]?.after ?? Infinity
  }
}
