import { checkOptions } from '../internal/options.js'
import { REQUEST_OPTIONS, type RequestOptions } from './call-options.js'
import { resolveTimeouts } from './config.js'
import { Cookies, type CookiesInit } from './cookies/jar.js'
import { Headers } from './headers.js'
import type { Destination } from './destination.js'
import type { ClientSettings } from './options.js'
import { Request } from './request.js'
import { resolveRetry } from './retry.js'
import { applyParams, resolveUrl } from './url.js'

/** Builds the request of a call, merged with the settings of the client. */
export function buildRequest(
  settings: ClientSettings,
  method: string,
  url: string | URL,
  options: RequestOptions = {},
): Request {
  checkOptions(options, REQUEST_OPTIONS, 'a request')
  if (options.retry !== undefined && options.retry !== null) resolveRetry(options.retry)
  const target = resolveTarget(settings, url, options.params)
  const headers = new Headers(options.headers === null ? settings.ownHeaders : settings.headers)
  if (options.headers !== undefined && options.headers !== null) headers.update(options.headers)
  const request = Request.ofCall(method, target, headers, options)
  request.headers.maskAlso(settings.sensitiveHeaders)
  request.timeouts = resolveTimeouts(options.timeout, settings.timeouts)
  // `callCookies` stays null, so redirects add no cookies either.
  if (options.cookies === null) return request
  request.callCookies = ownCookies(request, options.cookies)
  setCookies(settings, request, true)
  return request
}

function resolveTarget(
  settings: ClientSettings,
  url: string | URL,
  params: RequestOptions['params'],
): URL | Destination {
  const common = params === null ? null : settings.params
  if (typeof url === 'string' && common === null && (params === undefined || params === null)) {
    return settings.destinations.resolve(url)
  }
  const target = resolveUrl(url, settings.baseUrl)
  applyParams(target, common)
  applyParams(target, params)
  return target
}

/** The cookies given with this call, by Cookie header and `cookies` option. */
function ownCookies(request: Request, init: CookiesInit | undefined): string {
  const header = request.headers.get('cookie') ?? ''
  if (init === undefined) return header
  const more = new Cookies(init).headerFor(request.url)
  return [header, more].filter((part) => part !== null && part !== '').join('; ')
}

/**
 * Sets the Cookie header for the URL of `request`.
 *
 * @param direct - Whether the caller named this origin, not a redirect: only then does the request
 *   get cookies of the call, and those without a domain.
 */
export function setCookies(settings: ClientSettings, request: Request, direct: boolean): void {
  const own = direct ? (request.callCookies ?? '') : ''
  const { cookies } = settings
  const kept = cookies.size === 0 ? '' : (cookies.headerFor(request.url, direct) ?? '')
  if (own === '' && kept === '') {
    request.headers.delete('cookie')
    return
  }
  const names = new Set(own.split(';').map((pair) => pair.split('=')[0]!.trim()))
  const rest = kept.split('; ').filter((pair) => pair !== '' && !names.has(pair.split('=')[0]!))
  request.headers.set('Cookie', [own, ...rest].filter((part) => part !== '').join('; '))
}
