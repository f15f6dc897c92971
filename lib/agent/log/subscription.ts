import type { EventKind } from '../events.js'

/** One durable event, encoded once for all readers. */
export interface EncodedEvent {
  readonly seq: number
  readonly kind: EventKind
  /** The AgentEvent as compact JSON. */
  readonly json: string
}

/**
 * A piece of text that a model is writing right now, encoded once for all readers. It is not part
 * of the log: it has no `seq`, is not stored, and slow readers may miss some.
 */
export interface EncodedDelta {
  readonly seq: null
  readonly kind: 'model_delta'
  /**
   * Compact JSON: `kind, run_id, iteration, ts` as an event has them, and a {@link DeltaPayload}.
   */
  readonly json: string
}

/** The payload of an {@link EncodedDelta}. */
export interface DeltaPayload {
  /** The turn within the iteration, as in its `model_turn`. */
  readonly turn: number
  /** Counts from 1; when a call is retried, discard the text of the attempt before. */
  readonly attempt: number
  /** UTF-16 units of this attempt before `text`: a gap means that pieces are missing. */
  readonly offset: number
  readonly text: string
}

/** An item of a subscription with deltas. */
export type StreamItem = EncodedEvent | EncodedDelta

/** Why a subscription ended: `closed` by its reader, `shutdown` with the engine. */
export type SubscriptionEnd = 'run_end' | 'deleted' | 'closed' | 'shutdown'

/**
 * A reader's position in one run's log. The reader pulls: events wait in the log, not in a queue
 * per reader, so a slow reader costs nothing and loses nothing. Deltas, if requested, wait in a
 * queue of at most 64 Ki characters, which drops them when it is full; they arrive between the
 * events between which they were written.
 */
export interface RunSubscription<Item extends StreamItem = EncodedEvent>
  extends AsyncIterable<readonly Item[]> {
  readonly runId: string
  /** `seq` of the last event that `next()` returned, or the start position. */
  readonly position: number
  /**
   * Waits for the next events (or deltas, never both), at least one and at most 256; null at the
   * end. Only one call at a time.
   */
  next(): Promise<readonly Item[] | null>
  /** Why `next()` returned null; undefined before that. */
  readonly end: SubscriptionEnd | undefined
  /** Ends the subscription; a pending `next()` resolves with null. */
  close(): void
}
