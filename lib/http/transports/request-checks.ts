import { LocalProtocolError } from '../errors.js'
import type { Request } from '../request.js'
import { lengthMismatch } from './failures.js'

/** Refuses framing that a server could read in two ways (RFC 9112, section 6). */
export function checkFraming(request: Request): void {
  const { headers } = request
  const coding = headers.get('transfer-encoding')
  if (coding === null && !headers.has('content-length')) return
  const lengths = headers.getList('content-length')
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
    throw new LocalProtocolError('Content-Length must be a single whole number')
  }
  const expected = Number(lengths[0])
  const actual = request.body === null ? 0 : request.body.length
  if (actual !== null && actual !== expected) throw lengthMismatch(actual, expected)
}

/**
 * The name that TLS sends and verifies; null for that of the URL.
 *
 * @throws {@link LocalProtocolError} unless it is a name: in place of an empty one, Node verifies
 *   another, and the pool would take the connection for one without the option.
 */
export function serverNameOf(request: Request): string | null {
  const name: unknown = request.extensions.sniHostname ?? null
  if (name === null || (typeof name === 'string' && name !== '')) return name
  throw new LocalProtocolError(
    `extensions.sniHostname must be a host name, got ${name === '' ? '""' : typeof name}`,
  )
}

/** Refuses a target that is empty or would break the request line (RFC 9112, section 3.2). */
export function checkTarget(target: string): void {
  if (/^[!-"$-~]+$/.test(target)) return
  throw new LocalProtocolError(
    'the request target is empty, or contains a space, a "#" or another character that is not ' +
      'allowed there',
  )
}
