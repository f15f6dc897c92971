import { sleepSync } from '../internal/time.js'
import { buildRequest } from './build-request.js'
import { checkSendOptions, type RequestOptions, type SendOptions } from './call-options.js'
import { ClientPool, inheriting, parentOf } from './client-pool.js'
import type { ClientTransports } from './client-transports.js'
import type { ServerSentEvent } from './content/sse-parser.js'
import type { Cookies } from './cookies/jar.js'
import { ClientStateError } from './errors.js'
import { EventSourceSession, type SseOptions } from './event-source.js'
import { send, type Driver } from './exchange.js'
import { driveSync, settle } from './flow.js'
import { printAs } from './inspect.js'
import { resolveSettings, type BaseClientOptions, type ClientSettings } from './options.js'
import { nextPage, pageOptions, resolvePagination, type PaginateOptions } from './pagination.js'
import type { Request } from './request.js'
import { Response } from './sync-response.js'
import type { Transport, TransportResponse } from './transports/base.js'
import { BlockingTransport, refuseLookup } from './transports/blocking/blocking-transport.js'
import type { HttpTransportOptions } from './transports/http-transport.js'
import { redactUrl } from './url.js'

/** Options of {@link Client}. */
export type ClientOptions = BaseClientOptions<Response, Transport>

/**
 * The blocking HTTP client: calls return responses, not promises, and need no child process. A
 * worker thread owns the sockets, so connections are kept between calls, bodies stream both ways,
 * and all time limits apply. Hooks, auth and cookies run on the calling thread. Methods, options
 * and errors are those of `AsyncClient`.
 *
 * `fetch`, which returns promises, and `lookup` are for `AsyncClient` only.
 *
 * Nothing else runs on the calling thread during a call: a server on the same thread cannot
 * respond, and signals are checked between waits only. Use `timeout.total` to bound a call.
 *
 * @example
 * ```ts
 * using client = new Client({ baseUrl: 'https://api.example/v1', timeout: 10_000 })
 * const created = client.post('/items', { json: { name: 'nut' } })
 * created.raiseForStatus().json<{ id: string }>()
 * ```
 */
export class Client implements Disposable {
  readonly #settings: ClientSettings
  readonly #pool: ClientPool<Transport>
  readonly #transports: ClientTransports<Transport>
  readonly #driver: Driver
  #state: 'unopened' | 'opened' | 'closed' = 'unopened'

  /** @throws TypeError naming the wrong option. */
  constructor(options: ClientOptions = {}) {
    const parent = parentOf<Transport>(options)
    this.#settings = resolveSettings(options, parent?.settings ?? null)
    refuseLookup(options)
    const make = (made: HttpTransportOptions): Transport => new BlockingTransport(made)
    this.#pool = new ClientPool(options, parent?.pool ?? null, make)
    this.#transports = this.#pool.transports
    this.#driver = {
      settings: this.#settings,
      blocking: true,
      transportFor: (request) => this.#transports.forRequest(request),
      wrap: (raw: TransportResponse) => Response.from(raw),
      sleep: (ms) => sleepSync(ms),
      readBody: (request) => settle(request.readSync()),
    }
  }

  /**
   * Whether `close()` was called, on this client or on that whose connections it shares, after
   * which no request can be sent.
   */
  get isClosed(): boolean {
    return this.#state === 'closed' || this.#transports.isClosed
  }

  /** The cookie jar of this client, to which responses add. */
  get cookies(): Cookies {
    return this.#settings.cookies
  }

  /** Sends a GET request and reads the content of the response. */
  get(url: string | URL, options?: RequestOptions): Response {
    return this.request('GET', url, options)
  }

  /** Sends a POST request and reads the content of the response. */
  post(url: string | URL, options?: RequestOptions): Response {
    return this.request('POST', url, options)
  }

  /** Sends a PUT request and reads the content of the response. */
  put(url: string | URL, options?: RequestOptions): Response {
    return this.request('PUT', url, options)
  }

  /** Sends a PATCH request and reads the content of the response. */
  patch(url: string | URL, options?: RequestOptions): Response {
    return this.request('PATCH', url, options)
  }

  /** Sends a DELETE request and reads the content of the response. */
  delete(url: string | URL, options?: RequestOptions): Response {
    return this.request('DELETE', url, options)
  }

  /** Sends a HEAD request and reads the content of the response. */
  head(url: string | URL, options?: RequestOptions): Response {
    return this.request('HEAD', url, options)
  }

  /** Sends an OPTIONS request and reads the content of the response. */
  options(url: string | URL, options?: RequestOptions): Response {
    return this.request('OPTIONS', url, options)
  }

  /**
   * Sends a request and reads the content of the response. A 4xx or 5xx is no error, except with
   * `raiseForStatus`.
   *
   * @throws {@link RequestError} without a usable response; `signal.reason` if the signal aborts.
   */
  request(method: string, url: string | URL, options: RequestOptions = {}): Response {
    return this.#send(this.buildRequest(method, url, options), options)
  }

  /**
   * As {@link Client.request}, but leaves the content unread. Close the response unless it is read
   * to its end; `using` does.
   */
  stream(method: string, url: string | URL, options: RequestOptions = {}): Response {
    return this.#send(this.buildRequest(method, url, options), { ...options, stream: true })
  }

  /**
   * The events of an event stream (WHATWG HTML, section 9.2). A lost or ended stream is opened
   * again with Last-Event-ID, after the delay set by the server. Status 204 ends it for good.
   *
   * @throws {@link HttpStatusError} for another status than 200.
   * @throws {@link RemoteProtocolError} for another content type than text/event-stream.
   */
  *sse(url: string | URL, options: SseOptions = {}): Generator<ServerSentEvent, void, undefined> {
    const session = new EventSourceSession(options)
    for (;;) {
      let response: Response | null = null
      let failure: unknown = null
      try {
        response = this.stream(session.method, url, session.requestOptions())
        if (!session.accepts(response)) return
        for (const chunk of response.iterBytes()) yield* session.feed(chunk)
      } catch (error) {
        failure = error
      } finally {
        response?.close()
      }
      options.signal?.throwIfAborted()
      const delayMs = session.nextDelay(failure)
      if (delayMs === null) return
      sleepSync(delayMs)
    }
  }

  /** The pages of a list: a response, and those that its Link headers lead to (RFC 8288). */
  *paginate(
    url: string | URL,
    options: PaginateOptions = {},
  ): Generator<Response, void, undefined> {
    const pagination = resolvePagination(options)
    const { method, maxPages } = pagination
    let target: string | URL | null = url
    for (let page = 0; page < maxPages && target !== null; page++) {
      const request = pageOptions(options, page)
      const response: Response = this.request(method, target, request)
      yield response
      target = nextPage(response, pagination, this.#settings.params)
    }
  }

  /**
   * A new client with these options over those of this client. As with the options of a call,
   * headers, params and cookies are merged, `timeout` by its phases, and `null` switches off; hooks
   * are called after those of this client, `sensitiveHeaders` are added, and the others replace.
   *
   * Both have one cookie jar, unless cookies are given: these are set in a copy of it, and a
   * {@link Cookies} is used as it is. Both have one pool of connections, which this client closes,
   * unless an option is given that says how connections are made (`transport`, `mounts`, `proxy`,
   * `limits`, `trustEnv`, `http1`, `http2`, `verify`, `cert`, `localAddress`): then the new
   * client has transports of its own, which it closes. A `transport` or `mounts` that this client
   * was given stays in use; `null` leaves it.
   *
   * @throws TypeError naming the wrong option.
   * @throws {@link ClientStateError} when this client is closed.
   */
  extend(options: ClientOptions = {}): Client {
    this.#checkOpen()
    return new Client(inheriting(options, { settings: this.#settings, pool: this.#pool }))
  }

  /** Builds the request that {@link Client.request} would send. */
  buildRequest(method: string, url: string | URL, options: RequestOptions = {}): Request {
    return buildRequest(this.#settings, method, url, options)
  }

  /** Sends a request that is already built. With `stream: true` the caller reads the content. */
  send(request: Request, options: SendOptions = {}): Response {
    checkSendOptions(options)
    return this.#send(request, options)
  }

  /**
   * Closes the client for good and aborts exchanges in flight. Transports that were passed in stay
   * open; the caller closes them. Closing a client that shares the connections of the one that it
   * extends leaves these open, and its exchanges in flight to their end.
   */
  close(): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#pool.close()
  }

  /** Closes the client at the end of a `using` block. */
  [Symbol.dispose](): void {
    return this.close()
  }

  static {
    printAs(Client, (self) => {
      const { baseUrl } = self.#settings
      const base = baseUrl === null ? '' : ` ${redactUrl(baseUrl)}`
      return `<Client [${self.isClosed ? 'closed' : self.#state}]${base}>`
    })
  }

  #send(request: Request, options: SendOptions): Response {
    this.#checkOpen()
    this.#state = 'opened'
    return driveSync(send(this.#driver, request, options)) as Response
  }

  #checkOpen(): void {
    if (!this.isClosed) return
    throw new ClientStateError('the client is closed and cannot send; create a new one')
  }
}
