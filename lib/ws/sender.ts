import type { Duplex } from 'node:stream'
import { checkOptions, type OptionKinds } from '../internal/options.js'
import type { Backpressure } from './config.js'
import type { Deflater } from './deflate.js'
import { FrameBatch } from './frame-batch.js'
import { encodeFrame, encodeHeader, encodeText, Opcode, type Role, RSV1 } from './frame.js'
import { maskFrame } from './mask.js'
import { frameOf, PreparedMessage } from './prepared-message.js'
import { FRAME_OVERHEAD_BYTES, SlowPeer } from './slow-peer.js'

/** Options of `send()` for one message. */
export interface SendOptions {
  /**
   * Under the policy `coalesce`: while the peer is slow, this message replaces a waiting one with
   * the same key.
   */
  readonly key?: string | undefined
  /** `false` sends this message uncompressed even if compression is agreed. @defaultValue true */
  readonly compress?: boolean | undefined
}

const SEND_OPTIONS: OptionKinds<SendOptions> = { key: 'string', compress: 'boolean' }

/**
 * The outcome of sending a message. `sent`: accepted. `full`: accepted, but more than
 * `backpressure.highWaterBytes` wait for this peer, so pause the source until `drained()`.
 * `dropped`: discarded by policy. `closed`: the connection takes no more messages.
 */
export type SendResult = 'sent' | 'full' | 'dropped' | 'closed'

/** Binary payloads of this size and above are written after their header, not copied behind it. */
const UNCOPIED_FROM = 16_384
/**
 * Messages in, frames out, for one socket.
 *
 * 1. Nothing is written at once: all frames added in one turn of the event loop go out at its end,
 *    in one write, whose buffer is shared by all connections that send the same frames (see
 *    `FrameBatch`). Replies to a chunk of input go out when the whole chunk has been handled.
 * 2. The bytes waiting for a slow peer are counted before a message is added, and bounded by
 *    `limitBytes`.
 * 3. While the peer is slow only the latest Pong is kept (RFC 6455, section 5.5.3), and no Ping is
 *    added to one that waits.
 */
export class Sender {
  readonly #socket: Duplex
  readonly #limits: Backpressure
  readonly #deflater: Deflater | null
  readonly #masks: boolean
  /** A single frame is kept as it is; the shared tree is used from the second one on. */
  #pending: Buffer | FrameBatch | null = null
  #pendingBytes = 0
  /** Pieces added since the operating system had last taken everything. */
  #pieces = 0
  #pinged = false
  #scheduled = false
  #blocked = false
  #slow: SlowPeer | null = null

  constructor(socket: Duplex, limits: Backpressure, deflater: Deflater | null, role: Role) {
    this.#masks = role === 'client'
    this.#socket = socket
    this.#limits = limits
    this.#deflater = deflater
  }

  /** Bytes that the operating system has not taken yet. */
  get bufferedAmount(): number {
    return this.#pendingBytes + this.#socket.writableLength + (this.#slow?.latestBytes ?? 0)
  }

  /** What waits for the peer, as the limits count it. */
  get #waiting(): number {
    const { latestBytes, latestCount } = this.#slow ?? { latestBytes: 0, latestCount: 0 }
    const written = this.#blocked ? this.#socket.writableLength : 0
    const frames = this.#pieces + latestCount
    return this.#pendingBytes + written + latestBytes + FRAME_OVERHEAD_BYTES * frames
  }

  /** Whether nothing waits for the peer. */
  get drained(): boolean {
    return !this.#blocked && this.#pending === null
  }

  /** @returns `closed` when there is no room and the policy is to close. */
  sendMessage(message: string | Uint8Array | PreparedMessage, options?: SendOptions): SendResult {
    if (options !== undefined) checkOptions(options, SEND_OPTIONS, 'send()')
    const deflater = options?.compress === false ? null : this.#deflater
    if (message instanceof PreparedMessage) {
      return this.sendFrame(frameOf(message, deflater), null, options?.key)
    }
    if (deflater !== null && deflater.wants(Buffer.byteLength(message))) {
      return this.#sendDeflated(deflater, message, options?.key)
    }
    if (typeof message === 'string') return this.sendFrame(encodeText(message), null, options?.key)
    if (message.length < UNCOPIED_FROM || this.#masks) {
      return this.sendFrame(encodeFrame(Opcode.BINARY, message), null, options?.key)
    }
    const payload = Buffer.from(message.buffer, message.byteOffset, message.byteLength)
    return this.sendFrame(encodeHeader(Opcode.BINARY, payload.length), payload, options?.key)
  }

  #sendDeflated(
    deflater: Deflater,
    message: string | Uint8Array,
    key: string | undefined,
  ): SendResult {
    const text = typeof message === 'string'
    const bytes = deflater.compress(text ? Buffer.from(message) : message)
    return this.sendFrame(encodeFrame(text ? Opcode.TEXT : Opcode.BINARY, bytes, RSV1), null, key)
  }

  /**
   * Adds one frame, or a header with its `payload` in a second buffer.
   *
   * @returns `closed` when there is no room and the policy is to close.
   */
  sendFrame(frame: Buffer, payload: Buffer | null = null, key?: string): SendResult {
    const bytes = payload === null ? frame.length : frame.length + payload.length
    const waiting = this.#waiting
    if (waiting + bytes > this.#limits.highWaterBytes) {
      return this.#sendToSlow(frame, payload, key, waiting, bytes)
    }
    this.push(frame)
    if (payload !== null) this.push(payload)
    return 'sent'
  }

  #sendToSlow(
    frame: Buffer,
    payload: Buffer | null,
    key: string | undefined,
    waiting: number,
    bytes: number,
  ): SendResult {
    const { highWaterBytes, limitBytes, policy } = this.#limits
    if (policy === 'coalesce' && key !== undefined && waiting > highWaterBytes) {
      const whole = payload === null ? frame : Buffer.concat([frame, payload])
      return this.#slowPeer().keepLatest(key, whole, limitBytes - waiting) ? 'full' : 'dropped'
    }
    if (waiting > 0 && waiting + bytes > limitBytes) {
      return policy === 'close' ? 'closed' : 'dropped'
    }
    this.push(frame)
    if (payload !== null) this.push(payload)
    return 'full'
  }

  /** Adds a Ping, unless another one waits for a slow peer: its answer will say as much. */
  ping(frame: Buffer): SendResult {
    if (this.#blocked && this.#pinged) return 'dropped'
    const result = this.sendFrame(frame)
    this.#pinged = this.#blocked
    return result
  }

  /** Adds a Pong, or replaces the one that still waits for a slow peer. */
  pong(frame: Buffer): void {
    if (this.#blocked) this.#slowPeer().pong = frame
    else this.push(frame)
  }

  /** Adds bytes without checking the limits: control frames, and messages already checked. */
  push(bytes: Buffer): void {
    // Only here, so that no frame of a client goes out unmasked; a piece is then a whole frame.
    const piece = this.#masks ? maskFrame(bytes) : bytes
    const pending = this.#pending
    if (pending === null) this.#pending = piece
    else if (pending instanceof FrameBatch) this.#pending = pending.append(piece)
    else {
      this.#pending = FrameBatch.start(pending).append(piece)
      if (this.#scheduled) endTurnLater()
    }
    this.#pendingBytes += piece.length
    this.#pieces++
    if (!this.#scheduled) {
      this.#scheduled = true
      flushLater(this)
    }
  }

  /** Makes frames wait for {@link uncork}. False if a flush is due already; then do not uncork. */
  cork(): boolean {
    if (this.#scheduled) return false
    this.#scheduled = true
    return true
  }

  /** Writes what was added since {@link cork}. */
  uncork(): void {
    this.#scheduled = false
    if (this.#pending !== null) this.flush()
  }

  /** Writes all pending frames without waiting for the end of the turn. */
  flush(): void {
    const pending = this.#pending
    if (pending === null) return
    this.#pending = null
    this.#pendingBytes = 0
    if (pending instanceof FrameBatch) this.#blocked = !writeAll(this.#socket, pending.join())
    else this.#blocked = !this.#socket.write(pending)
    if (!this.#blocked) this.#tookAll()
  }

  /** Writes what was added in this turn outside {@link cork}. */
  endTurn(): void {
    this.#scheduled = false
    this.flush()
  }

  /**
   * The socket took everything: writes what was kept for the slow peer.
   *
   * @returns whether nothing waits any more.
   */
  onDrain(): boolean {
    this.#blocked = false
    this.#tookAll()
    return this.drained
  }

  #tookAll(): void {
    this.#pinged = false
    this.#pieces = 0
    if (this.#pushKept()) this.flush()
    else if (this.drained) this.#settle(true)
  }

  /** Adds what was kept for the slow peer. Returns whether there was anything. */
  #pushKept(): boolean {
    const kept = this.#slow?.takeKept() ?? []
    for (const frame of kept) this.push(frame)
    return kept.length > 0
  }

  /** Adds a Close frame, after all that was accepted before. */
  pushClose(frame: Buffer): void {
    this.#pushKept()
    this.push(frame)
  }

  /** Resolves true once nothing waits for the peer, false if the connection ends before that. */
  whenDrained(): Promise<boolean> {
    return new Promise((resolve) => this.#slowPeer().waiters.push(resolve))
  }

  /** Discards everything pending; `whenDrained()` resolves false. */
  destroy(): void {
    this.#deflater?.destroy()
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

function writeAll(socket: Duplex, pieces: readonly Buffer[]): boolean {
  if (pieces.length === 1) return socket.write(pieces[0])
  let room = true
  socket.cork()
  for (const piece of pieces) room = socket.write(piece)
  socket.uncork()
  return room
}

let unflushed: Sender[] = []
let turnEndScheduled = false

function flushLater(sender: Sender): void {
  unflushed.push(sender)
  endTurnLater()
}

/**
 * A turn ends after the running code and all promise reactions that follow from it. A tick that is
 * scheduled by a microtask runs once the microtask queue is empty, so after the last of them.
 */
function endTurnLater(): void {
  if (turnEndScheduled) return
  turnEndScheduled = true
  queueMicrotask(() => process.nextTick(endTurn))
}

function endTurn(): void {
  const senders = unflushed
  unflushed = []
  turnEndScheduled = false
  for (const sender of senders) sender.endTurn()
  FrameBatch.endTurn()
}
