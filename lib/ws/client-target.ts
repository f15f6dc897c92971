import { isIP } from 'node:net'

/** The server to which a client connects. */
export interface ConnectTarget {
  /** A host name, or an IP address without brackets. */
  readonly host: string
  readonly port: number
  /** Whether the client will secure the transport by TLS: for `wss:`. */
  readonly secure: boolean
}

/** The scheme of the request by that of the URL, which may be HTTP's (WHATWG WebSockets, 3.1). */
const SCHEMES: Readonly<Record<string, string>> = {
  'ws:': 'ws:',
  'wss:': 'wss:',
  'http:': 'ws:',
  'https:': 'wss:',
}

/** @throws TypeError for a URL that is relative, of another scheme, or has a fragment. */
export function parseTarget(given: string | URL): URL {
  const text = String(given)
  if (!URL.canParse(text)) throw new TypeError('url must be an absolute ws: or wss: URL')
  const url = new URL(text)
  const scheme = SCHEMES[url.protocol]
  if (scheme === undefined) {
    throw new TypeError(`url must be a ws:, wss:, http: or https: URL, got ${url.protocol}`)
  }
  if (url.hash !== '' || url.href.endsWith('#')) {
    throw new TypeError('url must not have a fragment (RFC 6455, section 3)')
  }
  url.protocol = scheme
  return url
}

/** Where to connect. */
export function targetOf(url: URL): ConnectTarget {
  const secure = url.protocol === 'wss:'
  const bare = url.hostname.replace(/^\[|\]$/g, '')
  const host = isIP(bare) === 0 ? url.hostname : bare
  return { host, port: url.port === '' ? (secure ? 443 : 80) : Number(url.port), secure }
}

/** The URL for messages: a query and user information may be secret. */
export function shownUrl(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`
}

/** The value of Authorization for the user information of a URL; `null` if it has none. */
export function basicAuthorization({ username, password }: URL): string | null {
  if (username === '' && password === '') return null
  const pair = `${percentDecoded(username)}:${percentDecoded(password)}`
  return `Basic ${Buffer.from(pair).toString('base64')}`
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
