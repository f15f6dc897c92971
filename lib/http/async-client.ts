import { printAs } from './inspect.js'
import type { BaseClientOptions } from './options.js'
import { resolveSettings, transportOptions } from './options.js'
import { ClientTransports } from './client-transports.js'
import type { Cookies } from './cookies/jar.js'
import { ClientStateError } from './errors.js'
import {
  buildRequest,
  checkSendOptions,
  send,
  type ClientSettings,
  type Driver,
  type RequestOptions,
  type SendOptions,
} from './exchange.js'
import { drive, settle } from './flow.js'
import { EventSourceSession, type SseOptions } from './event-source.js'
import {
  DEFAULT_MAX_PAGES,
  firstPageOptions,
  laterPageOptions,
  nextPage,
  type PaginateOptions,
} from './pagination.js'
import { sleep } from '../internal/sleep.js'
import type { ServerSentEvent } from './content/sse-parser.js'
import type { Request } from './request.js'
import { AsyncResponse } from './async-response.js'
import type { AsyncTransport, TransportResponse } from './transports/base.js'
import { HttpTransport } from './transports/http-transport.js'
import { redactUrl } from './url.js'

/** Options of {@link AsyncClient}. */
export type AsyncClientOptions = BaseClientOptions<AsyncResponse, AsyncTransport>

/**
 * The HTTP client whose calls are awaited. It keeps connections, cookies and defaults between
 * calls, may be used by any number of calls at a time, and must be closed.
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
  readonly #transports: ClientTransports<AsyncTransport>
  readonly #driver: Driver
  #state: 'unopened' | 'opened' | 'closed' = 'unopened'

  /** @throws TypeError naming the option that is wrong. */
  constructor(options: AsyncClientOptions = {}) {
    this.#settings = resolveSettings(options)
    this.#transports = new ClientTransports<AsyncTransport>({
      transport: options.transport ?? null,
      mounts: options.mounts ?? null,
      proxy: options.proxy ?? null,
      trustEnv: this.#settings.trustEnv,
      make: (proxy) => new HttpTransport(transportOptions(options, proxy)),
    })
    this.#driver = {
      settings: this.#settings,
      blocking: false,
      transportFor: (url) => this.#transports.forUrl(url),
      wrap: (raw: TransportResponse) => AsyncResponse.from(raw),
      sleep: (ms, signal) => sleep(ms, signal),
      readBody: (request) => settle(request.read()),
    }
  }

  /** Whether `close()` was called. */
  get isClosed(): boolean {
    return this.#state === 'closed'
  }

  /** The cookies of this client, which responses add to. */
  get cookies(): Cookies {
    return this.#settings.cookies
  }

  /** GET. */
  get(url: string | URL, options?: RequestOptions): Promise<AsyncResponse> {
    return this.request('GET', url, options)
  }

  /** POST. */
  post(url: string | URL, options?: RequestOptions): Promise<AsyncResponse> {
    return this.request('POST', url, options)
  }

  /** PUT. */
  put(url: string | URL, options?: RequestOptions): Promise<AsyncResponse> {
    return this.request('PUT', url, options)
  }

  /** PATCH. */
  patch(url: string | URL, options?: RequestOptions): Promise<AsyncResponse> {
    return this.request('PATCH', url, options)
  }

  /** DELETE. */
  delete(url: string | URL, options?: RequestOptions): Promise<AsyncResponse> {
    return this.request('DELETE', url, options)
  }

  /** HEAD. */
  head(url: string | URL, options?: RequestOptions): Promise<AsyncResponse> {
    return this.request('HEAD', url, options)
  }

  /** OPTIONS. */
  options(url: string | URL, options?: RequestOptions): Promise<AsyncResponse> {
    return this.request('OPTIONS', url, options)
  }

  /**
   * Sends a request with any method and reads the answer. A 4xx or 5xx is an answer, not an error.
   *
   * @throws {@link RequestError} when there is no answer; `signal.reason` when the signal aborts.
   */
  async request(
    method: string,
    url: string | URL,
    options: RequestOptions = {},
  ): Promise<AsyncResponse> {
    return this.#send(this.buildRequest(method, url, options), options)
  }

  /**
   * As {@link AsyncClient.request}, but leaves the content to be read. Close the response when it
   * is not read to its end; `await using` does.
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
   * again with Last-Event-ID, after the delay that the server asks for; an answer of 204 ends it.
   *
   * @throws {@link HttpStatusError} or {@link RemoteProtocolError} when the answer is no event stream.
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

  /** The pages of a list: the answer to a request, and those that its Link headers lead to (RFC 8288). */
  async *paginate(
    url: string | URL,
    options: PaginateOptions = {},
  ): AsyncGenerator<AsyncResponse, void, undefined> {
    const { method = 'GET', maxPages = DEFAULT_MAX_PAGES, rel = 'next' } = options
    let target: string | URL | null = url
    for (let page = 0; page < maxPages && target !== null; page++) {
      const response: AsyncResponse = await this.request(
        method,
        target,
        page === 0 ? firstPageOptions(options) : laterPageOptions(options),
      )
      yield response
      target = nextPage(response, rel, this.#settings.params)
    }
  }

  /** The request that a call would send, not sent. */
  buildRequest(method: string, url: string | URL, options: RequestOptions = {}): Request {
    return buildRequest(this.#settings, method, url, options)
  }

  /** Sends a request that was built. With `stream: true` the content is left to be read. */
  async send(request: Request, options: SendOptions = {}): Promise<AsyncResponse> {
    checkSendOptions(options)
    return this.#send(request, options)
  }

  /**
   * Closes the client for good. Exchanges in flight are cut off. A transport that was passed in
   * stays open; its owner closes it.
   */
  async close(): Promise<void> {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    await Promise.all(this.#transports.close())
  }

  /** Closes the client. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  static {
    printAs(AsyncClient, (self) => {
      const { baseUrl } = self.#settings
      const base = baseUrl === null ? '' : ` ${redactUrl(baseUrl)}`
      return `<AsyncClient [${self.#state}]${base}>`
    })
  }

  #send(request: Request, options: SendOptions): Promise<AsyncResponse> {
    if (this.#state === 'closed') {
      throw new ClientStateError('the client is closed and cannot send; make a new one')
    }
    this.#state = 'opened'
    return drive(send(this.#driver, request, options)) as Promise<AsyncResponse>
  }

}
