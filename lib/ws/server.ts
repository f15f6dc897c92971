import type { OutgoingHttpHeaders } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { abortListeners } from '../internal/abort.js'
import {
  type AttachableServer,
  type AttachOptions,
  attachTo,
  type PlainResponse,
} from './attach.js'
import {
  resolveConfig,
  type WebSocketServerConfig,
  type WebSocketServerSettings,
} from './config.js'
import { friend, type WebSocketConnection } from './connection.js'
import { type DeflateAgreement, Deflater, negotiateDeflate } from './deflate.js'
import {
  checkExtendedConnect,
  checkHandshake,
  chooseProtocol,
  type Handshake,
  originAllowed,
  type Refusal,
  type UpgradeRequest,
  upgradeRequired,
} from './handshake.js'
import type { ConnectionHome } from './connection-owner.js'
import { acceptUpgrade, headerFields, refusalBody, refuseUpgrade } from './upgrade-http1.js'
import { acceptConnect, refuseConnect } from './upgrade-http2.js'
import { KEEP_ALIVE_SLOTS, KeepAlive } from './keep-alive.js'
import { prepare, PreparedMessage } from './prepared-message.js'

/** What a client offers, and how long an answer is of use. */
export interface HandshakeOffer {
  /** Subprotocols in the client's order. One of them may be a credential: never log them. */
  readonly protocols: readonly string[]
  /** Aborts when the client goes away, the time is up, or the server closes. */
  readonly signal: AbortSignal
}

/** Lets a client in. */
export interface Admission<Context> {
  /** Becomes `connection.context`. */
  readonly context: Context
  /**
   * The subprotocol to select, which must be one offered; `null` selects none. Omitted: the first of
   * the server's `protocols` that was offered.
   */
  readonly protocol?: string | null | undefined
  /** Further header fields of the 101, such as Set-Cookie. */
  readonly headers?: OutgoingHttpHeaders | undefined
  /** `false` declines compression for this client. @defaultValue true */
  readonly deflate?: boolean | undefined
}

/** Options of a {@link WebSocketServer}. */
export interface WebSocketServerOptions<Context = undefined> extends WebSocketServerSettings {
  /**
   * Decides on a correct handshake from a permitted origin, before the 101. Answer with an
   * {@link Admission}, or with any HTTP status in a {@link Refusal}. Throwing is answered 500, and
   * more than `handshakeTimeoutMs` 503. Default: everybody is let in, with the context undefined.
   */
  readonly authorize?:
    | ((
        request: UpgradeRequest,
        offer: HandshakeOffer,
      ) => Admission<Context> | Refusal | Promise<Admission<Context> | Refusal>)
    | undefined
  /** Called with each new connection before any of its messages; the place to set handlers. */
  readonly onConnection?:
    | ((connection: WebSocketConnection<Context>, request: UpgradeRequest) => unknown)
    | undefined
  /**
   * Told what the program's own functions throw: `authorize`, `onConnection` and handlers.
   * Default: a process warning.
   */
  readonly onError?: ((error: unknown) => void) | undefined
  /** Closes the server when it aborts. */
  readonly signal?: AbortSignal | undefined
}

/** How one protocol version answers an opening handshake. */
interface Opening {
  readonly request: UpgradeRequest
  readonly socket: Duplex
  readonly head: Buffer
  accept(headers: OutgoingHttpHeaders): void
  refuse(refusal: Refusal): void
}

const EMPTY = Buffer.alloc(0)
const claimed: WeakSet<Duplex> = new WeakSet()

/**
 * A WebSocket server (RFC 6455) on top of any HTTP server of Node: it owns no port. Give it requests
 * to upgrade, one by one or by attaching it.
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
export class WebSocketServer<Context = undefined> implements AsyncDisposable {
  /** Every setting, resolved. */
  readonly config: WebSocketServerConfig
  readonly #options: WebSocketServerOptions<Context>
  readonly #connections: Set<WebSocketConnection<Context>> = new Set()
  readonly #home: ConnectionHome
  readonly #keepAlive: KeepAlive | null
  readonly #detach: Set<() => void> = new Set()
  readonly #closing: AbortController = new AbortController()
  #handshakes = 0
  #opened = 0
  #whenIdle: (() => void) | null = null
  #closed: Promise<void> | null = null

  /** @throws TypeError when an option is not what it should be. */
  constructor(options: WebSocketServerOptions<Context> = {}) {
    this.#options = { ...options }
    this.config = resolveConfig(options)
    this.#keepAlive =
      this.config.keepAlive === null
        ? null
        : new KeepAlive(this.config.keepAlive, this.#connections)
    this.#home = {
      config: this.config,
      onClosed: (connection) => {
        this.#connections.delete(connection as WebSocketConnection<Context>)
        this.#checkIdle()
      },
      onHandlerError: (error) => this.#report(error),
    }
    const { signal } = options
    if (signal?.aborted === true) void this.close()
    else if (signal !== undefined) {
      const close = (): void => void this.close()
      abortListeners(signal).add(close)
      // A signal that outlives this server must not hold it.
      abortListeners(this.#closing.signal).add(() => abortListeners(signal).delete(close))
    }
  }

  /** The connections whose transport is still there. */
  get connections(): ReadonlySet<WebSocketConnection<Context>> {
    return this.#connections
  }

  /**
   * Takes over one request from an 'upgrade' event, whatever its path: routing is the caller's. A
   * faulty or refused handshake is answered here.
   *
   * @returns the connection, or `null` when it was refused or the client went away. Never rejects
   * because of the client. A socket that was taken before stays with who has it: `onError` is told,
   * and the answer is `null`.
   */
  async upgrade(
    request: UpgradeRequest,
    socket: Duplex,
    head: Uint8Array = EMPTY,
  ): Promise<WebSocketConnection<Context> | null> {
    if (!this.#claim(socket)) return null
    tune(socket)
    return await this.#handshake(checkHandshake(request, this.config.maxHeaders), {
      request,
      socket,
      // The receiver unmasks in place, so it gets octets of its own.
      head: Buffer.from(head),
      accept: (headers) => acceptUpgrade(socket, headers),
      refuse: (refusal) =>
        refuseUpgrade(socket, refusal, request.method, this.config.closeTimeoutMs),
    })
  }

  /**
   * Takes over one extended CONNECT for the protocol `websocket` over HTTP/2 (RFC 8441), whatever
   * its path; else as {@link upgrade}.
   */
  async connect(
    request: UpgradeRequest,
    stream: ServerHttp2Stream,
  ): Promise<WebSocketConnection<Context> | null> {
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
   * Serves the upgrades of a `node:http`, `https` or `http2` server, on one path or on those a
   * function picks. Other paths stay with their own listeners; only when there is no other listener
   * at all are they answered here, so that no client is left hanging.
   *
   * @returns a function that takes the listeners off again.
   */
  attach(server: AttachableServer, options: AttachOptions = {}): () => void {
    const detach = attachTo(server, options, {
      upgrade: (request, socket, head) =>
        void this.upgrade(request, socket, head).catch((error) => this.#report(error)),
      connect: (request, stream) =>
        void this.connect(request, stream).catch((error) => this.#report(error)),
    })
    this.#detach.add(detach)
    return () => {
      this.#detach.delete(detach)
      detach()
    }
  }

  /** Answers a plain request for a path that only speaks WebSocket: 426 (RFC 6455, section 4.2.2). */
  requireUpgrade(response: PlainResponse): void {
    answerPlain(response, upgradeRequired('this resource speaks WebSocket only'))
  }

  /**
   * Sends one message to many connections, encoded once. All that is broadcast in one turn of the
   * event loop reaches each of them in one write.
   *
   * @param to - default: every connection of this server.
   * @returns how many took it.
   */
  broadcast(
    message: string | Uint8Array | PreparedMessage,
    to: Iterable<WebSocketConnection> = this.#connections,
  ): number {
    const prepared = message instanceof PreparedMessage ? message : prepare(message)
    let taken = 0
    for (const connection of to) {
      const result = connection.send(prepared)
      if (result === 'sent' || result === 'full') taken++
    }
    return taken
  }

  /**
   * Says 1001 to every connection, refuses new ones (503), and waits until all are gone, which takes
   * `closeTimeoutMs` at most. Then it detaches, and `close()` of the HTTP server can complete.
   */
  close(options: { readonly code?: number; readonly reason?: string } = {}): Promise<void> {
    return (this.#closed ??= this.#shutDown(options.code ?? 1001, options.reason ?? ''))
  }

  /** As {@link close}. */
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
    for (const detach of this.#detach) detach()
    this.#detach.clear()
  }

  #checkIdle(): void {
    if (this.#connections.size === 0 && this.#handshakes === 0) this.#whenIdle?.()
  }

  /** False when another has the socket: two handlers of one 'upgrade' event would answer twice. */
  #claim(socket: Duplex): boolean {
    if (claimed.has(socket)) {
      this.#report(new TypeError('this socket was already upgraded: route it once'))
      return false
    }
    claimed.add(socket)
    return true
  }

  #report(error: unknown): void {
    if (this.#options.onError !== undefined) this.#options.onError(error)
    else process.emitWarning(error instanceof Error ? error : String(error))
  }

  async #handshake(
    checked: Handshake | Refusal,
    opening: Opening,
  ): Promise<WebSocketConnection<Context> | null> {
    // Without a listener, a reset during `authorize` would be an uncaught error.
    opening.socket.on('error', ignore)
    this.#handshakes++
    try {
      const answer = this.#precheck(checked, opening.request)
      if (answer !== null) return this.#refuse(opening, answer)
      const handshake = checked as Handshake
      const admission = await this.#authorize(handshake, opening)
      if ('status' in admission) return this.#refuse(opening, checkRefusal(admission))
      if (this.#closing.signal.aborted) return this.#refuse(opening, unavailable())
      if (opening.socket.destroyed) return null
      return this.#open(handshake, admission, opening)
    } catch (error) {
      this.#report(error)
      return this.#refuse(opening, { status: 500 })
    } finally {
      this.#handshakes--
      this.#checkIdle()
    }
  }

  #refuse(opening: Opening, refusal: Refusal): null {
    if (opening.socket.destroyed) return null
    try {
      opening.refuse(refusal)
    } catch (error) {
      this.#report(error)
      opening.refuse({ status: 500 })
    }
    return null
  }

  /** The refusals that need no program: `null` when there is none. */
  #precheck(checked: Handshake | Refusal, request: UpgradeRequest): Refusal | null {
    if ('status' in checked) return checked
    const taken = this.#connections.size + this.#handshakes
    if (this.#closing.signal.aborted || taken > this.config.maxConnections) return unavailable()
    return originAllowed(request, this.config.origins) ? null : { status: 403 }
  }

  /** Asks the program, for as long as the answer is of use to anyone. */
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
        controller.signal.addEventListener('abort', () => resolve(unavailable()))
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
  ): WebSocketConnection<Context> {
    const protocol = selectProtocol(this.config.protocols, handshake, admission)
    const agreement = this.#agree(handshake, admission)
    opening.accept({
      ...admission.headers,
      ...(handshake.accept === null ? {} : { 'Sec-WebSocket-Accept': handshake.accept }),
      ...(protocol === null ? {} : { 'Sec-WebSocket-Protocol': protocol }),
      ...(agreement === null ? {} : { 'Sec-WebSocket-Extensions': agreement.response }),
    })
    const connection = friend.open(
      this.#home,
      opening.socket,
      admission.context,
      protocol ?? '',
      agreement === null ? null : new Deflater(agreement, this.config.deflate!),
      this.#opened++ % KEEP_ALIVE_SLOTS,
    )
    this.#connections.add(connection)
    this.#keepAlive?.start()
    this.#introduce(connection, opening.request)
    // Whoever awaits `upgrade` gets its turn before the first message.
    queueMicrotask(() => process.nextTick(friend.start, connection, opening.head))
    return connection
  }

  #agree(handshake: Handshake, admission: Admission<Context>): DeflateAgreement | null {
    if (this.config.deflate === null || admission.deflate === false) return null
    return negotiateDeflate(handshake.extensions, this.config.deflate)
  }

  #introduce(connection: WebSocketConnection<Context>, request: UpgradeRequest): void {
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

function unavailable(): Refusal {
  return { status: 503, headers: { 'Retry-After': '5' } }
}

/** A 2xx, or no status at all, would tell the client something that is not so. */
function checkRefusal(refusal: Refusal): Refusal {
  const { status } = refusal
  if (Number.isInteger(status) && status >= 300 && status <= 599) return refusal
  throw new TypeError(`authorize must refuse with a status from 300 to 599, got ${String(status)}`)
}

/** Small frames must not wait for each other, and the HTTP server's idle limit is over. */
function tune(socket: Duplex): void {
  const tcp = socket as Partial<Pick<Socket, 'setNoDelay' | 'setTimeout'>>
  tcp.setNoDelay?.(true)
  tcp.setTimeout?.(0)
}

/** Never one that was not offered (RFC 6455, section 4.2.2). */
function selectProtocol(
  served: readonly string[],
  { protocols }: Handshake,
  { protocol }: Admission<unknown>,
): string | null {
  if (protocol === undefined) return chooseProtocol(served, protocols)
  if (protocol === null || protocols.includes(protocol)) return protocol
  throw new TypeError('authorize selected a subprotocol that the client did not offer')
}

function answerPlain(response: PlainResponse, refusal: Refusal): void {
  const { octets, type } = refusalBody(refusal)
  response.statusCode = refusal.status
  for (const [name, value] of headerFields(refusal.headers ?? {})) response.setHeader(name, value)
  response.setHeader('Content-Type', type)
  response.end(octets)
}
