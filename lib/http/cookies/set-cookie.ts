/**
 * Set-Cookie fields (RFC 6265, section 5.2), before the jar decides whether to store the cookie.
 *
 * @module
 */
import { domainToASCII } from 'node:url'

/** A parsed Set-Cookie field. Times are epoch ms. */
export interface SetCookie {
  readonly name: string
  readonly value: string
  /** In lower case, without a leading dot; null without a Domain attribute. */
  readonly domain: string | null
  readonly path: string | null
  readonly secure: boolean
  readonly httpOnly: boolean
  readonly sameSite: 'strict' | 'lax' | 'none' | null
  /** From Max-Age, else Expires; null for a session cookie. */
  readonly expiresAt: number | null
}

/** Most bytes of name and value together. */
const MAX_COOKIE_BYTES = 4096
/** Longest lifetime of a cookie, in seconds (RFC 6265bis, section 5.5). */
const MAX_AGE_S = 400 * 86_400

/** Parses a Set-Cookie field; null if it is too long, has no name or has control characters. */
export function parseSetCookie(field: string): SetCookie | null {
  if (field.length > MAX_COOKIE_BYTES * 2) return null
  const [pair, ...attributes] = field.split(';')
  const equals = pair!.indexOf('=')
  const name = equals === -1 ? '' : pair!.slice(0, equals).trim()
  const value = pair!.slice(equals + 1).trim()
  if (name === '' || name.length + value.length > MAX_COOKIE_BYTES) return null
  if (/[\0-\x1f\x7f]/.test(name + value)) return null
  return { name, value, ...parseAttributes(attributes) }
}

type Attributes = Omit<SetCookie, 'name' | 'value'>

function parseAttributes(attributes: readonly string[]): Attributes {
  const parsed: { -readonly [K in keyof Attributes]: Attributes[K] } = {
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
    if (name === 'secure') parsed.secure = true
    else if (name === 'httponly') parsed.httpOnly = true
    else if (name === 'path') parsed.path = value
    else if (name === 'domain') parsed.domain = canonicalDomain(value)
    else if (name === 'samesite') parsed.sameSite = sameSiteOf(value)
    else if (name === 'expires') parsed.expiresAt = parseCookieDate(value) ?? parsed.expiresAt
    else if (name === 'max-age' && /^-?[0-9]+$/.test(value)) {
      maxAge = Number(value) <= 0 ? 0 : Date.now() + Math.min(Number(value), MAX_AGE_S) * 1000
    }
  }
  // Max-Age overrides Expires (section 5.3).
  if (maxAge !== null) parsed.expiresAt = maxAge
  return parsed
}

/** A domain in ASCII and lower case, without a leading dot (section 5.1.2). */
export function canonicalDomain(text: string): string {
  const domain = text.toLowerCase().replace(/^\./, '')
  return /[^\0-\x7f]/.test(domain) ? domainToASCII(domain) : domain
}

function sameSiteOf(value: string): SetCookie['sameSite'] {
  const lower = value.toLowerCase()
  return lower === 'strict' || lower === 'lax' || lower === 'none' ? lower : null
}

const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ')

/** Parses a cookie date, whose parts may have any order (section 5.1.1); null if it is invalid. */
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
