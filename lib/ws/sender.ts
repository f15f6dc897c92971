import type { Duplex } from 'node:stream'
import { checkOptions, type OptionKinds } from '../internal/options.js'
import {
  Backlog,
  FRAME_OVERHEAD_BYTES,
  type HeldMessage,
  type HeldStream,
  weigh,
} from './backlog.js'
import type { Backpressure } from './config.js'
import type { TrafficCounters } from './counters.js'
import type { Deflater } from './deflate.js'
import { FrameBatch } from './frame-batch.js'
import { encodeFrame, encodeHeader, encodeText, Opcode, type Role, RSV1 } from './frame.js'
import { maskFrame } from './mask.js'
import { toBytes, type WebSocketBytes } from './payload.js'
import { frameOf, payloadOf, PreparedMessage } from './prepared-message.js'

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

/** @throws TypeError for what are no options of `send()`. */
export function checkSendOptions(options: SendOptions): void {
  checkOptions(options, SEND_OPTIONS, 'send()')
}

/** Binary payloads of this size and above are written after their header, not copied behind it. */
const UNCOPIED_FROM = 16_384
const EMPTY = Buffer.alloc(0)

/** What all senders of a server or client have in common. */
export interface SenderSettings {
  readonly role: Role
  readonly config: { readonly backpressure: Backpressure }
  readonly counters: TrafficCounters
}

/**
 * Messages in, frames out, for one socket.
 *
 * 1. Nothing is written at once: all frames added in one turn of the event loop go out at its end,
 *    in one write, whose buffer is shared by all connections that send the same frames (see
 *    `FrameBatch`). Replies to a chunk of input go out when the whole chunk has been handled.
 * 2. The bytes waiting for a slow peer are counted before a message is added, and bounded by
 *    `limitBytes`.
 * 3. What arrives is what was accepted, in the order of sending, less the messages that a newer one
 *    of the same key has replaced. So once one message is held back, all later ones wait behind it,
 *    and a compressed message that was not accepted leaves no trace in the window.
 * 4. While the peer is slow only the latest Pong is kept (RFC 6455, section 5.5.3), and no Ping is
 *    added to one that waits.
 */
export class Sender {
  readonly #socket: Duplex
  readonly #settings: SenderSettings
  readonly #deflater: Deflater | null
  /** A single frame is kept as it is; the shared tree is used from the second one on. */
  #pending: Buffer | FrameBatch | null = null
  #pendingBytes = 0
  /** Pieces added since the operating system had last taken everything. */
  #pieces = 0
  #pinged = false
  #scheduled = false
  #blocked = false
  #backlog: Backlog | null = null

  constructor(socket: Duplex, settings: SenderSettings, deflater: Deflater | null) {
    this.#socket = socket
    this.#settings = settings
    this.#deflater = deflater
  }

  get deflater(): Deflater | null {
    return this.#deflater
  }

  get counters(): TrafficCounters {
    return this.#settings.counters
  }

  /** Bytes that the operating system has not taken yet. */
  get bufferedAmount(): number {
    return this.#pendingBytes + this.#socket.writableLength + (this.#backlog?.bytes ?? 0)
  }

  /** What waits for the peer, as the limits count it. */
  get #waiting(): number {
    let bytes = this.#pendingBytes + FRAME_OVERHEAD_BYTES * this.#pieces
    if (this.#blocked) bytes += this.#socket.writableLength
    const backlog = this.#backlog
    return backlog === null ? bytes : bytes + backlog.bytes + FRAME_OVERHEAD_BYTES * backlog.count
  }

  /** Whether a Ping would go out at once. */
  get idle(): boolean {
    return !this.#blocked && this.#pending === null
  }

  /** Whether the operating system has taken everything, and nothing is held. */
  get drained(): boolean {
    return this.idle && this.#socket.writableLength === 0 && !this.#holds
  }

  /** Whether a message must wait behind others. */
  get #holds(): boolean {
    const backlog = this.#backlog
    return backlog !== null && (backlog.stream !== null || backlog.count > 0)
  }

  /** @returns `closed` when there is no room and the policy is to close. */
  sendMessage(
    message: string | WebSocketBytes | PreparedMessage,
    options?: SendOptions,
  ): SendResult {
    if (options !== undefined) checkSendOptions(options)
    const deflater = options?.compress === false ? null : this.#deflater
    const key = options?.key
    if (typeof message === 'string') {
      if (deflater === null || !deflater.wants(Buffer.byteLength(message))) {
        return this.#add(encodeText(message), null, key)
      }
      return this.#addDeflated(deflater, Opcode.TEXT, Buffer.from(message), key)
    }
    if (message instanceof PreparedMessage) {
      const frame = frameOf(message, deflater)
      const deflated = (frame[0]! & RSV1) !== 0
      return this.#add(frame, null, key, contextFor(deflated ? deflater : null, payloadOf(message)))
    }
    const bytes = toBytes(message, 'a message')
    if (deflater !== null && deflater.wants(bytes.length)) {
      return this.#addDeflated(deflater, Opcode.BINARY, bytes, key)
    }
    if (bytes.length < UNCOPIED_FROM || this.#settings.role === 'client') {
      return this.#add(encodeFrame(Opcode.BINARY, bytes), null, key)
    }
    const payload = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    return this.#add(encodeHeader(Opcode.BINARY, payload.length), payload, key)
  }

  #addDeflated(
    deflater: Deflater,
    opcode: number,
    bytes: Uint8Array,
    key: string | undefined,
  ): SendResult {
    const frame = encodeFrame(opcode, deflater.compress(bytes), RSV1)
    return this.#add(frame, null, key, contextFor(deflater, bytes))
  }

  /** Adds a message: one frame, or a header with its `payload` in a second buffer. */
  #add(
    frame: Buffer,
    payload: Buffer | null,
    key?: string,
    context: Uint8Array | null = null,
  ): SendResult {
    const bytes = payload === null ? frame.length : frame.length + payload.length
    const waiting = this.#waiting
    if (waiting + bytes > this.#settings.config.backpressure.highWaterBytes || this.#holds) {
      return this.#addToSlow({ frame, payload, context }, key, waiting, bytes)
    }
    this.#write(frame, payload, context)
    return 'sent'
  }

  #addToSlow(
    message: HeldMessage,
    key: string | undefined,
    waiting: number,
    bytes: number,
  ): SendResult {
    const { highWaterBytes, limitBytes, policy } = this.#settings.config.backpressure
    const coalesces = policy === 'coalesce' && key !== undefined
    const holds = this.#holds || (coalesces && waiting > highWaterBytes)
    const freed = holds && coalesces ? this.#backlog?.weightOf(key) ?? 0 : 0
    const added = holds ? weigh(message) : bytes
    if (waiting > 0 && waiting - freed + added > limitBytes) {
      if (policy === 'close') return 'closed'
      this.#settings.counters.messagesDropped++
      return 'dropped'
    }
    if (!holds) this.#write(message.frame, message.payload, message.context)
    else {
      if (freed > 0) this.#settings.counters.messagesReplaced++
      this.#ownBacklog().hold(ownContext(message), coalesces ? key : undefined)
    }
    return waiting - freed + added > highWaterBytes ? 'full' : 'sent'
  }

  /** Adds the frames of a message that was accepted. */
  #write(frame: Buffer, payload: Buffer | null, context: Uint8Array | null): void {
    this.#settings.counters.messagesSent++
    if (context !== null) this.#deflater!.remember(context)
    this.push(frame)
    if (payload !== null) this.push(payload)
  }

  /** Adds a Ping, unless another one waits for a slow peer: its answer will say as much. */
  ping(frame: Buffer): SendResult {
    if (this.#blocked && this.#pinged) return 'dropped'
    const { highWaterBytes, limitBytes, policy } = this.#settings.config.backpressure
    const waiting = this.#waiting
    if (waiting > 0 && waiting + frame.length > limitBytes) {
      return policy === 'close' ? 'closed' : 'dropped'
    }
    this.push(frame)
    this.#pinged = this.#blocked
    return waiting + frame.length > highWaterBytes ? 'full' : 'sent'
  }

  /** Adds a Pong, or replaces the one that still waits for a slow peer. */
  pong(frame: Buffer): void {
    if (this.#blocked) this.#ownBacklog().pong = frame
    else this.push(frame)
  }

  /** Adds bytes without checking the limits: control frames, and messages already checked. */
  push(bytes: Buffer): void {
    // Only here, so that no frame of a client goes out unmasked; a piece is then a whole frame.
    const piece = this.#settings.role === 'client' ? maskFrame(bytes) : bytes
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

  /** As {@link uncork}, behind the promise jobs that are queued now. */
  uncorkLater(): void {
    if (replying.push(this) === 1) void RESOLVED.then(uncorkReplying)
  }

  /** Writes all pending frames without waiting for the end of the turn. */
  flush(): void {
    const pending = this.#pending
    if (pending === null) return
    this.#settings.counters.bytesSent += this.#pendingBytes
    this.#pending = null
    this.#pendingBytes = 0
    const pieces = pending instanceof FrameBatch ? pending.join() : null
    const room = pieces === null ? this.#socket.write(pending) : writeAll(this.#socket, pieces)
    // After a write that was too much, 'drain' comes in any case.
    if (this.#blocked) return
    this.#blocked = !room
    if (room) this.#tookAll()
    // Idle sockets have no listener for this, which would take memory.
    else this.#socket.once('drain', () => this.#onDrain())
  }

  /** Writes what was added in this turn outside {@link cork}. */
  endTurn(): void {
    this.#scheduled = false
    this.flush()
  }

  /** The socket has room: writes what was held for the slow peer. */
  #onDrain(): void {
    this.#blocked = false
    this.#tookAll()
  }

  #tookAll(): void {
    this.#pinged = false
    this.#pieces = 0
    const backlog = this.#backlog
    if (backlog === null) return
    this.#release(backlog)
    if (this.#pending !== null) return this.flush()
    const { whenRoom } = backlog
    backlog.whenRoom = null
    whenRoom?.()
    this.#settle(backlog)
  }

  /** Adds what is held, up to the next message in fragments. */
  #release(backlog: Backlog): void {
    if (backlog.pong !== null) this.push(backlog.pong)
    backlog.pong = null
    while (backlog.stream === null) {
      const held = backlog.shift()
      if (held === undefined) break
      if ('start' in held) {
        backlog.stream = held
        return held.start()
      }
      const { frame, payload, context } = held
      this.#write(context === null ? frame : this.#deflateAgain(frame, context), payload, context)
    }
    if (backlog.stream !== null || backlog.close === null) return
    this.push(backlog.close)
    backlog.close = null
  }

  #deflateAgain(frame: Buffer, context: Uint8Array): Buffer {
    return encodeFrame(frame[0]! & 0x0f, this.#deflater!.compress(context), RSV1)
  }

  /** Adds a Close frame, after all that was accepted before. */
  pushClose(frame: Buffer): void {
    const backlog = this.#backlog
    if (backlog === null) return this.push(frame)
    backlog.close = frame
    this.#release(backlog)
  }

  /** Writes what can still be sent at the end of the connection; no more fragments. */
  finish(): void {
    const backlog = this.#backlog
    if (backlog !== null) {
      backlog.abandon()
      this.#release(backlog)
    }
    this.flush()
  }

  // Messages in fragments

  /** Begins one after all that was sent before, at once or later. */
  beginStream(stream: HeldStream): void {
    const backlog = this.#ownBacklog()
    backlog.holdStream(stream)
    if (!this.#blocked) this.#release(backlog)
  }

  /** The message in fragments is over, so that others may follow. */
  endStream(stream: HeldStream): void {
    const backlog = this.#backlog
    if (backlog === null || backlog.stream !== stream) return
    backlog.stream = null
    if (!this.#blocked || backlog.close !== null) this.#release(backlog)
    if (this.#pending === null) this.#settle(backlog)
  }

  /** Whether the message in fragments should wait until there is room. */
  get full(): boolean {
    return this.#blocked || this.#pendingBytes > this.#settings.config.backpressure.highWaterBytes
  }

  /** Calls `continued` once the socket has room, unless the connection ends before that. */
  onceRoom(continued: () => void): void {
    this.#ownBacklog().whenRoom = continued
  }

  // Waiting for the peer

  /** Calls `waiter` with true once nothing waits, or with false if the connection ends before. */
  onceDrained(waiter: (drained: boolean) => void): void {
    const backlog = this.#ownBacklog()
    backlog.waiters.push(waiter)
    if (this.idle) this.#settle(backlog)
  }

  /** Discards everything pending. */
  destroy(): void {
    this.#deflater?.destroy()
    this.#pending = null
    this.#pendingBytes = 0
    const backlog = this.#backlog
    this.#backlog = null
    backlog?.discard()
  }

  #settle(backlog: Backlog): void {
    if (backlog.waiters.length === 0 || !this.idle || this.#holds) return
    if (this.#socket.writableLength === 0) {
      backlog.settle(true)
    } else if (!backlog.watching && !this.#socket.writableEnded) {
      // The socket emits 'drain' only after a write that it called too much. An empty one after all
      // others tells when they have been taken.
      backlog.watching = true
      this.#socket.write(EMPTY, () => {
        backlog.watching = false
        if (this.#backlog === backlog) this.#settle(backlog)
      })
    }
  }

  #ownBacklog(): Backlog {
    return (this.#backlog ??= new Backlog())
  }
}

/** What a compressed message adds to the window of later ones, if they may refer to it. */
function contextFor(deflater: Deflater | null, bytes: Uint8Array): Uint8Array | null {
  return deflater !== null && deflater.agreement.contextTakeover ? bytes : null
}

/** The message without its frame and with its own copy of the context, which are used later. */
function ownContext(message: HeldMessage): HeldMessage {
  const { frame, context } = message
  if (context === null) return message
  return { frame: Buffer.of(frame[0]!), payload: null, context: Buffer.from(context) }
}

function writeAll(socket: Duplex, pieces: readonly Buffer[]): boolean {
  if (pieces.length === 1) return socket.write(pieces[0])
  let room = true
  socket.cork()
  for (const piece of pieces) room = socket.write(piece)
  socket.uncork()
  return room
}

const RESOLVED = Promise.resolve()
let replying: Sender[] = []

function uncorkReplying(): void {
  const senders = replying
  replying = []
  for (const sender of senders) sender.uncork()
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
  // Half the cost of queueMicrotask(), which makes an AsyncResource.
  void RESOLVED.then(endTurnInTick)
}

function endTurnInTick(): void {
  process.nextTick(endTurn)
}

function endTurn(): void {
  const senders = unflushed
  unflushed = []
  turnEndScheduled = false
  for (const sender of senders) sender.endTurn()
  FrameBatch.endTurn()
}
