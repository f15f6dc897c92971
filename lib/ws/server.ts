import type { OutgoingHttpHeaders } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { abortListeners } from '../internal/time.js'
import { asError } from '../internal/errors.js'
import { checkOptions, describeValue, type OptionKinds } from '../internal/options.js'
import { type Admission, checkRefusal, type HandshakeOffer } from './admission.js'
import { selectProtocol, UNAVAILABLE } from './admission.js'
import { type AttachableServer, type AttachOptions, attachTo } from './attach.js'
import { checkCloseCode } from './close-codes.js'
import {
  resolveConfig,
  SETTINGS,
  type WebSocketServerConfig,
  type WebSocketServerSettings,
} from './config.js'
import type { ConnectionOwner } from './connection-owner.js'
import { openConnection, startReading, WebSocketConnection } from './connection.js'
import { newServerCounters, type RefusedCounters } from './counters.js'
import type { WebSocketServerCounters } from './counters.js'
import { type AcceptedOffer, Deflater, negotiateDeflate } from './deflate.js'
import {
  checkExtendedConnect,
  checkHandshake,
  type Handshake,
  upgradeRequired,
} from './handshake.js'
import type { UpgradeRequest } from './upgrade-request.js'
import { KeepAliveTimer } from './keep-alive.js'
import { ReceiverPool } from './receiver-pool.js'
import { originAllowed } from './origin.js'
import type { WebSocketBytes } from './payload.js'
import { prepare, PreparedMessage } from './prepared-message.js'
import { type PlainResponse, type Refusal, sendRefusal } from './refusal.js'
import { acceptUpgrade, refuseUpgrade } from './upgrade-http1.js'
import { acceptConnect, refuseConnect } from './upgrade-http2.js'

/** Options of a {@link WebSocketServer}. */
export interface WebSocketServerOptions<Context = undefined, Data = unknown>
  extends WebSocketServerSettings {
  /**
   * Decides on a valid handshake from an allowed origin, before the 101. Return an
   * {@link Admission}, or a {@link Refusal} with a status from 300 to 599. If it throws, the client
   * gets 500; after `handshakeTimeoutMs`, 503. Default: accepts every client, with the context
   * undefined.
   */
  readonly authorize?:
    | ((
        request: UpgradeRequest,
        offer: HandshakeOffer,
      ) => Admission<Context> | Refusal | Promise<Admission<Context> | Refusal>)
    | undefined
  /** Called with each new connection before any of its messages: set handlers here. */
  readonly onConnection?:
    | ((connection: WebSocketConnection<Context, Data>, request: UpgradeRequest) => unknown)
    | undefined
  /**
   * Called with whatever the program's own functions throw: `authorize`, `onConnection` and
   * handlers. Default: a process warning.
   */
  readonly onError?: ((error: unknown) => void) | undefined
  /** Closes the server when it aborts. */
  readonly signal?: AbortSignal | undefined
}

const OPTIONS: OptionKinds<WebSocketServerOptions> = {
  ...SETTINGS, authorize: 'function', onConnection: 'function', onError: 'function',
  signal: 'object',
}
const CLOSE: OptionKinds<{ code?: number; reason?: string; refusal?: Refusal }> = {
  code: 'number', reason: 'string', refusal: 'object',
}

/** An opening handshake, over HTTP/1.1 or HTTP/2. */
interface Opening {
  readonly request: UpgradeRequest
  readonly socket: Duplex
  readonly head: Buffer
  accept(headers: OutgoingHttpHeaders): void
  refuse(refusal: Refusal): void
}

const EMPTY = Buffer.alloc(0)
/** Sockets on which some server has started a handshake. */
const claimed: WeakSet<Duplex> = new WeakSet()

/**
 * A WebSocket server (RFC 6455) on top of any Node HTTP server: it owns no port. Attach it to a
 * server, or call `upgrade` with single requests.
 *
 * @example
 * ```ts
 * const sockets = new WebSocketServer({
 *   onConnection(connection) {
 *     connection.onMessage = (message) => connection.send(message)
 *   },
 * })
 * const server = createServer((request, response) => response.end('hello'))
 * sockets.attach(server, { path: '/echo' })
 * server.listen(8080)
 * ```
 */
export class WebSocketServer<Context = undefined, Data = unknown> implements AsyncDisposable {
  /** All settings, with defaults filled in. */
  readonly config: WebSocketServerConfig
  /** What has happened so far, for metrics. The numbers are live and cost nothing to read. */
  readonly counters: Readonly<WebSocketServerCounters>
  readonly #options: WebSocketServerOptions<Context, Data>
  readonly #connections: Set<WebSocketConnection<Context, Data>> = new Set()
  readonly #owner: ConnectionOwner<WebSocketConnection>
  readonly #keepAlive: KeepAliveTimer | null
  readonly #detachers: Set<() => void> = new Set()
  readonly #closing: AbortController = new AbortController()
  readonly #counters: WebSocketServerCounters = newServerCounters()
  #handshakes = 0
  #whenIdle: (() => void) | null = null
  #closed: Promise<void> | null = null
  /** The answer to upgrades that cannot be served now. */
  #unavailable: Refusal = UNAVAILABLE

  /** @throws TypeError for an invalid option. */
  constructor(options: WebSocketServerOptions<Context, Data> = {}) {
    checkOptions(options, OPTIONS, 'new WebSocketServer()')
    this.#options = { ...options }
    this.config = resolveConfig(options)
    this.counters = this.#counters
    this.#keepAlive =
      this.config.keepAlive === null
        ? null
        : new KeepAliveTimer(this.config.keepAlive, this.#connections)
    this.#owner = {
      role: 'server',
      config: this.config,
      counters: this.#counters,
      receivers: new ReceiverPool(this.config, 'server'),
      onClosed: (connection) => {
        this.#connections.delete(connection as WebSocketConnection<Context, Data>)
        this.#counters.connectionsOpen = this.#connections.size
        this.#checkIdle()
      },
      onHandlerError: (error) => this.#report(error),
    }
    const { signal } = options
    if (signal?.aborted === true) void this.close()
    else if (signal !== undefined) {
      const close = (): void => void this.close()
      abortListeners(signal).add(close)
      // A signal that outlives this server must not keep it in memory.
      abortListeners(this.#closing.signal).add(() => abortListeners(signal).delete(close))
    }
  }

  /** The connections that are not closed, including those in a closing handshake. */
  get connections(): ReadonlySet<WebSocketConnection<Context, Data>> {
    return this.#connections
  }

  /**
   * Takes over one request from an 'upgrade' event, whatever its path: routing is up to the caller.
   * An invalid or refused handshake is answered here.
   *
   * @returns the connection, or `null` if it was refused or the client disconnected. Never rejects
   * because of the client. If another call has taken the socket already, `onError` is called, and
   * the result is `null`.
   */
  async upgrade(
    request: UpgradeRequest,
    socket: Duplex,
    head: Uint8Array = EMPTY,
  ): Promise<WebSocketConnection<Context, Data> | null> {
    if (!this.#claim(socket)) return null
    tune(socket)
    return await this.#handshake(checkHandshake(request, this.config.maxHeaders), {
      request,
      socket,
      // The receiver unmasks in place, so it gets a copy.
      head: Buffer.from(head),
      accept: (headers) => acceptUpgrade(socket, headers),
      refuse: (refusal) =>
        refuseUpgrade(socket, refusal, request.method, this.config.closeTimeoutMs),
    })
  }

  /**
   * Takes over one extended CONNECT for the protocol `websocket` over HTTP/2 (RFC 8441), whatever
   * its path; otherwise like {@link upgrade}.
   */
  async connect(
    request: UpgradeRequest,
    stream: ServerHttp2Stream,
  ): Promise<WebSocketConnection<Context, Data> | null> {
    if (!this.#claim(stream)) return null
    return await this.#handshake(checkExtendedConnect(request, this.config.maxHeaders), {
      request,
      socket: stream,
      head: EMPTY,
      accept: (headers) => acceptConnect(stream, headers),
      refuse: (refusal) => refuseConnect(stream, refusal),
    })
  }

  /**
   * Serves the upgrades of a `node:http`, `https` or `http2` server, on one path or on the paths
   * that a function picks. Other paths are left to other listeners; only if the server has none
   * are they answered here, so that no client is left without a response.
   *
   * @returns a function that detaches the server.
   */
  attach(server: AttachableServer, options: AttachOptions = {}): () => void {
    const detach = attachTo(server, options, {
      upgrade: (request, socket, head) =>
        void this.upgrade(request, socket, head).catch((error) => this.#report(error)),
      connect: (request, stream) =>
        void this.connect(request, stream).catch((error) => this.#report(error)),
    })
    this.#detachers.add(detach)
    return () => {
      this.#detachers.delete(detach)
      detach()
    }
  }

  /** Answers a plain request for a WebSocket path with 426 (RFC 6455, section 4.2.2). */
  requireUpgrade(response: PlainResponse): void {
    sendRefusal(response, upgradeRequired())
  }

  /**
   * Sends one message to many connections, encoded once. All broadcasts of one turn of the event
   * loop go out in one write per connection.
   *
   * @param to - default: all connections of this server.
   * @returns how many connections accepted it (`sent` or `full`).
   * @throws TypeError for what is no message or no connection.
   */
  broadcast(
    message: string | WebSocketBytes | PreparedMessage,
    to: Iterable<WebSocketConnection> = this.#connections,
  ): number {
    const prepared = message instanceof PreparedMessage ? message : prepare(message)
    let accepted = 0
    for (const connection of to) {
      if (!(connection instanceof WebSocketConnection)) {
        throw new TypeError(`broadcast() needs connections, got ${describeValue(connection)}`)
      }
      const result = connection.send(prepared)
      if (result === 'sent' || result === 'full') accepted++
    }
    return accepted
  }

  /**
   * Closes every connection with 1001, refuses those that are being opened and new ones with
   * `refusal` (default: 503), and waits until all are gone, for `closeTimeoutMs` at most. Then
   * detaches, so that `close()` of the HTTP server can complete.
   *
   * @throws RangeError for a code that may not be sent, TypeError for another bad option; nothing
   * is closed then.
   */
  close(
    options: {
      readonly code?: number
      readonly reason?: string
      readonly refusal?: Refusal
    } = {},
  ): Promise<void> {
    checkOptions(options, CLOSE, 'close()')
    checkCloseCode(options.code ?? 1001)
    if (this.#closed === null) this.#unavailable = checkRefusal(options.refusal ?? UNAVAILABLE)
    return (this.#closed ??= this.#shutDown(options.code ?? 1001, options.reason ?? ''))
  }

  /** The same as {@link close}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #shutDown(code: number, reason: string): Promise<void> {
    this.#closing.abort()
    for (const connection of this.#connections) void connection.close(code, reason)
    await new Promise<void>((resolve) => {
      this.#whenIdle = resolve
      this.#checkIdle()
    })
    for (const detach of this.#detachers) detach()
    this.#detachers.clear()
  }

  #checkIdle(): void {
    if (this.#connections.size === 0 && this.#handshakes === 0) this.#whenIdle?.()
  }

  /** False if the socket is taken: two handlers of one 'upgrade' event would answer twice. */
  #claim(socket: Duplex): boolean {
    if (claimed.has(socket)) {
      this.#report(new TypeError('this socket was already upgraded: upgrade each request once'))
      return false
    }
    claimed.add(socket)
    return true
  }

  #report(error: unknown): void {
    if (this.#options.onError !== undefined) this.#options.onError(error)
    else process.emitWarning(asError(error))
  }

  async #handshake(
    checked: Handshake | Refusal,
    opening: Opening,
  ): Promise<WebSocketConnection<Context, Data> | null> {
    // Without a listener, a reset during `authorize` would be an uncaught error.
    opening.socket.on('error', ignore)
    this.#handshakes++
    try {
      const refusal = this.#precheck(checked, opening.request)
      if (refusal !== null) return this.#refuse(opening, ...refusal)
      const handshake = checked as Handshake
      const admission = await this.#authorize(handshake, opening)
      if ('status' in admission) {
        const reason = admission === this.#unavailable ? 'unavailable' : 'authorize'
        return this.#refuse(opening, checkRefusal(admission), reason)
      }
      const shut = this.#closing.signal.aborted || opening.socket.destroyed
      if (shut) return this.#refuse(opening, this.#unavailable, 'unavailable')
      return this.#open(handshake, admission, opening)
    } catch (error) {
      this.#report(error)
      return this.#refuse(opening, { status: 500 }, 'error')
    } finally {
      this.#handshakes--
      this.#checkIdle()
    }
  }

  #refuse(opening: Opening, refusal: Refusal, reason: keyof RefusedCounters): null {
    this.#counters.refused[opening.socket.destroyed ? 'gone' : reason]++
    if (opening.socket.destroyed) return null
    try {
      opening.refuse(refusal)
    } catch (error) {
      this.#report(error)
      opening.refuse({ status: 500 })
    }
    return null
  }

  /** All checks before `authorize`; `null` if they pass. */
  #precheck(
    checked: Handshake | Refusal,
    request: UpgradeRequest,
  ): [Refusal, keyof RefusedCounters] | null {
    if ('status' in checked) return [checked, 'handshake']
    const count = this.#connections.size + this.#handshakes
    if (this.#closing.signal.aborted || count > this.config.maxConnections) {
      return [this.#unavailable, 'unavailable']
    }
    return originAllowed(request, this.config.origins) ? null : [{ status: 403 }, 'origin']
  }

  /** Calls the program's `authorize`; 503 if the server closes, or the time is up. */
  async #authorize(
    { protocols }: Handshake,
    { request, socket }: Opening,
  ): Promise<Admission<Context> | Refusal> {
    const { authorize } = this.#options
    if (authorize === undefined) return { context: undefined as Context }
    const controller = new AbortController()
    const stop = (): void => controller.abort()
    const timer = setTimeout(stop, this.config.handshakeTimeoutMs)
    socket.once('close', stop)
    const closings = abortListeners(this.#closing.signal).add(stop)
    try {
      return await new Promise<Admission<Context> | Refusal>((resolve, reject) => {
        controller.signal.addEventListener('abort', () => resolve(this.#unavailable))
        Promise.resolve(authorize(request, { protocols, signal: controller.signal }))
          .then(resolve, reject)
      })
    } finally {
      clearTimeout(timer)
      socket.off('close', stop)
      closings.delete(stop)
    }
  }

  #open(
    handshake: Handshake,
    admission: Admission<Context>,
    opening: Opening,
  ): WebSocketConnection<Context, Data> {
    const protocol = selectProtocol(this.config.protocols, handshake, admission)
    const agreement = this.#agree(handshake, admission)
    opening.accept({
      ...admission.headers,
      ...(handshake.accept === null ? {} : { 'Sec-WebSocket-Accept': handshake.accept }),
      ...(protocol === null ? {} : { 'Sec-WebSocket-Protocol': protocol }),
      ...(agreement === null ? {} : { 'Sec-WebSocket-Extensions': agreement.response }),
    })
    const connection: WebSocketConnection<Context, Data> = openConnection(this.#owner, {
      socket: opening.socket,
      request: opening.request,
      context: admission.context,
      protocol: protocol ?? '',
      deflater: agreement === null ? null : new Deflater(agreement, this.config.deflate!),
    })
    this.#connections.add(connection)
    this.#counters.connectionsTotal++
    this.#counters.connectionsOpen = this.#connections.size
    this.#keepAlive?.start()
    this.#callOnConnection(connection, opening.request)
    // A caller that awaits `upgrade` must run before the first message is delivered.
    queueMicrotask(() => process.nextTick(startReading, connection, opening.head))
    return connection
  }

  #agree(handshake: Handshake, admission: Admission<Context>): AcceptedOffer | null {
    if (this.config.deflate === null || admission.deflate === false) return null
    return negotiateDeflate(handshake.extensions, this.config.deflate)
  }

  #callOnConnection(connection: WebSocketConnection<Context, Data>, request: UpgradeRequest): void {
    const failed = (error: unknown): void => {
      void connection.close(1011)
      this.#report(error)
    }
    try {
      const result = this.#options.onConnection?.(connection, request)
      if (result instanceof Promise) result.catch(failed)
    } catch (error) {
      failed(error)
    }
  }
}

const ignore = (): void => {}

/** No Nagle delay between small frames, and no idle timeout left over from the HTTP server. */
function tune(socket: Duplex): void {
  const tcp = socket as Partial<Pick<Socket, 'setNoDelay' | 'setTimeout'>>
  tcp.setNoDelay?.(true)
  tcp.setTimeout?.(0)
}
