import { RemoteProtocolError } from './errors.js'
import { Headers } from './headers.js'
import { Request, type RequestExtensions } from './request.js'
import { parseUrl, sameOrigin, sharesSecrets } from './url.js'

/** Fields that describe the body and are dropped with it. */
const BODY_FIELDS = [
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-type',
  'digest',
  'expect',
  'last-modified',
  'transfer-encoding',
]

/** The extensions that have a name here, without the keys of custom transports. */
type KnownExtension = keyof {
  [K in keyof RequestExtensions as string extends K ? never : K]: unknown
}

/**
 * How far an extension goes: with one `request`, to one `origin`, or with the whole `call`. One
 * that names a host, path, proxy or secret must not go further than that.
 */
const REACH: Readonly<Record<KnownExtension, 'request' | 'origin' | 'call'>> = {
  target: 'request',
  sniHostname: 'origin',
  onUpload: 'call',
  onDownload: 'call',
  onInformation: 'call',
}

/**
 * The request that follows a redirect (RFC 9110, section 15.4).
 *
 * Secrets go to the same origin only, or from http to https on the default ports of one host.
 * User name and password in Location are dropped.
 *
 * @throws {@link RemoteProtocolError} when Location is not an http(s) URL.
 */
export function redirectRequest(
  request: Request,
  statusCode: number,
  location: string,
): Request {
  const url = redirectUrl(request.url, location)
  const method = redirectMethod(request, statusCode)
  const headers = new Headers(request.headers)
  // Rewriting the method drops the body, and 303 always does.
  const rewritten = method !== request.method || statusCode === 303
  if (rewritten) for (const name of BODY_FIELDS) headers.delete(name)
  // The client sets the cookies for the new URL.
  headers.delete('cookie')
  const stays = sameOrigin(request.url, url)
  if (!stays) for (const name of ['host', 'proxy-authorization']) headers.delete(name)
  if (!sharesSecrets(request.url, url)) headers.deleteSecrets()
  const body = rewritten ? null : request.body
  const next = Request.fromParts(method, url, headers, body, {
    extensions: carried(request.extensions, stays),
    signal: request.signal,
  })
  next.namedUrl = request.namedUrl ?? request.url
  next.timeouts = request.timeouts
  next.deadlineAt = request.deadlineAt
  next.callCookies = request.callCookies
  next.standardRedirects = request.standardRedirects
  return next
}

/**
 * 303 turns all methods but HEAD into GET, 302 does too, and 301 turns POST. The Fetch Standard has
 * 302 turn POST only.
 */
function redirectMethod(request: Request, statusCode: number): string {
  const { method, standardRedirects } = request
  const turnsAll = statusCode === 303 || (statusCode === 302 && !standardRedirects)
  if (turnsAll) return method === 'HEAD' ? 'HEAD' : 'GET'
  return [301, 302].includes(statusCode) && method === 'POST' ? 'GET' : method
}

function redirectUrl(from: URL, location: string): URL {
  let url: URL
  try {
    // "https:///path" and the like name no host; the host of the request is meant.
    url = parseUrl(
      new URL(location.replace(/^([a-z]+:)\/\/\/(?=[^/]|$)/i, '$1//' + from.host + '/'), from),
    )
  } catch {
    // No cause: it would print the Location, secrets included.
    throw new RemoteProtocolError('the Location of the redirect is not a valid URL')
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new RemoteProtocolError(
      `the Location of the redirect must be http or https, got ${url.protocol}`,
    )
  }
  if (/[\0-\x1f\x7f]/.test(location)) {
    throw new RemoteProtocolError('the Location of the redirect contains a control character')
  }
  if (url.hash === '') url.hash = from.hash
  url.username = ''
  url.password = ''
  return url
}

/** The extensions for the next request. What those of a custom transport name is not known. */
function carried(extensions: RequestExtensions, stays: boolean): RequestExtensions {
  const entries = Object.entries(extensions).filter(([name]) => {
    const reach = Object.hasOwn(REACH, name) ? REACH[name as KnownExtension] : 'origin'
    return reach === 'call' || (reach === 'origin' && stays)
  })
  return Object.fromEntries(entries)
}
