import type { EventKind } from './events.js'

/** One durable event, encoded once for all its readers. */
export interface EncodedEvent {
  readonly seq: number
  readonly kind: EventKind
  /** The AgentEvent as compact JSON. */
  readonly json: string
}

/** How a subscription came to its end. */
export type SubscriptionEnd = 'run_end' | 'deleted' | 'closed' | 'shutdown'

/**
 * A reader's place in one run's log. It is pulled: events wait in the log, not in a queue per
 * reader, so a slow reader costs nothing and loses nothing.
 */
export interface RunSubscription extends AsyncIterable<readonly EncodedEvent[]> {
  readonly runId: string
  /** `seq` of the last event that was handed out. */
  readonly position: number
  /**
   * The next events, at least one and at most 256, waiting until there are some; null at the end.
   * One call at a time.
   */
  next(): Promise<readonly EncodedEvent[] | null>
  /** Why `next()` gave null; undefined before. */
  readonly end: SubscriptionEnd | undefined
  /** Ends the subscription; a waiting `next()` gives null. */
  close(): void
}
