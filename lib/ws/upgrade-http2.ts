import type { OutgoingHttpHeaders } from 'node:http'
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { UpgradeRequest } from './upgrade-request.js'
import { headerFields, type Refusal, refusalContent, TEXT_PLAIN } from './refusal.js'

/** An extended CONNECT as an upgrade request (RFC 8441, section 4). */
export function requestOf(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  rawHeaders: readonly string[],
): UpgradeRequest {
  return {
    method: headers[':method'],
    url: headers[':path'],
    httpVersion: '2.0',
    headers,
    rawHeaders,
    socket: { remoteAddress: stream.session?.socket.remoteAddress },
  }
}

/** Completes the opening handshake, with 200 instead of 101 (RFC 8441, section 5). */
export function acceptConnect(stream: ServerHttp2Stream, headers: OutgoingHttpHeaders): void {
  stream.respond({ ':status': 200, ...fields(headers) })
}

/** Answers with ordinary HTTP in place of the 200. */
export function refuseConnect(stream: ServerHttp2Stream, refusal: Refusal): void {
  const { upgrade: _, ...own } = fields(refusal.headers ?? {})
  stream.respond({ ':status': refusal.status, 'content-type': TEXT_PLAIN, ...own })
  stream.end(refusalContent(refusal))
  stream.resume()
}

function fields(headers: OutgoingHttpHeaders): Record<string, string[]> {
  const collected: Record<string, string[]> = {}
  for (const [name, value] of headerFields(headers)) {
    const values = (collected[name.toLowerCase()] ??= [])
    values.push(value)
  }
  return collected
}
