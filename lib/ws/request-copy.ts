import type { IncomingHttpHeaders } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { UpgradeRequest } from './upgrade-request.js'

/*
 * An `IncomingMessage` would take a third of the memory of an idle connection, so that one which
 * the program has not asked for is kept as one string.
 */

/** Fields of which Node keeps the first value; those of others it joins. */
const SINGLE = new Set(
  ('age authorization content-length content-type etag expires from host if-modified-since ' +
    'if-unmodified-since last-modified location max-forwards proxy-authorization referer ' +
    'retry-after server user-agent').split(' '),
)

/** What nearly every opening handshake has, in the usual order, and what stands for it. */
const USUAL = [
  ['\nUpgrade\nwebsocket\nConnection\nUpgrade\n', '\n\x01\n'],
  ['\nConnection\nUpgrade\nUpgrade\nwebsocket\n', '\n\x02\n'],
  ['\nSec-WebSocket-Version\n13', '\n\x03'],
  ['\nSec-WebSocket-Key\n', '\n\x04\n'],
] as const

/** `request` in one string: no part of it can contain a control character. */
export function packRequest({
  method = '',
  url = '',
  httpVersion,
  rawHeaders,
}: Omit<UpgradeRequest, 'headers' | 'socket'>): string {
  const whole = [method, url, httpVersion, ...rawHeaders].join('\n')
  const packed = USUAL.reduce((text, [usual, short]) => text.replace(usual, short), whole)
  // A string of its own: the result of replacements refers to what it was made of.
  return Buffer.from(packed).toString()
}

/** The request that a client sent, from its text, in the same form. */
export function packSent(head: string): string {
  const [first = '', ...lines] = head.trimEnd().split('\r\n')
  const [method, url] = first.split(' ')
  const rawHeaders = lines.flatMap((line) => {
    const colon = line.indexOf(': ')
    return [line.slice(0, colon), line.slice(colon + 2)]
  })
  return packRequest({ method, url, httpVersion: '1.1', rawHeaders })
}

/** An equal request, of a client that is or was at the other end of `socket`. */
export function unpackRequest(packed: string, socket: Duplex): UpgradeRequest {
  const whole = USUAL.reduceRight((text, [usual, short]) => text.replace(short, usual), packed)
  const [method, url, httpVersion, ...rawHeaders] = whole.split('\n')
  return {
    method,
    url,
    httpVersion: httpVersion!,
    headers: headersOf(rawHeaders),
    rawHeaders,
    socket: { remoteAddress: addressOf(socket) },
  }
}

/** The address of the peer at the other end of a socket, or of a stream of HTTP/2. */
export function addressOf(socket: Duplex): string | undefined {
  const { remoteAddress, session } = socket as Partial<Socket & ServerHttp2Stream>
  return remoteAddress ?? session?.socket.remoteAddress
}

/** As in `IncomingMessage.headers`. */
function headersOf(rawHeaders: readonly string[]): IncomingHttpHeaders {
  const headers: Record<string, string | string[]> = {}
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name, value] = [rawHeaders[i]!.toLowerCase(), rawHeaders[i + 1]!]
    const before = Object.hasOwn(headers, name) ? headers[name] : undefined
    if (name === 'set-cookie') headers[name] = [...((before as string[]) ?? []), value]
    else if (before === undefined) headers[name] = value
    else if (name === 'cookie') headers[name] = `${before}; ${value}`
    else if (!SINGLE.has(name)) headers[name] = `${before}, ${value}`
  }
  return headers
}
