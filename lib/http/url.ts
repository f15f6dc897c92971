import { InvalidUrlError, UnsupportedProtocolError } from './errors.js'

/** What query parameters can be made from; arrays repeat a key, null is empty, undefined skips. */
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
 * Resolves what a caller wrote as URL. A relative one is appended to the path of `base`, whatever
 * the slashes on both sides, so `/v1` with `users`, `/users` or `./users` all give `/v1/users`;
 * the query of `base` stays, but for the keys that `input` has too. An absolute URL is taken as it is.
 * Only a scheme makes it absolute: `//name/x` is a path too, so that no path, whatever it was put
 * together from, takes the client's credentials to another host.
 *
 * @throws {@link InvalidUrlError} when it does not parse, has control characters, or is too long.
 * @throws {@link UnsupportedProtocolError} when it is not http(s), or relative without a base.
 */
export function resolveUrl(input: string | URL, base: URL | null): URL {
  if (typeof input !== 'string') return checkScheme(parseUrl(input))
  checkText(input)
  if (ABSOLUTE.test(input)) return checkScheme(parseUrl(input))
  if (base === null) {
    throw new UnsupportedProtocolError(
      `${JSON.stringify(redactUrl(input))} is relative: give an absolute http(s) URL or set baseUrl`,
    )
  }
  return appendTo(base, input)
}

/**
 * Parses an absolute URL. `what` names it in messages.
 *
 * @throws {@link InvalidUrlError} when it cannot be parsed; TypeError when it is neither string nor URL.
 */
export function parseUrl(input: string | URL, what = 'the URL'): URL {
  if (typeof input === 'string') checkText(input)
  // A URL of another realm is no instance of ours.
  else if (typeof (input as Partial<URL> | null | undefined)?.href !== 'string') {
    throw new TypeError(
      `${what} must be a string or a URL, got ${input === null ? 'null' : typeof input}`,
    )
  }
  try {
    return new URL(input)
  } catch {
    // A password with a slash in it is one reason, so all that may be userinfo is left out.
    const shown = redactUrl(
      String(input).replace(/^([A-Za-z][A-Za-z0-9+.-]*:)?([/\\]*).*@/s, '$1$2[secret]@'),
    )
    throw new InvalidUrlError(
      `${what} ${JSON.stringify(shown)} cannot be parsed; write it as https://host/path`,
    )
  }
}

function checkText(input: string): void {
  if (input.length > MAX_URL_LENGTH) {
    throw new InvalidUrlError(`the URL has ${input.length} characters; at most ${MAX_URL_LENGTH}`)
  }
  if (CONTROL.test(input)) {
    throw new InvalidUrlError(`the URL ${JSON.stringify(redactUrl(input))} has a control character`)
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

/** Splits `path?query#fragment`; absent parts are null. */
function splitRelative(input: string): [string, string | null, string | null] {
  const hash = input.indexOf('#')
  const fragment = hash === -1 ? null : input.slice(hash)
  const rest = hash === -1 ? input : input.slice(0, hash)
  const mark = rest.indexOf('?')
  return mark === -1 ? [rest, null, fragment] : [rest.slice(0, mark), rest.slice(mark), fragment]
}

function appendTo(base: URL, input: string): URL {
  const [path, query, fragment] = splitRelative(input)
  const url = new URL(base)
  if (path !== '') {
    const prefix = base.pathname.endsWith('/') ? base.pathname : base.pathname + '/'
    url.pathname = prefix + path.replace(/^\/+/, '')
  }
  if (query !== null) url.search = mergeQueries(base.search, query)
  url.hash = fragment ?? ''
  return url
}

/** The parts of `base` whose keys `own` does not have, then `own` as it was written. */
function mergeQueries(base: string, own: string): string {
  const keys = new Set(new URLSearchParams(own).keys())
  const kept = queryParts(base).filter((part) => !keys.has(keyOf(part)))
  return [...kept, ...queryParts(own)].join('&')
}

function queryParts(search: string): string[] {
  return search.replace(/^\?/, '').split('&').filter((part) => part !== '')
}

/** The `[key, value]` pairs that `init` stands for, in order. @param what - Its name, for messages. */
export function paramPairs(init: ParamsInit, what = 'params'): [string, string][] {
  if (typeof init === 'string' || init instanceof URLSearchParams) {
    return [...new URLSearchParams(init)]
  }
  if (typeof init !== 'object' || init === null) {
    throw new TypeError(
      `${what} must be an object, pairs or a string, got ${init === null ? 'null' : typeof init}`,
    )
  }
  const entries = Symbol.iterator in init ? init : Object.entries(init)
  const pairs: [string, string][] = []
  for (const entry of entries as Iterable<readonly [string, ParamValue | ParamValue[]]>) {
    if (!Array.isArray(entry))
      throw new TypeError(`${what} must be pairs of name and value, got ${typeof entry}`)
    const [key, value] = entry as [string, ParamValue | ParamValue[]]
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one === undefined) continue
      if (
        typeof one === 'function' ||
        typeof one === 'symbol' ||
        (typeof one === 'object' && one !== null)
      ) {
        throw new TypeError(
          `${what}.${key} must be a string, number, boolean, null or a list of them, got ${typeof one}`,
        )
      }
      pairs.push([key, one === null ? '' : String(one)])
    }
  }
  return pairs
}

/** Sets the keys of `params` in the query of `url` in place, leaving its other keys as they are. */
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

/** User names and passwords of a URL as they were meant; as they are when they are not well encoded. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Whether both have the same scheme, host and port, default ports counted (RFC 6454). */
export function sameOrigin(a: URL, b: URL): boolean {
  return a.protocol === b.protocol && a.host === b.host
}

const SECRET_KEYS =
  /([?&;#](?:[\w-]*(?:api[_-]?key|token|secret|password|signature)|key|sig|auth|code)=)[^&#;>]*/gi

/** The URL as it may be printed: no password, and no value of a query key that names a secret. */
export function redactUrl(url: URL | string): string {
  return String(url)
    .replace(/^([A-Za-z][A-Za-z0-9+.-]*:[/\\]*|[/\\]{2,})[^/\\?#]*@/, '$1[secret]@')
    .replace(SECRET_KEYS, '$1[secret]')
}
