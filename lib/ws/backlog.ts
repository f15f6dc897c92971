/** Counted for each waiting frame besides its bytes, so that a queue of empty ones is bounded. */
export const FRAME_OVERHEAD_BYTES = 64

/** A message that waits beside the socket. */
export interface HeldMessage {
  readonly frame: Buffer
  /** What follows the frame's header, if that was not copied into `frame`. */
  readonly payload: Buffer | null
  /**
   * With context takeover, the uncompressed payload of a compressed message. The frame can refer
   * only to messages that were sent before it, so it is made anew when this one's turn comes.
   */
  readonly context: Uint8Array | null
}

/** A message in fragments. */
export interface HeldStream {
  /** Its turn has come. */
  start(): void
  /** The connection ends before the message was sent in full. */
  ended(): void
}

/**
 * The part of a sender's state that is only created for a peer that falls behind, or for a message
 * in fragments: what waits beside the socket, in the order of sending, and who waits for that.
 */
export class Backlog {
  readonly #held: Map<unknown, HeldMessage | HeldStream> = new Map()
  /**
   * Goes on behind what was removed, which a new iterator would step over; null once there is more.
   */
  #removal: MapIterator<[unknown, HeldMessage | HeldStream]> | null = null
  /** The answer to the latest Ping. */
  pong: Buffer | null = null
  /** The Close frame that goes out after all that is held. */
  close: Buffer | null = null
  /** The message in fragments that is being sent. */
  stream: HeldStream | null = null
  /** Bytes of all held messages. */
  bytes = 0
  /** Called once everything was taken (true), or the connection has ended. */
  readonly waiters: ((drained: boolean) => void)[] = []
  /** Whether an empty write shows when the socket has taken the others. */
  watching = false
  /** Continues the message in fragments. */
  whenRoom: (() => void) | null = null

  get count(): number {
    return this.#held.size
  }

  /** What a message held under `key` counts, which one that replaces it frees. */
  weightOf(key: string | undefined): number {
    const held = key === undefined ? undefined : this.#held.get(key)
    return held === undefined || 'start' in held ? 0 : weigh(held)
  }

  /** Adds a message behind all others, in place of one with the same key. */
  hold(message: HeldMessage, key: string | undefined): void {
    this.bytes += weigh(message) - FRAME_OVERHEAD_BYTES
    if (key !== undefined) {
      const before = this.weightOf(key)
      if (before > 0) this.bytes -= before - FRAME_OVERHEAD_BYTES
      this.#held.delete(key)
    }
    this.#held.set(key ?? message, message)
    this.#removal = null
  }

  /** Adds a message in fragments behind all others. */
  holdStream(stream: HeldStream): void {
    this.#held.set(stream, stream)
    this.#removal = null
  }

  /** Removes and returns the oldest. */
  shift(): HeldMessage | HeldStream | undefined {
    this.#removal ??= this.#held.entries()
    const { value, done } = this.#removal.next()
    if (done === true) return undefined
    const [key, held] = value
    this.#held.delete(key)
    if (!('start' in held)) this.bytes -= weigh(held) - FRAME_OVERHEAD_BYTES
    return held
  }

  /** Gives up an unfinished message, and all that waits behind it. */
  abandon(): void {
    if (this.stream !== null) this.discard()
  }

  /** Gives up all that waits. */
  discard(): void {
    const { stream } = this
    this.stream = null
    stream?.ended()
    for (let held = this.shift(); held !== undefined; held = this.shift()) {
      if ('start' in held) held.ended()
    }
    this.settle(false)
  }

  /** Calls those that wait. */
  settle(drained: boolean): void {
    for (const waiter of this.waiters.splice(0)) waiter(drained)
  }
}

/** What a held message counts against the limits. */
export function weigh({ frame, payload, context }: HeldMessage): number {
  const bytes = context === null ? frame.length + (payload?.length ?? 0) : context.length
  return bytes + FRAME_OVERHEAD_BYTES
}
