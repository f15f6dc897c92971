import { isSensitiveHeader, Headers } from '../headers.js'
import { CacheDirectives, MAX_SECONDS } from './directives.js'
import { parseHttpDate } from './http-date.js'
import type { CachedResponse, CacheRecord } from './store.js'

/** Most responses under one key; the oldest goes first. */
const MAX_VARIANTS = 8

/** Statuses that may be stored without explicit freshness (RFC 9110, section 15.1); never 206. */
const HEURISTIC_STATUSES = new Set([200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501])
/** The part of a heuristic lifetime in the time since Last-Modified (RFC 9111, section 4.2.2). */
const HEURISTIC_FRACTION = 0.1
const MAX_HEURISTIC_MS = 24 * 60 * 60 * 1000

/** A stored response with what follows from its fields. */
export class StoredResponse {
  readonly facts: CachedResponse
  /** As stored. Copy them before they are given away. */
  readonly headers: Headers
  readonly control: CacheDirectives
  /** How long the response is fresh, in ms (RFC 9111, section 4.2.1). */
  readonly lifetimeMs: number
  /** Its age when it arrived, in ms (section 4.2.3). */
  readonly #initialAgeMs: number

  /**
   * @param heuristic - whether Last-Modified gives a lifetime where the server gave none.
   * @throws TypeError when a store returned something else.
   */
  constructor(facts: CachedResponse, heuristic: boolean) {
    this.facts = facts
    this.headers = new Headers(facts.headers)
    this.control = new CacheDirectives(this.headers)
    const { headers } = this
    const { receivedAt, requestedAt } = facts
    const date = parseHttpDate(headers.get('date'), receivedAt) ?? receivedAt
    const age = headers.get('age') ?? '0'
    const isAgeValid = /^[0-9]+$/.test(age)
    const ageMs = isAgeValid ? Math.min(Number(age), MAX_SECONDS) * 1000 : 0
    this.#initialAgeMs = Math.max(0, receivedAt - date, ageMs + receivedAt - requestedAt)
    // An Age that is not one number is a reason not to trust the response.
    this.lifetimeMs = isAgeValid ? this.#lifetime(date, heuristic) : 0
  }

  /** The age at `now`, in ms. When the clock was set back it is unknown, and so not fresh. */
  ageAt(now: number): number {
    const { receivedAt } = this.facts
    if (now < receivedAt) return Math.max(this.#initialAgeMs, this.lifetimeMs)
    return this.#initialAgeMs + now - receivedAt
  }

  get canBeValidated(): boolean {
    return this.headers.has('etag') || this.headers.has('last-modified')
  }

  /** Whether its Vary selects it for a request with these headers (section 4.1). */
  suits(request: Headers): boolean {
    return this.facts.vary.every(([name, value]) => normalized(request.get(name)) === value)
  }

  #lifetime(date: number, heuristic: boolean): number {
    const { headers, control, facts } = this
    const maxAge = control.milliseconds('max-age')
    if (maxAge !== null) return maxAge
    if (headers.has('expires')) {
      const expires = parseHttpDate(headers.get('expires'), facts.receivedAt)
      return expires === null ? 0 : Math.max(0, expires - date)
    }
    if (!heuristic || !isHeuristic(facts.statusCode, control)) return 0
    const modified = parseHttpDate(headers.get('last-modified'), facts.receivedAt)
    if (modified === null || modified >= date) return 0
    return Math.min((date - modified) * HEURISTIC_FRACTION, MAX_HEURISTIC_MS)
  }
}

/** Whether a response may be stored without explicit freshness. */
export function isHeuristic(statusCode: number, control: CacheDirectives): boolean {
  return HEURISTIC_STATUSES.has(statusCode) || control.has('public')
}

/** The response that a store has under a key for a request; the newest of several. */
export function selectVariant(
  record: CacheRecord,
  request: Headers,
  open: (facts: CachedResponse) => StoredResponse,
): StoredResponse | null {
  for (const facts of record.variants) {
    const stored = open(facts)
    if (stored.suits(request)) return stored
  }
  return null
}

/** `record` with `facts` in place of the response that it replaces. */
export function withVariant(record: CacheRecord | null, facts: CachedResponse): CacheRecord {
  const selects = JSON.stringify(facts.vary)
  const others = (record?.variants ?? []).filter(({ vary }) => JSON.stringify(vary) !== selects)
  return { version: 1, variants: [facts, ...others].slice(0, MAX_VARIANTS) }
}

/** The request fields that `response` varies by; null when nothing can match again (`*`). */
export function varyOf(response: Headers, request: Headers): CachedResponse['vary'] | null {
  const names = response.getList('vary').join(',').toLowerCase().split(',')
  const fields = new Set(names.map((name) => name.trim()).filter((name) => name !== ''))
  if (fields.has('*')) return null
  // The key separates credentials already, and they must not be stored.
  const plain = [...fields].filter((name) => !isSensitiveHeader(name)).sort()
  return plain.map((name) => [name, normalized(request.get(name))] as const)
}

/** A field value without differences that mean nothing: blanks around commas. */
function normalized(value: string | null): string | null {
  return value === null ? null : value.split(',').map((part) => part.trim()).join(', ')
}

/** @throws TypeError when a store returned something that is no record. */
export function checkRecord(record: CacheRecord | null | undefined): CacheRecord | null {
  if (record === null || record === undefined) return null
  if (typeof record !== 'object' || !Number.isInteger(record.version)) refuse()
  if (record.version !== 1) return null
  if (!Array.isArray(record.variants)) refuse()
  for (const facts of record.variants) checkFacts(facts)
  return record
}

/** @throws TypeError when a store returned something that is no response, or only a part of one. */
function checkFacts(facts: CachedResponse | null): void {
  if (typeof facts !== 'object' || facts === null) refuse()
  const { statusCode, reasonPhrase, httpVersion, headers, body, vary } = facts
  const isWhole =
    Number.isInteger(statusCode) &&
    statusCode >= 200 &&
    statusCode <= 999 &&
    (typeof reasonPhrase === 'string' || reasonPhrase === null) &&
    typeof httpVersion === 'string' &&
    Number.isFinite(facts.requestedAt) &&
    Number.isFinite(facts.receivedAt) &&
    Array.isArray(headers) &&
    Array.isArray(vary) &&
    headers.every((field) => isField(field)) &&
    vary.every((field) => isField(field) || field?.[1] === null) &&
    body instanceof Uint8Array
  if (!isWhole) refuse()
  const length = headers.find(([name]) => name.toLowerCase() === 'content-length')?.[1]
  if (length !== undefined && length !== String(body.length)) refuse()
}

function isField(field: unknown): boolean {
  return Array.isArray(field) && typeof field[0] === 'string' && typeof field[1] === 'string'
}

function refuse(): never {
  throw new TypeError('the cache store returned something else than it was given')
}
