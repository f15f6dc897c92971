import type { Duplex } from 'node:stream'
import { raceAbort } from '../internal/abort.js'
import { abort } from './cut-off.js'
import { checkCloseCode } from './close-codes.js'
import type { Deflater } from './deflate.js'
import {
  ConnectionLostError,
  HandlerError,
  SlowReaderError,
  type WebSocketError,
} from './errors.js'
import { type CloseInfo, Ending } from './close-state.js'
import { encodeClose, encodeFrame, encodeHeader, encodeText, Opcode, RSV1 } from './frame.js'
import type { ConnectionFriend, ConnectionHome } from './connection-owner.js'
import { Inbox } from './message-queue.js'
import { Inflater } from './inflater.js'
import { frameOf, PreparedMessage } from './prepared-message.js'
import { Receiver, type ReceiverEvents, type WebSocketMessage } from './receiver.js'
import { Sender, type SendResult } from './sender.js'

/*
 *   open ──close()──▶ closing ──both Close frames──▶ ending ──socket closed──▶ closed
 *     └──peer's Close, or a rule broken──────────────▶ ┘
 *
 * 1. At most one Close frame is sent, and nothing after it (RFC 6455, section 5.5.1).
 * 2. `onClose` runs once, whatever ends the connection, and nothing a peer does throws.
 * 3. The server ends the transport first, then reads on without looking until the peer has ended
 *    too: destroying a socket with unread input would reset it and could destroy the Close frame on
 *    its way (section 7.1.1). `closeTimeoutMs` bounds each wait.
 * 4. With an async iteration, the end waits until the program has taken every message before it and
 *    asks for more, so that its replies go out first; `closeTimeoutMs` bounds this too.
 */

/** Settings of one message. */
export interface SendOptions {
  /**
   * Under the policy `coalesce`: while the peer is slow, a message replaces an earlier one that has
   * the same key and still waits.
   */
  readonly key?: string | undefined
  /** `false` sends this one as it is even if compression was agreed on. @defaultValue true */
  readonly compress?: boolean | undefined
}

/** See {@link ConnectionFriend}. */
export let friend: ConnectionFriend

const EMPTY = Buffer.alloc(0)
const PING = encodeFrame(Opcode.PING, EMPTY)
/** Binary payloads from here on are written behind their header instead of being copied. */
const UNCOPIED_FROM = 16_384

const kConnection = Symbol('runwright.ws.connection')
type OwnedSocket = Duplex & { [kConnection]: WebSocketConnection }

let onData: (this: OwnedSocket, chunk: Buffer) => void
let onEnd: (this: OwnedSocket) => void
let onDrain: (this: OwnedSocket) => void
let onClose: (this: OwnedSocket) => void

const ignore = (): void => {}

/**
 * One WebSocket, server side. Made by a {@link WebSocketServer}.
 *
 * Read it by async iteration, or by setting `onMessage`; until one of the two happens, messages
 * wait (up to `receiveAheadBytes`, then reading pauses). Its methods never throw because of what
 * the peer does. `await using` closes it and waits.
 *
 * @example
 * ```ts
 * for await (const message of connection) {
 *   if (connection.send(message) === 'full') await connection.drained()
 * }
 * ```
 */
export class WebSocketConnection<Context = unknown> implements AsyncDisposable {
  /** What `authorize` returned for this connection. */
  readonly context: Context
  /** The subprotocol agreed on, or an empty string. */
  readonly protocol: string
  /** Called with the payload of each Pong. */
  onPong: ((payload: Buffer) => void) | null = null
  /** Called with the payload of each Ping, once it was answered. */
  onPing: ((payload: Buffer) => void) | null = null
  /** Called once a peer that `send` reported as `full` has caught up. */
  onDrain: (() => void) | null = null
  /** Called once, when the transport is gone. */
  onClose: ((info: CloseInfo) => void) | null = null

  readonly #home: ConnectionHome
  readonly #socket: Duplex
  readonly #receiver: Receiver<WebSocketConnection>
  readonly #sender: Sender
  readonly #deflater: Deflater | null
  #onMessage: ((message: WebSocketMessage) => unknown) | null = null
  #inbox: Inbox | null = null
  #iterated = false
  #held = false
  #state: 'open' | 'closing' | 'ending' | 'closed' = 'open'
  #closeSent = false
  readonly #slot: number
  #quietBeats = 0
  #ending: Ending | null = null

  private constructor(
    home: ConnectionHome,
    socket: Duplex,
    context: Context,
    protocol: string,
    deflater: Deflater | null,
    slot: number,
  ) {
    this.#home = home
    this.#slot = slot
    this.#socket = socket
    this.context = context
    this.protocol = protocol
    this.#deflater = deflater
    const { config } = home
    const inflater = deflater === null
      ? null
      : new Inflater(config.maxMessageBytes, deflater.agreement.clientContextTakeover)
    this.#receiver = new Receiver(this, WebSocketConnection.#events, config, inflater)
    this.#sender = new Sender(socket, config.backpressure)
  }

  /** `closing` begins with either Close frame; `closed` when the transport is gone. */
  get state(): 'open' | 'closing' | 'closed' {
    return this.#state === 'ending' ? 'closing' : this.#state
  }

  /** Octets handed to `send` that the operating system has not taken yet. */
  get bufferedAmount(): number {
    return this.#sender.bufferedAmount
  }

  /** Resolves when the transport is gone; never rejects. */
  get closed(): Promise<CloseInfo> {
    const ending = this.#end()
    if (ending.info !== null) return Promise.resolve(ending.info)
    return (ending.closed ??= new Promise((resolve) => {
      ending.resolve = resolve
    }))
  }

  /**
   * Called with each message, in order; messages that waited come at once. A handler that throws or
   * rejects ends the connection with 1011. Set it or iterate, not both.
   */
  get onMessage(): ((message: WebSocketMessage) => unknown) | null {
    return this.#onMessage
  }

  /** `null` makes messages wait again. */
  set onMessage(handler: ((message: WebSocketMessage) => unknown) | null) {
    this.#onMessage = handler
    if (handler === null || this.#inbox === null) return
    this.#inbox.drain((message) => this.#call(handler, message))
    this.#inbox = null
    this.#receiver.resume()
  }

  /**
   * Sends a message: text for a string, binary for octets. Large binary payloads are not copied:
   * leave them unchanged until `drained()`.
   */
  send(message: string | Uint8Array | PreparedMessage, options?: SendOptions): SendResult {
    if (this.#state !== 'open') return 'closed'
    const deflater = options?.compress === false ? null : this.#deflater
    if (message instanceof PreparedMessage) {
      return this.#submit(frameOf(message, deflater), null, options)
    }
    if (deflater !== null && deflater.wants(Buffer.byteLength(message))) {
      return this.#sendDeflated(deflater, message, options)
    }
    if (typeof message === 'string') return this.#submit(encodeText(message), null, options)
    if (message.length < UNCOPIED_FROM) {
      return this.#submit(encodeFrame(Opcode.BINARY, message), null, options)
    }
    const payload = Buffer.from(message.buffer, message.byteOffset, message.byteLength)
    return this.#submit(encodeHeader(Opcode.BINARY, payload.length), payload, options)
  }

  #sendDeflated(
    deflater: Deflater,
    message: string | Uint8Array,
    options: SendOptions | undefined,
  ): SendResult {
    const text = typeof message === 'string'
    const octets = deflater.compress(text ? Buffer.from(message) : message)
    const frame = encodeFrame(text ? Opcode.TEXT : Opcode.BINARY, octets, RSV1)
    return this.#submit(frame, null, options)
  }

  #submit(frame: Buffer, payload: Buffer | null, options: SendOptions | undefined): SendResult {
    const result = this.#sender.send(frame, payload, options?.key)
    if (result === 'closed') {
      const { limitBytes } = this.#home.config.backpressure
      this.#fail(new SlowReaderError(`the peer left ${limitBytes} octets unread`))
    }
    return result
  }

  /** Sends a Ping with up to 125 octets; the answer comes to `onPong`. */
  ping(payload: string | Uint8Array = EMPTY): SendResult {
    const octets = typeof payload === 'string' ? Buffer.from(payload) : payload
    if (octets.length > 125)
      throw new RangeError(`a ping has at most 125 octets, got ${octets.length}`)
    if (this.#state !== 'open') return 'closed'
    return this.#submit(encodeFrame(Opcode.PING, octets), null, undefined)
  }

  /**
   * Resolves true once everything sent has been taken by the operating system, at once if it has
   * been; false if the connection ends before that.
   *
   * @throws `signal.reason` when the signal aborts first.
   */
  async drained(options?: { readonly signal?: AbortSignal | undefined }): Promise<boolean> {
    options?.signal?.throwIfAborted()
    if (this.#state === 'closed') return false
    if (this.#sender.drained) return true
    const drained = this.#sender.whenDrained()
    return options?.signal === undefined ? drained : await raceAbort(drained, options.signal)
  }

  /**
   * Starts the closing handshake: what was sent before goes out first. Calling it again changes
   * nothing. A peer that does not answer within `closeTimeoutMs` is cut off.
   *
   * @param code - 1000 to 1003, 1007 to 1014, or 3000 to 4999. Default: 1000.
   * @param reason - cut to 123 octets of UTF-8 at a code point.
   * @returns how it ended, like {@link closed}.
   * @throws RangeError for a code that may not be sent.
   */
  close(code = 1000, reason: string | Uint8Array = ''): Promise<CloseInfo> {
    checkCloseCode(code)
    // An end that waits for the program to take its messages comes now, with its own code.
    this.#runDeferred()
    if (this.#state === 'open') {
      this.#sendClose(code, reason)
      this.#receiver.discard()
      this.#startTimer()
    }
    return this.closed
  }

  /** Cuts the connection off without a closing handshake: the peer sees 1006. */
  terminate(): void {
    if (this.#state !== 'closed') abort(this.#socket)
  }

  /**
   * The messages that come, until the connection ends. Leaving the loop discards what is still to
   * come; the connection stays open.
   *
   * @throws `signal.reason` from the loop when the signal aborts.
   */
  messages(options?: {
    readonly signal?: AbortSignal | undefined
  }): AsyncIterableIterator<WebSocketMessage, undefined> {
    this.#iterated = true
    const inbox = this.#inboxed()
    const iterator: AsyncIterableIterator<WebSocketMessage, undefined> = {
      next: () => inbox.take(options?.signal),
      return: () => {
        this.onMessage = ignore
        this.#goOn()
        return Promise.resolve({ done: true, value: undefined })
      },
      [Symbol.asyncIterator]: () => iterator,
    }
    return iterator
  }

  /** As {@link messages}. */
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
    held: (connection, held) => {
      connection.#held = held
      if (held) connection.#socket.pause()
      else connection.#socket.resume()
      if (!held && connection.#ending?.inputEnded === true) connection.#inputEnded()
    },
  }

  #read(chunk: Buffer): void {
    if (this.#state === 'ending') return
    this.#quietBeats = 0
    const mine = this.#sender.hold()
    this.#receiver.push(chunk)
    if (mine) this.#sender.release()
  }

  #deliver(message: WebSocketMessage): boolean {
    if (this.#state !== 'open') return true
    if (this.#onMessage === null) return this.#inboxed().push(message)
    this.#call(this.#onMessage, message)
    return true
  }

  #inboxed(): Inbox {
    this.#inbox ??= new Inbox(this.#home.config.receiveAheadBytes, () => this.#goOn())
    if (this.#state === 'closed') this.#inbox.end()
    return this.#inbox
  }

  /** The program took a message, or waits for one. */
  #goOn(): void {
    if (this.#held && (this.#inbox === null || this.#inbox.hasRoom)) this.#receiver.resume()
    if (this.#inbox === null || this.#inbox.awaited) this.#runDeferred()
  }

  #answerPing(payload: Buffer): void {
    if (this.#state !== 'open') return
    this.#sender.pong(encodeFrame(Opcode.PONG, payload))
    if (this.onPing !== null) this.#call(this.onPing, payload)
  }

  /** Calls one of the program's handlers; what it throws ends this connection, not the process. */
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
    this.#home.onHandlerError(cause)
  }

  // Closing (RFC 6455, section 7.1)

  #end(): Ending {
    return (this.#ending ??= new Ending())
  }

  #receivedClose(code: number | null, reason: string): void {
    const ending = this.#end()
    ending.peerCode = code ?? 1005
    ending.peerReason = reason
    if (this.#closeSent) return this.#endTransport()
    this.#whenTaken(() => {
      if (this.#state !== 'open') return
      this.#sendClose(code, '')
      this.#endTransport()
    })
  }

  /** Runs `end` once an iterating program has taken all messages before it; see invariant 4. */
  #whenTaken(end: () => void): void {
    const waits = this.#iterated && this.#onMessage === null && this.#state === 'open'
    if (!waits || this.#inboxed().awaited) return end()
    this.#end().deferred = end
    this.#startTimer()
  }

  /** Fails the connection: a Close frame, then nothing is read any more (section 7.1.7). */
  #fail(error: WebSocketError): void {
    if (this.#state === 'ending' || this.#state === 'closed') return
    this.#end().error ??= error
    this.#receiver.destroy()
    if (!this.#closeSent) this.#sendClose(error.closeCode, error.message)
    this.#endTransport()
  }

  #sendClose(code: number | null, reason: string | Uint8Array): void {
    this.#state = 'closing'
    this.#closeSent = true
    this.#sender.push(encodeClose(code, reason))
  }

  #endTransport(): void {
    this.#state = 'ending'
    this.#receiver.destroy()
    this.#sender.flush()
    this.#socket.end()
    this.#socket.resume()
    this.#startTimer()
  }

  #startTimer(): void {
    const ending = this.#end()
    clearTimeout(ending.timer)
    ending.timer = setTimeout(() => this.#timedOut(), this.#home.config.closeTimeoutMs)
    ending.timer.unref()
  }

  #timedOut(): void {
    if (!this.#runDeferred()) abort(this.#socket)
  }

  #runDeferred(): boolean {
    const deferred = this.#ending?.deferred ?? null
    if (deferred === null) return false
    this.#ending!.deferred = null
    deferred()
    return true
  }

  /** The peer has ended its side; what came before that is still handled. */
  #inputEnded(): void {
    const ending = this.#end()
    ending.inputEnded = true
    if (this.#held || this.#state === 'ending') return
    if (ending.peerCode !== null || ending.deferred !== null) return
    this.#whenTaken(() => {
      if (this.#state === 'ending' || this.#state === 'closed') return
      ending.error ??= new ConnectionLostError('the peer ended the transport without a Close frame')
      this.#endTransport()
    })
  }

  #transportClosed(): void {
    if (this.#state === 'closed') return
    const ending = this.#end()
    this.#state = 'closed'
    clearTimeout(ending.timer)
    ending.deferred = null
    this.#receiver.destroy()
    this.#sender.destroy()
    this.#deflater?.destroy()
    this.#inbox?.end()
    const info = ending.finish(this.#closeSent)
    this.#home.onClosed(this as WebSocketConnection)
    if (this.onClose !== null) this.#call(this.onClose, info)
  }

  // The server's side

  #start(head: Buffer): void {
    if (this.#state === 'closed') return
    if (head.length > 0) this.#read(head)
    this.#socket.on('data', onData)
    this.#socket.on('end', onEnd)
    if (this.#held) this.#socket.pause()
    else this.#socket.resume()
  }

  #beat(slot: number, patience: number): void {
    if (this.#slot !== slot || this.#state !== 'open') return
    // While this side does not read, silence says nothing about the peer.
    if (!this.#held && ++this.#quietBeats > patience) {
      this.#end().error = new ConnectionLostError('the peer gave no sign of life')
      abort(this.#socket)
    } else if (this.#sender.drained) this.#sender.push(PING)
  }

  static {
    friend = {
      open(home, socket, context, protocol, deflater, slot) {
        const connection = new WebSocketConnection(
          home, socket, context, protocol, deflater, slot,
        )
        ;(socket as OwnedSocket)[kConnection] = connection as WebSocketConnection
        socket.on('close', onClose)
        socket.on('drain', onDrain)
        return connection
      },
      start: (connection, head) => connection.#start(head),
      beat: (connection, slot, patience) => connection.#beat(slot, patience),
    }
    // Shared by all sockets: a closure each would cost every connection at rest.
    onData = function (chunk) {
      this[kConnection].#read(chunk)
    }
    onEnd = function () {
      this[kConnection].#inputEnded()
    }
    onClose = function () {
      this[kConnection].#transportClosed()
    }
    onDrain = function () {
      const connection = this[kConnection]
      if (connection.#sender.onDrain() && connection.onDrain !== null) {
        connection.#call(connection.onDrain, undefined)
      }
    }
  }
}
