import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { printAs } from '../inspect.js'
import { CookieConflictError, LocalProtocolError } from '../errors.js'
import { MASK, type Headers } from '../headers.js'
import { isPublicSuffix, type PublicSuffixTest } from './public-suffixes.js'

/** One cookie as the jar keeps it (RFC 6265, section 5.3). Times are epoch ms. */
export interface Cookie {
  readonly name: string
  readonly value: string
  /** Lower case, without a leading dot. */
  readonly domain: string
  readonly path: string
  /** Whether only `domain` itself gets it, and no host below. */
  readonly hostOnly: boolean
  readonly secure: boolean
  readonly httpOnly: boolean
  readonly sameSite: 'strict' | 'lax' | 'none' | null
  /** When it ends; null at the end of the session. */
  readonly expiresAt: number | null
  readonly createdAt: number
}

/** What cookies can be made from: name to value. They go to the hosts that the client is told to call. */
export type CookiesInit =
  Cookies | Readonly<Record<string, string>> | Iterable<readonly [string, string]>

/** Options of {@link Cookies}. */
export interface CookiesOptions {
  /** Which domains are public suffixes. @defaultValue a compact built-in list */
  readonly publicSuffixes?: PublicSuffixTest | undefined
  /** Whether Set-Cookie of responses is kept. @defaultValue true */
  readonly persist?: boolean | undefined
}

/** Where a cookie of {@link Cookies.set} belongs. */
export interface CookieScope {
  readonly domain?: string | undefined
  readonly path?: string | undefined
}

const MAX_COOKIE_OCTETS = 4096
const MAX_PER_DOMAIN = 180
const MAX_COOKIES = 3000

/**
 * A cookie jar by RFC 6265: host-only cookies stay with their host, `Secure` ones with TLS, paths
 * match whole segments, no cookie spans a public suffix, and the prefixes `__Host-` and `__Secure-`
 * mean what they say. Cookies set without a domain go to every host that is called directly.
 *
 * `toJSON()` has the values, so that a jar can be stored; printing it does not.
 */
export class Cookies implements Iterable<Cookie> {
  readonly #cookies = new Map<string, Cookie>()
  readonly #isPublicSuffix: PublicSuffixTest
  /** Whether Set-Cookie of responses is kept. */
  readonly persist: boolean
  #lastCreated = 0

  constructor(init?: CookiesInit | null, options: CookiesOptions = {}) {
    this.#isPublicSuffix = options.publicSuffixes ?? isPublicSuffix
    this.persist = options.persist ?? true
    if (init === undefined || init === null) return
    if (init instanceof Cookies) for (const cookie of init) this.#store(cookie)
    else {
      if (typeof init !== 'object')
        throw new TypeError(`cookies must be an object, pairs or Cookies, got ${typeof init}`)
      const pairs = Symbol.iterator in init ? init : Object.entries(init)
      for (const pair of pairs) {
        if (!Array.isArray(pair))
          throw new TypeError(`cookies must be pairs of name and value, got ${typeof pair}`)
        this.set(pair[0] as string, pair[1] as string)
      }
    }
  }

  /** A jar from what `toJSON()` gave, expired cookies left out. */
  static fromJSON(json: readonly Cookie[], options: CookiesOptions = {}): Cookies {
    const jar = new Cookies(null, options)
    for (const cookie of json) {
      checkPair(cookie.name, cookie.value)
      if (!isExpired(cookie)) jar.#store({ ...cookie })
    }
    return jar
  }

  /** How many cookies there are. */
  get size(): number {
    return this.#cookies.size
  }

  /**
   * The value of a cookie, or null.
   *
   * @throws {@link CookieConflictError} when several match; say domain or path.
   */
  get(name: string, scope: CookieScope = {}): string | null {
    const found = [...this].filter((cookie) => cookie.name === name && inScope(cookie, scope))
    if (found.length > 1) {
      const places = found.map(({ domain, path }) => `${domain}${path}`).join(', ')
      throw new CookieConflictError(
        `there are ${found.length} cookies ${name} (${places}); say which`,
      )
    }
    return found[0]?.value ?? null
  }

  /** Sets a cookie for a domain and those below it, or, without a domain, for every host. */
  set(name: string, value: string, scope: CookieScope = {}): void {
    checkPair(name, value)
    const domain = domainOf(scope.domain ?? '')
    this.#store({
      name,
      value,
      domain,
      path: scope.path ?? '/',
      hostOnly: false,
      secure: false,
      httpOnly: false,
      sameSite: null,
      expiresAt: null,
      createdAt: this.#now(),
    })
  }

  /** Removes the cookies of this name; tells whether there were any. */
  delete(name: string, scope: CookieScope = {}): boolean {
    return this.#remove((cookie) => cookie.name === name && inScope(cookie, scope))
  }

  /** Removes all cookies, or those of one domain or path. */
  clear(scope: CookieScope = {}): void {
    this.#remove((cookie) => inScope(cookie, scope))
  }

  /** Adds the cookies of `other`. */
  update(other: CookiesInit): void {
    for (const cookie of other instanceof Cookies ? other : new Cookies(other)) this.#store(cookie)
  }

  /** Takes the Set-Cookie fields of a response from `url`; those it may not set are ignored. */
  extract(url: URL, headers: Headers): void {
    for (const field of headers.getList('set-cookie')) {
      const cookie = this.#parse(field, url)
      if (cookie === null) continue
      if (isExpired(cookie)) this.#cookies.delete(keyOf(cookie))
      else this.#store(cookie)
    }
  }

  /**
   * The value of the Cookie field for `url`, or null when there is none: longer paths first, then
   * older cookies (RFC 6265, section 5.4). Cookies without a domain are included with `direct`.
   */
  headerFor(url: URL, direct = true): string | null {
    if (this.#cookies.size === 0) return null
    const host = hostOf(url)
    const found = [...this].filter((cookie) => goesTo(cookie, url, host, direct))
    found.sort((a, b) => b.path.length - a.path.length || a.createdAt - b.createdAt)
    return found.length === 0 ? null : found.map(({ name, value }) => `${name}=${value}`).join('; ')
  }

  /** The cookies that have not expired. */
  *[Symbol.iterator](): Generator<Cookie, void, undefined> {
    for (const cookie of this.#cookies.values()) if (!isExpired(cookie)) yield cookie
  }

  /** All cookies with their values, for {@link Cookies.fromJSON}. */
  toJSON(): Cookie[] {
    return [...this]
  }

  static {
    printAs(Cookies, (self) => {
      const names = [...self].map(
        ({ name, domain, path }) => `${name}=${MASK} for ${domain}${path}`,
      )
      return `<Cookies [${names.join(', ')}]>`
    })
  }

  #parse(field: string, url: URL): Cookie | null {
    if (field.length > MAX_COOKIE_OCTETS * 2) return null
    const [pair, ...attributes] = field.split(';')
    const equals = pair!.indexOf('=')
    const name = equals === -1 ? '' : pair!.slice(0, equals).trim()
    const value = pair!.slice(equals + 1).trim()
    if (name === '' || name.length + value.length > MAX_COOKIE_OCTETS) return null
    if (/[\0-\x1f\x7f]/.test(name + value)) return null
    const found = parseAttributes(attributes)
    const host = hostOf(url)
    const domain = this.#domainFor(found.domain, host)
    if (domain === null) return null
    const secureOrigin = url.protocol === 'https:' || isLoopback(host)
    if (found.secure && !secureOrigin) return null
    const path = found.path?.startsWith('/') === true ? found.path : defaultPath(url)
    const hostOnly = found.domain === null || domain.hostOnly
    if (
      !prefixHolds(name, {
        secure: found.secure,
        hostOnly: found.domain === null,
        path: found.path,
      })
    ) {
      return null
    }
    const cookie: Cookie = {
      name,
      value,
      domain: domain.name,
      path,
      hostOnly,
      secure: found.secure,
      httpOnly: found.httpOnly,
      sameSite: found.sameSite,
      expiresAt: found.expiresAt,
      createdAt: this.#now(),
    }
    return secureOrigin || !this.#overlaysSecure(cookie) ? cookie : null
  }

  /**
   * Whether a cookie would replace, or go along with, one of the same name that is for TLS only: a
   * clear-text answer must not (RFC 6265bis, section 5.7).
   */
  #overlaysSecure(cookie: Cookie): boolean {
    for (const other of this) {
      if (!other.secure || other.name !== cookie.name || !pathMatches(cookie.path, other.path))
        continue
      if (domainMatches(cookie.domain, other.domain) || domainMatches(other.domain, cookie.domain))
        return true
    }
    return false
  }

  #domainFor(attribute: string | null, host: string): { name: string; hostOnly: boolean } | null {
    if (attribute === null || attribute === '') return { name: host, hostOnly: true }
    if (this.#isPublicSuffix(attribute)) {
      return attribute === host ? { name: host, hostOnly: true } : null
    }
    return domainMatches(host, attribute) ? { name: attribute, hostOnly: false } : null
  }

  #store(cookie: Cookie): void {
    const key = keyOf(cookie)
    const before = this.#cookies.get(key)
    this.#cookies.delete(key)
    this.#cookies.set(
      key,
      before === undefined ? cookie : { ...cookie, createdAt: before.createdAt },
    )
    if (before === undefined) this.#makeRoom(cookie.domain)
  }

  #makeRoom(domain: string): void {
    if (this.#cookies.size > MAX_COOKIES) this.#dropOldest(() => true)
    let count = 0
    for (const cookie of this.#cookies.values()) if (cookie.domain === domain) count++
    if (count > MAX_PER_DOMAIN) this.#dropOldest((cookie) => cookie.domain === domain)
  }

  /** The map is in the order of last change, so the first that fits is the one to go. */
  #dropOldest(fits: (cookie: Cookie) => boolean): void {
    for (const [key, cookie] of this.#cookies) {
      if (!fits(cookie)) continue
      this.#cookies.delete(key)
      return
    }
  }

  #remove(goes: (cookie: Cookie) => boolean): boolean {
    const before = this.#cookies.size
    for (const [key, cookie] of [...this.#cookies]) if (goes(cookie)) this.#cookies.delete(key)
    return this.#cookies.size !== before
  }

  /** Strictly increasing, so that the order of creation is never lost. */
  #now(): number {
    this.#lastCreated = Math.max(Date.now(), this.#lastCreated + 0.001)
    return this.#lastCreated
  }
}

interface Attributes {
  domain: string | null
  path: string | null
  secure: boolean
  httpOnly: boolean
  sameSite: Cookie['sameSite']
  expiresAt: number | null
}

function parseAttributes(attributes: readonly string[]): Attributes {
  const found: Attributes = {
    domain: null,
    path: null,
    secure: false,
    httpOnly: false,
    sameSite: null,
    expiresAt: null,
  }
  let maxAge: number | null = null
  for (const attribute of attributes) {
    const equals = attribute.indexOf('=')
    const name = (equals === -1 ? attribute : attribute.slice(0, equals)).trim().toLowerCase()
    const value = equals === -1 ? '' : attribute.slice(equals + 1).trim()
    if (name === 'secure') found.secure = true
    else if (name === 'httponly') found.httpOnly = true
    else if (name === 'path') found.path = value
    else if (name === 'domain') found.domain = domainOf(value)
    else if (name === 'samesite') found.sameSite = sameSiteOf(value)
    else if (name === 'expires') found.expiresAt = parseCookieDate(value) ?? found.expiresAt
    else if (name === 'max-age' && /^-?[0-9]+$/.test(value)) {
      maxAge = Number(value) <= 0 ? 0 : Date.now() + Math.min(Number(value), 400 * 86_400) * 1000
    }
  }
  if (maxAge !== null) found.expiresAt = maxAge
  return found
}

/** A domain as it is compared: in ASCII and lower case, without a leading dot (section 5.1.2). */
function domainOf(text: string): string {
  const domain = text.toLowerCase().replace(/^\./, '')
  return /[^\0-\x7f]/.test(domain) ? domainToASCII(domain) : domain
}

function sameSiteOf(value: string): Cookie['sameSite'] {
  const lower = value.toLowerCase()
  return lower === 'strict' || lower === 'lax' || lower === 'none' ? lower : null
}

const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ')

/** A cookie date, whose parts may come in any order (RFC 6265, section 5.1.1); null when it is none. */
export function parseCookieDate(text: string): number | null {
  let time: number[] | null = null
  let day: number | null = null
  let month: number | null = null
  let year: number | null = null
  for (const token of text.split(/[\t\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+/)) {
    const clock = /^([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[^0-9]|$)/.exec(token)
    if (time === null && clock !== null) time = clock.slice(1, 4).map(Number)
    else if (day === null && /^[0-9]{1,2}(?:[^0-9]|$)/.test(token)) day = Number.parseInt(token, 10)
    else if (month === null && MONTHS.includes(token.slice(0, 3).toLowerCase())) {
      month = MONTHS.indexOf(token.slice(0, 3).toLowerCase())
    } else if (year === null && /^[0-9]{2,4}(?:[^0-9]|$)/.test(token)) {
      year = Number.parseInt(token, 10)
    }
  }
  if (time === null || day === null || month === null || year === null) return null
  if (year >= 70 && year <= 99) year += 1900
  if (year >= 0 && year <= 69) year += 2000
  const [hour, minute, second] = time as [number, number, number]
  if (day < 1 || day > 31 || year < 1601 || hour > 23 || minute > 59 || second > 59) return null
  const at = Date.UTC(year, month, day, hour, minute, second)
  return new Date(at).getUTCDate() === day ? at : null
}

function prefixHolds(
  name: string,
  cookie: { secure: boolean; hostOnly: boolean; path: string | null },
): boolean {
  const lower = name.toLowerCase()
  if (lower.startsWith('__secure-')) return cookie.secure
  if (lower.startsWith('__host-')) return cookie.secure && cookie.hostOnly && cookie.path === '/'
  return true
}

function hostOf(url: URL): string {
  return url.hostname.replace(/\.$/, '')
}

function isLoopback(host: string): boolean {
  return (
    host === 'localhost' ||
    host.endsWith('.localhost') ||
    (isIP(host) === 4 && host.startsWith('127.')) ||
    host === '[::1]'
  )
}

/** Whether `host` is `domain` or below it; addresses match themselves only (section 5.1.3). */
function domainMatches(host: string, domain: string): boolean {
  if (host === domain) return true
  return host.endsWith(`.${domain}`) && isIP(host) === 0
}

/** Whether `path` is `prefix` or below it, by whole segments (section 5.1.4). */
function pathMatches(path: string, prefix: string): boolean {
  if (path === prefix) return true
  return path.startsWith(prefix) && (prefix.endsWith('/') || path[prefix.length] === '/')
}

function defaultPath(url: URL): string {
  const last = url.pathname.lastIndexOf('/')
  return last <= 0 ? '/' : url.pathname.slice(0, last)
}

function goesTo(cookie: Cookie, url: URL, host: string, direct: boolean): boolean {
  if (cookie.secure && url.protocol !== 'https:' && !isLoopback(host)) return false
  if (!pathMatches(url.pathname, cookie.path)) return false
  if (cookie.domain === '') return direct
  return cookie.hostOnly ? host === cookie.domain : domainMatches(host, cookie.domain)
}

function isExpired(cookie: Cookie): boolean {
  return cookie.expiresAt !== null && cookie.expiresAt <= Date.now()
}

function inScope(cookie: Cookie, scope: CookieScope): boolean {
  const domain = scope.domain === undefined ? undefined : domainOf(scope.domain)
  return (
    (domain === undefined || cookie.domain === domain) &&
    (scope.path ?? cookie.path) === cookie.path
  )
}

function keyOf({ name, domain, path, hostOnly }: Cookie): string {
  return `${domain};${path};${hostOnly ? '' : '.'};${name}`
}

function checkPair(name: string, value: string): void {
  if (typeof value !== 'string')
    throw new TypeError(`the cookie ${name} must be a string, got ${typeof value}`)
  if (name === '' || /[\0-\x20\x7f;,=]/.test(name) || /[\0-\x1f\x7f;]/.test(value)) {
    throw new LocalProtocolError(
      `the cookie ${JSON.stringify(name)} has a character that would break its line`,
    )
  }
}
