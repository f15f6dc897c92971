import type { EventKind } from '../events.js'

/** One durable event, encoded once for all its readers. */
export interface EncodedEvent {
  readonly seq: number
  readonly kind: EventKind
  /** The AgentEvent as compact JSON. */
  readonly json: string
}

/**
 * A piece of text that a model writes just now, encoded once for all its readers. It is no part of
 * the log: it has no place there, is not stored, and a reader that is slow may miss some.
 */
export interface EncodedDelta {
  readonly seq: null
  readonly kind: 'model_delta'
  /** Compact JSON: `kind, run_id, iteration, ts` as an event has them, and a {@link DeltaPayload}. */
  readonly json: string
}

/** The payload of a {@link EncodedDelta}. */
export interface DeltaPayload {
  /** The turn of the iteration, as its `model_turn` will tell it. */
  readonly turn: number
  /** Counts from 1; a failed call is made again, and what its attempt wrote before is void. */
  readonly attempt: number
  /** UTF-16 units of this attempt before `text`: a gap tells that pieces are missing. */
  readonly offset: number
  readonly text: string
}

/** What a subscription that asked for deltas hands out. */
export type StreamItem = EncodedEvent | EncodedDelta

/** How a subscription came to its end. */
export type SubscriptionEnd = 'run_end' | 'deleted' | 'closed' | 'shutdown'

/**
 * A reader's place in one run's log. It is pulled: events wait in the log, not in a queue per
 * reader, so a slow reader costs nothing and loses nothing. Deltas, where they were asked for, wait
 * in a queue of at most 64 Ki characters and are left out when it is full; they come between the
 * events between which they were written.
 */
export interface RunSubscription<Item extends StreamItem = EncodedEvent>
  extends AsyncIterable<readonly Item[]> {
  readonly runId: string
  /** `seq` of the last event that was handed out. */
  readonly position: number
  /**
   * The next events (or the next deltas, never both), at least one and at most 256, waiting until
   * there are some; null at the end. One call at a time.
   */
  next(): Promise<readonly Item[] | null>
  /** Why `next()` gave null; undefined before. */
  readonly end: SubscriptionEnd | undefined
  /** Ends the subscription; a waiting `next()` gives null. */
  close(): void
}
