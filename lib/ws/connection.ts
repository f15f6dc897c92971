import type { Duplex } from 'node:stream'
import { raceAbort } from '../internal/time.js'
import { checkOptions, describeValue, type OptionKinds } from '../internal/options.js'
import { checkCloseCode } from './close-codes.js'
import { type CloseInfo, Closing } from './closing.js'
import type { AcceptedHandshake, ConnectionOwner } from './connection-owner.js'
import { ConnectionLostError, HandlerError, SlowReaderError } from './errors.js'
import {
  checkStream,
  FragmentedMessage,
  type MessageSource,
  type SendStreamOptions,
} from './fragments.js'
import { encodeClose, encodeFrame, MAX_CONTROL_BYTES, Opcode } from './frame.js'
import type { UpgradeRequest } from './upgrade-request.js'
import { Inbox, type InboxEvents, MessageIterator } from './inbox.js'
import { Inflater } from './inflater.js'
import { toBytes, type WebSocketBytes } from './payload.js'
import { PreparedMessage } from './prepared-message.js'
import { Receiver, type ReceiverEvents, type WebSocketMessage } from './receiver.js'
import { addressOf, packRequest, unpackRequest } from './request-copy.js'
import { checkSendOptions, Sender, type SendOptions, type SendResult } from './sender.js'

const WAIT: OptionKinds<{ signal?: AbortSignal }> = { signal: 'object' }

// For server and client only: functions, because methods would be public.

export let openConnection: <Context, Data>(
  owner: Owner,
  accepted: AcceptedHandshake<Context>,
) => WebSocketConnection<Context, Data>
/** Starts reading; `head` is what followed the opening handshake in the same chunk. */
export let startReading: (connection: WebSocketConnection, head: Buffer) => void
/** Pings the peer; gives it up after `maxSilentIntervals` in silence. */
export let keepAliveTick: (connection: WebSocketConnection, maxSilentIntervals: number) => void

type Owner = ConnectionOwner<WebSocketConnection>

const EMPTY = Buffer.alloc(0)
const PING = encodeFrame(Opcode.PING, EMPTY)

const kConnection = Symbol('runwright.ws.connection')
type OwnedSocket = Duplex & { [kConnection]: WebSocketConnection }

let lastId = 0
/** Connections whose request the program has read, so that it must stay the same object. */
const requestsInUse: WeakSet<WebSocketConnection> = new WeakSet()

/** The handler after the program has left its loop. */
const discard = (): void => {}

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
export class WebSocketConnection<Context = unknown, Data = unknown> implements AsyncDisposable {
  /** A number that no other connection of this process has. */
  readonly id: number = ++lastId
  /** On a server, what `authorize` returned; on a client, the server's {@link OpeningResponse}. */
  readonly context: Context
  /** The subprotocol agreed on, or an empty string. */
  readonly protocol: string
  /** Whatever the program keeps with this connection; undefined until it is set. */
  data: Data | undefined = undefined
  /** Called with the payload of each Pong. */
  onPong: ((payload: Buffer) => void) | null = null
  /** Called with the payload of each Ping, after the Pong was queued. */
  onPing: ((payload: Buffer) => void) | null = null
  /** Called each time a peer for which `send` returned `full` has caught up. */
  onDrain: (() => void) | null = null
  /** Called once, when the transport is gone. */
  onClose: ((info: CloseInfo) => void) | null = null

  readonly #owner: Owner
  readonly #socket: Duplex
  /** Null while no frame or message has begun; `#controls` is then what it has to know. */
  #receiver: Receiver<WebSocketConnection> | null = null
  #controls = 0
  readonly #sender: Sender
  /** The opening request; in one string if the program did not read it in time. */
  #request: UpgradeRequest | string
  #onMessage: ((message: WebSocketMessage) => unknown) | null = null
  /** Exists while messages are iterated or nothing takes them. */
  #inbox: Inbox<WebSocketConnection> | null = null
  #owesDrain = false
  #silentIntervals = 0
  /** Exists once the connection ends, or the program waits for its end. */
  #closing: Closing | null = null

  private constructor(owner: Owner, accepted: AcceptedHandshake<Context>) {
    if (accepted?.socket === undefined) {
      throw new TypeError(
        'connections are made by the upgrade() of a WebSocketServer or the connect() of a ' +
          'WebSocketClient',
      )
    }
    const { config } = owner
    const { socket, deflater } = accepted
    this.#owner = owner
    this.#socket = socket
    this.#request = accepted.request
    this.context = accepted.context
    this.protocol = accepted.protocol
    if (deflater !== null) {
      const inflater = new Inflater(config.maxMessageBytes, deflater.agreement.peerContextTakeover)
      const events = WebSocketConnection.#events
      this.#receiver = owner.receivers.create(this as WebSocketConnection, events, inflater)
    }
    this.#sender = new Sender(socket, owner, deflater)
    ;(socket as OwnedSocket)[kConnection] = this as WebSocketConnection
    socket.on('close', WebSocketConnection.#onClose)
  }

  /** `closing` from the first Close frame of either side; `closed` when the transport is gone. */
  get state(): 'open' | 'closing' | 'closed' {
    const state = this.#closing?.state ?? 'open'
    return state === 'ending' ? 'closing' : state
  }

  /**
   * The request that opened the connection. On a client, the fields that it has sent; on a server,
   * the object that `authorize` and `onConnection` get if it is read before `onConnection` returns,
   * otherwise an equal one: to keep the `IncomingMessage` would take a third more memory for each
   * idle connection.
   */
  get request(): UpgradeRequest {
    if (typeof this.#request !== 'string') requestsInUse.add(this as WebSocketConnection)
    else this.#request = unpackRequest(this.#request, this.#socket)
    return this.#request
  }

  /**
   * The peer's IP address; undefined where the transport has none, and after the end of a transport
   * that was lost before anybody asked for it.
   */
  get remoteAddress(): string | undefined {
    return addressOf(this.#socket)
  }

  /** Bytes passed to `send` that the operating system has not taken yet. */
  get bufferedAmount(): number {
    return this.#sender.bufferedAmount
  }

  /** Resolves when the transport is gone; never rejects. */
  get closed(): Promise<CloseInfo> {
    return this.#ownClosing().closed
  }

  /**
   * Called with each message, in order; messages that wait are delivered when it is set. Calls
   * never nest: a handler set by a handler gets the next message, after the present call. With
   * `null` messages wait again, for the next reader. A handler that throws or rejects ends the
   * connection with 1011. Set it or iterate: it ends iterations, and an iteration replaces it.
   *
   * @throws TypeError for anything but a function or `null`.
   */
  get onMessage(): ((message: WebSocketMessage) => unknown) | null {
    return this.#onMessage === discard ? null : this.#onMessage
  }

  /** `null` makes messages wait again. */
  set onMessage(handler: ((message: WebSocketMessage) => unknown) | null) {
    if (handler != null && typeof handler !== 'function') {
      throw new TypeError(`onMessage must be a function or null, got ${describeValue(handler)}`)
    }
    this.#onMessage = handler ?? null
    if (this.#inbox === null || this.#onMessage === null) return
    if (this.#inbox.iterated) this.#inbox = this.#inbox.handOver()
    this.#drain(this.#inbox)
  }

  /**
   * Sends a string as text, bytes of any kind as binary. Binary payloads of 16 KiB and more are not
   * copied: leave them unchanged until `drained()`.
   *
   * @throws TypeError for anything else.
   */
  send(message: string | WebSocketBytes | PreparedMessage, options?: SendOptions): SendResult {
    if (this.#open) {
      return this.#accepted(this.#sender.sendMessage(message, options))
    }
    if (options !== undefined) checkSendOptions(options)
    const isKnown = typeof message === 'string' || message instanceof PreparedMessage
    if (!isKnown) toBytes(message, 'a message')
    return 'closed'
  }

  /**
   * Sends one message in fragments, one for each piece of an (async) iterable, which is asked for
   * the next one when the peer has room. Later messages wait until it is complete, and `close()`
   * too; pings and pongs go in between. All pieces are strings, or all are bytes. A source without
   * a piece sends nothing.
   *
   * If the source fails or the signal aborts after the first piece, the message cannot be completed
   * and the connection ends with 1011.
   *
   * @returns `sent` or `full` when the last fragment is on its way, `dropped` if there was none,
   * `closed` if the connection ended before.
   * @throws whatever the source throws, `signal.reason`, or TypeError for a piece of another type.
   */
  async sendStream(source: MessageSource, options: SendStreamOptions = {}): Promise<SendResult> {
    checkStream(source, options)
    if (!this.#open) return 'closed'
    const message = new FragmentedMessage(this.#sender, options)
    try {
      return this.#accepted(await message.send(source))
    } catch (cause) {
      if (message.incomplete) {
        this.#ownClosing().fail(new HandlerError('the source of a message failed', { cause }))
      }
      throw cause
    }
  }

  /**
   * Sends a Ping with up to 125 bytes; the Pong is passed to `onPong`. While another one waits for
   * a slow peer it is `dropped`.
   *
   * @throws RangeError for more bytes, TypeError for anything but a string or bytes.
   */
  ping(payload: string | WebSocketBytes = EMPTY): SendResult {
    const bytes = typeof payload === 'string' ? Buffer.from(payload) : toBytes(payload, 'a ping')
    if (bytes.length > MAX_CONTROL_BYTES) {
      throw new RangeError(`a ping has at most ${MAX_CONTROL_BYTES} bytes, got ${bytes.length}`)
    }
    if (!this.#open) return 'closed'
    return this.#accepted(this.#sender.ping(encodeFrame(Opcode.PING, bytes)))
  }

  #accepted(result: SendResult): SendResult {
    if (result === 'full' && !this.#owesDrain) {
      this.#owesDrain = true
      this.#sender.onceDrained((drained) => {
        this.#owesDrain = false
        if (drained && this.onDrain !== null) this.#call(this.onDrain, undefined)
      })
    } else if (result === 'closed' && this.#open) {
      const { limitBytes } = this.#owner.config.backpressure
      this.#owner.counters.slowReaders++
      this.#ownClosing().fail(new SlowReaderError(`the peer left ${limitBytes} bytes unread`))
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
    if (this.state === 'closed') return false
    if (this.#sender.drained) return true
    const drained = new Promise<boolean>((resolve) => this.#sender.onceDrained(resolve))
    return options?.signal === undefined ? drained : await raceAbort(drained, options.signal)
  }

  /**
   * Starts the closing handshake, after everything sent before. Calling it again has no effect. If
   * the peer does not answer within `closeTimeoutMs`, the transport is destroyed.
   *
   * @param code - 1000 to 1003, 1007 to 1014, or 3000 to 4999. Default: 1000.
   * @param reason - at most 123 bytes of UTF-8; a longer one is cut at a code point.
   * @returns how the connection ended, like {@link closed}.
   * @throws RangeError for a code that may not be sent, TypeError for a reason of another type.
   */
  close(code = 1000, reason: string | WebSocketBytes = ''): Promise<CloseInfo> {
    checkCloseCode(code)
    const frame = encodeClose(code, reason)
    this.#ownClosing().close(frame)
    return this.closed
  }

  /** Destroys the transport without a closing handshake: the peer sees 1006. */
  terminate(): void {
    this.#ownClosing().terminate()
  }

  /**
   * The messages until the connection ends. Leaving the loop discards the messages until the next
   * reader; the connection stays open. Iterations that run at the same time share the messages:
   * each goes to the `next()` that was called first.
   *
   * @throws `signal.reason` from the loop when the signal aborts; messages then wait for the next
   * reader.
   */
  messages(options?: {
    readonly signal?: AbortSignal | undefined
  }): AsyncIterableIterator<WebSocketMessage, undefined> {
    checkOptions(options ?? {}, WAIT, 'messages()')
    const iterator = new MessageIterator(this.#ownInbox() as Inbox, options?.signal)
    this.#onMessage = null
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
    close: (connection, code, reason) => connection.#ownClosing().receivedClose(code, reason),
    failed: (connection, error) => connection.#ownClosing().received(error),
    paused: (connection, paused) => {
      if (paused) connection.#socket.pause()
      else connection.#socket.resume()
      if (!paused) connection.#closing?.inputTaken()
    },
  }

  static readonly #inboxEvents: InboxEvents<WebSocketConnection> = {
    changed: (connection) => connection.#inboxChanged(),
    left: (connection) => (connection.onMessage = discard),
  }

  #read(chunk: Buffer): void {
    if (this.#closing?.state === 'ending') return
    this.#silentIntervals = 0
    this.#owner.counters.bytesReceived += chunk.length
    const corked = this.#sender.cork()
    const receiver = this.#ownReceiver()
    const waited = this.#inbox?.awaited === true
    receiver.push(chunk)
    // Before the replies go out: a transport in memory may bring an answer within the write.
    if (this.#closing === null && receiver.atRest) {
      this.#receiver = null
      this.#controls = receiver.controls
      this.#owner.receivers.give(receiver)
    }
    if (!corked) return
    // The one message of this chunk went to an iteration, which replies in a promise job.
    if (waited && this.#inbox?.awaited === false && this.#inbox.empty) this.#sender.uncorkLater()
    else this.#sender.uncork()
  }

  #ownReceiver(): Receiver<WebSocketConnection> {
    const [self, events] = [this as WebSocketConnection, WebSocketConnection.#events]
    return (this.#receiver ??= this.#owner.receivers.take(self, events, this.#controls))
  }

  #deliver(message: WebSocketMessage): boolean {
    if (!this.#open) return true
    this.#owner.counters.messagesReceived++
    const inbox = this.#inbox
    if (this.#onMessage !== null && (inbox === null || inbox.empty)) {
      this.#call(this.#onMessage, message)
      return true
    }
    return this.#ownInbox().push(message)
  }

  #ownInbox(): Inbox<WebSocketConnection> {
    this.#inbox ??= new Inbox<WebSocketConnection>(
      this as WebSocketConnection,
      WebSocketConnection.#inboxEvents,
      this.#owner.config,
    )
    if (this.state === 'closed') this.#inbox.end()
    return this.#inbox
  }

  /** Passes the messages that wait to the handler, until it is removed or ends the connection. */
  #drain(inbox: Inbox<WebSocketConnection>): void {
    if (inbox.draining) return
    inbox.draining = true
    const wasOpen = this.#open
    while (this.#onMessage !== null && this.#inbox === inbox && !inbox.empty) {
      if (wasOpen && !this.#open) break
      this.#call(this.#onMessage, inbox.shift()!)
    }
    inbox.draining = false
    if (this.#inbox !== inbox) return
    if (inbox.empty && this.#onMessage !== null) this.#inbox = null
    this.#inboxChanged()
  }

  /** There may be room again; the program may wait for a message, or have stopped iterating. */
  #inboxChanged(): void {
    const inbox = this.#inbox
    if (inbox === null || inbox.hasRoom) this.#receiver?.resume()
    if (inbox === null || inbox.awaited || !inbox.iterated) this.#closing?.runDeferred()
  }

  #answerPing(payload: Buffer): void {
    if (!this.#open) return
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
    if (this.#open) this.#ownClosing().fail(new HandlerError('a handler failed', { cause }))
    this.#owner.onHandlerError(cause)
  }

  get #open(): boolean {
    return this.#closing === null || this.#closing.state === 'open'
  }

  #ownClosing(): Closing {
    if (this.#closing !== null) return this.#closing
    void this.remoteAddress // from here on the socket remembers it
    return (this.#closing = new Closing({
      role: this.#owner.role,
      closeTimeoutMs: this.#owner.config.closeTimeoutMs,
      socket: this.#socket,
      sender: this.#sender,
      receiver: this.#ownReceiver(),
      behind: () => this.#inbox !== null && this.#inbox.iterated && !this.#inbox.awaited,
      gone: (info) => {
        this.#inbox?.end()
        this.#owner.onClosed(this as WebSocketConnection)
        if (this.onClose !== null) this.#call(this.onClose, info)
      },
    }))
  }

  // Called by the server and the socket

  #start(head: Buffer): void {
    const inUse = requestsInUse.has(this as WebSocketConnection)
    if (!inUse && typeof this.#request !== 'string') this.#request = packRequest(this.#request)
    if (this.state === 'closed') return
    if (head.length > 0) this.#read(head)
    this.#socket.on('data', WebSocketConnection.#onData)
    this.#socket.on('end', WebSocketConnection.#onEnd)
    if (this.#receiver?.paused === true) this.#socket.pause()
    else this.#socket.resume()
  }

  #keepAliveTick(maxSilentIntervals: number): void {
    if (!this.#open) return
    const { counters } = this.#owner
    // While this side does not read, silence says nothing about the peer.
    const reads = this.#receiver?.paused !== true
    if (reads && this.#silentIntervals++ > 0) counters.pingsUnanswered++
    if (reads && this.#silentIntervals > maxSilentIntervals) {
      counters.peersLost++
      const error = new ConnectionLostError('the peer sent nothing for too long')
      this.#ownClosing().terminate(error)
    } else if (this.#sender.idle) {
      counters.pingsSent++
      this.#sender.push(PING)
    }
  }

  // Listeners shared by all sockets: a closure each would cost memory per idle connection.

  static #onData(this: OwnedSocket, chunk: Buffer): void {
    this[kConnection].#read(chunk)
  }

  static #onEnd(this: OwnedSocket): void {
    this[kConnection].#ownClosing().inputEnded()
  }

  static #onClose(this: OwnedSocket): void {
    this[kConnection].#ownClosing().transportClosed()
  }

  static {
    openConnection = (owner, accepted) => new WebSocketConnection(owner, accepted)
    startReading = (connection, head) => connection.#start(head)
    keepAliveTick = (connection, max) => connection.#keepAliveTick(max)
  }
}
