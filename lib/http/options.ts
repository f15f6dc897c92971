import { checkOptions, type OptionKinds } from '../internal/options.js'
import { resolveAuth, type Auth, type AuthInit } from './auth/auth.js'
import { NetrcAuth } from './auth/netrc.js'
import type { Mounts } from './client-transports.js'
import {
  checkBoolean,
  checkCount,
  DEFAULT_MAX_REDIRECTS,
  DEFAULT_MAX_RESPONSE_BYTES,
  resolveTimeouts,
  type LimitOptions,
  type TimeoutOptions,
  type Timeouts,
} from './config.js'
import { ACCEPT_ENCODING } from './content/decoders.js'
import { encodingName } from './content/text.js'
import { Cookies, type CookiesInit } from './cookies/jar.js'
import { netrcFile } from './environment.js'
import { Headers, type HeadersInit } from './headers.js'
import { resolveHooks, type EventHookOptions, type EventHooks } from './hooks.js'
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
   * More headers to mask when printed and to drop on redirects to another origin, besides those
   * whose names say that they are secret.
   */
  readonly sensitiveHeaders?: readonly string[] | undefined
}

const CLIENT_OPTIONS: OptionKinds<BaseClientOptions<BaseResponse, unknown>> = {
  baseUrl: 'any', auth: 'any', headers: 'any', cookies: 'any', params: 'any',
  timeout: 'any', followRedirects: 'boolean', maxRedirects: 'number', limits: 'object',
  trustEnv: 'boolean', transport: 'any', mounts: 'object|null', proxy: 'any', http1: 'boolean',
  http2: 'boolean', verify: 'any', cert: 'any', defaultEncoding: 'any', eventHooks: 'object|null',
  maxResponseBytes: 'number|null', retry: 'any', sensitiveHeaders: 'array',
}

const USER_AGENT = 'runwright/0.1.0'

/** Options of a client after {@link resolveSettings}. @internal */
export interface ClientSettings {
  readonly baseUrl: URL | null
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
}

/** Adds defaults and validates the options. @throws TypeError naming the wrong option. */
export function resolveSettings<R extends BaseResponse>(
  options: BaseClientOptions<R, unknown>,
): ClientSettings {
  checkOptions(options, CLIENT_OPTIONS, 'a client')
  const ownHeaders = new Headers({
    Accept: '*/*',
    'Accept-Encoding': ACCEPT_ENCODING,
    Connection: 'keep-alive',
    'User-Agent': USER_AGENT,
  })
  const sensitiveHeaders = new Set(namesOf(options.sensitiveHeaders ?? []))
  const headers = new Headers(ownHeaders)
  if (isSet(options.headers)) headers.update(options.headers)
  headers.maskAlso(sensitiveHeaders)
  const trustEnv = checkBoolean('trustEnv', options.trustEnv ?? true)
  const netrc = trustEnv ? netrcFile() : null
  const maxResponseBytes =
    options.maxResponseBytes === undefined ? DEFAULT_MAX_RESPONSE_BYTES : options.maxResponseBytes
  const params = isSet(options.params) ? paramPairs(options.params) : []
  return {
    baseUrl: resolveBase(options.baseUrl),
    auth: isSet(options.auth) ? resolveAuth(options.auth) : null,
    netrc: netrc === null ? null : new NetrcAuth(netrc),
    trustEnv,
    headers,
    ownHeaders,
    cookies: options.cookies instanceof Cookies ? options.cookies : new Cookies(options.cookies),
    params: params.length === 0 ? null : params,
    timeouts: resolveTimeouts(options.timeout),
    followRedirects: checkBoolean('followRedirects', options.followRedirects ?? false),
    maxRedirects: checkCount('maxRedirects', options.maxRedirects ?? DEFAULT_MAX_REDIRECTS, 0),
    defaultEncoding: checkEncoding(options.defaultEncoding ?? 'utf-8'),
    maxResponseBytes: checkCount('maxResponseBytes', maxResponseBytes, 0),
    eventHooks: resolveHooks(options.eventHooks) as ClientSettings['eventHooks'],
    sensitiveHeaders,
    retry: isSet(options.retry) ? resolveRetry(options.retry) : null,
  }
}

/** The options for transports that the client makes itself; `foreign` ones have no certificate. */
export function transportOptions(
  options: BaseClientOptions<never, unknown>,
  proxy: ProxyInit | null,
  foreign: boolean,
): HttpTransportOptions {
  const { limits, http1, http2, verify, trustEnv } = options
  const cert = foreign ? null : options.cert
  return { limits, http1, http2, verify, cert, trustEnv, proxy }
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
