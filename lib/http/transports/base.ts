import type { Headers } from '../headers.js'
import type { Request } from '../request.js'
import type { PhaseTimings } from '../timings.js'

/** The raw octets of a response, as they came; `close()` gives the connection up. */
export interface SyncByteStream extends Iterable<Uint8Array> {
  /** Gives up what was not read. */
  close?(): void
}

/** As {@link SyncByteStream}, awaited. */
export interface AsyncByteStream extends AsyncIterable<Uint8Array> {
  /** Gives up what was not read. */
  close?(): Promise<void> | void
}

/** What a transport answers. `Response` and `AsyncResponse` have this shape, so either will do. */
export interface TransportResponse<S = SyncByteStream | AsyncByteStream> {
  readonly statusCode: number
  /** As on the wire; the registry's phrase when left out. */
  readonly reasonPhrase?: string | undefined
  /** "HTTP/1.1" when left out. */
  readonly httpVersion?: string | undefined
  readonly headers: Headers
  /** The content before any decoding. */
  readonly stream: S
  /** Fields after the content; complete once the stream has ended. */
  readonly trailers?: Headers | undefined
  /** Typed extras, such as `remoteAddress`. */
  readonly extensions?: Readonly<Record<string, unknown>> | undefined
  /** How long it took until the head was there. */
  readonly timings?: PhaseTimings | null | undefined
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
   * @throws {@link TransportError} when no response could be had; never because of a 4xx or 5xx.
   */
  handleRequest(request: Request): TransportResponse<SyncByteStream>
  /** Frees every connection. Calling it twice is harmless. */
  close?(): void
}

/** As {@link Transport}, awaited. The seam below `AsyncClient`. */
export interface AsyncTransport {
  /**
   * Sends `request` and resolves once the header section has arrived. Reading the stream to its
   * end, or closing it, frees the connection. When `request.signal` aborts, it rejects with the
   * signal's reason.
   *
   * @throws {@link TransportError} when no response could be had; never because of a 4xx or 5xx.
   */
  handleRequest(request: Request): Promise<TransportResponse> | TransportResponse
  /** Frees every connection. Calling it twice is harmless. */
  close?(): Promise<void> | void
}
