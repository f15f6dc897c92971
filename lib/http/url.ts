import { InvalidUrlError, UnsupportedProtocolError } from './errors.js'

/** Query parameters. An array repeats the key, `null` is an empty value, `undefined` is skipped. */
export type ParamsInit =
  | string
  | URLSearchParams
  | Iterable<readonly [string, ParamValue]>
  | Readonly<Record<string, ParamValue | readonly ParamValue[]>>

/** One value of a query or form field. */
export type ParamValue = string | number | boolean | bigint | null | undefined

const MAX_URL_LENGTH = 65_536
const CONTROL = /[\0-\x1f\x7f]/
const ABSOLUTE = /^[A-Za-z][A-Za-z0-9+.-]*:/

/**
 * Resolves the URL of a call. A relative URL is appended to the path of `base`: `/v1` with `users`,
 * `/users` or `./users` gives `/v1/users`. The query of `base` stays, except for keys that `input`
 * has too. An absolute URL is used unchanged.
 *
 * Only a scheme makes a URL absolute. `//name/x` is a path, so that a path assembled from untrusted
 * parts cannot take the client's credentials to another host.
 *
 * @throws {@link InvalidUrlError} when it does not parse, has control characters, or is too long.
 * @throws {@link UnsupportedProtocolError} when it is not http(s), or relative without a base.
 */
export function resolveUrl(input: string | URL, base: URL | null): URL {
  if (typeof input !== 'string') return checkScheme(parseUrl(input))
  checkText(input)
  if (ABSOLUTE.test(input)) return checkScheme(parseUrl(input))
  if (base === null) {
    const shown = JSON.stringify(redactUrl(input))
    throw new UnsupportedProtocolError(
      `${shown} is relative; give an absolute http(s) URL or set baseUrl`,
    )
  }
  return appendTo(base, input)
}

/**
 * Parses an absolute URL. `what` names it in error messages.
 *
 * @throws {@link InvalidUrlError} when it does not parse; TypeError unless it is a string or a URL.
 */
export function parseUrl(input: string | URL, what = 'the URL'): URL {
  if (typeof input === 'string') checkText(input)
  // A URL from another realm is not an instance of this one's class.
  else if (typeof (input as Partial<URL> | null | undefined)?.href !== 'string') {
    const got = input === null ? 'null' : typeof input
    throw new TypeError(`${what} must be a string or a URL, got ${got}`)
  }
  try {
    return new URL(input)
  } catch {
    // A password that contains a slash is one cause, so everything up to the last @ is masked.
    const text = String(input)
    const end = text.lastIndexOf('@')
    const start = /^(?:[A-Za-z][A-Za-z0-9+.-]*:)?[/\\]*/.exec(text.slice(0, Math.max(end, 0)))![0]
    const shown = redactUrl(end === -1 ? text : `${start}[secret]${text.slice(end)}`)
    throw new InvalidUrlError(
      `${what} ${JSON.stringify(shown)} is invalid; write it as https://host/path`,
    )
  }
}

function checkText(input: string): void {
  if (input.length > MAX_URL_LENGTH) {
    throw new InvalidUrlError(`the URL is longer than ${MAX_URL_LENGTH} characters`)
  }
  if (CONTROL.test(input)) {
    const shown = JSON.stringify(redactUrl(input))
    throw new InvalidUrlError(`the URL ${shown} contains a control character`)
  }
}

function checkScheme(url: URL): URL {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new UnsupportedProtocolError(
      `the URL scheme must be http or https, got ${JSON.stringify(url.protocol.slice(0, -1))}`,
    )
  }
  return url
}

function appendTo(base: URL, input: string): URL {
  const [, path = '', query, fragment = ''] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(input)!
  const url = new URL(base)
  if (path !== '') {
    const prefix = base.pathname.endsWith('/') ? base.pathname : base.pathname + '/'
    url.pathname = prefix + path.replace(/^\/+/, '')
  }
  if (query !== undefined) url.search = mergeQueries(base.search, query)
  url.hash = fragment
  return url
}

/** The parts of `base` whose keys are not in `own`, then `own` unchanged. */
function mergeQueries(base: string, own: string): string {
  const keys = new Set(new URLSearchParams(own).keys())
  const kept = queryParts(base).filter((part) => !keys.has(keyOf(part)))
  return [...kept, ...queryParts(own)].join('&')
}

function queryParts(search: string): string[] {
  return search.replace(/^\?/, '').split('&').filter((part) => part !== '')
}

/** The `[key, value]` pairs of `init`, in order. @param what - Names `init` in error messages. */
export function paramPairs(init: ParamsInit, what = 'params'): [string, string][] {
  if (typeof init === 'string' || init instanceof URLSearchParams) {
    return [...new URLSearchParams(init)]
  }
  if (typeof init !== 'object' || init === null) {
    const got = init === null ? 'null' : typeof init
    throw new TypeError(`${what} must be an object, pairs or a string, got ${got}`)
  }
  const entries = Symbol.iterator in init ? init : Object.entries(init)
  const pairs: [string, string][] = []
  for (const entry of entries as Iterable<readonly [string, ParamValue | ParamValue[]]>) {
    if (!Array.isArray(entry)) {
      throw new TypeError(`${what} must be pairs of name and value, got ${typeof entry}`)
    }
    const [key, value] = entry as [string, ParamValue | ParamValue[]]
    for (const member of Array.isArray(value) ? value : [value]) {
      if (member !== undefined) pairs.push([key, paramText(`${what}.${key}`, member)])
    }
  }
  return pairs
}

function paramText(name: string, value: ParamValue): string {
  if (value === null) return ''
  if (!['function', 'symbol', 'object'].includes(typeof value)) return String(value)
  throw new TypeError(
    `${name} must be a string, number, boolean, null or a list of them, got ${typeof value}`,
  )
}

/** Sets the keys of `params` in the query of `url`, in place. Other keys stay unchanged. */
export function applyParams(url: URL, params: ParamsInit | null | undefined): void {
  if (params === null || params === undefined) return
  const pairs = paramPairs(params)
  if (pairs.length === 0) return
  const keys = new Set(pairs.map(([key]) => key))
  const kept = queryParts(url.search).filter((part) => !keys.has(keyOf(part)))
  url.search = [...kept, new URLSearchParams(pairs).toString()].join('&')
}

function keyOf(part: string): string {
  return new URLSearchParams(part).keys().next().value ?? ''
}

/** Decodes a user name or password of a URL; returns it unchanged if its encoding is invalid. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The host of `url`, an IPv6 address without its brackets. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

/** The port of an http(s) URL, default ports included. */
export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port)
  return url.protocol === 'https:' ? 443 : 80
}

/** Whether both URLs have the same scheme, host and port (RFC 6454). */
export function sameOrigin(a: URL, b: URL): boolean {
  return a.protocol === b.protocol && a.host === b.host
}

/** Whether what was given for `from` may go to `to`: one origin, or http to https on one host. */
export function sharesSecrets(from: URL, to: URL): boolean {
  const upgraded = from.protocol === 'http:' && to.protocol === 'https:'
  const defaultPorts = from.port === '' && to.port === ''
  return sameOrigin(from, to) || (upgraded && defaultPorts && from.hostname === to.hostname)
}

const SECRET_KEYS =
  /([?&;#](?:[\w-]*(?:api[_-]?key|token|secret|password|signature)|key|sig|auth|code)=)[^&#;>]*/gi

/** The URL for printing: passwords and the values of secret query keys are masked. */
export function redactUrl(url: URL | string): string {
  return String(url)
    .replace(/^([A-Za-z][A-Za-z0-9+.-]*:[/\\]*|[/\\]{2,})[^/\\?#]*@/, '$1[secret]@')
    .replace(SECRET_KEYS, '$1[secret]')
}
