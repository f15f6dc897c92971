import type { IncomingHttpHeaders } from 'node:http'

/**
 * The request that opens a connection: an `http.IncomingMessage`, or its equivalent over HTTP/2,
 * where `method` is CONNECT and `headers` contain the pseudo-headers (RFC 8441, section 4).
 */
export interface UpgradeRequest {
  readonly method?: string | undefined
  /** Path and query as sent. */
  readonly url?: string | undefined
  readonly httpVersion: string
  readonly headers: IncomingHttpHeaders
  /** Names and values alternately, as sent. */
  readonly rawHeaders: readonly string[]
  readonly socket: { readonly remoteAddress?: string | undefined }
}
