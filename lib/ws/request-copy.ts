import type { IncomingHttpHeaders } from 'node:http'
import type { UpgradeRequest } from './handshake.js'

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

/** `request` in one string: no part of it can contain a line break. */
export function packRequest({
  method = '',
  url = '',
  httpVersion,
  rawHeaders,
  socket,
}: UpgradeRequest): string {
  return [method, url, httpVersion, socket.remoteAddress ?? '', ...rawHeaders].join('\n')
}

/** The request that a client sent, from its text, in the same form. */
export function packSent(head: string, remoteAddress: string | undefined): string {
  const [first = '', ...lines] = head.trimEnd().split('\r\n')
  const [method, url] = first.split(' ')
  const fields = lines.flatMap((line) => {
    const colon = line.indexOf(': ')
    return [line.slice(0, colon), line.slice(colon + 2)]
  })
  return [method, url, '1.1', remoteAddress ?? '', ...fields].join('\n')
}

/** The peer's address in a packed request. */
export function packedAddress(packed: string): string | undefined {
  return packed.split('\n', 4)[3] || undefined
}

/** An equal request. */
export function unpackRequest(packed: string): UpgradeRequest {
  const [method, url, httpVersion, remoteAddress, ...rawHeaders] = packed.split('\n')
  return {
    method,
    url,
    httpVersion: httpVersion!,
    headers: headersOf(rawHeaders),
    rawHeaders,
    socket: { remoteAddress: remoteAddress || undefined },
  }
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
