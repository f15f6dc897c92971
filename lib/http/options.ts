import { resolveAuth, type AuthInit } from './auth/auth.js'
import { NetrcAuth } from './auth/netrc.js'
import {
  checkBoolean,
  checkCount,
  DEFAULT_MAX_REDIRECTS,
  DEFAULT_MAX_RESPONSE_BYTES,
  resolveTimeouts,
  type LimitOptions,
  type TimeoutOptions,
} from './config.js'
import { Cookies, type CookiesInit } from './cookies/jar.js'
import { ACCEPT_ENCODING } from './content/decoders.js'
import { netrcFile } from './environment.js'
import type { ClientSettings } from './exchange.js'
import { Headers, type HeadersInit } from './headers.js'
import { resolveHooks, type EventHookOptions } from './hooks.js'
import { resolveRetry, type RetryOptions } from './retry.js'
import type { BaseResponse, DefaultEncoding } from './response.js'
import type { Mounts } from './client-transports.js'
import type { ClientCertificate, Verify } from './tls.js'
import type { HttpTransportOptions } from './transports/http-transport.js'
import type { ProxyInit } from './transports/proxy/proxy.js'
import { checkOptions } from './known-options.js'
import { encodingName } from './content/text.js'
import { paramPairs, parseUrl, type ParamsInit } from './url.js'

/** What both clients are made from. Everything may be left out. */
export interface BaseClientOptions<R extends BaseResponse, T> {
  /** Put before relative URLs. @defaultValue null */
  readonly baseUrl?: string | URL | null | undefined
  /** Authentication of every call. @defaultValue null */
  readonly auth?: AuthInit | null | undefined
  /** Headers of every request, over the built-in ones. */
  readonly headers?: HeadersInit | null | undefined
  /** Cookies to begin with; a {@link Cookies} is used as it is, and may be shared. */
  readonly cookies?: CookiesInit | null | undefined
  /** Query parameters of every request. */
  readonly params?: ParamsInit | null | undefined
  /** Time limits in ms. @defaultValue 5000 for connect, read, write and pool, none in total */
  readonly timeout?: TimeoutOptions | undefined
  /** @defaultValue false */
  readonly followRedirects?: boolean | undefined
  /** Hops at most. @defaultValue 20 */
  readonly maxRedirects?: number | undefined
  /** Connections kept. @defaultValue 100 open, 20 idle, for 5 s */
  readonly limits?: LimitOptions | undefined
  /** Whether proxies, certificates and netrc are read from the environment. @defaultValue true */
  readonly trustEnv?: boolean | undefined
  /** Replaces the network. The client does not close it. */
  readonly transport?: T | null | undefined
  /** Transports by URL pattern, such as `{ 'https://*.example.org': transport, 'all://local': null }`. */
  readonly mounts?: Mounts<T> | null | undefined
  /** Proxy for every request, in place of those of the environment. @defaultValue null */
  readonly proxy?: ProxyInit | null | undefined
  /** Whether HTTP/1.1 may be spoken. @defaultValue true */
  readonly http1?: boolean | undefined
  /** Whether HTTP/2 is offered. @defaultValue false */
  readonly http2?: boolean | undefined
  /** Whether and against what certificates are verified. @defaultValue true */
  readonly verify?: Verify | undefined
  /** The client's own certificate. @defaultValue null */
  readonly cert?: ClientCertificate | null | undefined
  /** Encoding of text without a charset. @defaultValue 'utf-8' */
  readonly defaultEncoding?: DefaultEncoding | undefined
  /** Called around each exchange. */
  readonly eventHooks?: EventHookOptions<R> | null | undefined
  /** Decoded octets that a call reads at most; `null` for no limit. @defaultValue 256 MiB */
  readonly maxResponseBytes?: number | null | undefined
  /** Sends failed requests again: a number of retries, or a policy. @defaultValue null */
  readonly retry?: RetryOptions | null | undefined
  /** Further header names that are masked when printed and dropped on redirects off-origin. */
  readonly sensitiveHeaders?: readonly string[] | undefined
}

const CLIENT_OPTIONS: Readonly<Record<keyof BaseClientOptions<BaseResponse, unknown>, true>> = {
  auth: true,
  baseUrl: true,
  cert: true,
  cookies: true,
  defaultEncoding: true,
  eventHooks: true,
  followRedirects: true,
  headers: true,
  http1: true,
  http2: true,
  limits: true,
  maxRedirects: true,
  maxResponseBytes: true,
  mounts: true,
  params: true,
  proxy: true,
  retry: true,
  sensitiveHeaders: true,
  timeout: true,
  transport: true,
  trustEnv: true,
  verify: true,
}

/** The product token of User-Agent. */
export const USER_AGENT = 'runwright/0.1.0'

/** Fills defaults and checks. @throws TypeError naming the option that is wrong. */
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
  if (options.headers !== undefined && options.headers !== null) headers.update(options.headers)
  headers.maskAlso(sensitiveHeaders)
  const trustEnv = checkBoolean('trustEnv', options.trustEnv ?? true)
  const netrc = trustEnv ? netrcFile() : null
  const maxResponseBytes =
    options.maxResponseBytes === undefined ? DEFAULT_MAX_RESPONSE_BYTES : options.maxResponseBytes
  const params =
    options.params === undefined || options.params === null ? [] : paramPairs(options.params)
  return {
    baseUrl: resolveBase(options.baseUrl),
    auth: options.auth === undefined || options.auth === null ? null : resolveAuth(options.auth),
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
    retry:
      options.retry === undefined || options.retry === null ? null : resolveRetry(options.retry),
  }
}

/** The part of a client's options that its own transports are made from. */
export function transportOptions(
  options: BaseClientOptions<never, unknown>,
  proxy: ProxyInit | null,
): HttpTransportOptions {
  const { limits, http1, http2, verify, cert, trustEnv } = options
  return { limits, http1, http2, verify, cert, trustEnv, proxy }
}

function resolveBase(base: string | URL | null | undefined): URL | null {
  if (base === undefined || base === null || base === '') return null
  const url = parseUrl(base, 'baseUrl')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new TypeError(`baseUrl must be an http or https URL, got ${url.protocol}`)
  }
  return url
}

function namesOf(names: readonly string[]): string[] {
  if (!Array.isArray(names) || names.some((name) => typeof name !== 'string')) {
    throw new TypeError('sensitiveHeaders must be an array of names')
  }
  return names.map((name) => name.toLowerCase())
}

function checkEncoding(encoding: DefaultEncoding): DefaultEncoding {
  if (typeof encoding !== 'string' && typeof encoding !== 'function') {
    throw new TypeError(`defaultEncoding must be a label or a function, got ${typeof encoding}`)
  }
  if (typeof encoding === 'string' && encodingName(encoding) === null) {
    throw new TypeError(`defaultEncoding: there is no decoder for ${encoding}`)
  }
  return encoding
}
