import { LocalProtocolError } from '../errors.js'
import type { Headers } from '../headers.js'
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

const HOST = /^(?:[A-Za-z0-9\-._~%!$&'()*+;=]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{0,5}))?$/

/**
 * Refuses a request with several Host fields or an invalid one (RFC 9112, section 3.2): servers and
 * proxies would disagree about its target. HTTP/2 sends the field as `:authority`.
 */
export function checkHost(headers: Headers): void {
  // Several are joined by ", ", which no host contains.
  const host = headers.get('host')
  if (host === null) return
  const port = HOST.exec(host)
  if (port !== null && Number(port[1] ?? 0) <= 65_535) return
  throw new LocalProtocolError(
    headers.getList('host').length > 1
      ? 'a request must not have more than one Host header'
      : `the Host header ${JSON.stringify(host)} is invalid; write host or host:port, without ` +
        'user name and path, in ASCII',
  )
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
