import type { Headers } from '../../headers.js'
import type { Request } from '../../request.js'
import { checkTarget } from '../request-checks.js'

/** What depends on the connection rather than on the request. */
export interface WireOptions {
  /** Request target: path and query, or an absolute URL for a proxy. */
  readonly target: string
  /** Fields for the proxy that forwards the request, such as Proxy-Authorization. */
  readonly proxyHeaders?: Headers | undefined
}

/** Request line and header section as sent (RFC 9112, sections 2 and 3). */
export function encodeHead(request: Request, wire: WireOptions): string {
  const { target } = wire
  checkTarget(target)
  const { headers } = request
  const host = headers.has('host') ? '' : `Host: ${request.destination.host}\r\n`
  const forProxy = wire.proxyHeaders === undefined ? '' : wire.proxyHeaders.toLines()
  return `${request.method} ${target} HTTP/1.1\r\n${host}${forProxy}${headers.toLines()}\r\n`
}
