/**
 * From a run's log to one reader. Both kinds of stream are driven by {@link pump}.
 *
 * 1. Events are pulled: nothing is queued per reader but what its socket holds, so that a reader
 *    that is slow, or many, costs little, and nothing is ever left out.
 * 2. A reader that takes nothing for `stuckMs` is let go.
 * 3. The text of an event comes from the engine, which encodes it once; frames made of it are
 *    shared by all readers that want the same framing.
 *
 * @module
 */
import type { EventKind, RunSubscription, StreamItem, SubscriptionEnd } from '../../agent/index.js'

/** One reader's end of a stream. */
export interface EventSink {
  /** Hands events to the transport; false when it holds enough for now. */
  write(events: readonly StreamItem[]): boolean
  /** Resolves once the transport has room again, or is gone. */
  drained(): Promise<void>
  /** Octets that the transport holds for the reader. */
  readonly pending: number
}

/** How a stream came to its end: as its subscription did, or because the reader did not read. */
export type PumpEnd = SubscriptionEnd | 'stuck'

/** What {@link pump} needs to know. */
export interface PumpOptions {
  /** Only events of these kinds; undefined is all. Deltas are asked for by themselves. */
  readonly kinds: ReadonlySet<EventKind> | undefined
  /** How long a reader may take nothing, in milliseconds. */
  readonly stuckMs: number
}

/** Characters of events handed to the transport at a time: so much more a slow reader holds. */
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

/** Cuts a list of events so that each part holds at most {@link MAX_PIECE}, or a single event. */
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
