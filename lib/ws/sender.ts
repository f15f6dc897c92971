import type { Duplex } from 'node:stream'
import { Batch } from './frame-batch.js'
import type { Backpressure } from './config.js'

/**
 * What became of a message. `sent`: on its way. `full`: on its way too, but more than
 * `backpressure.highWaterBytes` wait for this peer, so pause the source until `drained()`.
 * `dropped`: left out by policy. `closed`: the connection takes no more messages.
 */
export type SendResult = 'sent' | 'full' | 'dropped' | 'closed'

/**
 * Frames out, to one socket.
 *
 * 1. Nothing is written at once: what one turn of the event loop adds goes out in one write at its
 *    end, as a buffer that connections owed the same share (see `Batch`). Replies made while a chunk
 *    of input is being read go out when it has been read.
 * 2. What is held for a slow peer is counted before it is added, and bounded by `limitBytes`.
 * 3. While the peer is slow only the latest Pong is kept (RFC 6455, section 5.5.3).
 */
export class Sender {
  readonly #socket: Duplex
  readonly #limits: Backpressure
  /** One frame is kept as it is; a path of the shared tree begins with the second. */
  #pending: Buffer | Batch | null = null
  #pendingBytes = 0
  #scheduled = false
  #blocked = false
  #slow: SlowPeer | null = null

  constructor(socket: Duplex, limits: Backpressure) {
    this.#socket = socket
    this.#limits = limits
  }

  /** Octets that the kernel has not taken yet. */
  get bufferedAmount(): number {
    return this.#pendingBytes + this.#socket.writableLength + (this.#slow?.latestBytes ?? 0)
  }

  /** Whether the peer has kept up. */
  get drained(): boolean {
    return !this.#blocked && this.#pending === null
  }

  /**
   * Adds a message: one frame, or a header and its `payload` apart. `key` names what it replaces
   * when messages are coalesced.
   *
   * @returns `closed` when the policy is to close and there is no room.
   */
  send(frame: Buffer, payload: Buffer | null, key: string | undefined): SendResult {
    const bytes = payload === null ? frame.length : frame.length + payload.length
    const owed = this.#blocked ? this.bufferedAmount : this.#pendingBytes
    if (owed + bytes > this.#limits.highWaterBytes) {
      return this.#sendToSlow(frame, payload, key, owed, bytes)
    }
    this.push(frame)
    if (payload !== null) this.push(payload)
    return 'sent'
  }

  #sendToSlow(
    frame: Buffer,
    payload: Buffer | null,
    key: string | undefined,
    owed: number,
    bytes: number,
  ): SendResult {
    const { highWaterBytes, limitBytes, policy } = this.#limits
    if (policy === 'coalesce' && key !== undefined && owed > highWaterBytes) {
      const whole = payload === null ? frame : Buffer.concat([frame, payload])
      return this.#slowPeer().keepLatest(key, whole, limitBytes - owed) ? 'full' : 'dropped'
    }
    if (owed > 0 && owed + bytes > limitBytes) return policy === 'close' ? 'closed' : 'dropped'
    this.push(frame)
    if (payload !== null) this.push(payload)
    return 'full'
  }

  /** Adds a Pong, or replaces the one that still waits for a slow peer. */
  pong(frame: Buffer): void {
    if (this.#blocked) this.#slowPeer().pong = frame
    else this.push(frame)
  }

  /** Adds octets without asking for room: control frames and what `send` let through. */
  push(piece: Buffer): void {
    const pending = this.#pending
    if (pending === null) this.#pending = piece
    else if (pending instanceof Batch) this.#pending = pending.append(piece)
    else {
      this.#pending = Batch.start(pending).append(piece)
      if (this.#scheduled) endTurnLater()
    }
    this.#pendingBytes += piece.length
    if (!this.#scheduled) {
      this.#scheduled = true
      flushLater(this)
    }
  }

  /** Until {@link release}, frames wait: a chunk of input is being read. */
  hold(): boolean {
    if (this.#scheduled) return false
    this.#scheduled = true
    return true
  }

  /** Writes what was added since {@link hold}. */
  release(): void {
    this.#scheduled = false
    if (this.#pending !== null) this.flush()
  }

  /** Writes what is owed, now. */
  flush(): void {
    const pending = this.#pending
    if (pending === null) return
    this.#pending = null
    this.#pendingBytes = 0
    if (pending instanceof Batch) this.#blocked = !writeAll(this.#socket, pending.join())
    else this.#blocked = !this.#socket.write(pending)
    if (!this.#blocked) this.#settle(true)
  }

  /** End of the turn, for what was added outside of {@link hold}. */
  endTurn(): void {
    this.#scheduled = false
    this.flush()
  }

  /**
   * The socket took everything: adds what was kept aside.
   *
   * @returns whether the peer has now kept up.
   */
  onDrain(): boolean {
    this.#blocked = false
    const kept = this.#slow?.takeKept() ?? []
    for (const frame of kept) this.push(frame)
    if (kept.length > 0) this.flush()
    if (this.drained) this.#settle(true)
    return this.drained
  }

  /** Resolves true once the peer has kept up, false when the connection ends before. */
  whenDrained(): Promise<boolean> {
    return new Promise((resolve) => this.#slowPeer().waiters.push(resolve))
  }

  /** Forgets everything that is owed. */
  destroy(): void {
    this.#pending = null
    this.#pendingBytes = 0
    this.#slow?.takeKept()
    this.#settle(false)
  }

  #settle(drained: boolean): void {
    if (this.#slow === null || this.#slow.waiters.length === 0) return
    for (const resolve of this.#slow.waiters.splice(0)) resolve(drained)
  }

  #slowPeer(): SlowPeer {
    return (this.#slow ??= new SlowPeer())
  }
}

/** What a connection only needs once its peer falls behind. */
class SlowPeer {
  readonly waiters: ((drained: boolean) => void)[] = []
  readonly #latest: Map<string, Buffer> = new Map()
  pong: Buffer | null = null
  latestBytes = 0

  /** Replaces the message kept under `key`; false when it would not fit in `room` more octets. */
  keepLatest(key: string, frame: Buffer, room: number): boolean {
    const before = this.#latest.get(key)?.length ?? 0
    if (frame.length - before > room) return false
    this.#latest.delete(key)
    this.#latest.set(key, frame)
    this.latestBytes += frame.length - before
    return true
  }

  /** The messages and the Pong kept aside, which are kept no longer. */
  takeKept(): Buffer[] {
    const kept = [...this.#latest.values()]
    if (this.pong !== null) kept.unshift(this.pong)
    this.#latest.clear()
    this.latestBytes = 0
    this.pong = null
    return kept
  }
}

function writeAll(socket: Duplex, pieces: readonly Buffer[]): boolean {
  if (pieces.length === 1) return socket.write(pieces[0])
  let room = true
  socket.cork()
  for (const piece of pieces) room = socket.write(piece)
  socket.uncork()
  return room
}

let waiting: Sender[] = []
let turnEnds = false

function flushLater(sender: Sender): void {
  waiting.push(sender)
  endTurnLater()
}

/**
 * A turn ends when the code that runs now, and all promise reactions that follow from it, are done:
 * the microtask comes first among those, and the tick it asks for comes after the last.
 */
function endTurnLater(): void {
  if (turnEnds) return
  turnEnds = true
  queueMicrotask(() => process.nextTick(endTurn))
}

function endTurn(): void {
  const senders = waiting
  waiting = []
  turnEnds = false
  for (const sender of senders) sender.endTurn()
  Batch.endTurn()
}
