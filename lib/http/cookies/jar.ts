import { isIP } from 'node:net'
import { isLoopback } from '../../internal/web.js'
import { checkOptions, describeValue, type OptionKinds } from '../../internal/options.js'
import { CookieConflictError, LocalProtocolError } from '../errors.js'
import { type Headers, MASK } from '../headers.js'
import { printAs } from '../inspect.js'
import { isPublicSuffix, type PublicSuffixTest } from './public-suffixes.js'
import { canonicalDomain, parseSetCookie, type SetCookie } from './set-cookie.js'
import { type Cookie, CookieStore } from './store.js'

/** Cookies by name, without a domain: they are sent to every host that a caller requests. */
export type CookiesInit =
  Cookies | Readonly<Record<string, string>> | Iterable<readonly [string, string]>

/** Options of {@link Cookies}. */
export interface CookiesOptions {
  /** Decides which domains are public suffixes. @defaultValue a compact built-in list */
  readonly publicSuffixes?: PublicSuffixTest | undefined
  /** Whether cookies set by responses are stored. @defaultValue true */
  readonly persist?: boolean | undefined
}

/** Selects cookies by domain and path, or sets those of a new cookie. */
export interface CookieScope {
  readonly domain?: string | undefined
  readonly path?: string | undefined
}

const OPTIONS: OptionKinds<CookiesOptions> = { publicSuffixes: 'function', persist: 'boolean' }
const SCOPE: OptionKinds<CookieScope> = { domain: 'string', path: 'string' }

/**
 * A cookie jar (RFC 6265). Host-only cookies are sent to their host only, `Secure` ones over TLS
 * only; paths match by whole segments; no cookie spans a public suffix; and the name prefixes
 * `__Host-` and `__Secure-` are enforced. Cookies without a domain are sent to every host that a
 * caller requests, but not on redirects to another origin.
 *
 * `toJSON()` includes the values, so that a jar can be stored; printing omits them.
 */
export class Cookies implements Iterable<Cookie> {
  readonly #cookies = new CookieStore()
  readonly #isPublicSuffix: PublicSuffixTest
  /** Whether cookies set by responses are stored. */
  readonly persist: boolean
  #lastCreated = 0

  constructor(init?: CookiesInit | null, options: CookiesOptions = {}) {
    checkOptions(options, OPTIONS, 'new Cookies()')
    this.#isPublicSuffix = options.publicSuffixes ?? isPublicSuffix
    this.persist = options.persist ?? true
    if (init === undefined || init === null) return
    if (init instanceof Cookies) for (const cookie of init) this.#store(cookie)
    else {
      if (typeof init !== 'object') {
        throw new TypeError(`cookies must be an object, pairs or Cookies, got ${typeof init}`)
      }
      const pairs = Symbol.iterator in init ? init : Object.entries(init)
      for (const pair of pairs) {
        if (!Array.isArray(pair)) {
          throw new TypeError(`cookies must be pairs of name and value, got ${typeof pair}`)
        }
        this.set(pair[0] as string, pair[1] as string)
      }
    }
  }

  /** Restores a jar from the result of `toJSON()`, without expired cookies. */
  static fromJSON(json: readonly Cookie[], options: CookiesOptions = {}): Cookies {
    const jar = new Cookies(null, options)
    if (!Array.isArray(json)) {
      throw new TypeError(`fromJSON() needs the result of toJSON(), got ${describeValue(json)}`)
    }
    for (const cookie of json) {
      checkPair(cookie.name, cookie.value)
      if (!isExpired(cookie)) jar.#store({ ...cookie })
    }
    return jar
  }

  /** Another jar with the same cookies and rules. @internal */
  copy(): Cookies {
    return new Cookies(this, { publicSuffixes: this.#isPublicSuffix, persist: this.persist })
  }

  /** The number of cookies, expired ones included until the next cookie is set. */
  get size(): number {
    return this.#cookies.size
  }

  /**
   * The value of the cookie of this name, or null.
   *
   * @throws {@link CookieConflictError} when several match; select one by `scope`.
   */
  get(name: string, scope: CookieScope = {}): string | null {
    checkOptions(scope, SCOPE, 'a cookie')
    const found = [...this].filter((cookie) => cookie.name === name && inScope(cookie, scope))
    if (found.length > 1) {
      const scopes = found.map(({ domain, path }) => `${domain}${path}`).join(', ')
      throw new CookieConflictError(
        `${found.length} cookies are named ${name} (${scopes}); give a domain or path`,
      )
    }
    return found[0]?.value ?? null
  }

  /** Sets a cookie for a domain and its subdomains or, without a domain, for every host. */
  set(name: string, value: string, scope: CookieScope = {}): void {
    checkPair(name, value)
    checkOptions(scope, SCOPE, 'a cookie')
    const domain = canonicalDomain(scope.domain ?? '')
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

  /** Removes the cookies of this name. Returns whether there were any. */
  delete(name: string, scope: CookieScope = {}): boolean {
    checkOptions(scope, SCOPE, 'a cookie')
    return this.#remove((cookie) => cookie.name === name && inScope(cookie, scope))
  }

  /** Removes all cookies, or those of a domain or path. */
  clear(scope: CookieScope = {}): void {
    checkOptions(scope, SCOPE, 'a cookie')
    this.#remove((cookie) => inScope(cookie, scope))
  }

  /** Adds the cookies of `other`, replacing those of the same name, domain and path. */
  update(other: CookiesInit): void {
    for (const cookie of other instanceof Cookies ? other : new Cookies(other)) this.#store(cookie)
  }

  /** Stores the Set-Cookie fields of a response from `url`, except those it may not set. */
  extract(url: URL, headers: Headers): void {
    for (const field of headers.getList('set-cookie')) {
      const set = parseSetCookie(field)
      const cookie = set === null ? null : this.#accept(set, url)
      if (cookie === null) continue
      if (isExpired(cookie)) this.#cookies.delete(cookie)
      else this.#store(cookie)
    }
  }

  /**
   * The value of the Cookie field for `url`, or null if no cookie matches: longer paths first, then
   * older cookies (RFC 6265, section 5.4). Cookies without a domain need `direct`.
   */
  headerFor(url: URL, direct = true): string | null {
    if (this.#cookies.size === 0) return null
    const host = hostOf(url)
    const found = [...this.#cookies.near(host)].filter(
      (cookie) => !isExpired(cookie) && isSentTo(cookie, url, host, direct),
    )
    found.sort((a, b) => b.path.length - a.path.length || a.createdAt - b.createdAt)
    for (const cookie of found) this.#cookies.touch(cookie)
    return found.length === 0 ? null : found.map(({ name, value }) => `${name}=${value}`).join('; ')
  }

  /** The unexpired cookies, in the order in which they were last changed or sent. */
  *[Symbol.iterator](): Generator<Cookie, void, undefined> {
    for (const cookie of this.#cookies) if (!isExpired(cookie)) yield cookie
  }

  /** The unexpired cookies with their values, for {@link Cookies.fromJSON}. */
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

  /** The cookie that `set` from `url` makes; null if `url` may not set it. */
  #accept(set: SetCookie, url: URL): Cookie | null {
    const host = hostOf(url)
    const domain = this.#domainFor(set.domain, host)
    if (domain === null || !keepsPrefix(set)) return null
    const secureOrigin = url.protocol === 'https:' || isLoopback(host)
    if (set.secure && !secureOrigin) return null
    const cookie: Cookie = {
      name: set.name,
      value: set.value,
      domain: domain.name,
      path: set.path?.startsWith('/') === true ? set.path : defaultPath(url),
      hostOnly: domain.hostOnly,
      secure: set.secure,
      httpOnly: set.httpOnly,
      sameSite: set.sameSite,
      expiresAt: set.expiresAt,
      createdAt: this.#now(),
    }
    return secureOrigin || !this.#shadowsSecure(cookie) ? cookie : null
  }

  /**
   * Whether `cookie` would replace, or be sent along with, a Secure one of the same name, which a
   * response without TLS must not cause (RFC 6265bis, section 5.7).
   */
  #shadowsSecure({ name, path, domain }: Cookie): boolean {
    for (const other of this.#cookies.secureNamed(name)) {
      if (isExpired(other) || !pathMatches(path, other.path)) continue
      if (domainMatches(domain, other.domain) || domainMatches(other.domain, domain)) return true
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
    const createdAt = this.#cookies.get(cookie)?.createdAt ?? cookie.createdAt
    this.#cookies.add({ ...cookie, createdAt })
  }

  #remove(matches: (cookie: Cookie) => boolean): boolean {
    const before = this.#cookies.size
    for (const cookie of [...this.#cookies]) if (matches(cookie)) this.#cookies.delete(cookie)
    return this.#cookies.size !== before
  }

  /** A time for `createdAt`, strictly increasing so that it preserves the order of creation. */
  #now(): number {
    this.#lastCreated = Math.max(Date.now(), this.#lastCreated + 0.001)
    return this.#lastCreated
  }
}

/** Whether the attributes keep the promise of a `__Secure-` or `__Host-` name (RFC 6265bis). */
function keepsPrefix({ name, secure, domain, path }: SetCookie): boolean {
  const lower = name.toLowerCase()
  if (lower.startsWith('__secure-')) return secure
  if (lower.startsWith('__host-')) return secure && domain === null && path === '/'
  return true
}

/** Whether `cookie` is sent to `url` (RFC 6265, section 5.4). */
function isSentTo(cookie: Cookie, url: URL, host: string, direct: boolean): boolean {
  if (cookie.secure && url.protocol !== 'https:' && !isLoopback(host)) return false
  if (!pathMatches(url.pathname, cookie.path)) return false
  if (cookie.domain === '') return direct
  return cookie.hostOnly ? host === cookie.domain : domainMatches(host, cookie.domain)
}

function isExpired(cookie: Cookie): boolean {
  return cookie.expiresAt !== null && cookie.expiresAt <= Date.now()
}

function inScope(cookie: Cookie, scope: CookieScope): boolean {
  const domain = scope.domain === undefined ? undefined : canonicalDomain(scope.domain)
  return (
    (domain === undefined || cookie.domain === domain) &&
    (scope.path ?? cookie.path) === cookie.path
  )
}

function checkPair(name: string, value: string): void {
  if (typeof value !== 'string') {
    throw new TypeError(`the cookie ${name} must be a string, got ${typeof value}`)
  }
  if (name === '' || /[\0-\x20\x7f;,=]/.test(name) || /[\0-\x1f\x7f;]/.test(value)) {
    throw new LocalProtocolError(
      `the cookie ${JSON.stringify(name)} has no name or contains an invalid character`,
    )
  }
}

/**
 * Which hosts and paths a cookie belongs to (RFC 6265, section 5.1).
 */

/** The host of `url` as cookies compare it: without the dot that may end a full name. */
function hostOf(url: URL): string {
  return url.hostname.replace(/\.$/, '')
}

/** Whether `host` is `domain` or a subdomain; an address matches only itself (section 5.1.3). */
function domainMatches(host: string, domain: string): boolean {
  if (host === domain) return true
  return host.endsWith(`.${domain}`) && isIP(host) === 0
}

/** Whether `path` is `prefix` or below it, by whole segments (section 5.1.4). */
function pathMatches(path: string, prefix: string): boolean {
  if (path === prefix) return true
  return path.startsWith(prefix) && (prefix.endsWith('/') || path[prefix.length] === '/')
}

/** The path of a cookie that has no Path attribute (section 5.1.4). */
function defaultPath(url: URL): string {
  const last = url.pathname.lastIndexOf('/')
  return last <= 0 ? '/' : url.pathname.slice(0, last)
}
