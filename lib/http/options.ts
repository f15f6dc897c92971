import { checkOptions, type OptionKinds } from '../internal/options.js'
import { resolveAuth, type Auth, type AuthInit } from './auth/auth.js'
import { NetrcAuth } from './auth/netrc.js'
import type { Mounts } from './client-transports.js'
import {
  checkBoolean,
  checkCount,
  DEFAULT_MAX_REDIRECTS,
  DEFAULT_MAX_RESPONSE_BYTES,
  DEFAULT_TIMEOUTS,
  resolveTimeouts,
  type LimitOptions,
  type TimeoutOptions,
  type Timeouts,
} from './config.js'
import { acceptEncoding } from './content/decoders.js'
import { encodingName } from './content/text.js'
import { Cookies, type CookiesInit } from './cookies/jar.js'
import { Destinations } from './destination.js'
import { netrcFile } from './environment.js'
import { Headers, type HeadersInit } from './headers.js'
import { NO_HOOKS, resolveHooks, type EventHookOptions, type EventHooks } from './hooks.js'
import type { BaseResponse, DefaultEncoding } from './response.js'
import { resolveRetry, type RetryOptions, type RetryPolicy } from './retry.js'
import type { ClientCertificate, Verify } from './tls.js'
import type { HttpTransportOptions } from './transports/http-transport.js'
import type { ProxyInit } from './transports/proxy/proxy.js'
import { paramPairs, parseUrl, type ParamsInit } from './url.js'

/** Options of `Client` and `AsyncClient`; `R` is their response, `T` their transport. */
export interface BaseClientOptions<R extends BaseResponse, T> {
  /** Base of relative URLs. @defaultValue null */
  readonly baseUrl?: string | URL | null | undefined
  /** Authentication of every call. @defaultValue null */
  readonly auth?: AuthInit | null | undefined
  /** Headers of every request, merged over the built-in ones. */
  readonly headers?: HeadersInit | null | undefined
  /** Initial cookies. A {@link Cookies} is not copied, so that clients can share one. */
  readonly cookies?: CookiesInit | null | undefined
  /** Added to the query of every request. `params` of a call override them; `null` drops them. */
  readonly params?: ParamsInit | null | undefined
  /** Time limits in ms. @defaultValue 5000 for connect, read, write and pool, none in total */
  readonly timeout?: TimeoutOptions | undefined
  /** Whether redirects are followed. @defaultValue false */
  readonly followRedirects?: boolean | undefined
  /** Most redirects that a call follows. @defaultValue 20 */
  readonly maxRedirects?: number | undefined
  /** Limits on connections. @defaultValue 100 open, 20 idle, for 5 s */
  readonly limits?: LimitOptions | undefined
  /** Whether the environment sets proxies, certificates and netrc. @defaultValue true */
  readonly trustEnv?: boolean | undefined
  /** Sends the requests instead of the network. The caller closes it. */
  readonly transport?: T | null | undefined
  /** Transports by URL pattern: `{ 'https://*.example.org': transport, 'all://local': null }`. */
  readonly mounts?: Mounts<T> | null | undefined
  /** Proxy for every request, instead of those of the environment. @defaultValue null */
  readonly proxy?: ProxyInit | null | undefined
  /** Whether HTTP/1.1 is allowed. @defaultValue true */
  readonly http1?: boolean | undefined
  /** Whether HTTP/2 is offered to servers. @defaultValue false */
  readonly http2?: boolean | undefined
  /** Whether, and with which authorities, certificates are verified. @defaultValue true */
  readonly verify?: Verify | undefined
  /**
   * The certificate that authenticates the client. Origins that redirects lead to do not get it;
   * mount a transport that has it for those that need it. @defaultValue null
   */
  readonly cert?: ClientCertificate | null | undefined
  /** Encoding of text without a charset. @defaultValue 'utf-8' */
  readonly defaultEncoding?: DefaultEncoding | undefined
  /** Called around each exchange, redirects and authentication requests included. */
  readonly eventHooks?: EventHookOptions<R> | null | undefined
  /** Most decoded bytes that a call reads; `null` for no limit. @defaultValue 256 MiB */
  readonly maxResponseBytes?: number | null | undefined
  /** Repeats failed requests: a number of retries, or a policy. @defaultValue null */
  readonly retry?: RetryOptions | null | undefined
  /**
   * Whether a call throws {@link HttpStatusError} for every status but 2xx, as `raiseForStatus()`
   * of its response does: after redirects, authentication and retries, and for a redirect that is
   * not followed too. @defaultValue false
   */
  readonly raiseForStatus?: boolean | undefined
  /**
   * IP address to connect from, to proxies as well; names are then resolved to addresses of its
   * family. Transports that are passed in have their own. @defaultValue null: the system chooses
   */
  readonly localAddress?: string | null | undefined
  /**
   * More headers to mask when printed and to drop on redirects to another origin, besides those
   * whose names say that they are secret.
   */
  readonly sensitiveHeaders?: readonly string[] | undefined
}

/** Options of either client. `Client` refuses `lookup` with a message of its own. */
type AnyClientOptions = BaseClientOptions<BaseResponse, unknown> &
  Pick<HttpTransportOptions, 'lookup'>

const CLIENT_OPTIONS: OptionKinds<AnyClientOptions> = {
  baseUrl: 'any', auth: 'any', headers: 'any', cookies: 'any', params: 'any',
  timeout: 'any', followRedirects: 'boolean', maxRedirects: 'number', limits: 'object',
  trustEnv: 'boolean', transport: 'any', mounts: 'object|null', proxy: 'any', http1: 'boolean',
  http2: 'boolean', verify: 'any', cert: 'any', defaultEncoding: 'any', eventHooks: 'object|null',
  maxResponseBytes: 'number|null', retry: 'any', sensitiveHeaders: 'array',
  raiseForStatus: 'boolean', localAddress: 'string|null', lookup: 'function|null',
}

const USER_AGENT = 'runwright/0.1.0'

/** Options of a client after {@link resolveSettings}. @internal */
export interface ClientSettings {
  readonly baseUrl: URL | null
  readonly destinations: Destinations
  readonly auth: Auth | null
  readonly headers: Headers
  /** The built-in headers alone, for calls that switch the client's headers off. */
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
  readonly raiseForStatus: boolean
}

/**
 * Adds defaults, or what the client inherits that `extend()` was called on, and validates the
 * options. Headers, params, cookies, hooks and sensitive names are merged with the inherited ones.
 *
 * @throws TypeError naming the wrong option.
 */
export function resolveSettings<R extends BaseResponse>(
  options: BaseClientOptions<R, unknown>,
  inherited: ClientSettings | null,
): ClientSettings {
  checkOptions(options, CLIENT_OPTIONS, 'a client')
  const base = inherited ?? DEFAULTS
  const ownHeaders = inherited?.ownHeaders ?? builtInHeaders()
  const ownSecrets = namesOf(options.sensitiveHeaders ?? [])
  const sensitiveHeaders = new Set([...(inherited?.sensitiveHeaders ?? []), ...ownSecrets])
  const headers = new Headers(
    inherited === null || options.headers === null ? ownHeaders : inherited.headers,
  )
  if (isSet(options.headers)) headers.update(options.headers)
  headers.maskAlso(sensitiveHeaders)
  const trustEnv = checkBoolean('trustEnv', options.trustEnv ?? base.trustEnv)
  const maxResponseBytes =
    options.maxResponseBytes === undefined ? base.maxResponseBytes : options.maxResponseBytes
  const baseUrl = options.baseUrl === undefined ? base.baseUrl : resolveBase(options.baseUrl)
  return {
    baseUrl,
    destinations: new Destinations(baseUrl),
    auth: given(options.auth, base.auth, resolveAuth),
    netrc: inherited?.trustEnv === trustEnv ? inherited.netrc : resolveNetrc(trustEnv),
    trustEnv,
    headers,
    ownHeaders,
    cookies: resolveCookies(options.cookies, inherited?.cookies ?? null),
    params: resolveParams(options.params, base.params),
    timeouts: resolveTimeouts(options.timeout, base.timeouts),
    followRedirects: checkBoolean(
      'followRedirects',
      options.followRedirects ?? base.followRedirects,
    ),
    maxRedirects: checkCount('maxRedirects', options.maxRedirects ?? base.maxRedirects, 0),
    defaultEncoding: checkEncoding(options.defaultEncoding ?? base.defaultEncoding),
    maxResponseBytes: checkCount('maxResponseBytes', maxResponseBytes, 0),
    eventHooks: resolveHooks(options.eventHooks, base.eventHooks),
    sensitiveHeaders,
    retry: given(options.retry, base.retry, resolveRetry),
    raiseForStatus: checkBoolean('raiseForStatus', options.raiseForStatus ?? base.raiseForStatus),
  }
}

const DEFAULTS = {
  baseUrl: null,
  auth: null,
  trustEnv: true,
  params: null,
  timeouts: DEFAULT_TIMEOUTS,
  followRedirects: false,
  maxRedirects: DEFAULT_MAX_REDIRECTS,
  defaultEncoding: 'utf-8',
  maxResponseBytes: DEFAULT_MAX_RESPONSE_BYTES,
  eventHooks: NO_HOOKS,
  retry: null,
  raiseForStatus: false,
} as const

function builtInHeaders(): Headers {
  return new Headers({
    Accept: '*/*',
    'Accept-Encoding': acceptEncoding(),
    Connection: 'keep-alive',
    'User-Agent': USER_AGENT,
  })
}

/** An omitted option is inherited, `null` switches it off. */
function given<T, R>(
  option: T | null | undefined,
  inherited: R | null,
  resolve: (option: T) => R,
): R | null {
  if (option === undefined) return inherited
  return option === null ? null : resolve(option)
}

function resolveNetrc(trustEnv: boolean): NetrcAuth | null {
  const netrc = trustEnv ? netrcFile() : null
  return netrc === null ? null : new NetrcAuth(netrc)
}

/** One jar is shared unless cookies are given, which are added to a copy of it. */
function resolveCookies(init: CookiesInit | null | undefined, inherited: Cookies | null): Cookies {
  if (init instanceof Cookies) return init
  if (inherited === null || init === null) return new Cookies(init)
  if (init === undefined) return inherited
  const jar = inherited.copy()
  jar.update(init)
  return jar
}

/** The inherited params of other names, then those given. */
function resolveParams(
  init: ParamsInit | null | undefined,
  inherited: ParamsInit | null,
): ParamsInit | null {
  const own = isSet(init) ? paramPairs(init) : []
  const names = new Set(own.map(([name]) => name))
  const before = init === null || inherited === null ? [] : paramPairs(inherited)
  const pairs = [...before.filter(([name]) => !names.has(name)), ...own]
  return pairs.length === 0 ? null : pairs
}

/** Whether an option has a value; `null` switches it off, like leaving it out. */
function isSet<T>(option: T | null | undefined): option is T {
  return option !== undefined && option !== null
}

function resolveBase(base: string | URL | null | undefined): URL | null {
  if (!isSet(base) || base === '') return null
  const url = parseUrl(base, 'baseUrl')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new TypeError(`baseUrl must be an http or https URL, got ${url.protocol}`)
  }
  return url
}

function namesOf(names: readonly string[]): string[] {
  if (!Array.isArray(names) || names.some((name) => typeof name !== 'string')) {
    throw new TypeError('sensitiveHeaders must be an array of header names')
  }
  return names.map((name) => name.toLowerCase())
}

function checkEncoding(encoding: DefaultEncoding): DefaultEncoding {
  if (typeof encoding !== 'string' && typeof encoding !== 'function') {
    throw new TypeError(`defaultEncoding must be a label or a function, got ${typeof encoding}`)
  }
  if (typeof encoding === 'string' && encodingName(encoding) === null) {
    throw new TypeError(`defaultEncoding: unknown encoding ${JSON.stringify(encoding)}`)
  }
  return encoding
}
