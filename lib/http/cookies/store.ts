/** A cookie as the jar stores it (RFC 6265, section 5.3). Times are epoch ms. */
export interface Cookie {
  readonly name: string
  readonly value: string
  /** Lower case, without a leading dot. */
  readonly domain: string
  readonly path: string
  /** Whether the cookie is sent to `domain` only, not to its subdomains. */
  readonly hostOnly: boolean
  readonly secure: boolean
  readonly httpOnly: boolean
  readonly sameSite: 'strict' | 'lax' | 'none' | null
  /** Time of expiry; null for a session cookie. */
  readonly expiresAt: number | null
  readonly createdAt: number
}

/** Most cookies of one domain and of all. */
const MAX_PER_DOMAIN = 180
const MAX_COOKIES = 3000

/**
 * The cookies of a jar. Expired ones are dropped whenever one is added; when there are too many,
 * the one that was changed or sent least recently is dropped, first within a domain that has more
 * than its share (RFC 6265, section 5.3). Adding takes logarithmic time, however many there are.
 */
export class CookieStore implements Iterable<Cookie> {
  readonly #cookies = new RecentMap()
  readonly #domains = new Map<string, RecentMap>()
  /** Secure cookies by name. */
  readonly #secure = new Map<string, Set<Cookie>>()
  /** A binary heap of cookies that expire, the next one first; some were dropped or replaced. */
  #expiring: Cookie[] = []

  get size(): number {
    return this.#cookies.size
  }

  /** The cookies, expired ones too, least recently changed or sent first. */
  [Symbol.iterator](): Iterator<Cookie> {
    return this.#cookies.values()
  }

  get(cookie: Cookie): Cookie | undefined {
    return this.#cookies.get(keyOf(cookie))
  }

  /** Those that may belong to `host`: of this domain, of a parent, and of none. */
  *near(host: string): Generator<Cookie, void, undefined> {
    for (let domain = host; domain !== ''; domain = domain.slice(domain.indexOf('.') + 1)) {
      yield* this.#domains.get(domain)?.values() ?? []
      if (!domain.includes('.')) break
    }
    yield* this.#domains.get('')?.values() ?? []
  }

  /** The Secure ones of this name. */
  secureNamed(name: string): Iterable<Cookie> {
    return this.#secure.get(name) ?? []
  }

  /** Adds a cookie, in place of one of the same name, domain and path. */
  add(cookie: Cookie): void {
    this.#dropExpired()
    this.delete(cookie)
    const key = keyOf(cookie)
    this.#cookies.set(key, cookie)
    let ofDomain = this.#domains.get(cookie.domain)
    if (ofDomain === undefined) this.#domains.set(cookie.domain, (ofDomain = new RecentMap()))
    ofDomain.set(key, cookie)
    if (cookie.secure) {
      const named = this.#secure.get(cookie.name)
      if (named === undefined) this.#secure.set(cookie.name, new Set([cookie]))
      else named.add(cookie)
    }
    this.#willExpire(cookie)
    if (ofDomain.size > MAX_PER_DOMAIN) this.delete(ofDomain.oldest())
    if (this.size > MAX_COOKIES) this.delete(this.#cookies.oldest())
  }

  /** Removes the cookie of the same name, domain and path. */
  delete(cookie: Cookie): boolean {
    const key = keyOf(cookie)
    const present = this.#cookies.get(key)
    if (present === undefined) return false
    this.#cookies.delete(key)
    const ofDomain = this.#domains.get(present.domain)!
    ofDomain.delete(key)
    if (ofDomain.size === 0) this.#domains.delete(present.domain)
    const named = this.#secure.get(present.name)
    if (named?.delete(present) === true && named.size === 0) this.#secure.delete(present.name)
    return true
  }

  /** Notes that a cookie of this store was sent. */
  touch(cookie: Cookie): void {
    const key = keyOf(cookie)
    for (const map of [this.#cookies, this.#domains.get(cookie.domain)!]) {
      map.delete(key)
      map.set(key, cookie)
    }
  }

  #dropExpired(): void {
    const heap = this.#expiring
    while (heap.length > 0 && heap[0]!.expiresAt! <= Date.now()) {
      const first = heap[0]!
      const last = heap.pop()!
      if (heap.length > 0) sink(heap, last)
      if (this.get(first) === first) this.delete(first)
    }
  }

  #willExpire(cookie: Cookie): void {
    if (cookie.expiresAt === null) return
    // Mostly replaced ones: they would pile up when one cookie is set again and again.
    if (this.#expiring.length > 2 * MAX_COOKIES) {
      this.#expiring = [...this]
        .filter(({ expiresAt }) => expiresAt !== null)
        .sort((a, b) => a.expiresAt! - b.expiresAt!)
    } else rise(this.#expiring, cookie)
  }
}

/** A map that knows which of its entries was set least recently. */
class RecentMap extends Map<string, Cookie> {
  /** Stays at its place: a new one would pass over all entries that were deleted. */
  #next: Iterator<Cookie> = this.values()

  /** The entry that was set least recently, which the caller removes. */
  oldest(): Cookie {
    let step = this.#next.next()
    if (step.done === true) step = (this.#next = this.values()).next()
    return step.value as Cookie
  }
}

/** Adds `cookie` to a heap. */
function rise(heap: Cookie[], cookie: Cookie): void {
  let at = heap.length
  for (; at > 0; at = (at - 1) >> 1) {
    const parent = heap[(at - 1) >> 1]!
    if (parent.expiresAt! <= cookie.expiresAt!) break
    heap[at] = parent
  }
  heap[at] = cookie
}

/** Puts `cookie` into a heap in place of the first. */
function sink(heap: Cookie[], cookie: Cookie): void {
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= heap.length) break
    if (heap[child + 1] !== undefined && heap[child + 1]!.expiresAt! < heap[child]!.expiresAt!)
      child++
    if (heap[child]!.expiresAt! >= cookie.expiresAt!) break
    heap[at] = heap[child]!
    at = child
  }
  heap[at] = cookie
}

function keyOf({ name, domain, path, hostOnly }: Cookie): string {
  return `${domain};${path};${hostOnly ? '' : '.'};${name}`
}
