import type { Headers } from '../headers.js'
import type { Request } from '../request.js'
import type { PhaseTimings } from '../timings.js'

/** The undecoded content of a response, in chunks as they arrive. */
export interface SyncByteStream extends Iterable<Uint8Array> {
  /** Discards unread content and frees the connection. */
  close?(): void
}

/** The asynchronous counterpart of {@link SyncByteStream}. */
export interface AsyncByteStream extends AsyncIterable<Uint8Array> {
  /** Discards unread content and frees the connection. */
  close?(): Promise<void> | void
}

/** A transport's response. `Response` and `AsyncResponse` have this shape and may be returned. */
export interface TransportResponse<S = SyncByteStream | AsyncByteStream> {
  readonly statusCode: number
  /** As received; omitted: the standard phrase of the status code. */
  readonly reasonPhrase?: string | undefined
  /** Omitted: "HTTP/1.1". */
  readonly httpVersion?: string | undefined
  readonly headers: Headers
  /** Still in its Content-Encoding, which the client decodes. */
  readonly stream: S
  /** Fields after the content; complete once the stream has ended. */
  readonly trailers?: Headers | undefined
  /** Facts about the connection, such as `remoteAddress`. */
  readonly extensions?: Readonly<Record<string, unknown>> | undefined
  /** Durations of the phases up to the response head. */
  readonly timings?: PhaseTimings | null | undefined
}

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

/**
 * One HTTP exchange, blocking: no redirects, cookies, authentication, hooks or decoding, which
 * belong to the client. The seam below `Client`.
 */
export interface Transport {
  /**
   * Sends `request` and returns once the header section has arrived. Reading the stream to its
   * end, or closing it, frees the connection.
   *
   * @throws {@link TransportError} when there is no response; never because of a 4xx or 5xx.
   */
  handleRequest(request: Request): TransportResponse<SyncByteStream>
  /** Closes every connection. Calling it twice is harmless. */
  close?(): void
}

/** The asynchronous counterpart of {@link Transport}: the seam below `AsyncClient`. */
export interface AsyncTransport {
  /**
   * Sends `request` and resolves once the header section has arrived. Reading the stream to its
   * end, or closing it, frees the connection. When `request.signal` aborts, it rejects with the
   * signal's reason.
   *
   * @throws {@link TransportError} when there is no response; never because of a 4xx or 5xx.
   */
  handleRequest(request: Request): Promise<TransportResponse> | TransportResponse
  /** Closes every connection. Calling it twice is harmless. */
  close?(): Promise<void> | void
}
