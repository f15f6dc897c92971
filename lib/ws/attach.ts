import type { EventEmitter } from 'node:events'
import type { IncomingMessage, Server as HttpServer } from 'node:http'
import type {
  Http2SecureServer,
  Http2Server,
  IncomingHttpHeaders,
  ServerHttp2Stream,
} from 'node:http2'
import type { Server as HttpsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { checkOptions, describeValue, type OptionKinds } from '../internal/options.js'
import { asksForWebSocket, upgradeRequired } from './handshake.js'
import type { UpgradeRequest } from './upgrade-request.js'
import { type PlainResponse, sendRefusal } from './refusal.js'
import { refuseUpgrade } from './upgrade-http1.js'
import { refuseConnect, requestOf } from './upgrade-http2.js'

/** Any Node HTTP server; for WebSockets over HTTP/2 also set {@link AttachOptions.http2}. */
export type AttachableServer = HttpServer | HttpsServer | Http2Server | Http2SecureServer

/** Which requests of an HTTP server go to the WebSocket server. */
export interface AttachOptions {
  /** The path, without query, or a function that picks paths. Default: every path. */
  readonly path?: string | ((path: string, request: UpgradeRequest) => boolean) | undefined
  /**
   * Also serves extended CONNECT over HTTP/2, and advertises it (RFC 8441). Has an effect only on a
   * server of `node:http2`. @defaultValue false
   */
  readonly http2?: boolean | undefined
}

const OPTIONS: OptionKinds<AttachOptions> = { path: 'any', http2: 'boolean' }

/** The WebSocket server, as far as its routes need it. */
interface Target {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  connect(request: UpgradeRequest, stream: ServerHttp2Stream): void
}

interface Route {
  readonly target: Target
  readonly http2: boolean
  matches(request: UpgradeRequest): boolean
}

type ShouldUpgrade = (request: IncomingMessage) => boolean

/** Node 22 and later call this for each request that offers another protocol. */
interface HasShouldUpgrade {
  shouldUpgradeCallback: ShouldUpgrade
}

/** How long a refused client may take to disconnect. */
const LINGER_MS = 5_000

const routers: WeakMap<EventEmitter, UpgradeRouter> = new WeakMap()

/** Adds a route to `target`; returns a function that removes it. */
export function attachTo(
  server: AttachableServer,
  options: AttachOptions,
  target: Target,
): () => void {
  checkOptions(options, OPTIONS, 'attach()')
  const { path, http2 = false } = options
  if (path !== undefined && typeof path !== 'string' && typeof path !== 'function') {
    throw new TypeError(`path must be a string or a function, got ${describeValue(path)}`)
  }
  const route: Route = {
    target,
    http2,
    matches(request) {
      if (path === undefined) return true
      const requested = pathOf(request)
      return typeof path === 'string' ? path === requested : path(requested, request)
    },
  }
  checkServer(server)
  let router = routers.get(server)
  if (router === undefined) {
    router = new UpgradeRouter(server)
    routers.set(server, router)
  }
  return router.add(route)
}

/** An application in place of its server would attach without an error, and never be called. */
function checkServer(server: Partial<AttachableServer> | null | undefined): void {
  const isServer = typeof server === 'object' && typeof server?.address === 'function'
  if (isServer && typeof server.prependListener === 'function') return
  throw new TypeError(
    `attach() needs a server of node:http, https or http2, got ${describeValue(server)}: pass ` +
      'createServer(app) for Express, createServer(app.callback()) for Koa, app.server for ' +
      'Fastify, and what serve() returns for Hono',
  )
}

function pathOf(request: UpgradeRequest): string {
  return (request.url ?? '').split('?', 1)[0]!
}

/**
 * The listeners of one HTTP server, shared by all WebSocket servers attached to it. A request goes
 * to the first route that matches. One without a route is left to the program's own listeners; if
 * there are none, it would never be answered, so it is answered here.
 */
class UpgradeRouter {
  readonly #server: AttachableServer
  readonly #routes: Route[] = []
  /** Our `shouldUpgradeCallback`; null while not installed, and always in Node 20. */
  #shouldUpgrade: ShouldUpgrade | null = null
  #originalShouldUpgrade: ShouldUpgrade | null = null
  readonly #seen: WeakSet<ServerHttp2Stream> = new WeakSet()

  constructor(server: AttachableServer) {
    this.#server = server
  }

  add(route: Route): () => void {
    const events: EventEmitter = this.#server
    if (this.#routes.length === 0) {
      // Before existing listeners: one of them may refuse every path but its own.
      events.prependListener('upgrade', this.#onUpgrade)
      this.#ignoreOtherOffers(this.#server)
      if (!isHttp2(this.#server)) events.on('request', this.#onRequest)
    }
    if (route.http2 && isHttp2(this.#server) && !this.#servesHttp2) {
      this.#server.updateSettings({ enableConnectProtocol: true })
      events.on('stream', this.#onStream)
      events.on('connect', this.#onConnect)
    }
    this.#routes.push(route)
    return () => this.#remove(route)
  }

  get #servesHttp2(): boolean {
    return this.#routes.some(({ http2 }) => http2)
  }

  #remove(route: Route): void {
    const index = this.#routes.indexOf(route)
    if (index === -1) return
    this.#routes.splice(index, 1)
    const events: EventEmitter = this.#server
    if (this.#routes.length === 0) {
      events.off('upgrade', this.#onUpgrade)
      events.off('request', this.#onRequest)
      this.#restoreShouldUpgrade(this.#server)
    }
    if (this.#servesHttp2) return
    events.off('stream', this.#onStream)
    events.off('connect', this.#onConnect)
  }

  /**
   * An offer of a protocol other than WebSocket, such as `Upgrade: h2c`, may be ignored (RFC 9110,
   * section 7.8): without another listener it is a plain request. Node 20 has no callback and
   * detaches the socket instead; see {@link serveWithoutUpgrade}.
   */
  #ignoreOtherOffers(server: AttachableServer & Partial<HasShouldUpgrade>): void {
    const original = server.shouldUpgradeCallback
    if (original === undefined) return
    const shouldUpgrade: ShouldUpgrade = (request) =>
      (asksForWebSocket(request) || this.#count('upgrade') > 1) && original.call(server, request)
    server.shouldUpgradeCallback = this.#shouldUpgrade = shouldUpgrade
    this.#originalShouldUpgrade = original
  }

  #restoreShouldUpgrade(server: AttachableServer & Partial<HasShouldUpgrade>): void {
    const original = this.#originalShouldUpgrade
    if (original !== null && server.shouldUpgradeCallback === this.#shouldUpgrade) {
      server.shouldUpgradeCallback = original
    }
    this.#shouldUpgrade = this.#originalShouldUpgrade = null
  }

  #count(event: string): number {
    return (this.#server as EventEmitter).listenerCount(event)
  }

  readonly #onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const isWebSocket = asksForWebSocket(request)
    const route = isWebSocket ? this.#routes.find((one) => one.matches(request)) : undefined
    const hasOthers = this.#count('upgrade') > 1
    if (route !== undefined) {
      if (!hasOthers) return route.target.upgrade(request, socket, head)
      return shieldFromOthers(socket, () => route.target.upgrade(request, socket, head))
    }
    if (hasOthers) return
    if (isWebSocket) {
      socket.on('error', () => {})
      refuseUpgrade(socket, { status: 404 }, request.method, LINGER_MS)
    } else serveWithoutUpgrade(this.#server, request, socket, head)
  }

  /** Answers a plain request if the program has no listener for them. */
  readonly #onRequest = (request: IncomingMessage, response: PlainResponse): void => {
    if (this.#count('request') > 1) return
    const matches = this.#routes.some((route) => route.matches(request))
    sendRefusal(response, matches ? upgradeRequired() : { status: 404 })
  }

  readonly #onStream = (
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    _flags: number,
    rawHeaders: readonly string[],
  ): void => {
    if (headers[':method'] !== 'CONNECT' || this.#seen.has(stream)) return
    this.#seen.add(stream)
    stream.on('error', () => {})
    const request = requestOf(stream, headers, rawHeaders)
    const protocol = headers[':protocol']
    const route = this.#routes.find((one) => one.http2 && one.matches(request))
    if (protocol === 'websocket' && route !== undefined) {
      return route.target.connect(request, stream)
    }
    if (this.#othersTakeStreams) return
    if (protocol === undefined) refuseConnect(stream, { status: 405 })
    else refuseConnect(stream, { status: protocol === 'websocket' ? 404 : 501 })
  }

  /** Node's own listener for 'request' answers 405 to a CONNECT that no listener here takes. */
  readonly #onConnect = (request: {
    readonly stream: ServerHttp2Stream
    readonly headers: IncomingHttpHeaders
    readonly rawHeaders: readonly string[]
  }): void => {
    this.#onStream(request.stream, request.headers, 0, request.rawHeaders)
  }

  get #othersTakeStreams(): boolean {
    const forRequests = this.#count('request') > 0 ? 1 : 0
    return this.#count('connect') > 1 || this.#count('stream') > 1 + forRequests
  }
}

function isHttp2(server: AttachableServer): server is Http2Server | Http2SecureServer {
  return 'updateSettings' in server
}

/** The methods by which another listener could answer on a socket, or end it. */
const SHIELDED_METHODS = ['write', 'end', 'destroy', 'destroySoon', 'resetAndDestroy'] as const

/**
 * Calls `take`, then keeps later listeners of the same event from answering on its socket: some
 * refuse every path but their own at once, as `ws` does with its options `server` and `path`. Until
 * the event is over, their calls have no effect. The shield is lifted before any asynchronous
 * continuation of `take` runs.
 */
function shieldFromOthers(socket: Duplex, take: () => void): void {
  let shielded: [string, PropertyDescriptor | undefined][] = []
  const lift = (): void => {
    for (const [name, own] of shielded) {
      if (own === undefined) Reflect.deleteProperty(socket, name)
      else Object.defineProperty(socket, name, own)
    }
    shielded = []
  }
  process.nextTick(lift)
  queueMicrotask(lift)
  take()
  for (const name of SHIELDED_METHODS) {
    shielded.push([name, Object.getOwnPropertyDescriptor(socket, name)])
    Object.defineProperty(socket, name, { configurable: true, writable: true, value: () => socket })
  }
}

/**
 * For Node 20, which detaches the socket of every request that offers another protocol: passes the
 * request to the server again without the offer, so that it is handled like any other, with content
 * and keep-alive.
 */
function serveWithoutUpgrade(
  server: AttachableServer,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void {
  const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`]
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    const line = headerWithoutUpgrade(request.rawHeaders[i]!, request.rawHeaders[i + 1]!)
    if (line !== null) lines.push(line)
  }
  const rewritten = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  socket.unshift(Buffer.concat([rewritten, head]))
  const { Server: TlsServer } = process.getBuiltinModule('node:tls')
  server.emit(server instanceof TlsServer ? 'secureConnection' : 'connection', socket)
}

function headerWithoutUpgrade(name: string, value: string): string | null {
  const key = name.toLowerCase()
  if (key === 'upgrade' || key === 'http2-settings') return null
  if (key !== 'connection') return `${name}: ${value}`
  const options = value.split(',').map((option) => option.trim())
  const kept = options.filter((option) => !/^(?:upgrade|http2-settings)$/i.test(option))
  return kept.length === 0 ? null : `${name}: ${kept.join(', ')}`
}
