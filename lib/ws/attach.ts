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
import { Server as TlsServer } from 'node:tls'
import { asksForWebSocket, type UpgradeRequest, upgradeRequired } from './handshake.js'
import { headerFields, refusalBody, refuseUpgrade } from './upgrade-http1.js'
import { refuseConnect, requestOf } from './upgrade-http2.js'

/** Any HTTP server of Node. */
export type AttachableServer = HttpServer | HttpsServer | Http2Server | Http2SecureServer

/** Which requests of a server are for the WebSocket server. */
export interface AttachOptions {
  /**
   * The path, without query, or a function that picks paths. Default: every path.
   */
  readonly path?: string | ((path: string, request: UpgradeRequest) => boolean) | undefined
  /**
   * Serves extended CONNECT over HTTP/2 too and advertises it (RFC 8441); of use on a server made
   * by `node:http2` only. @defaultValue false
   */
  readonly http2?: boolean | undefined
}

/** The part of a response that answering a plain request needs: HTTP/1.1 and HTTP/2 have it. */
export interface PlainResponse {
  /** The status to send. */
  statusCode: number
  /** Sets one header field. */
  setHeader(name: string, value: string): unknown
  /** Sends the content and ends the response. */
  end(body: Uint8Array): unknown
}

/** What takes the requests that are picked. */
interface Target {
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  connect(request: UpgradeRequest, stream: ServerHttp2Stream): void
}

interface Claimant {
  readonly target: Target
  readonly http2: boolean
  wants(request: UpgradeRequest): boolean
}

type ShouldUpgrade = (request: IncomingMessage) => boolean

/** Servers of Node 22 and later ask this of each request that offers another protocol. */
interface AsksBeforeUpgrade {
  shouldUpgradeCallback: ShouldUpgrade
}

/** Time for a refused client to hang up. */
const LINGER_MS = 5_000

const switchboards: WeakMap<EventEmitter, Switchboard> = new WeakMap()

/** Puts `target` on the server's switchboard; returns what takes it off again. */
export function attachTo(
  server: AttachableServer,
  options: AttachOptions,
  target: Target,
): () => void {
  const { path, http2 = false } = options
  const claimant: Claimant = {
    target,
    http2,
    wants(request) {
      if (path === undefined) return true
      const own = pathOf(request)
      return typeof path === 'string' ? path === own : path(own, request)
    },
  }
  let switchboard = switchboards.get(server)
  if (switchboard === undefined) {
    switchboard = new Switchboard(server)
    switchboards.set(server, switchboard)
  }
  return switchboard.add(claimant)
}

function pathOf(request: UpgradeRequest): string {
  return (request.url ?? '').split('?', 1)[0]!
}

/**
 * The one set of listeners that all WebSocket servers on an HTTP server share, so that they know of
 * each other. A request goes to the first that wants it. One that nobody wants is left to foreign
 * listeners if there are any; otherwise nobody would answer it, so it is answered here.
 */
class Switchboard {
  readonly #server: AttachableServer
  readonly #claimants: Claimant[] = []
  /** What decides, in place of Node, which requests are upgrades; null where Node does not ask. */
  #decides: ShouldUpgrade | null = null
  #decidedBefore: ShouldUpgrade | null = null
  readonly #seen: WeakSet<ServerHttp2Stream> = new WeakSet()

  constructor(server: AttachableServer) {
    this.#server = server
  }

  add(claimant: Claimant): () => void {
    const events: EventEmitter = this.#server
    if (this.#claimants.length === 0) {
      // Before listeners that are there already: one of those may refuse every path but its own.
      events.prependListener('upgrade', this.#onUpgrade)
      this.#ignoreOtherOffers(this.#server)
      if (!isHttp2(this.#server)) events.on('request', this.#onRequest)
    }
    if (claimant.http2 && isHttp2(this.#server) && !this.#servesHttp2) {
      this.#server.updateSettings({ enableConnectProtocol: true })
      events.on('stream', this.#onStream)
      events.on('connect', this.#onConnect)
    }
    this.#claimants.push(claimant)
    return () => this.#remove(claimant)
  }

  get #servesHttp2(): boolean {
    return this.#claimants.some(({ http2 }) => http2)
  }

  #remove(claimant: Claimant): void {
    const at = this.#claimants.indexOf(claimant)
    if (at === -1) return
    this.#claimants.splice(at, 1)
    const events: EventEmitter = this.#server
    if (this.#claimants.length === 0) {
      events.off('upgrade', this.#onUpgrade)
      events.off('request', this.#onRequest)
      this.#letNodeDecide(this.#server)
    }
    if (this.#servesHttp2) return
    events.off('stream', this.#onStream)
    events.off('connect', this.#onConnect)
  }

  /**
   * An offer of another protocol than WebSocket, such as `Upgrade: h2c`, may be ignored (RFC 9110,
   * section 7.8): with nobody else to take it, it is a request like any other. Node 20 does not ask
   * and lets go of the connection; see {@link serveWithoutUpgrade}.
   */
  #ignoreOtherOffers(server: AttachableServer & Partial<AsksBeforeUpgrade>): void {
    const before = server.shouldUpgradeCallback
    if (before === undefined) return
    const decides: ShouldUpgrade = (request) =>
      (asksForWebSocket(request) || this.#count('upgrade') > 1) && before.call(server, request)
    server.shouldUpgradeCallback = this.#decides = decides
    this.#decidedBefore = before
  }

  #letNodeDecide(server: AttachableServer & Partial<AsksBeforeUpgrade>): void {
    if (this.#decidedBefore !== null && server.shouldUpgradeCallback === this.#decides) {
      server.shouldUpgradeCallback = this.#decidedBefore
    }
    this.#decides = this.#decidedBefore = null
  }

  #count(event: string): number {
    return (this.#server as EventEmitter).listenerCount(event)
  }

  readonly #onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const opening = asksForWebSocket(request)
    const claimant = opening ? this.#claimants.find((one) => one.wants(request)) : undefined
    const others = this.#count('upgrade') > 1
    if (claimant !== undefined) {
      if (!others) return claimant.target.upgrade(request, socket, head)
      return takeAlone(socket, () => claimant.target.upgrade(request, socket, head))
    }
    if (others) return
    if (opening) {
      socket.on('error', () => {})
      refuseUpgrade(socket, { status: 404 }, request.method, LINGER_MS)
    } else serveWithoutUpgrade(this.#server, request, socket, head)
  }

  /** A plain request to a server that has no listener for such. */
  readonly #onRequest = (request: IncomingMessage, response: PlainResponse): void => {
    if (this.#count('request') > 1) return
    const ours = this.#claimants.some((one) => one.wants(request))
    const refusal = ours ? upgradeRequired('this resource speaks WebSocket only') : { status: 404 }
    const { octets, type } = refusalBody(refusal)
    response.statusCode = refusal.status
    response.setHeader('Content-Type', type)
    const headers = 'headers' in refusal ? refusal.headers : undefined
    for (const [name, value] of headerFields(headers ?? {})) response.setHeader(name, value)
    response.end(octets)
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
    const claimant = this.#claimants.find((one) => one.http2 && one.wants(request))
    if (protocol === 'websocket' && claimant !== undefined) {
      return claimant.target.connect(request, stream)
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

/** By what another listener could answer on a socket, or end it. */
const ANSWERING = ['write', 'end', 'destroy', 'destroySoon', 'resetAndDestroy'] as const

/**
 * Takes a socket, and keeps the listeners that come after from answering on it: some refuse every
 * path but their own at once, as `ws` does with its options `server` and `path`. Until the event is
 * over what they do to the socket has no effect. It is lifted before anything that `take` has left
 * for later runs.
 */
function takeAlone(socket: Duplex, take: () => void): void {
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
  for (const name of ANSWERING) {
    shielded.push([name, Object.getOwnPropertyDescriptor(socket, name)])
    Object.defineProperty(socket, name, { configurable: true, writable: true, value: () => socket })
  }
}

/**
 * For Node 20, which has let go of the connection of any request that offers another protocol: the
 * request is given to it again without the offer. It then reads content and keeps the connection
 * alive like any other.
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
  const octets = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  socket.unshift(Buffer.concat([octets, head]))
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
