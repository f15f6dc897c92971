import type { Duplex } from 'node:stream'
import { raceAbort } from '../internal/abort.js'
import { checkOptions, type OptionKinds } from '../internal/options.js'
import { checkCloseCode } from './close-codes.js'
import { type CloseInfo, CloseState } from './close-state.js'
import type { WebSocketConnectionConfig } from './config.js'
import type { Deflater } from './deflate.js'
import { destroyTransport } from './destroy-transport.js'
import {
  ConnectionLostError,
  HandlerError,
  SlowReaderError,
  type WebSocketError,
} from './errors.js'
import { encodeClose, encodeFrame, MAX_CONTROL_BYTES, Opcode, type Role } from './frame.js'
import { Inflater } from './inflater.js'
import { MessageQueue } from './message-queue.js'
import type { PreparedMessage } from './prepared-message.js'
import { Receiver, type ReceiverEvents, type WebSocketMessage } from './receiver.js'
import { Sender, type SendOptions, type SendResult } from './sender.js'

const WAIT: OptionKinds<{ signal?: AbortSignal }> = { signal: 'object' }

/*
 *   open ──close()──▶ closing ──both Close frames──▶ ending ──socket closed──▶ closed
 *     └──peer's Close, or a rule broken──────────────▶ ┘
 *
 * 1. At most one Close frame is sent, and nothing after it (RFC 6455, section 5.5.1).
 * 2. `onClose` is called once, whatever ends the connection, and nothing a peer does throws.
 * 3. The server ends its side of the transport first, then discards input until the peer has ended
 *    its own: destroying a socket with unread input resets it, which could destroy the Close frame
 *    on its way (section 7.1.1). A client waits for the server's end before its own.
 *    `closeTimeoutMs` bounds each wait.
 * 4. During an async iteration, the end waits until the program has taken every message before it
 *    and asks for more, so that its replies go out first; `closeTimeoutMs` bounds this too.
 */

/** What a server or client provides to all its connections. */
export interface ConnectionOwner {
  readonly role: Role
  readonly config: WebSocketConnectionConfig
  /** The transport is gone; called before the connection's own `onClose`. */
  onClosed(connection: WebSocketConnection): void
  /** A handler that the program set threw or rejected. */
  onHandlerError(error: unknown): void
}

/** The outcome of one opening handshake. */
export interface AcceptedHandshake<Context> {
  readonly socket: Duplex
  readonly context: Context
  readonly protocol: string
  /** `null` without compression. */
  readonly deflater: Deflater | null
  /** Which tick of an interval pings this connection; see `KeepAliveTimer`. */
  readonly keepAliveSlot: number
}

// For server and client only: functions, because methods would be public.

export let openConnection: <Context>(
  owner: ConnectionOwner,
  accepted: AcceptedHandshake<Context>,
) => WebSocketConnection<Context>
/** Starts reading; `head` is what followed the opening handshake in the same chunk. */
export let startReading: (connection: WebSocketConnection, head: Buffer) => void
/** Pings the connection if it is in `slot`; gives it up after `maxSilentIntervals` in silence. */
export let keepAliveTick: (
  connection: WebSocketConnection,
  slot: number,
  maxSilentIntervals: number,
) => void

const EMPTY = Buffer.alloc(0)
const PING = encodeFrame(Opcode.PING, EMPTY)

const kConnection = Symbol('runwright.ws.connection')
type OwnedSocket = Duplex & { [kConnection]: WebSocketConnection }

const ignore = (): void => {}

/**
 * One end of a WebSocket. Created by a {@link WebSocketServer} or a {@link WebSocketClient}.
 *
 * Read it by async iteration or by setting `onMessage`; until then messages wait in a queue, and
 * beyond `receiveAheadBytes` reading pauses. Its methods never throw because of what the peer does.
 * `await using` closes it and waits.
 *
 * @example
 * ```ts
 * for await (const message of connection) {
 *   if (connection.send(message) === 'full') await connection.drained()
 * }
 * ```
 */
export class WebSocketConnection<Context = unknown> implements AsyncDisposable {
  /** On a server, what `authorize` returned; on a client, the server's {@link OpeningResponse}. */
  readonly context: Context
  /** The subprotocol agreed on, or an empty string. */
  readonly protocol: string
  /** Called with the payload of each Pong. */
  onPong: ((payload: Buffer) => void) | null = null
  /** Called with the payload of each Ping, after the Pong was queued. */
  onPing: ((payload: Buffer) => void) | null = null
  /** Called each time a peer for which `send` returned `full` has caught up. */
  onDrain: (() => void) | null = null
  /** Called once, when the transport is gone. */
  onClose: ((info: CloseInfo) => void) | null = null

  readonly #owner: ConnectionOwner
  readonly #socket: Duplex
  readonly #receiver: Receiver<WebSocketConnection>
  readonly #sender: Sender
  #onMessage: ((message: WebSocketMessage) => unknown) | null = null
  /** Exists while messages are iterated or nothing takes them. */
  #queue: MessageQueue | null = null
  #iterated = false
  #paused = false
  #state: 'open' | 'closing' | 'ending' | 'closed' = 'open'
  #closeSent = false
  readonly #keepAliveSlot: number
  #silentIntervals = 0
  #closing: CloseState | null = null

  private constructor(owner: ConnectionOwner, accepted: AcceptedHandshake<Context>) {
    if (accepted?.socket === undefined) {
      throw new TypeError(
        'connections are made by the upgrade() of a WebSocketServer or the connect() of a ' +
          'WebSocketClient',
      )
    }
    const { config, role } = owner
    const { socket, deflater } = accepted
    this.#owner = owner
    this.#socket = socket
    this.context = accepted.context
    this.protocol = accepted.protocol
    this.#keepAliveSlot = accepted.keepAliveSlot
    const inflater = deflater === null
      ? null
      : new Inflater(config.maxMessageBytes, deflater.agreement.peerContextTakeover)
    this.#receiver = new Receiver(this, WebSocketConnection.#events, config, inflater, role)
    this.#sender = new Sender(socket, config.backpressure, deflater, role)
    ;(socket as OwnedSocket)[kConnection] = this as WebSocketConnection
    socket.on('close', WebSocketConnection.#onClose)
    socket.on('drain', WebSocketConnection.#onDrain)
  }

  /** `closing` from the first Close frame of either side; `closed` when the transport is gone. */
  get state(): 'open' | 'closing' | 'closed' {
    return this.#state === 'ending' ? 'closing' : this.#state
  }

  /** Bytes passed to `send` that the operating system has not taken yet. */
  get bufferedAmount(): number {
    return this.#sender.bufferedAmount
  }

  /** Resolves when the transport is gone; never rejects. */
  get closed(): Promise<CloseInfo> {
    const closing = this.#closeState()
    if (closing.info !== null) return Promise.resolve(closing.info)
    return (closing.closed ??= new Promise((resolve) => {
      closing.resolve = resolve
    }))
  }

  /**
   * Called with each message, in order; queued messages are delivered when it is set. A handler
   * that throws or rejects ends the connection with 1011. Set it or iterate, not both.
   */
  get onMessage(): ((message: WebSocketMessage) => unknown) | null {
    return this.#onMessage
  }

  /** `null` queues messages again. */
  set onMessage(handler: ((message: WebSocketMessage) => unknown) | null) {
    this.#onMessage = handler
    if (handler === null || this.#queue === null) return
    this.#queue.drain((message) => this.#call(handler, message))
    this.#queue = null
    this.#receiver.resume()
  }

  /**
   * Sends a string as text, bytes as binary. Large binary payloads are not copied:
   * leave them unchanged until `drained()`.
   */
  send(message: string | Uint8Array | PreparedMessage, options?: SendOptions): SendResult {
    if (this.#state !== 'open') return 'closed'
    return this.#closeIfFull(this.#sender.sendMessage(message, options))
  }

  /**
   * Sends a Ping with up to 125 bytes; the Pong is passed to `onPong`. While another one waits for
   * a slow peer it is `dropped`.
   */
  ping(payload: string | Uint8Array = EMPTY): SendResult {
    const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload
    if (bytes.length > MAX_CONTROL_BYTES) {
      throw new RangeError(`a ping has at most ${MAX_CONTROL_BYTES} bytes, got ${bytes.length}`)
    }
    if (this.#state !== 'open') return 'closed'
    return this.#closeIfFull(this.#sender.ping(encodeFrame(Opcode.PING, bytes)))
  }

  #closeIfFull(result: SendResult): SendResult {
    if (result === 'closed') {
      const { limitBytes } = this.#owner.config.backpressure
      this.#fail(new SlowReaderError(`the peer left ${limitBytes} bytes unread`))
    }
    return result
  }

  /**
   * Resolves true once the operating system has taken everything sent, at once if nothing waits;
   * false if the connection ends before that.
   *
   * @throws `signal.reason` when the signal aborts first.
   */
  async drained(options?: { readonly signal?: AbortSignal | undefined }): Promise<boolean> {
    checkOptions(options ?? {}, WAIT, 'drained()')
    options?.signal?.throwIfAborted()
    if (this.#state === 'closed') return false
    if (this.#sender.drained) return true
    const drained = this.#sender.whenDrained()
    return options?.signal === undefined ? drained : await raceAbort(drained, options.signal)
  }

  /**
   * Starts the closing handshake, after everything sent before. Calling it again has no effect. If
   * the peer does not answer within `closeTimeoutMs`, the transport is destroyed.
   *
   * @param code - 1000 to 1003, 1007 to 1014, or 3000 to 4999. Default: 1000.
   * @param reason - at most 123 bytes of UTF-8; a longer one is cut at a code point.
   * @returns how the connection ended, like {@link closed}.
   * @throws RangeError for a code that may not be sent.
   */
  close(code = 1000, reason: string | Uint8Array = ''): Promise<CloseInfo> {
    checkCloseCode(code)
    // An end that waits for the program to take its messages goes first, with its own code.
    this.#runDeferred()
    if (this.#state === 'open') {
      this.#sendClose(code, reason)
      this.#receiver.discard()
      this.#startTimer()
    }
    return this.closed
  }

  /** Destroys the transport without a closing handshake: the peer sees 1006. */
  terminate(): void {
    if (this.#state !== 'closed') destroyTransport(this.#socket)
  }

  /**
   * The messages until the connection ends. Leaving the loop discards all later messages; the
   * connection stays open.
   *
   * @throws `signal.reason` from the loop when the signal aborts.
   */
  messages(options?: {
    readonly signal?: AbortSignal | undefined
  }): AsyncIterableIterator<WebSocketMessage, undefined> {
    checkOptions(options ?? {}, WAIT, 'messages()')
    this.#iterated = true
    const queue = this.#messageQueue()
    const iterator: AsyncIterableIterator<WebSocketMessage, undefined> = {
      next: () => queue.take(options?.signal),
      return: () => {
        this.onMessage = ignore
        this.#onTake()
        return Promise.resolve({ done: true, value: undefined })
      },
      [Symbol.asyncIterator]: () => iterator,
    }
    return iterator
  }

  /** The same as {@link messages} without options. */
  [Symbol.asyncIterator](): AsyncIterableIterator<WebSocketMessage, undefined> {
    return this.messages()
  }

  /** Closes with 1000 and waits until the transport is gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  // Input

  static readonly #events: ReceiverEvents<WebSocketConnection> = {
    message: (connection, message) => connection.#deliver(message),
    ping: (connection, payload) => connection.#answerPing(payload),
    pong: (connection, payload) => {
      if (connection.onPong !== null) connection.#call(connection.onPong, payload)
    },
    close: (connection, code, reason) => connection.#receivedClose(code, reason),
    failed: (connection, error) => connection.#whenTaken(() => connection.#fail(error)),
    paused: (connection, paused) => {
      connection.#paused = paused
      if (paused) connection.#socket.pause()
      else connection.#socket.resume()
      if (!paused && connection.#closing?.inputEnded === true) connection.#inputEnded()
    },
  }

  #read(chunk: Buffer): void {
    if (this.#state === 'ending') return
    this.#silentIntervals = 0
    const corked = this.#sender.cork()
    this.#receiver.push(chunk)
    if (corked) this.#sender.uncork()
  }

  #deliver(message: WebSocketMessage): boolean {
    if (this.#state !== 'open') return true
    if (this.#onMessage === null) return this.#messageQueue().push(message)
    this.#call(this.#onMessage, message)
    return true
  }

  #messageQueue(): MessageQueue {
    this.#queue ??= new MessageQueue(this.#owner.config.receiveAheadBytes, () => this.#onTake())
    if (this.#state === 'closed') this.#queue.end()
    return this.#queue
  }

  /** The program took a message, waits for one, or has stopped iterating. */
  #onTake(): void {
    if (this.#paused && (this.#queue === null || this.#queue.hasRoom)) this.#receiver.resume()
    if (this.#queue === null || this.#queue.awaited) this.#runDeferred()
  }

  #answerPing(payload: Buffer): void {
    if (this.#state !== 'open') return
    this.#sender.pong(encodeFrame(Opcode.PONG, payload))
    if (this.onPing !== null) this.#call(this.onPing, payload)
  }

  /** Calls a handler that the program set; what it throws ends this connection, not the process. */
  #call<Value>(handler: (value: Value) => unknown, value: Value): void {
    try {
      const result = handler(value)
      if (result instanceof Promise) result.catch((reason: unknown) => this.#handlerFailed(reason))
    } catch (reason) {
      this.#handlerFailed(reason)
    }
  }

  #handlerFailed(cause: unknown): void {
    if (this.#state === 'open') this.#fail(new HandlerError('a handler failed', { cause }))
    this.#owner.onHandlerError(cause)
  }

  // Closing (RFC 6455, section 7.1)

  #closeState(): CloseState {
    return (this.#closing ??= new CloseState())
  }

  #receivedClose(code: number | null, reason: string): void {
    const closing = this.#closeState()
    closing.peerCode = code ?? 1005
    closing.peerReason = reason
    if (this.#closeSent) return this.#endTransport()
    this.#whenTaken(() => {
      if (this.#state !== 'open') return
      this.#sendClose(code, '')
      this.#endTransport()
    })
  }

  /** Calls `end` once an iterating program has taken all messages before it; see invariant 4. */
  #whenTaken(end: () => void): void {
    const waits = this.#iterated && this.#onMessage === null && this.#state === 'open'
    if (!waits || this.#messageQueue().awaited) return end()
    this.#closeState().deferred = end
    this.#startTimer()
  }

  /** Fails the connection: sends a Close frame and ignores all further input (section 7.1.7). */
  #fail(error: WebSocketError): void {
    if (this.#state === 'ending' || this.#state === 'closed') return
    this.#closeState().error ??= error
    this.#receiver.destroy()
    if (!this.#closeSent) this.#sendClose(error.closeCode, error.message)
    this.#endTransport()
  }

  #sendClose(code: number | null, reason: string | Uint8Array): void {
    this.#state = 'closing'
    this.#closeSent = true
    this.#sender.pushClose(encodeClose(code, reason))
  }

  #endTransport(): void {
    this.#state = 'ending'
    this.#receiver.destroy()
    this.#sender.flush()
    if (this.#owner.role === 'server' || this.#closing?.inputEnded === true) this.#socket.end()
    this.#socket.resume()
    this.#startTimer()
  }

  #startTimer(): void {
    const closing = this.#closeState()
    clearTimeout(closing.timer)
    closing.timer = setTimeout(() => {
      if (!this.#runDeferred()) destroyTransport(this.#socket)
    }, this.#owner.config.closeTimeoutMs)
    closing.timer.unref()
  }

  #runDeferred(): boolean {
    const deferred = this.#closing?.deferred ?? null
    if (deferred === null) return false
    this.#closing!.deferred = null
    deferred()
    return true
  }

  /** The peer has ended its side of the transport; input received before is still handled. */
  #inputEnded(): void {
    const closing = this.#closeState()
    closing.inputEnded = true
    if (this.#state === 'ending') return void this.#socket.end()
    if (this.#paused) return
    if (closing.peerCode !== null || closing.deferred !== null) return
    this.#whenTaken(() => {
      if (this.#state === 'ending' || this.#state === 'closed') return
      closing.error ??= new ConnectionLostError('the peer ended its side without a Close frame')
      this.#endTransport()
    })
  }

  #transportClosed(): void {
    if (this.#state === 'closed') return
    const closing = this.#closeState()
    this.#state = 'closed'
    clearTimeout(closing.timer)
    closing.deferred = null
    this.#receiver.destroy()
    this.#sender.destroy()
    this.#queue?.end()
    const info = closing.finish(this.#closeSent)
    this.#owner.onClosed(this as WebSocketConnection)
    if (this.onClose !== null) this.#call(this.onClose, info)
  }

  // Called by the server and the socket

  #start(head: Buffer): void {
    if (this.#state === 'closed') return
    if (head.length > 0) this.#read(head)
    this.#socket.on('data', WebSocketConnection.#onData)
    this.#socket.on('end', WebSocketConnection.#onEnd)
    if (this.#paused) this.#socket.pause()
    else this.#socket.resume()
  }

  #keepAliveTick(slot: number, maxSilentIntervals: number): void {
    if (this.#keepAliveSlot !== slot || this.#state !== 'open') return
    // While this side does not read, silence says nothing about the peer.
    if (!this.#paused && ++this.#silentIntervals > maxSilentIntervals) {
      this.#closeState().error = new ConnectionLostError('the peer sent nothing for too long')
      destroyTransport(this.#socket)
    } else if (this.#sender.drained) this.#sender.push(PING)
  }

  // Listeners shared by all sockets: a closure each would cost memory per idle connection.

  static #onData(this: OwnedSocket, chunk: Buffer): void {
    this[kConnection].#read(chunk)
  }

  static #onEnd(this: OwnedSocket): void {
    this[kConnection].#inputEnded()
  }

  static #onClose(this: OwnedSocket): void {
    this[kConnection].#transportClosed()
  }

  static #onDrain(this: OwnedSocket): void {
    const connection = this[kConnection]
    if (connection.#sender.onDrain() && connection.onDrain !== null) {
      connection.#call(connection.onDrain, undefined)
    }
  }

  static {
    openConnection = (owner, accepted) => new WebSocketConnection(owner, accepted)
    startReading = (connection, head) => connection.#start(head)
    keepAliveTick = (connection, slot, maxSilentIntervals) =>
      connection.#keepAliveTick(slot, maxSilentIntervals)
  }
}
