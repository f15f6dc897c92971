import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
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
import { addressText, openTcp, openTls, connectWithin } from './connect.js'
import { Http1Connection } from './http1/connection.js'
import type { Http2Connection } from './http2/connection.js'
import { ConnectionPool } from './pool.js'
import { Proxy, tunnel, type ProxyInit } from './proxy/proxy.js'

/** What {@link HttpTransport} is made from. */
export interface HttpTransportOptions {
  /** How many connections are kept. */
  readonly limits?: LimitOptions | undefined
  /** Whether HTTP/1.1 may be spoken. @defaultValue true */
  readonly http1?: boolean | undefined
  /** Whether HTTP/2 is offered; without `http1` it is spoken without asking. @defaultValue false */
  readonly http2?: boolean | undefined
  /** Whether and against what certificates are verified. @defaultValue true */
  readonly verify?: Verify | undefined
  /** The client's own certificate. @defaultValue null */
  readonly cert?: ClientCertificate | null | undefined
  /** Proxy for every request. @defaultValue null */
  readonly proxy?: ProxyInit | null | undefined
  /** Whether SSL_CERT_FILE, SSL_CERT_DIR and SSLKEYLOGFILE are read. @defaultValue true */
  readonly trustEnv?: boolean | undefined
  /** Path of a unix socket to which every request goes, whatever its host. */
  readonly socketPath?: string | null | undefined
  /** Address of this machine to connect from. */
  readonly localAddress?: string | null | undefined
  /**
   * How long an HTTP/2 connection may be silent, in ms, before it is sent a ping; after as long again
   * without an octet it is given up. `null` sends none. @defaultValue 15000
   */
  readonly pingInterval?: number | null | undefined
  /** Octets of a response's head at most. @defaultValue 65536 */
  readonly maxHeaderBytes?: number | undefined
  /** Resolved elsewhere. @internal */
  readonly tls?: TlsSettings | undefined
}

type Connection = Http1Connection | Http2Connection
/** Loaded when it is offered: most clients never need it. */
type Http2 = typeof import('./http2/connection.js')

const NO_OCTETS = new Uint8Array(0)
/** Refusals up to this size are read, so that the connection can be kept. */
const DRAIN_OCTETS = 64 * 1024
const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])
/** A stream that servers keep refusing is given up after this many tries. */
const MAX_REFUSALS = 3

/**
 * HTTP over sockets of its own: pooled connections, kept alive under {@link Limits}, by HTTP/1.1 or
 * HTTP/2, directly or through a proxy.
 *
 * A request that finds its reused connection dead is sent once more on a fresh one, when its method
 * is safe, its body can be read again and not an octet of an answer had come. A stream that an
 * HTTP/2 server refused without looking at it is sent again whatever its method.
 */
export class HttpTransport implements AsyncTransport {
  readonly #pool: ConnectionPool
  readonly #limits: Limits
  readonly #options: HttpTransportOptions
  readonly #maxHeaderBytes: number
  readonly #pingMs: number | null
  readonly #tls: TlsContext
  readonly #proxy: Proxy | null
  readonly #alpn: readonly string[]
  /** Origins to which a first connection is being opened that may turn out to be shared. */
  readonly #opening = new Map<string, Promise<unknown>>()
  /** Origins that have chosen HTTP/1.1, where waiting for a shared connection is in vain. */
  readonly #plainOrigins = new Set<string>()
  readonly #owner = {
    onIdle: (connection: Http1Connection): void => this.#pool.release(connection),
    onCapacity: (connection: Http2Connection): void => this.#pool.release(connection, true),
    onClose: (connection: Connection): void => this.#pool.remove(connection),
  }

  /** @throws TypeError naming the option that is wrong. */
  constructor(options: HttpTransportOptions = {}) {
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
    const { maxHeaderBytes = DEFAULT_MAX_HEADER_BYTES } = options
    this.#maxHeaderBytes = checkCount('maxHeaderBytes', maxHeaderBytes, 256)
    const { pingInterval = DEFAULT_PING_INTERVAL } = options
    this.#pingMs = checkCount('pingInterval', pingInterval, 1)
  }

  /** Open, idle and awaited connections. */
  get stats(): { readonly open: number; readonly idle: number; readonly waiting: number } {
    return { open: this.#pool.size, idle: this.#pool.idle, waiting: this.#pool.waiting }
  }

  async handleRequest(request: Request): Promise<TransportResponse> {
    const { url, signal } = request
    if (url.protocol !== 'http:' && url.protocol !== 'https:') {
      throw new UnsupportedProtocolError(`there is no transport for ${url.protocol}//`)
    }
    signal?.throwIfAborted()
    let refusals = 0
    let challenges = 0
    for (let fresh = false; ; ) {
      const clock = new PhaseClock()
      const connection = await this.#connection(request, fresh, clock)
      const reused = connection.exchanges > 0
      try {
        const response = await this.#send(connection, request, clock)
        if (
          response.statusCode === 407 &&
          (await this.#challenged(request, response, challenges++))
        )
          continue
        return response
      } catch (error) {
        const replayable = request.body?.replayable !== false && !isAborted(signal)
        if (!replayable || !(error instanceof RequestError)) throw error
        if (error instanceof RefusedStreamError && refusals++ < MAX_REFUSALS) continue
        const stale =
          reused && (connection.protocol === 'HTTP/1.1' ? !connection.answered : connection.lost)
        if (!stale || fresh || !isCutOff(error) || !SAFE_METHODS.has(request.method)) throw error
        fresh = true
      }
    }
  }

  /** Closes every connection; exchanges in flight end with {@link CloseError}. */
  async close(): Promise<void> {
    this.#pool.close()
  }

  #send(connection: Connection, request: Request, clock: PhaseClock): Promise<TransportResponse> {
    const { url, extensions } = request
    const timeouts = request.timeouts ?? DEFAULT_TIMEOUTS
    const target = extensions.target ?? url.pathname + url.search
    if (connection.protocol === 'HTTP/2')
      return connection.request(request, timeouts, target, clock)
    const proxy = this.#forwarding(url)
    if (proxy === null) return connection.request(request, timeouts, { target }, clock)
    const absolute = extensions.target ?? `${url.protocol}//${url.host}${target}`
    const content = request.body === null ? NO_OCTETS : request.body.bytes
    const proxyHeaders = proxy.headersFor(request.method, absolute, content)
    return connection.request(request, timeouts, { target: absolute, proxyHeaders }, clock)
  }

  /** Whether a request that the proxy has challenged is to be sent again, signed. */
  async #challenged(
    request: Request,
    response: TransportResponse,
    tries: number,
  ): Promise<boolean> {
    const proxy = this.#forwarding(request.url)
    const answered =
      proxy?.challenged(response.headers.getList('proxy-authenticate'), tries) ?? false
    if (!answered || request.body?.replayable === false) return false
    await drain(response)
    return true
  }

  /** The proxy to which requests for `url` are sent in absolute form, rather than through a tunnel. */
  #forwarding(url: URL): Proxy | null {
    return this.#proxy !== null && !this.#proxy.socks && url.protocol === 'http:'
      ? this.#proxy
      : null
  }

  async #connection(request: Request, fresh: boolean, clock: PhaseClock): Promise<Connection> {
    const timeouts = request.timeouts ?? DEFAULT_TIMEOUTS
    const { url, signal } = request
    const key =
      this.#forwarding(url) === null
        ? `${url.protocol}//${url.host} ${request.extensions.sniHostname ?? ''}`
        : 'proxy'
    for (;;) {
      const acquired = this.#pool.acquire(key, { timeoutMs: timeouts.pool, signal })
      const pooled = (acquired instanceof Promise ? await acquired : acquired) as Connection | null
      if (acquired instanceof Promise) clock.lap('pool')
      if (pooled !== null) {
        if (pooled.protocol === 'HTTP/2' || (pooled.usable && !fresh)) return pooled
        pooled.destroy()
        continue
      }
      const first = this.#opening.get(key)
      if (first !== undefined) {
        this.#pool.forfeit(key)
        await first
        clock.lap('pool')
        continue
      }
      return await this.#open(key, request, timeouts.connect, clock)
    }
  }

  async #open(
    key: string,
    request: Request,
    timeoutMs: number | null,
    clock: PhaseClock,
  ): Promise<Connection> {
    const mayShare = this.#alpn[0] === 'h2' && key !== 'proxy' && !this.#plainOrigins.has(key)
    const opening = this.#connect(key, request, timeoutMs, clock)
    if (mayShare) {
      const known = opening.then((connection) =>
        connection.protocol === 'HTTP/2' ? connection.ready : undefined,
      )
      const done = known.catch(() => {}).then(() => this.#opening.delete(key))
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

  async #connect(
    key: string,
    request: Request,
    timeoutMs: number | null,
    clock: PhaseClock,
  ): Promise<Connection> {
    // Before there is a socket, so that nothing it tells is missed.
    const http2 = this.#alpn[0] === 'h2' ? await import('./http2/connection.js') : null
    const socket = await this.#dial(request, timeoutMs, clock)
    return this.#wrap(key, request.url, socket, timeoutMs, http2)
  }

  #wrap(
    key: string,
    url: URL,
    socket: Socket,
    timeoutMs: number | null,
    http2: Http2 | null,
  ): Connection {
    const chosen = (socket as Partial<TLSSocket>).alpnProtocol
    const priorKnowledge = this.#alpn.length === 1 && this.#alpn[0] === 'h2'
    const clear = url.protocol === 'http:'
    const agreed =
      chosen === 'h2' || (priorKnowledge && (clear || chosen === false || chosen === null))
    if (agreed && http2 !== null) {
      return new http2.Http2Connection(socket, this.#owner, {
        idleMs: this.#limits.keepaliveExpiry,
        settingsMs: timeoutMs,
        maxHeaderBytes: this.#maxHeaderBytes,
        pingMs: this.#pingMs,
      })
    }
    if (this.#plainOrigins.size < 1000) this.#plainOrigins.add(key)
    return new Http1Connection(socket, this.#owner, this.#maxHeaderBytes)
  }

  #dial(request: Request, timeoutMs: number | null, clock: PhaseClock): Promise<Socket> {
    const { url, signal } = request
    const proxy = this.#proxy
    const secure = url.protocol === 'https:'
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
    const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port)
    const address = {
      host: proxy?.host ?? host,
      port: proxy?.port ?? port,
      socketPath: this.#options.socketPath ?? null,
      localAddress: this.#options.localAddress ?? null,
    }
    const what = addressText(address)
    clock.skip()
    return connectWithin({ timeoutMs, signal }, what, async (track) => {
      const tunnelled = proxy !== null && this.#forwarding(url) === null
      let socket: Socket
      for (let tries = 0; ; tries++) {
        socket = await openTcp(address, timeoutMs, track, () => clock.lap('dns'))
        clock.lap('tcp')
        if (proxy?.secure === true) {
          const tls = this.#tls.optionsFor(proxy.host, ['http/1.1'])
          socket = await openTls(socket, tls, what, track)
        }
        const open = !tunnelled || (await tunnel(socket, proxy, host, port, tries))
        if (tunnelled || proxy?.secure === true) clock.lap('proxy')
        if (open) break
        socket.destroy()
      }
      if (!secure) return socket
      const tls = this.#tls.optionsFor(request.extensions.sniHostname ?? host, this.#alpn)
      const secured = await openTls(socket, tls, addressText({ ...address, host, port }), track)
      clock.lap('tls')
      return secured
    })
  }
}

/** Frees the connection of a response that nobody will read. */
async function drain(response: TransportResponse): Promise<void> {
  try {
    const length = Number(response.headers.get('content-length') ?? 'NaN')
    if (length <= DRAIN_OCTETS) for await (const _chunk of response.stream);
  } catch {
    // Its content is not wanted; the next request says whether the network is well.
  }
  await response.stream.close?.()
}

/** Whether the connection itself failed, rather than a limit of time. */
function isCutOff(error: RequestError): boolean {
  return (
    error instanceof ReadError ||
    error instanceof WriteError ||
    error instanceof RemoteProtocolError
  )
}

function isAborted(signal: AbortSignal | null): boolean {
  return signal !== null && signal.aborted
}
