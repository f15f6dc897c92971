/**
 * Text that a model is writing right now, on its way to the readers that asked for it. Deltas are
 * neither stored nor counted: the complete text arrives with `model_turn`, and a lost delta is
 * lost.
 *
 * @module
 */
import type { Redactor } from '../redaction/redactor.js'
import { StreamRedactor } from '../redaction/stream-redactor.js'
import type { RunFeed } from './feed.js'
import type { DeltaPayload, EncodedDelta } from './subscription.js'

/** UTF-16 units of one delta; longer pieces are split. */
const PIECE = 16_384

/** The model call that the text belongs to. */
export interface DeltaSource {
  readonly iteration: number
  readonly turn: number
  readonly attempt: number
}

/** Publishes the text of one model call while it streams in, with secrets redacted. */
export class DeltaWriter {
  readonly #feed: RunFeed
  readonly #time: () => number
  readonly #source: DeltaSource
  readonly #redacted: StreamRedactor
  #offset = 0
  #closed = false

  /** `time` returns the `ts` of an event that happens now. */
  constructor(feed: RunFeed, time: () => number, redactor: Redactor, source: DeltaSource) {
    this.#feed = feed
    this.#time = time
    this.#redacted = new StreamRedactor(redactor)
    this.#source = source
  }

  /** Publishes a piece of text, except for an end that may be the beginning of a secret. */
  readonly write = (text: string): void => {
    if (!this.#closed && typeof text === 'string') this.#publish(this.#redacted.push(text))
  }

  /** The call has succeeded: publishes what was held back. */
  end(): void {
    if (!this.#closed) this.#publish(this.#redacted.end())
    this.#closed = true
  }

  /** The call has failed: drops what was held back, and whatever the model still writes. */
  close(): void {
    this.#closed = true
  }

  #publish(text: string): void {
    for (let at = 0; this.#feed.wantsDeltas && at < text.length; at += PIECE) {
      const offset = this.#offset + at
      this.#feed.publishDelta(this.#encode({ offset, text: text.slice(at, at + PIECE) }))
    }
    this.#offset += text.length
  }

  #encode(piece: Pick<DeltaPayload, 'offset' | 'text'>): EncodedDelta {
    const { iteration, turn, attempt } = this.#source
    const payload: DeltaPayload = { turn, attempt, ...piece }
    const ts = this.#time()
    const fields = { kind: 'model_delta', run_id: this.#feed.runId, iteration, ts, payload }
    return { seq: null, kind: 'model_delta', json: JSON.stringify(fields) }
  }
}
