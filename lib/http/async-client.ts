import { sleep } from '../internal/time.js'
import { AsyncResponse } from './async-response.js'
import { buildRequest } from './build-request.js'
import { checkSendOptions, type RequestOptions, type SendOptions } from './call-options.js'
import { ClientPool, inheriting, parentOf } from './client-pool.js'
import type { ClientTransports } from './client-transports.js'
import type { ServerSentEvent } from './content/sse-parser.js'
import type { Cookies } from './cookies/jar.js'
import { ClientStateError } from './errors.js'
import { EventSourceSession, type SseOptions } from './event-source.js'
import { sendAsync, type Driver } from './exchange.js'
import { makeFetch } from './fetch-call.js'
import { settle } from './flow.js'
import { printAs } from './inspect.js'
import { resolveSettings, type BaseClientOptions, type ClientSettings } from './options.js'
import { nextPage, pageOptions, resolvePagination, type PaginateOptions } from './pagination.js'
import type { Request } from './request.js'
import { withShortcuts, type ResponsePromise } from './response-promise.js'
import type { AsyncTransport, TransportResponse } from './transports/base.js'
import { HttpTransport, type HttpTransportOptions } from './transports/http-transport.js'
import { redactUrl } from './url.js'

/** Options of {@link AsyncClient}. */
export type AsyncClientOptions = BaseClientOptions<AsyncResponse, AsyncTransport> &
  Pick<HttpTransportOptions, 'lookup'>

/**
 * The asynchronous HTTP client. It keeps connections, cookies and defaults between calls, serves
 * any number of calls at once, and must be closed.
 *
 * @example
 * ```ts
 * await using client = new AsyncClient({ baseUrl: 'https://api.example/v1', timeout: 10_000 })
 * const created = await client.post('/items', { json: { name: 'nut' } })
 * created.raiseForStatus().json<{ id: string }>()
 * ```
 */
export class AsyncClient implements AsyncDisposable {
  readonly #settings: ClientSettings
  readonly #pool: ClientPool<AsyncTransport>
  readonly #transports: ClientTransports<AsyncTransport>
  readonly #driver: Driver
  #state: 'unopened' | 'opened' | 'closed' = 'unopened'
  #fetch: typeof globalThis.fetch | null = null

  /** @throws TypeError naming the wrong option. */
  constructor(options: AsyncClientOptions = {}) {
    const parent = parentOf<AsyncTransport>(options)
    this.#settings = resolveSettings(options, parent?.settings ?? null)
    this.#pool = new ClientPool(options, parent?.pool ?? null, (made) => new HttpTransport(made))
    this.#transports = this.#pool.transports
    this.#driver = {
      settings: this.#settings,
      blocking: false,
      transportFor: (request) => this.#transports.forRequest(request),
      wrap: (raw: TransportResponse) => AsyncResponse.from(raw),
      sleep: (ms, signal) => sleep(ms, signal),
      readBody: (request) => settle(request.read()),
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
  get(url: string | URL, options?: RequestOptions): ResponsePromise {
    return this.request('GET', url, options)
  }

  /** Sends a POST request and reads the content of the response. */
  post(url: string | URL, options?: RequestOptions): ResponsePromise {
    return this.request('POST', url, options)
  }

  /** Sends a PUT request and reads the content of the response. */
  put(url: string | URL, options?: RequestOptions): ResponsePromise {
    return this.request('PUT', url, options)
  }

  /** Sends a PATCH request and reads the content of the response. */
  patch(url: string | URL, options?: RequestOptions): ResponsePromise {
    return this.request('PATCH', url, options)
  }

  /** Sends a DELETE request and reads the content of the response. */
  delete(url: string | URL, options?: RequestOptions): ResponsePromise {
    return this.request('DELETE', url, options)
  }

  /** Sends a HEAD request and reads the content of the response. */
  head(url: string | URL, options?: RequestOptions): ResponsePromise {
    return this.request('HEAD', url, options)
  }

  /** Sends an OPTIONS request and reads the content of the response. */
  options(url: string | URL, options?: RequestOptions): ResponsePromise {
    return this.request('OPTIONS', url, options)
  }

  /**
   * Sends a request and reads the content of the response. A 4xx or 5xx is no error, except with
   * `raiseForStatus`. The promise has `json()`, `text()` and `bytes()` of the response.
   *
   * @throws {@link RequestError} without a usable response; `signal.reason` if the signal aborts.
   */
  request(method: string, url: string | URL, options: RequestOptions = {}): ResponsePromise {
    // Not async, which would add a promise to the one of the call.
    try {
      return withShortcuts(this.#send(this.buildRequest(method, url, options), options))
    } catch (error) {
      return withShortcuts(Promise.reject(error as Error))
    }
  }

  /**
   * As {@link AsyncClient.request}, but leaves the content unread. Close the response unless it is
   * read to its end; `await using` does.
   */
  async stream(
    method: string,
    url: string | URL,
    options: RequestOptions = {},
  ): Promise<AsyncResponse> {
    return this.#send(this.buildRequest(method, url, options), { ...options, stream: true })
  }

  /**
   * The events of an event stream (WHATWG HTML, section 9.2). A lost or ended stream is opened
   * again with Last-Event-ID, after the delay set by the server. Status 204 ends it for good.
   *
   * @throws {@link HttpStatusError} for another status than 200.
   * @throws {@link RemoteProtocolError} for another content type than text/event-stream.
   */
  async *sse(
    url: string | URL,
    options: SseOptions = {},
  ): AsyncGenerator<ServerSentEvent, void, undefined> {
    const session = new EventSourceSession(options)
    for (;;) {
      let response: AsyncResponse | null = null
      let failure: unknown = null
      try {
        response = await this.stream(session.method, url, session.requestOptions())
        if (!session.accepts(response)) return
        for await (const chunk of response.iterBytes()) yield* session.feed(chunk)
      } catch (error) {
        failure = error
      } finally {
        await response?.close()
      }
      options.signal?.throwIfAborted()
      const delayMs = session.nextDelay(failure)
      if (delayMs === null) return
      await sleep(delayMs, options.signal ?? null)
    }
  }

  /** The pages of a list: a response, and those that its Link headers lead to (RFC 8288). */
  async *paginate(
    url: string | URL,
    options: PaginateOptions = {},
  ): AsyncGenerator<AsyncResponse, void, undefined> {
    const pagination = resolvePagination(options)
    const { method, maxPages } = pagination
    let target: string | URL | null = url
    for (let page = 0; page < maxPages && target !== null; page++) {
      const request = pageOptions(options, page)
      const response: AsyncResponse = await this.request(method, target, request)
      yield response
      target = nextPage(response, pagination, this.#settings.params)
    }
  }

  /**
   * `fetch()` of this client, by the Fetch Standard, to pass to libraries that take one: bound to
   * it, with its headers, params, auth, cookies, hooks, retries, proxies and connections. Whatever
   * the status, it resolves with Node's own `Response`, whose body is read as it is consumed.
   *
   * Differences: relative URLs start from `baseUrl`; redirects take no header that is secret, such
   * as X-Api-Key, to another origin; `credentials: 'omit'` sends neither cookies nor auth, all else
   * sends both; `integrity` and `dispatcher` are errors; `cache`, `mode` and `referrer` have no
   * effect; `data:` and `blob:` URLs are not fetched. Without the option `timeout` only connecting
   * is limited in time. Consume or cancel the body of every response, as it holds its connection.
   *
   * @throws TypeError (by promise) with the failure as its `cause`; the signal's reason on abort.
   */
  get fetch(): typeof globalThis.fetch {
    return (this.#fetch ??= makeFetch(this, this.#settings))
  }

  /**
   * A new client with these options over those of this client. As with the options of a call,
   * headers, params and cookies are merged, `timeout` by its phases, and `null` switches off; hooks
   * are called after those of this client, `sensitiveHeaders` are added, and the others replace.
   *
   * Both have one cookie jar, unless cookies are given: these are set in a copy of it, and a
   * {@link Cookies} is used as it is. Both have one pool of connections, which this client closes,
   * unless an option is given that says how connections are made (`transport`, `mounts`, `proxy`,
   * `limits`, `trustEnv`, `http1`, `http2`, `verify`, `cert`, `localAddress`, `lookup`): then the
   * new client has transports of its own, which it closes. A `transport` or `mounts` that this
   * client was given stays in use; `null` leaves it.
   *
   * @throws TypeError naming the wrong option.
   * @throws {@link ClientStateError} when this client is closed.
   */
  extend(options: AsyncClientOptions = {}): AsyncClient {
    this.#checkOpen()
    return new AsyncClient(inheriting(options, { settings: this.#settings, pool: this.#pool }))
  }

  /** Builds the request that {@link AsyncClient.request} would send. */
  buildRequest(method: string, url: string | URL, options: RequestOptions = {}): Request {
    return buildRequest(this.#settings, method, url, options)
  }

  /** Sends a request that is already built. With `stream: true` the caller reads the content. */
  async send(request: Request, options: SendOptions = {}): Promise<AsyncResponse> {
    checkSendOptions(options)
    return this.#send(request, options)
  }

  /**
   * Closes the client for good and aborts exchanges in flight. Transports that were passed in stay
   * open; the caller closes them. Closing a client that shares the connections of the one that it
   * extends leaves these open, and its exchanges in flight to their end.
   */
  async close(): Promise<void> {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    await Promise.all(this.#pool.close())
  }

  /** Closes the client at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  static {
    printAs(AsyncClient, (self) => {
      const { baseUrl } = self.#settings
      const base = baseUrl === null ? '' : ` ${redactUrl(baseUrl)}`
      return `<AsyncClient [${self.isClosed ? 'closed' : self.#state}]${base}>`
    })
  }

  #send(request: Request, options: SendOptions): Promise<AsyncResponse> {
    this.#checkOpen()
    this.#state = 'opened'
    return sendAsync(this.#driver, request, options) as Promise<AsyncResponse>
  }

  #checkOpen(): void {
    if (!this.isClosed) return
    throw new ClientStateError('the client is closed and cannot send; create a new one')
  }
}
