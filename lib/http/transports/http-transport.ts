import { isIP, type LookupFunction, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import {
  checkBoolean,
  checkCount,
  DEFAULT_MAX_HEADER_BYTES,
  DEFAULT_PING_INTERVAL,
  DEFAULT_TIMEOUTS,
  resolveLimits,
  type LimitOptions,
  type Limits,
} from '../config.js'
import {
  ReadError,
  RefusedStreamError,
  RemoteProtocolError,
  RequestError,
  UnsupportedProtocolError,
  WriteError,
} from '../errors.js'
import type { Request } from '../request.js'
import { PhaseClock } from '../timings.js'
import {
  resolveTls,
  TlsContext,
  type ClientCertificate,
  type TlsSettings,
  type Verify,
} from '../tls.js'
import type { AsyncTransport, TransportResponse } from './base.js'
import { hostOf, portOf } from '../url.js'
import { addressText, connectWithin, openTcp, openTls } from './connect.js'
import { Http1Connection } from './http1/connection.js'
import type { Http2Connection } from './http2/connection.js'
import { guardedLookup } from './lookup.js'
import { ConnectionPool } from './pool.js'
import { Proxy, tunnel, type ProxyInit } from './proxy/proxy.js'
import { checkHost, serverNameOf } from './request-checks.js'

/** Options of {@link HttpTransport}. */
export interface HttpTransportOptions {
  /** How many connections may be open, and kept idle. */
  readonly limits?: LimitOptions | undefined
  /** Allows HTTP/1.1. @defaultValue true */
  readonly http1?: boolean | undefined
  /** Offers HTTP/2; without `http1` it is used without negotiation. @defaultValue false */
  readonly http2?: boolean | undefined
  /** Whether certificates are verified, and against which authorities. @defaultValue true */
  readonly verify?: Verify | undefined
  /** The client's own certificate. @defaultValue null */
  readonly cert?: ClientCertificate | null | undefined
  /** Proxy for every request. @defaultValue null */
  readonly proxy?: ProxyInit | null | undefined
  /** Reads SSL_CERT_FILE, SSL_CERT_DIR and SSLKEYLOGFILE. @defaultValue true */
  readonly trustEnv?: boolean | undefined
  /** Path of a unix socket to which every request goes, whatever its host. */
  readonly socketPath?: string | null | undefined
  /**
   * IP address to connect from; names are then resolved to addresses of its family.
   * @defaultValue null: the system chooses
   */
  readonly localAddress?: string | null | undefined
  /**
   * Resolves host names, of proxies too, in place of `dns.lookup` and with its parameters; called
   * with `all: true` where several addresses can be tried, and not for IP addresses. A failure, or
   * something else than addresses, is a {@link ConnectError}. Not for `Client`, whose connections
   * are made on another thread. @defaultValue null
   */
  readonly lookup?: LookupFunction | null | undefined
  /**
   * How long an HTTP/2 connection may be silent, in ms, before it is sent a ping; after as long
   * again without a byte it is closed. `null` sends none. @defaultValue 15000
   */
  readonly pingInterval?: number | null | undefined
  /** Largest head of a response, in bytes. @defaultValue 65536 */
  readonly maxHeaderBytes?: number | undefined
  /** `verify`, `cert` and the environment, already resolved. @internal */
  readonly tls?: TlsSettings | undefined
}

/** For `checkOptions()`. @internal */
export const HTTP_TRANSPORT_OPTIONS: OptionKinds<HttpTransportOptions> = {
  limits: 'object', http1: 'boolean', http2: 'boolean', verify: 'any', cert: 'any', proxy: 'any',
  trustEnv: 'boolean', socketPath: 'string|null', localAddress: 'string|null',
  lookup: 'function|null', pingInterval: 'number|null', maxHeaderBytes: 'number', tls: 'object',
}

type Connection = Http1Connection | Http2Connection
/** What the pool returns: a connection, null as a permit to open one, or a promise of either. */
type Acquired = Connection | null | Promise<Connection | null>

const NO_BYTES = new Uint8Array(0)
/** Content of a 407 up to this size is read, so that the connection can be reused. */
const MAX_DRAIN_BYTES = 64 * 1024
const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])
/** How often a stream refused by the server is sent again. */
const MAX_REFUSALS = 3

/**
 * HTTP over its own sockets: pooled connections, kept alive under {@link Limits}, by HTTP/1.1 or
 * HTTP/2, directly or through a proxy.
 *
 * A request that finds its reused connection dead is sent once more on a new one, if its method is
 * safe, its body can be read again and no byte of a response has arrived. A stream that an HTTP/2
 * server refused without processing it is sent again whatever its method.
 */
export class HttpTransport implements AsyncTransport {
  readonly #pool: ConnectionPool
  readonly #limits: Limits
  readonly #options: HttpTransportOptions
  readonly #maxHeaderBytes: number
  readonly #pingMs: number | null
  readonly #tls: TlsContext
  readonly #proxy: Proxy | null
  readonly #lookup: LookupFunction | null
  readonly #alpn: readonly string[]
  /** Keys for which a first connection is being opened that may turn out to be HTTP/2. */
  readonly #opening = new Map<string, Promise<unknown>>()
  /** Keys whose servers chose HTTP/1.1: no caller need wait for a shared connection. */
  readonly #http1Keys = new Set<string>()
  readonly #owner = {
    onIdle: (connection: Http1Connection): void => this.#pool.release(connection),
    onCapacity: (connection: Http2Connection): void => this.#pool.release(connection, true),
    onClose: (connection: Connection): void => this.#pool.remove(connection),
  }

  /** @throws TypeError naming the invalid option. */
  constructor(options: HttpTransportOptions = {}) {
    checkOptions(options, HTTP_TRANSPORT_OPTIONS, 'a transport')
    this.#limits = resolveLimits(options.limits)
    this.#pool = new ConnectionPool(this.#limits)
    this.#options = { ...options }
    const http1 = checkBoolean('http1', options.http1 ?? true)
    const http2 = checkBoolean('http2', options.http2 ?? false)
    if (!http1 && !http2) throw new TypeError('http1 and http2 must not both be false')
    this.#alpn = [...(http2 ? ['h2'] : []), ...(http1 ? ['http/1.1'] : [])]
    this.#tls = new TlsContext(options.tls ?? resolveTls(options))
    this.#proxy =
      options.proxy === undefined || options.proxy === null ? null : new Proxy(options.proxy)
    const { localAddress, lookup } = options
    if (typeof localAddress === 'string' && isIP(localAddress) === 0) {
      throw new TypeError('localAddress must be an IP address of this machine, such as 192.0.2.1')
    }
    this.#lookup = lookup === undefined || lookup === null ? null : guardedLookup(lookup)
    const { maxHeaderBytes = DEFAULT_MAX_HEADER_BYTES } = options
    this.#maxHeaderBytes = checkCount('maxHeaderBytes', maxHeaderBytes, 256)
    const { pingInterval = DEFAULT_PING_INTERVAL } = options
    this.#pingMs = checkCount('pingInterval', pingInterval, 1)
  }

  /** Numbers of connections that are open (idle ones included), idle, and waited for. */
  get stats(): { readonly open: number; readonly idle: number; readonly waiting: number } {
    return this.#pool.stats
  }

  async handleRequest(request: Request): Promise<TransportResponse> {
    const { signal } = request
    const { protocol } = request.destination
    if (protocol !== 'http:' && protocol !== 'https:') {
      throw new UnsupportedProtocolError(`there is no transport for ${protocol}//`)
    }
    signal?.throwIfAborted()
    checkHost(request.headers)
    let refusals = 0
    let challenges = 0
    for (let fresh = false; ; ) {
      const clock = new PhaseClock()
      // Nothing is sent in the turn of the call: if it is aborted there, the connection is kept.
      const connection = await this.#connection(request, fresh, clock)
      const reused = connection.exchanges > 0
      try {
        const response = await this.#send(connection, request, clock)
        if (response.statusCode !== 407) return response
        if (!(await this.#answerChallenge(request, response, challenges++))) return response
      } catch (error) {
        const replayable = request.body?.replayable !== false && signal?.aborted !== true
        if (!replayable || !(error instanceof RequestError)) throw error
        if (error instanceof RefusedStreamError && refusals++ < MAX_REFUSALS) continue
        const dead = connection.protocol === 'HTTP/1.1' ? !connection.answered : connection.lost
        const repeatable = reused && dead && isDisconnect(error) && SAFE_METHODS.has(request.method)
        if (fresh || !repeatable) throw error
        fresh = true
      }
    }
  }

  /** Closes every connection; exchanges in flight fail with {@link CloseError}. */
  async close(): Promise<void> {
    this.#pool.close()
  }

  #send(connection: Connection, request: Request, clock: PhaseClock): Promise<TransportResponse> {
    const { destination, extensions } = request
    const timeouts = request.timeouts ?? DEFAULT_TIMEOUTS
    const target = extensions.target ?? destination.target
    if (connection.protocol === 'HTTP/2')
      return connection.request(request, timeouts, target, clock)
    const proxy = this.#forwarding(destination)
    if (proxy === null) return connection.request(request, timeouts, { target }, clock)
    const absolute = extensions.target ?? destination.origin + target
    const content = request.body === null ? NO_BYTES : request.body.bytes
    const proxyHeaders = proxy.headersFor(request.method, absolute, content)
    return connection.request(request, timeouts, { target: absolute, proxyHeaders }, clock)
  }

  /** Handles a 407 of the proxy; true when the request must be sent again, signed. */
  async #answerChallenge(
    request: Request,
    response: TransportResponse,
    tries: number,
  ): Promise<boolean> {
    const challenges = response.headers.getList('proxy-authenticate')
    const signed = this.#forwarding(request.url)?.challenged(challenges, tries) ?? false
    if (!signed || request.body?.replayable === false) return false
    await drain(response)
    return true
  }

  /** The proxy that gets requests for `url` in absolute form; null with a tunnel or no proxy. */
  #forwarding({ protocol }: { readonly protocol: string }): Proxy | null {
    return this.#proxy !== null && !this.#proxy.socks && protocol === 'http:'
      ? this.#proxy
      : null
  }

  /** A connection for `request`, by promise unless one is idle. */
  #connection(
    request: Request,
    fresh: boolean,
    clock: PhaseClock,
  ): Connection | Promise<Connection> {
    const acquired = this.#acquire(request)
    const ready = acquired !== null && !(acquired instanceof Promise)
    return ready && !fresh ? acquired : this.#obtain(acquired, request, fresh, clock)
  }

  #acquire(request: Request): Acquired {
    const timeoutMs = (request.timeouts ?? DEFAULT_TIMEOUTS).pool
    const limits = { timeoutMs, signal: request.signal }
    return this.#pool.acquire(this.#keyOf(request), limits) as Acquired
  }

  /** What requests must have in common to use the same connections. */
  #keyOf(request: Request): string {
    const { destination } = request
    if (this.#forwarding(destination) !== null) return 'proxy'
    const serverName = serverNameOf(request)
    return serverName === null ? destination.origin : `${destination.origin} ${serverName}`
  }

  /** Waits for, or opens, a connection; `first` is what the pool has returned. */
  async #obtain(
    first: Acquired,
    request: Request,
    fresh: boolean,
    clock: PhaseClock,
  ): Promise<Connection> {
    const key = this.#keyOf(request)
    for (let acquired = first; ; acquired = this.#acquire(request)) {
      const pooled = acquired instanceof Promise ? await acquired : acquired
      if (acquired instanceof Promise) clock.lap('pool')
      if (pooled !== null) {
        if (pooled.protocol === 'HTTP/2' || (pooled.usable && !fresh)) return pooled
        pooled.destroy()
        continue
      }
      const opening = this.#opening.get(key)
      if (opening === undefined) return await this.#open(key, request, clock)
      this.#pool.forfeit(key)
      await opening
      clock.lap('pool')
    }
  }

  /** Opens a connection with a permit of the pool, and registers it there. */
  async #open(key: string, request: Request, clock: PhaseClock): Promise<Connection> {
    const mayShare = this.#alpn[0] === 'h2' && key !== 'proxy' && !this.#http1Keys.has(key)
    const opening = this.#connect(key, request, clock)
    if (mayShare) {
      const ready = opening.then((connection) =>
        connection.protocol === 'HTTP/2' ? connection.ready : undefined,
      )
      const done = ready.catch(() => {}).then(() => this.#opening.delete(key))
      this.#opening.set(key, done)
    }
    try {
      const connection = await opening
      this.#pool.add(key, connection, connection.protocol === 'HTTP/2')
      return connection
    } catch (error) {
      this.#pool.forfeit(key)
      throw error
    }
  }

  async #connect(key: string, request: Request, clock: PhaseClock): Promise<Connection> {
    const timeoutMs = (request.timeouts ?? DEFAULT_TIMEOUTS).connect
    // Loaded only when offered, and before there is a socket, so that no event is missed.
    const http2 = this.#alpn[0] === 'h2' ? await import('./http2/connection.js') : null
    const socket = await this.#dial(request, timeoutMs, clock)
    const negotiated = (socket as Partial<TLSSocket>).alpnProtocol
    const http2Only = this.#alpn.length === 1 && this.#alpn[0] === 'h2'
    const clear = request.url.protocol === 'http:'
    const undecided = clear || negotiated === false || negotiated === null
    if (http2 !== null && (negotiated === 'h2' || (http2Only && undecided))) {
      return new http2.Http2Connection(socket, this.#owner, {
        idleMs: this.#limits.keepaliveExpiry,
        settingsMs: timeoutMs,
        maxHeaderBytes: this.#maxHeaderBytes,
        pingMs: this.#pingMs,
      })
    }
    if (this.#http1Keys.size < 1000) this.#http1Keys.add(key)
    return new Http1Connection(socket, this.#owner, this.#maxHeaderBytes)
  }

  /** Opens a socket to the origin, by way of the proxy if there is one, and secures it. */
  #dial(request: Request, timeoutMs: number | null, clock: PhaseClock): Promise<Socket> {
    const { url, signal } = request
    const proxy = this.#proxy
    const secure = url.protocol === 'https:'
    const host = hostOf(url)
    const port = portOf(url)
    const address = {
      host: proxy?.host ?? host,
      port: proxy?.port ?? port,
      socketPath: this.#options.socketPath ?? null,
      localAddress: this.#options.localAddress ?? null,
      lookup: this.#lookup,
    }
    const peer = addressText(address)
    clock.skip()
    const target = { host, port, lookup: this.#lookup }
    return connectWithin({ timeoutMs, signal }, peer, async (track) => {
      const tunnelled = proxy !== null && this.#forwarding(url) === null
      let socket: Socket
      for (let tries = 0; ; tries++) {
        socket = await openTcp(address, timeoutMs, track, () => clock.lap('dns'))
        clock.lap('tcp')
        if (proxy?.secure === true) {
          const tls = this.#tls.optionsFor(proxy.host, ['http/1.1'])
          socket = await openTls(socket, tls, peer, track)
        }
        const connected = !tunnelled || (await tunnel(socket, proxy, target, tries))
        if (tunnelled || proxy?.secure === true) clock.lap('proxy')
        if (connected) break
        socket.destroy()
      }
      if (!secure) return socket
      const tls = this.#tls.optionsFor(serverNameOf(request) ?? host, this.#alpn)
      const secured = await openTls(socket, tls, addressText({ ...address, host, port }), track)
      clock.lap('tls')
      return secured
    })
  }
}

/** Discards the content of a response, keeping its connection where that is cheap. */
async function drain(response: TransportResponse): Promise<void> {
  try {
    const length = Number(response.headers.get('content-length') ?? 'NaN')
    if (length <= MAX_DRAIN_BYTES) for await (const _chunk of response.stream);
  } catch {
    // If the network has failed, the next request reports it.
  }
  await response.stream.close?.()
}

/** Whether the connection itself failed; a timeout is not a disconnect. */
function isDisconnect(error: RequestError): boolean {
  return (
    error instanceof ReadError ||
    error instanceof WriteError ||
    error instanceof RemoteProtocolError
  )
}
