import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { type ExtensionOffer, isToken, parseExtensions } from './extensions.js'
import type { Refusal } from './refusal.js'
import type { UpgradeRequest } from './upgrade-request.js'

/** What the server needs from a valid opening handshake in order to answer it. */
export interface Handshake {
  /** The value of Sec-WebSocket-Accept; `null` over HTTP/2, where a key is optional. */
  readonly accept: string | null
  /** Subprotocols offered, in the client's order. */
  readonly protocols: readonly string[]
  readonly extensions: readonly ExtensionOffer[]
}

/** Appended to the key before hashing (RFC 6455, section 1.3). */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

/** Sec-WebSocket-Key: 16 bytes in base64 (RFC 6455, section 4.1). */
const KEY = /^[A-Za-z0-9+/]{22}==$/

/** The headers of a 426 (RFC 6455, section 4.4; RFC 9110, section 15.5.22). */
const UPGRADE_REQUIRED = {
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
} as const

const WRONG_VERSION = 'Sec-WebSocket-Version must be 13'

/** Computes Sec-WebSocket-Accept (RFC 6455, section 4.2.2). */
export function acceptKey(key: string): string {
  return createHash('sha1').update(key + GUID).digest('base64')
}

/** Whether `header`, a list of tokens, contains `token` in any case (RFC 6455, section 4.2.1). */
function listHas(header: string | undefined, token: string): boolean {
  return (
    header !== undefined && header.split(',').some((item) => item.trim().toLowerCase() === token)
  )
}

/** Whether a request is meant to open a WebSocket, valid or not. */
export function asksForWebSocket(request: UpgradeRequest): boolean {
  return listHas(request.headers.upgrade, 'websocket')
}

/**
 * Checks an opening handshake over HTTP/1.1 (RFC 6455, section 4.2.1). Strict, because a lax check
 * lets broken clients and confused proxies through.
 *
 * @returns the handshake, or the response to send instead of the 101.
 */
export function checkHandshake(request: UpgradeRequest, maxHeaders: number): Handshake | Refusal {
  const { headers } = request
  if (request.rawHeaders.length > maxHeaders * 2) return { status: 431 }
  if (request.method !== 'GET') return { status: 405, headers: { Allow: 'GET' } }
  if (!atLeastHttp11(request.httpVersion)) return { status: 505 }
  if (!asksForWebSocket(request)) return upgradeRequired()
  if (!listHas(headers.connection, 'upgrade')) {
    return upgradeRequired('the Connection header must name upgrade')
  }
  if (countHeader(request.rawHeaders, 'host') !== 1) {
    return bad('exactly one Host header is required')
  }
  if (headers['sec-websocket-version'] !== '13') {
    return upgradeRequired(WRONG_VERSION)
  }
  const key = headers['sec-websocket-key'] ?? ''
  if (!KEY.test(key)) {
    return bad('exactly one Sec-WebSocket-Key of 16 bytes in base64 is required')
  }
  if (hasContent(headers)) return bad('an opening handshake must not have content')
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
    const headers = { 'Sec-WebSocket-Version': '13' }
    return { status: 400, headers, body: WRONG_VERSION }
  }
  const key = headers['sec-websocket-key']
  return withOffers(headers, key !== undefined && KEY.test(key) ? acceptKey(key) : null)
}

/** The response to a request that cannot be upgraded. */
export function upgradeRequired(
  body: string = 'this resource accepts WebSocket connections only',
): Refusal {
  return { status: 426, headers: { ...UPGRADE_REQUIRED }, body }
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

/** Frames follow the head directly, so content would be read as frames (RFC 9110, section 7.8). */
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
    return bad('Sec-WebSocket-Extensions is malformed')
  }
  return { accept, protocols, extensions }
}

/** `null` unless all names are tokens and different (RFC 6455, section 4.1, item 10). */
function parseProtocols(header: string | undefined): readonly string[] | null {
  if (header === undefined) return []
  const names = header.split(',').map((name) => name.trim())
  return names.every(isToken) && new Set(names).size === names.length ? names : null
}
