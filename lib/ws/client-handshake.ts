import { type OutgoingHttpHeaders, STATUS_CODES } from 'node:http'
import type { Deflate } from './config.js'
import { type DeflateAgreement, isWindowBits } from './deflate.js'
import { HandshakeError, HandshakeRefusedError } from './errors.js'
import { type ExtensionOffer, parseExtensions } from './extensions.js'
import { acceptKey } from './handshake.js'
import { headerFields } from './refusal.js'
import { headersOf, type ResponseHead, valuesOf } from './response-head.js'

/** What a client offers in one opening handshake. */
export interface ClientOffer {
  /** Random, for this handshake only (RFC 6455, section 4.1, item 7). */
  readonly key: string
  readonly protocols: readonly string[]
  readonly deflate: Deflate | null
}

/** Header fields that a caller adds, by name in lower case. */
export type ExtraFields = ReadonlyMap<string, readonly (readonly [name: string, value: string])[]>

/** The fields of the handshake itself, and those that frame content, of which it has none. */
const RESERVED =
  /^(?:upgrade|connection|sec-websocket-.*|content-length|transfer-encoding|te|trailer|expect)$/

/**
 * The fields that a caller adds; those in later sets replace those of the same name before.
 *
 * @throws TypeError for one that would break the head, or that the handshake itself sends.
 */
export function extraFields(...sets: readonly OutgoingHttpHeaders[]): ExtraFields {
  const all = new Map<string, (readonly [string, string])[]>()
  for (const headers of sets) {
    const own = new Map<string, (readonly [string, string])[]>()
    for (const field of headerFields(headers)) {
      const name = field[0].toLowerCase()
      if (RESERVED.test(name)) {
        throw new TypeError(`headers must not name ${name}, which the opening handshake sets`)
      }
      own.set(name, [...(own.get(name) ?? []), field])
    }
    for (const [name, fields] of own) all.set(name, fields)
  }
  if ((all.get('host')?.length ?? 1) === 1) return all
  throw new TypeError('headers must name host once')
}

/** The request of an opening handshake (RFC 6455, section 4.1). */
export function requestHead(url: URL, offer: ClientOffer, extra: ExtraFields): string {
  const { protocols, deflate } = offer
  const fields: (readonly [string, string])[] = [
    ...(extra.get('host') ?? [['Host', url.host] as const]),
    ['Upgrade', 'websocket'],
    ['Connection', 'Upgrade'],
    ['Sec-WebSocket-Key', offer.key],
    ['Sec-WebSocket-Version', '13'],
  ]
  if (protocols.length > 0) fields.push(['Sec-WebSocket-Protocol', protocols.join(', ')])
  if (deflate !== null) fields.push(['Sec-WebSocket-Extensions', offerDeflate(deflate)])
  for (const [name, more] of extra) if (name !== 'host') fields.push(...more)
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`)
  return `GET ${url.pathname}${url.search} HTTP/1.1\r\n${lines.join('')}\r\n`
}

/** The outcome of a completed opening handshake. */
export interface AgreedHandshake {
  /** The subprotocol chosen, or an empty string. */
  readonly protocol: string
  readonly deflate: DeflateAgreement | null
}

/**
 * Checks a 101 (RFC 6455, section 4.1).
 *
 * @throws HandshakeError naming what is wrong.
 */
export function checkResponse(head: ResponseHead, offer: ClientOffer): AgreedHandshake {
  const fault = faultOf(head, offer.key)
  if (fault !== null) throw new HandshakeError(`the server's 101 is invalid: ${fault}`)
  const extensions = parseExtensions(valuesOf(head, 'sec-websocket-extensions').join(','))
  if (extensions === null) throw new HandshakeError('Sec-WebSocket-Extensions is malformed')
  return {
    protocol: chosenProtocol(head, offer.protocols),
    deflate: agreeToResponse(extensions, offer.deflate),
  }
}

function faultOf(head: ResponseHead, key: string): string | null {
  if (!head.isHttp11) return 'it is HTTP/1.0'
  const upgrade = valuesOf(head, 'upgrade')
  if (upgrade.length !== 1 || upgrade[0]!.toLowerCase() !== 'websocket') {
    return 'its Upgrade must be websocket'
  }
  const connection = valuesOf(head, 'connection').join(',').toLowerCase().split(',')
  if (!connection.some((token) => token.trim() === 'upgrade')) {
    return 'its Connection must name upgrade'
  }
  const accept = valuesOf(head, 'sec-websocket-accept')
  return accept.length === 1 && accept[0] === acceptKey(key)
    ? null
    : 'its Sec-WebSocket-Accept does not answer the key, as that of a cache or another protocol'
}

/** At most one, and only of those offered; choosing none is allowed (section 4.2.2, item 5). */
function chosenProtocol(head: ResponseHead, offered: readonly string[]): string {
  const [chosen, second] = valuesOf(head, 'sec-websocket-protocol')
  if (chosen === undefined) return ''
  if (second === undefined && offered.includes(chosen)) return chosen
  throw new HandshakeError(
    second === undefined
      ? 'the server chose a subprotocol that was not offered'
      : 'the server chose more than one subprotocol',
  )
}

/** The error for a response with another status than 101. */
export function refusedBy(head: ResponseHead, body: Buffer, url: URL): HandshakeRefusedError {
  const { status } = head
  const headers = headersOf(head)
  const text = `the server refused the WebSocket: ${status} ${STATUS_CODES[status] ?? ''}`.trim()
  const hint = hintFor(status, headers.location, url)
  return new HandshakeRefusedError(text + hint, status, headers, body)
}

function hintFor(status: number, location: string | undefined, url: URL): string {
  if (status < 300) return '; the URL does not lead to a WebSocket endpoint'
  if (status >= 400 || location === undefined) return ''
  // A query and user information may be secret.
  const target = URL.canParse(location, url.href) ? new URL(location, url) : null
  const shown = target === null ? '' : ` to ${target.protocol}//${target.host}${target.pathname}`
  return `; redirects${shown} are not followed: connect to the new URL if you trust it`
}

const NAME = 'permessage-deflate'
const FLAGS = ['server_no_context_takeover', 'client_no_context_takeover']
const WINDOWS = ['server_max_window_bits', 'client_max_window_bits']

/** The value of Sec-WebSocket-Extensions in a client's request (RFC 7692, section 7.1). */
function offerDeflate(config: Deflate): string {
  const parts = [NAME]
  if (!config.serverContextTakeover) parts.push('server_no_context_takeover')
  if (!config.clientContextTakeover) parts.push('client_no_context_takeover')
  if (config.serverMaxWindowBits < 15) {
    parts.push(`server_max_window_bits=${config.serverMaxWindowBits}`)
  }
  // Without it, the server must not limit the window of this side (section 7.1.2.2).
  const clientBits = config.clientMaxWindowBits
  parts.push(`client_max_window_bits${clientBits < 15 ? `=${clientBits}` : ''}`)
  return parts.join('; ')
}

/**
 * What a server's response to the offer means for this side; `null` when it declined.
 *
 * @throws HandshakeError for an extension or parameter that was not offered, or a value that is
 *   invalid or weaker than the offer asked for.
 */
function agreeToResponse(
  extensions: readonly ExtensionOffer[],
  config: Deflate | null,
): DeflateAgreement | null {
  const [extension, second] = extensions
  if (extension === undefined) return null
  if (config === null || extension.name !== NAME || second !== undefined) {
    throw new HandshakeError('the server chose an extension that was not offered')
  }
  const given = new Map(extension.parameters)
  const valid = extension.parameters.every(([name, value]) =>
    WINDOWS.includes(name) ? isWindowBits(value) : FLAGS.includes(name) && value === true,
  )
  if (!valid || given.size !== extension.parameters.length) {
    throw new HandshakeError(`the server's response has invalid parameters of ${NAME}`)
  }
  const bitsOf = (name: string): number => Number(given.get(name) ?? 15)
  const serverTakesOver = !given.has('server_no_context_takeover')
  const isWeaker =
    (serverTakesOver && !config.serverContextTakeover) ||
    bitsOf('server_max_window_bits') > config.serverMaxWindowBits ||
    (given.has('client_max_window_bits') &&
      bitsOf('client_max_window_bits') > config.clientMaxWindowBits)
  if (isWeaker) {
    throw new HandshakeError(`the server's response does not keep to the offer of ${NAME}`)
  }
  return {
    windowBits: Math.min(bitsOf('client_max_window_bits'), config.clientMaxWindowBits),
    contextTakeover: config.clientContextTakeover && !given.has('client_no_context_takeover'),
    peerContextTakeover: serverTakesOver,
  }
}
