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
import { driveSync, settle } from './flow.js'
import { EventSourceSession, type SseOptions } from './event-source.js'
import {
  DEFAULT_MAX_PAGES,
  firstPageOptions,
  laterPageOptions,
  nextPage,
  type PaginateOptions,
} from './pagination.js'
import { sleepSync } from '../internal/sleep.js'
import type { ServerSentEvent } from './content/sse-parser.js'
import type { Request } from './request.js'
import { Response } from './sync-response.js'
import type { Transport, TransportResponse } from './transports/base.js'
import { BlockingTransport } from './transports/blocking/blocking-transport.js'
import { redactUrl } from './url.js'

/** Options of {@link Client}. */
export type ClientOptions = BaseClientOptions<Response, Transport>

/**
 * The HTTP client whose calls block: each returns when the answer is there, without a promise and
 * without a child process. A worker thread owns the sockets, so connections are kept between calls,
 * bodies stream both ways and every time limit holds; hooks, auth and cookies run on the calling
 * thread. It has the methods, options and errors of `AsyncClient`.
 *
 * Nothing else runs on the calling thread during a call: a server in the same thread cannot answer,
 * and a signal is only looked at between waits; use `timeout.total` to bound a call.
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
  readonly #transports: ClientTransports<Transport>
  readonly #driver: Driver
  #state: 'unopened' | 'opened' | 'closed' = 'unopened'

  /** @throws TypeError naming the option that is wrong. */
  constructor(options: ClientOptions = {}) {
    this.#settings = resolveSettings(options)
    this.#transports = new ClientTransports<Transport>({
      transport: options.transport ?? null,
      mounts: options.mounts ?? null,
      proxy: options.proxy ?? null,
      trustEnv: this.#settings.trustEnv,
      make: (proxy) => new BlockingTransport(transportOptions(options, proxy)),
    })
    this.#driver = {
      settings: this.#settings,
      blocking: true,
      transportFor: (url) => this.#transports.forUrl(url),
      wrap: (raw: TransportResponse) => Response.from(raw),
      sleep: (ms) => sleepSync(ms),
      readBody: (request) => settle(request.readSync()),
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
  get(url: string | URL, options?: RequestOptions): Response {
    return this.request('GET', url, options)
  }

  /** POST. */
  post(url: string | URL, options?: RequestOptions): Response {
    return this.request('POST', url, options)
  }

  /** PUT. */
  put(url: string | URL, options?: RequestOptions): Response {
    return this.request('PUT', url, options)
  }

  /** PATCH. */
  patch(url: string | URL, options?: RequestOptions): Response {
    return this.request('PATCH', url, options)
  }

  /** DELETE. */
  delete(url: string | URL, options?: RequestOptions): Response {
    return this.request('DELETE', url, options)
  }

  /** HEAD. */
  head(url: string | URL, options?: RequestOptions): Response {
    return this.request('HEAD', url, options)
  }

  /** OPTIONS. */
  options(url: string | URL, options?: RequestOptions): Response {
    return this.request('OPTIONS', url, options)
  }

  /**
   * Sends a request with any method and reads the answer. A 4xx or 5xx is an answer, not an error.
   *
   * @throws {@link RequestError} when there is no answer; `signal.reason` when the signal aborts.
   */
  request(method: string, url: string | URL, options: RequestOptions = {}): Response {
    return this.#send(this.buildRequest(method, url, options), options)
  }

  /**
   * As {@link Client.request}, but leaves the content to be read. Close the response when it
   * is not read to its end; `using` does.
   */
  stream(method: string, url: string | URL, options: RequestOptions = {}): Response {
    return this.#send(this.buildRequest(method, url, options), { ...options, stream: true })
  }

  /**
   * The events of an event stream (WHATWG HTML, section 9.2). A lost or ended stream is opened
   * again with Last-Event-ID, after the delay that the server asks for; an answer of 204 ends it.
   *
   * @throws {@link HttpStatusError} or {@link RemoteProtocolError} when the answer is no event stream.
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

  /** The pages of a list: the answer to a request, and those that its Link headers lead to (RFC 8288). */
  *paginate(
    url: string | URL,
    options: PaginateOptions = {},
  ): Generator<Response, void, undefined> {
    const { method = 'GET', maxPages = DEFAULT_MAX_PAGES, rel = 'next' } = options
    let target: string | URL | null = url
    for (let page = 0; page < maxPages && target !== null; page++) {
      const response: Response = this.request(
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
  send(request: Request, options: SendOptions = {}): Response {
    checkSendOptions(options)
    return this.#send(request, options)
  }

  /**
   * Closes the client for good. Exchanges in flight are cut off. A transport that was passed in
   * stays open; its owner closes it.
   */
  close(): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#transports.close()
  }

  /** Closes the client. */
  [Symbol.dispose](): void {
    return this.close()
  }

  static {
    printAs(Client, (self) => {
      const { baseUrl } = self.#settings
      const base = baseUrl === null ? '' : ` ${redactUrl(baseUrl)}`
      return `<Client [${self.#state}]${base}>`
    })
  }

  #send(request: Request, options: SendOptions): Response {
    if (this.#state === 'closed') {
      throw new ClientStateError('the client is closed and cannot send; make a new one')
    }
    this.#state = 'opened'
    return driveSync(send(this.#driver, request, options)) as Response
  }

}
