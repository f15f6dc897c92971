/**
 * One call, from its request to its response. Both clients run this code as a flow, each with its
 * own {@link Driver}. From the outside in:
 *
 * 1. `send` reads the content, unless it is streamed, throws for the status if the call asks for
 *    that, and holds the call to its total time limit.
 * 2. `authenticated` sends the requests of the auth flow.
 * 3. `redirected` follows the redirects of each.
 * 4. `hooked` runs the hooks around each exchange, and `retried` repeats it.
 * 5. `single` is one exchange with the transport, after which cookies are stored.
 *
 * A response that is not returned is closed, whatever throws.
 *
 * `sendPlain` is the short way of AsyncClient for a call with none of this: it makes the same
 * exchange without a generator for each layer, and continues with `redirected` if the response is
 * a redirect.
 *
 * @module
 */
import { BasicAuth, resolveAuth, type Auth } from './auth/auth.js'
import { setCookies } from './build-request.js'
import type { SendOptions } from './call-options.js'
import { MAX_AUTH_REQUESTS, resolveTimeouts, type Timeouts } from './config.js'
import { Deadline, totalTimeout } from './deadline.js'
import { errorChannel, requestChannel, responseChannel } from './diagnostics.js'
import { RemoteProtocolError, RequestError, TooManyRedirectsError } from './errors.js'
import { drive, settle, type Flow } from './flow.js'
import { Headers } from './headers.js'
import type { ClientSettings } from './options.js'
import { redirectRequest } from './redirects.js'
import { Request } from './request.js'
import type { BaseResponse, ResponseSettings } from './response.js'
import { resolveRetry, withRetries, type RetryPolicy } from './retry.js'
import type { AsyncTransport, Transport, TransportResponse } from './transports/base.js'
import { percentDecoded, sameOrigin } from './url.js'

/** The response of either client: reading and closing it may return promises. */
export type AnyResponse = BaseResponse & {
  read(): Uint8Array | Promise<Uint8Array>
  close(): void | Promise<void>
}

/** What differs between the two clients. @internal */
export interface Driver {
  readonly settings: ClientSettings
  /** Whether the calling thread blocks, so that nothing can be awaited. */
  readonly blocking: boolean
  transportFor(request: Request): Transport | AsyncTransport
  wrap(raw: TransportResponse): AnyResponse
  /** Reads a streaming request body into memory. */
  readBody(request: Request): Flow<unknown>
  sleep(ms: number, signal: AbortSignal | null): void | Promise<void>
}

/** Unwanted content up to this many bytes is read, so that the connection can be reused. */
const DRAIN_BYTES = 64 * 1024

/** Content of a streamed response up to this size is read for its {@link HttpStatusError}. */
const MAX_ERROR_BYTES = 1024 * 1024

/** Sends `request` and returns the last response. */
export function* send(driver: Driver, request: Request, options: SendOptions): Flow<AnyResponse> {
  return yield* sendCall(new Call(driver, request, options), request, options)
}

/** As {@link send}, by promise; the short way is taken where nothing asks for the long one. */
export function sendAsync(
  driver: Driver,
  request: Request,
  options: SendOptions,
): Promise<AnyResponse> {
  const call = new Call(driver, request, options)
  return call.isPlain ? sendPlain(call, request, options) : drive(sendCall(call, request, options))
}

function* sendCall(call: Call, request: Request, options: SendOptions): Flow<AnyResponse> {
  try {
    const response = yield* authenticated(call, request)
    // The deadline also covers reading the content of this response.
    if (call.timed) response.whenFinished(() => call.end())
    if (options.stream !== true) yield* readContent(response)
    if (call.raises && !response.isSuccess) yield* raise(call, response)
    return response
  } catch (error) {
    call.end()
    throw error instanceof RequestError ? error.for(request) : error
  }
}

/**
 * Does what `sendCall` does for a call without authentication, hooks, retries and a total time
 * limit: one exchange, after which the content is read and the status looked at.
 */
async function sendPlain(call: Call, request: Request, options: SendOptions): Promise<AnyResponse> {
  try {
    const exchange = new Exchange(call, request)
    let response: AnyResponse
    try {
      response = exchange.received(await exchange.start())
    } catch (error) {
      throw exchange.failed(error)
    }
    if (response.hasRedirectLocation) response = await drive(followed(call, request, response))
    try {
      if (options.stream !== true && !response.readArrived()) await response.read()
    } catch (error) {
      await response.close()
      throw error
    }
    if (call.raises && !response.isSuccess) await drive(raise(call, response))
    return response
  } catch (error) {
    throw error instanceof RequestError ? error.for(request) : error
  }
}

/** Options and limits of one call, shared by its exchanges. */
class Call {
  readonly driver: Driver
  readonly auth: Auth | null
  readonly follow: boolean
  readonly retry: RetryPolicy | null
  readonly raises: boolean
  readonly timeouts: Timeouts
  readonly responseSettings: ResponseSettings
  readonly signal: AbortSignal | null
  /** The `performance.now()` at which `timeout.total` ends the call. */
  readonly deadlineAt: number | null
  readonly #deadline: Deadline | null

  constructor(driver: Driver, request: Request, options: SendOptions) {
    this.driver = driver
    this.auth = chooseAuth(driver.settings, request, options)
    request.headers.maskAlso(driver.settings.sensitiveHeaders)
    const { followRedirects } = options
    if (followRedirects !== undefined && typeof followRedirects !== 'boolean') {
      throw new TypeError(`followRedirects must be true or false, got ${String(followRedirects)}`)
    }
    this.follow = followRedirects ?? driver.settings.followRedirects
    this.raises = options.raiseForStatus ?? driver.settings.raiseForStatus
    const { retry } = options
    this.retry =
      retry === undefined ? driver.settings.retry : retry === null ? null : resolveRetry(retry)
    this.timeouts = resolveTimeouts(options.timeout, request.timeouts ?? driver.settings.timeouts)
    const { total } = this.timeouts
    this.deadlineAt = total === null ? null : performance.now() + total
    this.#deadline = total === null || driver.blocking ? null : new Deadline(total, request.signal)
    this.signal = this.#deadline === null ? request.signal : this.#deadline.signal
    this.responseSettings = {
      defaultEncoding: driver.settings.defaultEncoding,
      maxResponseBytes: driver.settings.maxResponseBytes,
      signal: this.signal,
    }
  }

  /** Whether nothing but redirects can make this call more than one exchange. */
  get isPlain(): boolean {
    const { request, response } = this.driver.settings.eventHooks
    const hooked = request.length > 0 || response.length > 0
    return this.auth === null && this.retry === null && this.deadlineAt === null && !hooked
  }

  /** Whether a timer runs that `end()` must clear. */
  get timed(): boolean {
    return this.#deadline !== null
  }

  /** Throws if the caller aborted the call or its total time is up. */
  check(): void {
    this.signal?.throwIfAborted()
    if (this.deadlineAt !== null && performance.now() >= this.deadlineAt) {
      throw totalTimeout(this.timeouts.total!)
    }
  }

  /** Whether the total time leaves room for a delay. */
  hasTimeFor(ms: number): boolean {
    return this.deadlineAt === null || performance.now() + ms < this.deadlineAt
  }

  end(): void {
    this.#deadline?.clear()
  }
}

/** Marks what authentication has added to the headers `given` as secret, whatever its name. */
function markCredentials(headers: Headers, given: Headers): void {
  const names = new Set<string>()
  headers.visit((key) => {
    const framing = key.startsWith('content-') || key === 'transfer-encoding'
    if (!framing && headers.get(key) !== given.get(key)) names.add(key)
  })
  headers.maskAlso(names)
}

function chooseAuth(settings: ClientSettings, request: Request, options: SendOptions): Auth | null {
  if (options.auth === null) return null
  if (options.auth !== undefined) return resolveAuth(options.auth)
  // The credentials of the client are not for an origin that a server named.
  if (request.isForeign) return null
  if (settings.auth !== null) return settings.auth
  if (request.destination.hasCredentials) {
    const { username, password } = request.url
    return new BasicAuth(percentDecoded(username), percentDecoded(password))
  }
  // Credentials in the headers take precedence over those of a netrc file.
  return request.headers.has('authorization')
    ? null
    : (settings.netrc?.authFor(request.url) ?? null)
}

function* readContent(response: AnyResponse): Flow<void> {
  try {
    if (!response.readArrived()) yield* settle(response.read())
  } catch (error) {
    yield* settle(response.close())
    throw error
  }
}

/**
 * Throws for the status. A streamed response is read first, as far as that is bounded, since the
 * caller, who has no response to close, reads the content of the error's at most.
 */
function* raise(call: Call, response: AnyResponse): Flow<void> {
  try {
    response.limitContent(MAX_ERROR_BYTES)
    yield* readContent(response)
  } catch {
    // The status counts for more than what went wrong after it, but for an abort.
    call.check()
  }
  response.raiseForStatus()
}

function* authenticated(call: Call, first: Request): Flow<AnyResponse> {
  if (call.auth === null) return yield* redirected(call, first)
  if (call.auth.requiresRequestBody) yield* call.driver.readBody(first)
  const given = new Headers(first.headers)
  const flow = call.auth.authFlow(first)
  const history: AnyResponse[] = []
  try {
    let step = yield* settle(flow.next())
    for (let sent = 0; ; sent++) {
      if (step.done === true) throw new TypeError('the auth flow must yield a request')
      if (sent >= MAX_AUTH_REQUESTS) {
        throw new TooManyRedirectsError(`authentication needs over ${MAX_AUTH_REQUESTS} requests`)
      }
      const request = step.value
      markCredentials(request.headers, given)
      if (sent > 0 && request.callCookies !== null) {
        setCookies(call.driver.settings, request, !request.isForeign)
      }
      const response = yield* redirected(call, request)
      response.authHistory = history.slice()
      try {
        if (call.auth.requiresResponseBody) yield* settle(response.read())
        step = yield* settle(flow.next(response))
        if (step.done === true) return response
        yield* discard(response)
      } catch (error) {
        yield* settle(response.close())
        throw error
      }
      history.push(response)
    }
  } finally {
    yield* settle(flow.return(undefined) as PromiseLike<unknown>)
  }
}

function* redirected(call: Call, first: Request): Flow<AnyResponse> {
  return yield* followed(call, first, yield* hooked(call, first))
}

/** The response that the redirects of the response `to` a request lead to. */
function* followed(call: Call, to: Request, answer: AnyResponse): Flow<AnyResponse> {
  const { maxRedirects } = call.driver.settings
  const history: AnyResponse[] = []
  for (let request = to, response = answer; ; response = yield* hooked(call, request)) {
    try {
      response.history = history.slice()
      if (!response.hasRedirectLocation) return response
      const next = redirection(call, request, response)
      if (next === null) return response
      if (next.callCookies !== null) {
        setCookies(call.driver.settings, next, sameOrigin(next.url, next.namedUrl!))
      }
      if (!call.follow) {
        response.nextRequest = next
        return response
      }
      if (history.length >= maxRedirects) {
        throw new TooManyRedirectsError(`more than ${maxRedirects} redirects (maxRedirects)`)
      }
      if (!(yield* mayFollow(call, next, response))) {
        response.nextRequest = next
        return response
      }
      yield* discard(response)
      history.push(response)
      request = next
    } catch (error) {
      yield* settle(response.close())
      throw error instanceof RequestError ? error.for(request) : error
    }
  }
}

/** The next request of a redirect; null if it is invalid and the call does not follow redirects. */
function redirection(call: Call, request: Request, response: AnyResponse): Request | null {
  const [location, ...others] = new Set(response.headers.getList('location'))
  try {
    if (others.length > 0) {
      throw new RemoteProtocolError('the redirect has several different Location fields')
    }
    return redirectRequest(request, response.statusCode, location!)
  } catch (error) {
    if (call.follow) throw error
    return null
  }
}

/** Whether no redirect hook returns false. */
function* mayFollow(call: Call, next: Request, response: AnyResponse): Flow<boolean> {
  for (const hook of call.driver.settings.eventHooks.redirect) {
    if ((yield* settle(hook(next, response as never))) === false) return false
  }
  return true
}

/** Frees the connection of a response that is not returned, by reading its content if small. */
function* discard(response: AnyResponse): Flow<void> {
  const length = Number(response.headers.get('content-length') ?? 'NaN')
  try {
    if (length <= DRAIN_BYTES) yield* settle(response.read())
  } catch {
    // The content is not wanted, and the next request reports a broken network.
  }
  yield* settle(response.close())
}

function* hooked(call: Call, request: Request): Flow<AnyResponse> {
  const { eventHooks } = call.driver.settings
  for (const hook of eventHooks.request) yield* settle(hook(request))
  const response = yield* retried(call, request)
  if (eventHooks.response.length === 0) return response
  try {
    for (const hook of eventHooks.response) yield* settle(hook(response as never))
    return response
  } catch (error) {
    yield* settle(response.close())
    throw error
  }
}

/** One exchange, repeated by the retry policy of the call. */
function* retried(call: Call, request: Request): Flow<AnyResponse> {
  if (call.retry === null) return yield* single(call, request)
  const { eventHooks } = call.driver.settings
  return yield* withRetries<AnyResponse>(call.retry, request, {
    attempt: () => single(call, request),
    discard,
    *allows(event) {
      if (!call.hasTimeFor(event.delayMs)) return false
      for (const hook of eventHooks.retry) if ((yield* settle(hook(event))) === false) return false
      return true
    },
    sleep: (ms) => settle(call.driver.sleep(ms, call.signal)),
  })
}

/** Sends `request` once: no retries, redirects, authentication or hooks. */
function* single(call: Call, request: Request): Flow<AnyResponse> {
  const exchange = new Exchange(call, request)
  try {
    return exchange.received(yield* settle<TransportResponse>(exchange.start()))
  } catch (error) {
    throw exchange.failed(error)
  }
}

/** One exchange with the transport: what is done before and after waiting for the response. */
class Exchange {
  readonly #call: Call
  readonly #request: Request
  readonly #outgoing: Request
  readonly #transport: Transport | AsyncTransport
  #startedAt = 0

  constructor(call: Call, request: Request) {
    call.check()
    this.#call = call
    this.#request = request
    this.#outgoing = forTransport(call, request)
    this.#transport = call.driver.transportFor(request)
  }

  start(): TransportResponse | Promise<TransportResponse> {
    const request = this.#request
    if (requestChannel.hasSubscribers) requestChannel.publish({ request })
    this.#startedAt = performance.now()
    return this.#transport.handleRequest(this.#outgoing)
  }

  received(raw: TransportResponse): AnyResponse {
    const call = this.#call
    const request = this.#request
    const { cookies, sensitiveHeaders } = call.driver.settings
    if (cookies.persist && raw.headers.has('set-cookie')) cookies.extract(request.url, raw.headers)
    const response = call.driver.wrap(raw).adopt(request, call.responseSettings, this.#startedAt)
    response.headers.maskAlso(sensitiveHeaders)
    if (responseChannel.hasSubscribers) {
      responseChannel.publish({ request, response, durationMs: this.#elapsedMs })
    }
    return response
  }

  /** What to throw for `error`. */
  failed(error: unknown): unknown {
    const request = this.#request
    if (errorChannel.hasSubscribers) {
      errorChannel.publish({ request, error, durationMs: this.#elapsedMs })
    }
    return error instanceof RequestError ? error.for(request) : error
  }

  get #elapsedMs(): number {
    return performance.now() - this.#startedAt
  }
}

/** The request for the transport, with the time limits and the signal of this call. */
function forTransport(call: Call, request: Request): Request {
  request.blocking = call.driver.blocking
  const same = request.timeouts === call.timeouts && request.signal === call.signal
  if (same && call.deadlineAt === null) return request
  const outgoing = Request.fromParts(request.method, request.url, request.headers, request.body, {
    extensions: request.extensions,
    signal: call.signal,
  })
  outgoing.timeouts = call.timeouts
  outgoing.deadlineAt = call.deadlineAt
  outgoing.blocking = call.driver.blocking
  return outgoing
}

