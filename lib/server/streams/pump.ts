/**
 * From a run's log to one reader. {@link pump} drives both kinds of stream.
 *
 * 1. Events are pulled: besides its socket's buffer a reader has no queue, so a slow reader costs
 *    little memory and still misses nothing.
 * 2. A reader that takes nothing for `stuckMs` is disconnected.
 * 3. The engine encodes the text of an event once, and all readers with the same framing share the
 *    frame made from it.
 *
 * @module
 */
import type { EventKind, RunSubscription, StreamItem, SubscriptionEnd } from '../../agent/index.js'

/** The transport to one reader: a WebSocket, or a response with Server-Sent Events. */
export interface EventSink {
  /** Writes events; false when the transport's buffer is full (they are buffered anyway). */
  write(events: readonly StreamItem[]): boolean
  /** Resolves once the transport has room again, or is closed. */
  drained(): Promise<void>
  /** Bytes buffered for the reader; it counts as stuck while they do not get fewer. */
  readonly pending: number
}

/** How a stream ended: as its subscription did, or `stuck` because the reader did not read. */
export type PumpEnd = SubscriptionEnd | 'stuck'

/** How a stream ended, faults of the service included. */
export type StreamEnd = PumpEnd | 'failed'

/** Options of {@link pump}. */
export interface PumpOptions {
  /** Only events of these kinds; undefined is all. Deltas always pass. */
  readonly kinds: ReadonlySet<EventKind> | undefined
  /** How long a reader may take nothing, in milliseconds. */
  readonly stuckMs: number
}

/** Characters written at a time, which bounds what a slow reader buffers beyond its limit. */
const MAX_PIECE = 65_536

/** Moves events from a subscription to a reader until either ends. */
export async function pump(
  subscription: RunSubscription<StreamItem>,
  sink: EventSink,
  options: PumpOptions,
): Promise<PumpEnd> {
  const { kinds, stuckMs } = options
  for (;;) {
    const batch = await subscription.next()
    if (batch === null) return subscription.end ?? 'closed'
    const events = kinds === undefined ? batch : batch.filter((item) => isWanted(item, kinds))
    for (const piece of pieces(events)) {
      if (sink.write(piece)) continue
      if (await isStuck(sink, stuckMs)) {
        subscription.close()
        return 'stuck'
      }
      if (subscription.end !== undefined) return subscription.end
    }
  }
}

function isWanted({ kind }: StreamItem, kinds: ReadonlySet<EventKind>): boolean {
  return kind === 'model_delta' || kinds.has(kind)
}

/** Splits a list of events into pieces of at most {@link MAX_PIECE}, or of a single event. */
export function* pieces(events: readonly StreamItem[]): Generator<readonly StreamItem[]> {
  let start = 0
  let size = 0
  for (let i = 0; i < events.length; i++) {
    const length = events[i]!.json.length
    if (i > start && size + length > MAX_PIECE) {
      yield events.slice(start, i)
      start = i
      size = 0
    }
    size += length
  }
  if (start < events.length) yield start === 0 ? events : events.slice(start)
}

/** Waits for room; true when the reader took nothing for `stuckMs`. */
function isStuck(sink: EventSink, stuckMs: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    let pending = sink.pending
    const timer = setInterval(() => {
      if (sink.pending >= pending) settle(() => resolve(true))
      pending = sink.pending
    }, stuckMs)
    const settle = (then: () => void): void => {
      clearInterval(timer)
      then()
    }
    sink.drained().then(
      () => settle(() => resolve(false)),
      (error: unknown) => settle(() => reject(error as Error)),
    )
  })
}
