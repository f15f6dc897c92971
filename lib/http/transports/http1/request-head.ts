import { LocalProtocolError } from '../../errors.js'
import type { Headers } from '../../headers.js'
import type { Request } from '../../request.js'

/** What is put on the wire besides the request's own headers. */
export interface WireOptions {
  /** Request target: path and query, or an absolute URL for a proxy. */
  readonly target: string
  /** Fields for the proxy alone. */
  readonly proxyHeaders?: Headers | undefined
}

/** The error for a body that is not as long as its request said. */
export function lengthMismatch(sent: number, expected: number): LocalProtocolError {
  return new LocalProtocolError(
    sent > expected
      ? `the request body is longer than its Content-Length of ${expected}`
      : `the request body has ${sent} octets, but its Content-Length says ${expected}`,
  )
}

/** Does the request want the connection closed after its response? */
export function asksToClose(request: Request): boolean {
  const value = request.headers.get('connection')
  return (
    value !== null &&
    value
      .toLowerCase()
      .split(',')
      .some((option) => option.trim() === 'close')
  )
}

/** Refuses framing that the server could read in two ways (RFC 9112, section 6). */
export function checkFraming(request: Request): void {
  const lengths = request.headers.getList('content-length')
  const coding = request.headers.get('transfer-encoding')
  if (coding !== null) {
    if (lengths.length > 0) {
      throw new LocalProtocolError(
        'a request must not have both Transfer-Encoding and Content-Length',
      )
    }
    if (coding.toLowerCase() !== 'chunked') {
      throw new LocalProtocolError('the only Transfer-Encoding that a request may have is chunked')
    }
  }
  if (lengths.length === 0) return
  if (lengths.length > 1 || !/^[0-9]{1,15}$/.test(lengths[0]!)) {
    throw new LocalProtocolError('Content-Length must be one whole number')
  }
  const known = request.body === null ? 0 : request.body.length
  if (known !== null && known !== Number(lengths[0]))
    throw lengthMismatch(known, Number(lengths[0]))
}

/** Refuses a target that would break the request line, or is none (RFC 9112, section 3.2). */
export function checkTarget(target: string): void {
  if (/^[!-"$-~]+$/.test(target)) return
  throw new LocalProtocolError(
    'the request target is empty, or has a blank, a "#" or another character that is not allowed there',
  )
}

/** Request line and header section, as they go on the wire (RFC 9112, sections 2 and 3). */
export function encodeHead(request: Request, wire: WireOptions): string {
  const { target } = wire
  checkTarget(target)
  const { headers } = request
  const host = headers.has('host') ? '' : `Host: ${request.url.host}\r\n`
  const forProxy = wire.proxyHeaders === undefined ? '' : wire.proxyHeaders.toLines()
  return `${request.method} ${target} HTTP/1.1\r\n${host}${forProxy}${headers.toLines()}\r\n`
}
