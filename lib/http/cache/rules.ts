import type { Headers } from '../headers.js'
import type { Request } from '../request.js'
import { CacheDirectives } from './directives.js'
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
