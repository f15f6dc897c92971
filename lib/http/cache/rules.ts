import { listMembers } from '../field-values.js'
import { Headers } from '../headers.js'
import { Request } from '../request.js'
import { CacheDirectives } from './directives.js'
import { parseHttpDate } from './http-date.js'
import type { CachedResponse } from './store.js'
import { isHeuristic, type StoredResponse } from './stored-response.js'

/** Statuses whose rules for caching are kept here, for must-understand. */
const UNDERSTOOD = new Set(
  [200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 501],
)
/** Methods that change nothing on the server (RFC 9110, section 9.2.1). */
const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])
/** Statuses that stale-if-error covers (RFC 5861, section 4). */
const OUTAGE_STATUSES = new Set([500, 502, 503, 504])
/** Conditions and ranges that only the server can answer. */
const FOR_THE_SERVER = ['range', 'if-range', 'if-match', 'if-unmodified-since']

/** What a request wants from a cache. */
export class CacheWishes {
  readonly control: CacheDirectives
  /** Nothing stored may be used without asking the server. */
  readonly noCache: boolean

  constructor(headers: Headers) {
    this.control = new CacheDirectives(headers)
    // Pragma counts only without Cache-Control (RFC 7234, section 5.4).
    const pragma = headers.has('cache-control') ? null : headers.get('pragma')
    this.noCache = this.control.has('no-cache') || pragma?.toLowerCase() === 'no-cache'
  }

  get onlyIfCached(): boolean {
    return this.control.has('only-if-cached')
  }
}

/** Whether the cache may answer a request, and store the response. */
export function usesCache({ method, headers, body }: Request, { control }: CacheWishes): boolean {
  if ((method !== 'GET' && method !== 'HEAD') || body !== null) return false
  return !control.has('no-store') && !FOR_THE_SERVER.some((name) => headers.has(name))
}

export function isSafe(method: string): boolean {
  return SAFE_METHODS.has(method)
}

export function isOutage(statusCode: number): boolean {
  return OUTAGE_STATUSES.has(statusCode)
}

/**
 * How a stored response may be used (RFC 9111, section 4.2.4):
 *
 * - `fresh`: as it is;
 * - `stale`: as it is, although it is no longer fresh;
 * - `refresh`: as it is, if it is then refreshed (stale-while-revalidate);
 * - `validate`: once the server has confirmed it.
 */
export type Verdict = 'fresh' | 'stale' | 'refresh' | 'validate'

export function judge(stored: StoredResponse, wishes: CacheWishes, now: number): Verdict {
  const { control, lifetimeMs } = stored
  if (wishes.noCache || control.isBare('no-cache')) return 'validate'
  const age = stored.ageAt(now)
  const isFresh = age < lifetimeMs
  const maxAge = wishes.control.milliseconds('max-age')
  // A reload says max-age=0, which is in vain for what never changes (RFC 8246).
  const isImmutable = isFresh && control.has('immutable')
  if (maxAge !== null && age >= maxAge && !isImmutable) return 'validate'
  const minFresh = wishes.control.milliseconds('min-fresh')
  if (minFresh !== null && lifetimeMs - age < minFresh) return 'validate'
  if (isFresh) return 'fresh'
  if (control.has('must-revalidate')) return 'validate'
  const staleMs = age - lifetimeMs
  const maxStale = wishes.control.isBare('max-stale')
    ? Infinity
    : wishes.control.milliseconds('max-stale')
  if (maxStale !== null && staleMs <= maxStale) return 'stale'
  const window = control.milliseconds('stale-while-revalidate')
  const mayRefresh = window !== null && maxAge === null && minFresh === null
  return mayRefresh && staleMs < window ? 'refresh' : 'validate'
}

/** Whether a stored response may take the place of an error (RFC 5861, section 4). */
export function mayHideError(stored: StoredResponse, wishes: CacheWishes, now: number): boolean {
  const { control } = stored
  if (wishes.noCache || control.isBare('no-cache') || control.has('must-revalidate')) return false
  const windows = [control, wishes.control].map((each) => each.milliseconds('stale-if-error') ?? -1)
  return stored.ageAt(now) - stored.lifetimeMs < Math.max(...windows)
}

/** Whether a private cache may store a response to GET, and could use it (RFC 9111, section 3). */
export function isStorable(response: StoredResponse, setsCookies: boolean): boolean {
  const { control, headers } = response
  const { statusCode } = response.facts
  if (statusCode < 200 || statusCode === 206 || statusCode === 304) return false
  if (control.has('must-understand')) {
    if (!UNDERSTOOD.has(statusCode)) return false
  } else if (control.has('no-store')) return false
  // The content belongs to the session that begins, which other requests do not have.
  if (setsCookies && control.has('private')) return false
  const isExplicit = control.has('max-age') || control.has('private') || headers.has('expires')
  if (!isExplicit && !isHeuristic(statusCode, control)) return false
  if (response.canBeValidated) return true
  if (control.isBare('no-cache')) return false
  const windows = ['stale-while-revalidate', 'stale-if-error'] as const
  return response.lifetimeMs > 0 || windows.some((name) => (control.milliseconds(name) ?? 0) > 0)
}

/** Whether the caller wrote conditions itself, and so expects a 304. */
export function hasConditions(headers: Headers): boolean {
  return headers.has('if-none-match') || headers.has('if-modified-since')
}

/** Whether the caller has the stored response already (RFC 9111, section 4.3.2). */
export function isNotModified(request: Headers, stored: StoredResponse): boolean {
  const tags = request.get('if-none-match')
  const etag = stored.headers.get('etag')
  if (tags !== null) {
    return etag !== null && (tags === '*' || entityTags(tags).includes(opaque(etag)))
  }
  const { receivedAt } = stored.facts
  const since = parseHttpDate(request.get('if-modified-since'), receivedAt)
  if (since === null) return false
  const { headers } = stored
  const modified = parseHttpDate(headers.get('last-modified') ?? headers.get('date'), receivedAt)
  return (modified ?? receivedAt) <= since
}

/** The request that asks the server whether `stored` is still right (RFC 9111, section 4.3.1). */
export function conditionalRequest(request: Request, stored: StoredResponse): Request {
  const headers = new Headers(request.headers)
  const etag = stored.headers.get('etag')
  const modified = stored.headers.get('last-modified')
  if (etag !== null) headers.set('If-None-Match', etag)
  if (modified !== null) headers.set('If-Modified-Since', modified)
  return copyRequest(request, headers, request.signal)
}

/** A request to repeat when the caller's call is over: on its own signal, without its callbacks. */
export function backgroundRequest(request: Request, signal: AbortSignal): Request {
  const copy = copyRequest(request, new Headers(request.headers), signal, {
    ...request.extensions,
    onUpload: undefined,
    onDownload: undefined,
    onInformation: undefined,
  })
  copy.deadlineAt = null
  return copy
}

function copyRequest(
  request: Request,
  headers: Headers,
  signal: AbortSignal | null,
  extensions: Request['extensions'] = request.extensions,
): Request {
  const copy = Request.fromParts(request.method, request.url, headers, null, { extensions, signal })
  copy.timeouts = request.timeouts
  copy.deadlineAt = request.deadlineAt
  copy.blocking = request.blocking
  copy.namedUrl = request.namedUrl
  return copy
}

/** The entity tags of If-None-Match, which are compared weakly (RFC 9110, section 8.8.3.2). */
function entityTags(list: string): string[] {
  return (list.match(/(?:W\/)?"[^"]*"/g) ?? [list]).map(opaque)
}

function opaque(tag: string): string {
  return tag.startsWith('W/') ? tag.slice(2) : tag
}

/**
 * Fields that are not stored: those of one connection (RFC 9111, section 3.1), and cookies, which
 * are for the one who got them and must not enter another jar from the store.
 */
const NOT_STORED = new Set(
  'connection keep-alive proxy-authenticate proxy-authentication-info proxy-authorization '
    .concat('proxy-connection te trailer transfer-encoding upgrade set-cookie set-cookie2')
    .split(' '),
)

/** Fields of the stored content, which a 304 does not change (RFC 9111, section 3.2). */
const NOT_UPDATED = new Set([
  'content-encoding',
  'content-length',
  'content-md5',
  'content-range',
  'etag',
])

/** The fields of a response that are stored. */
export function storedFields(headers: Headers): [string, string][] {
  const control = new CacheDirectives(headers)
  const listed = new Set([
    ...listMembers(headers.get('connection')),
    ...control.fields('no-cache'),
  ])
  return headers.raw.filter(([name]) => {
    const key = name.toLowerCase()
    return !NOT_STORED.has(key) && !listed.has(key)
  })
}

/** Stored fields, updated by those of a 304 or of a response to HEAD (RFC 9111, section 4.3.4). */
export function freshenedFields(stored: CachedResponse, update: Headers): [string, string][] {
  const newer = storedFields(update).filter(([name]) => !NOT_UPDATED.has(name.toLowerCase()))
  const replaced = new Set(newer.map(([name]) => name.toLowerCase()))
  // These say how old the stored response was.
  replaced.add('age').add('date')
  const kept = stored.headers.filter(([name]) => !replaced.has(name.toLowerCase()))
  // Again as stored: the update may have named further fields in no-cache.
  return storedFields(new Headers([...kept, ...newer]))
}
