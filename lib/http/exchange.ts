import type { Auth } from './auth/auth.js'
import { BasicAuth, resolveAuth, type AuthInit } from './auth/auth.js'
import { MAX_AUTH_LEGS, resolveTimeouts, type Timeouts, type TimeoutOptions } from './config.js'
import { Deadline, totalTimeout } from './deadline.js'
import { RemoteProtocolError, RequestError, TooManyRedirectsError } from './errors.js'
import { settle, type Flow } from './flow.js'
import { Cookies, type CookiesInit } from './cookies/jar.js'
import { Headers } from './headers.js'
import type { EventHooks } from './hooks.js'
import type { NetrcAuth } from './auth/netrc.js'
import { checkOptions } from './known-options.js'
import { errorChannel, requestChannel, responseChannel } from './diagnostics.js'
import { redirectRequest } from './redirects.js'
import { resolveRetry, withRetries, type RetryOptions, type RetryPolicy } from './retry.js'
import { Request, type RequestInit } from './request.js'
import type { BaseResponse, DefaultEncoding, ResponseSettings } from './response.js'
import type { AsyncTransport, Transport, TransportResponse } from './transports/base.js'
import { applyParams, percentDecoded, resolveUrl, sameOrigin, type ParamsInit } from './url.js'

/** What one call may say. Omitted inherits from the client; `null` switches off. */
export interface RequestOptions extends RequestInit {
  /** Authentication for this call; `null` sends none. */
  readonly auth?: AuthInit | null | undefined
  /** Cookies for this call, besides those of the client; `null` sends none at all. */
  readonly cookies?: CookiesInit | null | undefined
  /** Time limits in ms, over those of the client; `null` for none. */
  readonly timeout?: TimeoutOptions | undefined
  readonly followRedirects?: boolean | undefined
  /** Further tries for this call; `null` for none. */
  readonly retry?: RetryOptions | null | undefined
}

/** The part of {@link RequestOptions} that goes with a request already built. */
export interface SendOptions {
  readonly auth?: AuthInit | null | undefined
  readonly followRedirects?: boolean | undefined
  /** Time limits in ms, over those with which the request was built. */
  readonly timeout?: TimeoutOptions | undefined
  /** Further tries for this call; `null` for none. */
  readonly retry?: RetryOptions | null | undefined
  /** Leave the content to be read by the caller, who must close the response. */
  readonly stream?: boolean | undefined
}

const REQUEST_OPTIONS: Readonly<Record<keyof RequestOptions, true>> = {
  auth: true,
  content: true,
  cookies: true,
  data: true,
  extensions: true,
  files: true,
  followRedirects: true,
  headers: true,
  json: true,
  params: true,
  retry: true,
  signal: true,
  timeout: true,
}
const SEND_OPTIONS: Readonly<Record<keyof SendOptions, true>> = {
  auth: true,
  followRedirects: true,
  retry: true,
  stream: true,
  timeout: true,
}

/** Checks what a caller gave to `send()`. @throws TypeError */
export function checkSendOptions(options: SendOptions): void {
  checkOptions(options, SEND_OPTIONS, 'send()')
}

/** A client's options, resolved. @internal */
export interface ClientSettings {
  readonly baseUrl: URL | null
  readonly auth: Auth | null
  readonly headers: Headers
  /** Those that every client sends, without the ones that it was given. */
  readonly ownHeaders: Headers
  readonly cookies: Cookies
  readonly netrc: NetrcAuth | null
  readonly trustEnv: boolean
  readonly params: ParamsInit | null
  readonly timeouts: Timeouts
  readonly followRedirects: boolean
  readonly maxRedirects: number
  readonly defaultEncoding: DefaultEncoding
  readonly maxResponseBytes: number | null
  readonly eventHooks: EventHooks<never>
  readonly sensitiveHeaders: ReadonlySet<string>
  readonly retry: RetryPolicy | null
}

/** A response whose reading and closing may have to be awaited. */
export type AnyResponse = BaseResponse & {
  read(): Uint8Array | Promise<Uint8Array>
  close(): void | Promise<void>
}

/** What differs between the two clients. @internal */
export interface Driver {
  readonly settings: ClientSettings
  /** Whether the calling thread waits, so that nothing may be awaited. */
  readonly blocking: boolean
  transportFor(url: URL): Transport | AsyncTransport
  wrap(raw: TransportResponse): AnyResponse
  readBody(request: Request): Flow<unknown>
  sleep(ms: number, signal: AbortSignal | null): void | Promise<void>
}

/** Redirect bodies up to this size are read, so that the connection can be kept. */
const DRAIN_OCTETS = 64 * 1024

/** The request that a call stands for, with everything the client adds. */
export function buildRequest(
  settings: ClientSettings,
  method: string,
  url: string | URL,
  options: RequestOptions = {},
): Request {
  checkOptions(options, REQUEST_OPTIONS, 'a request')
  const target = resolveUrl(url, settings.baseUrl)
  if (options.params !== null) applyParams(target, settings.params)
  const headers = new Headers(options.headers === null ? settings.ownHeaders : settings.headers)
  if (options.headers !== undefined && options.headers !== null) headers.update(options.headers)
  const request = new Request(method, target, { ...options, headers })
  request.headers.maskAlso(settings.sensitiveHeaders)
  request.timeouts = resolveTimeouts(options.timeout, settings.timeouts)
  // Without cookies of its own, nor those of the jar, nothing is added on later hops either.
  if (options.cookies === null) return request
  request.callCookies = ownCookies(request, options.cookies)
  setCookies(settings, request, true)
  return request
}

/** The cookies that this call alone asks for: those of its Cookie header and of its `cookies`. */
function ownCookies(request: Request, init: CookiesInit | undefined): string {
  const header = request.headers.get('cookie') ?? ''
  if (init === undefined) return header
  const more = new Cookies(init).headerFor(request.url)
  return [header, more].filter((part) => part !== null && part !== '').join('; ')
}

/**
 * Sets the Cookie header for the request's own URL. `direct` says that the caller named this
 * origin, rather than a redirect: only then are cookies sent that belong to no domain.
 */
function setCookies(settings: ClientSettings, request: Request, direct: boolean): void {
  const own = direct ? (request.callCookies ?? '') : ''
  const kept = settings.cookies.headerFor(request.url, direct) ?? ''
  if (own === '' && kept === '') {
    request.headers.delete('cookie')
    return
  }
  const names = new Set(own.split(';').map((pair) => pair.split('=')[0]!.trim()))
  const rest = kept.split('; ').filter((pair) => pair !== '' && !names.has(pair.split('=')[0]!))
  request.headers.set('Cookie', [own, ...rest].filter((part) => part !== '').join('; '))
}

/** One whole call: authentication around redirects around single exchanges. */
export function* send(driver: Driver, request: Request, options: SendOptions): Flow<AnyResponse> {
  const call = new Call(driver, request, options)
  try {
    const response = yield* authenticated(call, request)
    // The deadline covers reading the content, but only of this, the last response.
    if (call.timed) response.whenFinished(() => call.end())
    if (options.stream !== true) yield* readWhole(response)
    return response
  } catch (error) {
    call.end()
    throw error instanceof RequestError ? error.for(request) : error
  }
}

/** What stays the same over the exchanges of one call. */
class Call {
  readonly driver: Driver
  readonly auth: Auth | null
  readonly follow: boolean
  readonly retry: RetryPolicy | null
  /** Headers that redirects do not take to another origin, besides the usual ones. */
  readonly offOrigin: readonly string[]
  readonly timeouts: Timeouts
  readonly settings: ResponseSettings
  readonly signal: AbortSignal | null
  /** `performance.now()` by which a blocking call must be over. */
  readonly deadlineAt: number | null
  readonly #deadline: Deadline | null

  constructor(driver: Driver, request: Request, options: SendOptions) {
    this.driver = driver
    this.auth = chooseAuth(driver.settings, request, options)
    this.offOrigin = [...driver.settings.sensitiveHeaders]
    const { followRedirects } = options
    if (followRedirects !== undefined && typeof followRedirects !== 'boolean') {
      throw new TypeError(`followRedirects must be true or false, got ${String(followRedirects)}`)
    }
    this.follow = followRedirects ?? driver.settings.followRedirects
    const { retry } = options
    this.retry =
      retry === undefined ? driver.settings.retry : retry === null ? null : resolveRetry(retry)
    this.timeouts = resolveTimeouts(options.timeout, request.timeouts ?? driver.settings.timeouts)
    const { total } = this.timeouts
    this.deadlineAt = total === null ? null : performance.now() + total
    this.#deadline = total === null || driver.blocking ? null : new Deadline(total, request.signal)
    this.signal = this.#deadline === null ? request.signal : this.#deadline.signal
    this.settings = {
      defaultEncoding: driver.settings.defaultEncoding,
      maxResponseBytes: driver.settings.maxResponseBytes,
      signal: this.signal,
    }
  }

  /** Whether a timer runs that has to be cleared. */
  get timed(): boolean {
    return this.#deadline !== null
  }

  /** Throws when the caller or the deadline ended the call. */
  check(): void {
    this.signal?.throwIfAborted()
    if (this.deadlineAt !== null && performance.now() >= this.deadlineAt) {
      throw totalTimeout(this.timeouts.total!)
    }
  }

  /** Whether the deadline leaves room for a wait. */
  hasTimeFor(ms: number): boolean {
    return this.deadlineAt === null || performance.now() + ms < this.deadlineAt
  }

  end(): void {
    this.#deadline?.clear()
  }
}

function chooseAuth(settings: ClientSettings, request: Request, options: SendOptions): Auth | null {
  if (options.auth === null) return null
  if (options.auth !== undefined) return resolveAuth(options.auth)
  if (settings.auth !== null) return settings.auth
  const { username, password } = request.url
  if (username !== '' || password !== '') {
    return new BasicAuth(percentDecoded(username), percentDecoded(password))
  }
  // Credentials that the caller wrote into the headers are not replaced by those of a file.
  return request.headers.has('authorization')
    ? null
    : (settings.netrc?.authFor(request.url) ?? null)
}

function* readWhole(response: AnyResponse): Flow<void> {
  try {
    if (!response.readArrived()) yield* settle(response.read())
  } catch (error) {
    yield* settle(response.close())
    throw error
  }
}

function* authenticated(call: Call, first: Request): Flow<AnyResponse> {
  if (call.auth === null) return yield* redirected(call, first)
  if (call.auth.requiresRequestBody) yield* call.driver.readBody(first)
  const flow = call.auth.authFlow(first)
  const history: AnyResponse[] = []
  try {
    let step = yield* settle(flow.next())
    for (let legs = 0; ; legs++) {
      if (step.done === true) throw new TypeError('the auth flow yielded no request')
      if (legs >= MAX_AUTH_LEGS) {
        throw new TooManyRedirectsError(`authentication took more than ${MAX_AUTH_LEGS} requests`)
      }
      const leg = step.value
      if (legs > 0 && leg.callCookies !== null) setCookies(call.driver.settings, leg, true)
      const response = yield* redirected(call, leg)
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
  const { maxRedirects } = call.driver.settings
  const history: AnyResponse[] = []
  for (let request = first; ; ) {
    const response = yield* hooked(call, request)
    try {
      response.history = history.slice()
      if (!response.hasRedirectLocation) return response
      const next = redirection(call, request, response)
      if (next === null) return response
      if (next.callCookies !== null)
        setCookies(call.driver.settings, next, sameOrigin(next.url, first.url))
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

/** The request that follows a redirect; null for one that nobody wants to follow, and nobody could. */
function redirection(call: Call, request: Request, response: AnyResponse): Request | null {
  const [location, ...others] = new Set(response.headers.getList('location'))
  try {
    if (others.length > 0)
      throw new RemoteProtocolError('the server redirects to several places at once')
    return redirectRequest(request, response.statusCode, location!, call.offOrigin)
  } catch (error) {
    if (call.follow) throw error
    return null
  }
}

/** Whether the hooks let a redirect be followed. */
function* mayFollow(call: Call, next: Request, response: AnyResponse): Flow<boolean> {
  for (const hook of call.driver.settings.eventHooks.redirect) {
    if ((yield* settle(hook(next, response as never))) === false) return false
  }
  return true
}

/** Frees the connection of a response that nobody will read, by reading it when it is small. */
function* discard(response: AnyResponse): Flow<void> {
  const length = Number(response.headers.get('content-length') ?? 'NaN')
  try {
    if (length <= DRAIN_OCTETS) yield* settle(response.read())
  } catch {
    // Its content is not wanted; the next request says whether the network is well.
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

/** One exchange, tried again as the policy of the call says. */
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

/** One exchange with a transport. */
function* single(call: Call, request: Request): Flow<AnyResponse> {
  call.check()
  const wired = onWire(call, request)
  const transport = call.driver.transportFor(request.url)
  if (requestChannel.hasSubscribers) requestChannel.publish({ request })
  const startedAt = performance.now()
  try {
    const raw = yield* settle<TransportResponse>(transport.handleRequest(wired))
    const { cookies } = call.driver.settings
    if (cookies.persist && raw.headers.has('set-cookie')) cookies.extract(request.url, raw.headers)
    const response = call.driver.wrap(raw).adopt(request, call.settings, startedAt)
    response.headers.maskAlso(call.driver.settings.sensitiveHeaders)
    if (responseChannel.hasSubscribers) {
      responseChannel.publish({ request, response, durationMs: performance.now() - startedAt })
    }
    return response
  } catch (error) {
    if (errorChannel.hasSubscribers) {
      errorChannel.publish({ request, error, durationMs: performance.now() - startedAt })
    }
    throw error instanceof RequestError ? error.for(request) : error
  }
}

/** The request as the transport gets it: with the limits and the signal of this call. */
function onWire(call: Call, request: Request): Request {
  request.blocking = call.driver.blocking
  const same = request.timeouts === call.timeouts && request.signal === call.signal
  if (same && call.deadlineAt === null) return request
  const wired = Request.fromParts(request.method, request.url, request.headers, request.body, {
    extensions: request.extensions,
    signal: call.signal,
  })
  wired.timeouts = call.timeouts
  wired.deadlineAt = call.deadlineAt
  wired.blocking = call.driver.blocking
  return wired
}

