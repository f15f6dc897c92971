import type { Headers } from '../headers.js'
import type { PhaseTimings } from '../timings.js'
import type { AsyncByteStream, TransportResponse } from './base.js'

type Parts = Required<TransportResponse<AsyncByteStream>>

/**
 * The response of a connection. Our own parsers have made its parts, so a client does not check
 * them, as it does with those of other transports.
 */
export class ReceivedResponse implements TransportResponse<AsyncByteStream> {
  readonly statusCode: number
  readonly reasonPhrase: string | undefined
  readonly httpVersion: string | undefined
  readonly headers: Headers
  readonly stream: AsyncByteStream
  readonly trailers: Headers | undefined
  readonly extensions: Readonly<Record<string, unknown>> | undefined
  readonly timings: PhaseTimings | null | undefined

  constructor(parts: Parts) {
    this.statusCode = parts.statusCode
    this.reasonPhrase = parts.reasonPhrase
    this.httpVersion = parts.httpVersion
    this.headers = parts.headers
    this.stream = parts.stream
    this.trailers = parts.trailers
    this.extensions = parts.extensions
    this.timings = parts.timings
  }
}
