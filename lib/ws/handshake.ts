import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { OriginPolicy } from './config.js'
import { type ExtensionOffer, isToken, parseExtensions } from './extensions.js'

/**
 * The request that opens a connection: an `http.IncomingMessage`, or its like over HTTP/2, where
 * `method` is CONNECT and `headers` hold the pseudo-headers (RFC 8441, section 4).
 */
export interface UpgradeRequest {
  readonly method?: string | undefined
  /** Path and query as they came. */
  readonly url?: string | undefined
  readonly httpVersion: string
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[]
  readonly socket: { readonly remoteAddress?: string | undefined }
}

/** An ordinary HTTP answer in place of the 101; the connection then closes. */
export interface Refusal {
  /** 300 to 599. */
  readonly status: number
  /** Further header fields; Content-Length and Connection are set for you. */
  readonly headers?: OutgoingHttpHeaders | undefined
  /** @defaultValue the name of the status, as text/plain */
  readonly body?: string | Uint8Array | undefined
}

/** What a correct opening handshake asks for. */
export interface Handshake {
  /** The value of Sec-WebSocket-Accept; `null` over HTTP/2 without a key. */
  readonly accept: string | null
  /** Subprotocols offered, in the client's order. */
  readonly protocols: readonly string[]
  readonly extensions: readonly ExtensionOffer[]
}

/** Appended to the key before hashing (RFC 6455, section 1.3). */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

/** 16 octets in base64: what a Sec-WebSocket-Key must be (RFC 6455, section 4.1). */
const KEY = /^[A-Za-z0-9+/]{22}==$/

/** Tells the client how to ask (RFC 6455, section 4.4; RFC 9110, section 15.5.22). */
const UPGRADE_REQUIRED = {
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
} as const

/** Computes Sec-WebSocket-Accept (RFC 6455, section 4.2.2). */
export function acceptKey(key: string): string {
  return createHash('sha1').update(key + GUID).digest('base64')
}

/** Whether `header`, a list of tokens, holds `token` in any case (RFC 6455, section 4.2.1). */
export function listHas(header: string | undefined, token: string): boolean {
  return (
    header !== undefined && header.split(',').some((item) => item.trim().toLowerCase() === token)
  )
}

/** Whether a request asks for a WebSocket at all, well or badly. */
export function asksForWebSocket(request: UpgradeRequest): boolean {
  return listHas(request.headers.upgrade, 'websocket')
}

/**
 * Checks an opening handshake over HTTP/1.1 (RFC 6455, section 4.2.1): pure, and strict where a
 * lax server would let a broken client or a confused proxy through.
 *
 * @returns what was asked for, or the answer to give instead of the 101.
 */
export function checkHandshake(request: UpgradeRequest, maxHeaders: number): Handshake | Refusal {
  const { headers } = request
  if (request.rawHeaders.length > maxHeaders * 2) return { status: 431 }
  if (request.method !== 'GET') return { status: 405, headers: { Allow: 'GET' } }
  if (!atLeastHttp11(request.httpVersion)) return { status: 505 }
  if (!asksForWebSocket(request)) return upgradeRequired('this resource speaks WebSocket only')
  if (!listHas(headers.connection, 'upgrade')) {
    return upgradeRequired('the Connection header must name upgrade')
  }
  if (countHeader(request.rawHeaders, 'host') !== 1) return bad('exactly one Host header is needed')
  if (headers['sec-websocket-version'] !== '13') {
    return upgradeRequired('Sec-WebSocket-Version must be 13')
  }
  const key = headers['sec-websocket-key'] ?? ''
  if (!KEY.test(key)) return bad('Sec-WebSocket-Key must be 16 octets in base64, once')
  if (hasContent(headers)) return bad('an opening handshake has no content')
  return withOffers(headers, acceptKey(key))
}

/** Checks an extended CONNECT: no key and no Upgrade or Connection (RFC 8441, section 5). */
export function checkExtendedConnect(
  request: UpgradeRequest,
  maxHeaders: number,
): Handshake | Refusal {
  const { headers } = request
  if (request.rawHeaders.length > maxHeaders * 2) return { status: 431 }
  if (headers['sec-websocket-version'] !== '13') {
    return { status: 400, headers: { 'Sec-WebSocket-Version': '13' }, body: 'version must be 13' }
  }
  const key = headers['sec-websocket-key']
  return withOffers(headers, key !== undefined && KEY.test(key) ? acceptKey(key) : null)
}

/** The answer to a plain request for a resource that only speaks WebSocket. */
export function upgradeRequired(body: string): Refusal {
  return { status: 426, headers: { ...UPGRADE_REQUIRED }, body }
}

/** Whether `origin` may connect; an absent one belongs to no page (RFC 6455, section 10.2). */
export function originAllowed(request: UpgradeRequest, policy: OriginPolicy): boolean {
  const { origin } = request.headers
  if (origin === undefined || policy === 'any') return true
  if (typeof policy === 'function') return policy(origin, request)
  if (!URL.canParse(origin)) return false
  const url = new URL(origin)
  if (url.origin === 'null') return false
  if (policy !== 'same') return policy.includes(url.origin)
  // A proxy may have ended TLS, so the scheme is the page's word; it only settles the default port.
  const host = request.headers[':authority'] ?? request.headers.host
  const own = `${url.protocol}//${String(host)}`
  return URL.canParse(own) && new URL(own).host === url.host
}

/** The first of `served` that the client offers; `null` when they have none in common. */
export function chooseProtocol(
  served: readonly string[],
  offered: readonly string[],
): string | null {
  return served.find((name) => offered.includes(name)) ?? null
}

function bad(body: string): Refusal {
  return { status: 400, body }
}

function atLeastHttp11(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 1 || (major === 1 && minor >= 1)
}

function countHeader(rawHeaders: readonly string[], name: string): number {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.toLowerCase() === name) count++
  }
  return count
}

/** What follows the head is frames, so content would be taken for them (RFC 9110, section 7.8). */
function hasContent(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length']
  return (
    headers['transfer-encoding'] !== undefined || (length !== undefined && !/^0+$/.test(length))
  )
}

function withOffers(headers: IncomingHttpHeaders, accept: string | null): Handshake | Refusal {
  const protocols = parseProtocols(headers['sec-websocket-protocol'])
  if (protocols === null) return bad('Sec-WebSocket-Protocol must be a list of different tokens')
  const header = headers['sec-websocket-extensions']
  const extensions = header === undefined ? [] : parseExtensions(header)
  if (extensions === null || (header !== undefined && extensions.length === 0)) {
    return bad('Sec-WebSocket-Extensions breaks its grammar')
  }
  return { accept, protocols, extensions }
}

/** Non-empty tokens, all different (RFC 6455, section 4.1, item 10); `null` when they are not. */
function parseProtocols(header: string | undefined): readonly string[] | null {
  if (header === undefined) return []
  const names = header.split(',').map((name) => name.trim())
  return names.every(isToken) && new Set(names).size === names.length ? names : null
}
