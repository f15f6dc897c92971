import type { Socket } from 'node:net'
import { isIP } from 'node:net'
import { checkCount, DEFAULT_MAX_HEADER_BYTES, DEFAULT_TIMEOUTS, resolveLimits, type LimitOptions } from '../config.js'
import { RequestError, UnsupportedProtocolError } from '../errors.js'
import type { Request } from '../request.js'
import type { AsyncTransport, TransportResponse } from './base.js'
import { dial, type TlsOptions } from './connect.js'
import { Http1Connection } from './http1.js'
import { ConnectionPool } from './pool.js'

/** What {@link HttpTransport} is made from. */
export interface HttpTransportOptions {
  /** How many connections are kept. */
  readonly limits?: LimitOptions | undefined
  /** Path of a unix socket to which every request goes, whatever its host. */
  readonly socketPath?: string | null | undefined
  /** Address of this machine to connect from. */
  readonly localAddress?: string | null | undefined
  /** Octets of a response's head at most. @defaultValue 65536 */
  readonly maxHeaderBytes?: number | undefined
}

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

/**
 * HTTP over sockets of its own: pooled connections, kept alive under {@link Limits}.
 *
 * A request that finds its reused connection dead is sent once more on a fresh one, when its method
 * is safe, its body can be read again and not an octet of an answer had come.
 */
export class HttpTransport implements AsyncTransport {
  readonly #pool: ConnectionPool
  readonly #options: HttpTransportOptions
  readonly #maxHeaderBytes: number
  readonly #owner: { onIdle(c: Http1Connection): void; onClose(c: Http1Connection): void }

  constructor(options: HttpTransportOptions = {}) {
    const pool = new ConnectionPool(resolveLimits(options.limits))
    this.#pool = pool
    this.#options = { ...options }
    this.#maxHeaderBytes = checkCount('maxHeaderBytes', options.maxHeaderBytes ?? DEFAULT_MAX_HEADER_BYTES, 256)
    this.#owner = {
      onIdle: (connection) => pool.release(connection),
      onClose: (connection) => pool.remove(connection),
    }
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
    const timeouts = request.timeouts ?? DEFAULT_TIMEOUTS
    const target = request.extensions.target ?? (url.pathname + url.search)
    for (let fresh = false; ; fresh = true) {
      const connection = await this.#connection(request, fresh)
      const reused = connection.exchanges > 0
      try {
        return await connection.request(request, timeouts, { target })
      } catch (error) {
        const stale = reused && !connection.answered && error instanceof RequestError
        const replay = stale && !fresh && SAFE_METHODS.has(request.method)
        if (!replay || request.body?.replayable === false || signal?.aborted === true) throw error
      }
    }
  }

  async close(): Promise<void> {
    this.#pool.close()
  }

  async #connection(request: Request, fresh: boolean): Promise<Http1Connection> {
    const timeouts = request.timeouts ?? DEFAULT_TIMEOUTS
    const { url, signal } = request
    const key = `${url.protocol}//${url.host} ${request.extensions.sniHostname ?? ''}`
    for (;;) {
      const acquired = this.#pool.acquire(key, { timeoutMs: timeouts.pool, signal })
      const pooled = (acquired instanceof Promise ? await acquired : acquired) as Http1Connection | null
      if (pooled !== null) {
        if (!fresh && pooled.usable) return pooled
        pooled.destroy()
        continue
      }
      try {
        const socket = await this.#dial(request, timeouts.connect)
        const connection = new Http1Connection(socket, this.#owner, this.#maxHeaderBytes)
        this.#pool.add(key, connection)
        return connection
      } catch (error) {
        this.#pool.forfeit(key)
        throw error
      }
    }
  }

  #dial(request: Request, timeoutMs: number | null): Promise<Socket> {
    const { url, signal } = request
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
    const secure = url.protocol === 'https:'
    return dial(
      {
        host,
        port: url.port === '' ? (secure ? 443 : 80) : Number(url.port),
        socketPath: this.#options.socketPath ?? null,
        localAddress: this.#options.localAddress ?? null,
        tls: secure ? tlsOptions(request.extensions.sniHostname ?? host) : null,
      },
      { timeoutMs, signal },
    )
  }
}

function tlsOptions(servername: string): TlsOptions {
  return { ALPNProtocols: ['http/1.1'], ...(isIP(servername) === 0 ? { servername } : {}), host: servername }
}
