/**
 * Every error that this module throws, with a stable `code` to match on.
 *
 *     HttpError
 *       RequestError                  no usable response; `request` is the one that failed
 *         TransportError
 *           TimeoutError              ConnectTimeoutError ReadTimeoutError WriteTimeoutError
 *                                     PoolTimeoutError TotalTimeoutError
 *           NetworkError              ConnectError ReadError WriteError CloseError
 *           ProtocolError             LocalProtocolError
 *                                     RemoteProtocolError (RefusedStreamError)
 *           ProxyError
 *           UnsupportedProtocolError
 *           WorkerError               the thread behind `Client` died or hung
 *           RecordingError            no recording of the request, or no usable file
 *         DecodingError               ResponseTooLargeError
 *         TooManyRedirectsError
 *       HttpStatusError               raiseForStatus() on anything but 2xx
 *     InvalidUrlError  CookieConflictError  InvalidBodyError  InvalidJsonError
 *     StreamError                     StreamConsumedError StreamClosedError
 *                                     ResponseNotReadError RequestNotReadError
 *     ClientStateError                closed client, sync and async mixed, …
 *
 * @module
 */

/** The codes of all errors of `runwright/http`. Messages may change, codes do not. */
export type HttpErrorCode =
  | 'ERR_HTTP'
  | 'ERR_HTTP_REQUEST'
  | 'ERR_HTTP_TRANSPORT'
  | 'ERR_HTTP_TIMEOUT'
  | 'ERR_HTTP_CONNECT_TIMEOUT'
  | 'ERR_HTTP_READ_TIMEOUT'
  | 'ERR_HTTP_WRITE_TIMEOUT'
  | 'ERR_HTTP_POOL_TIMEOUT'
  | 'ERR_HTTP_TOTAL_TIMEOUT'
  | 'ERR_HTTP_NETWORK'
  | 'ERR_HTTP_CONNECT'
  | 'ERR_HTTP_READ'
  | 'ERR_HTTP_WRITE'
  | 'ERR_HTTP_CLOSE'
  | 'ERR_HTTP_PROTOCOL'
  | 'ERR_HTTP_LOCAL_PROTOCOL'
  | 'ERR_HTTP_REMOTE_PROTOCOL'
  | 'ERR_HTTP_REFUSED_STREAM'
  | 'ERR_HTTP_PROXY'
  | 'ERR_HTTP_UNSUPPORTED_PROTOCOL'
  | 'ERR_HTTP_WORKER'
  | 'ERR_HTTP_RECORDING'
  | 'ERR_HTTP_DECODING'
  | 'ERR_HTTP_TOO_MANY_REDIRECTS'
  | 'ERR_HTTP_RESPONSE_TOO_LARGE'
  | 'ERR_HTTP_STATUS'
  | 'ERR_HTTP_INVALID_URL'
  | 'ERR_HTTP_INVALID_BODY'
  | 'ERR_HTTP_INVALID_JSON'
  | 'ERR_HTTP_COOKIE_CONFLICT'
  | 'ERR_HTTP_STREAM'
  | 'ERR_HTTP_STREAM_CONSUMED'
  | 'ERR_HTTP_STREAM_CLOSED'
  | 'ERR_HTTP_RESPONSE_NOT_READ'
  | 'ERR_HTTP_REQUEST_NOT_READ'
  | 'ERR_HTTP_CLIENT_STATE'

/**
 * The classes of a request and a response. Both throw errors, so importing them here would be a
 * cycle; request.ts and response.ts each declare theirs instead.
 *
 * @internal
 */
export interface HttpMessages {}

/** The base of all errors about an HTTP exchange. */
export class HttpError extends Error {
  override name = 'HttpError'
  readonly code: HttpErrorCode = 'ERR_HTTP'
}

/** The base of all errors that leave a request without a usable response. */
export class RequestError extends HttpError {
  override name = 'RequestError'
  override readonly code: HttpErrorCode = 'ERR_HTTP_REQUEST'
  #request: HttpMessages['request'] | undefined

  /** The request that failed, if it is known. Printing it masks secrets. */
  get request(): HttpMessages['request'] | undefined {
    return this.#request
  }

  /** Attaches `request` unless the error has one already. Returns the error. @internal */
  for(request: HttpMessages['request']): this {
    this.#request ??= request
    return this
  }
}

/** The base of all failures below the client: sockets, protocols, proxies, time limits. */
export class TransportError extends RequestError {
  override name = 'TransportError'
  override readonly code: HttpErrorCode = 'ERR_HTTP_TRANSPORT'
}

/** The base of all exceeded time limits. A caller's signal rejects with its own reason instead. */
export class TimeoutError extends TransportError {
  override name = 'TimeoutError'
  override readonly code: HttpErrorCode = 'ERR_HTTP_TIMEOUT'
  /** The limit that was exceeded, in milliseconds. */
  readonly timeoutMs: number

  constructor(message: string, timeoutMs: number, options?: ErrorOptions) {
    super(message, options)
    this.timeoutMs = timeoutMs
  }
}

/** No connection, TLS included, within `timeout.connect`. */
export class ConnectTimeoutError extends TimeoutError {
  override name = 'ConnectTimeoutError'
  override readonly code = 'ERR_HTTP_CONNECT_TIMEOUT'
}

/** No byte of the response arrived within `timeout.read`. */
export class ReadTimeoutError extends TimeoutError {
  override name = 'ReadTimeoutError'
  override readonly code = 'ERR_HTTP_READ_TIMEOUT'
}

/** The peer accepted no byte of the request within `timeout.write`. */
export class WriteTimeoutError extends TimeoutError {
  override name = 'WriteTimeoutError'
  override readonly code = 'ERR_HTTP_WRITE_TIMEOUT'
}

/** No connection of the pool became free within `timeout.pool`. */
export class PoolTimeoutError extends TimeoutError {
  override name = 'PoolTimeoutError'
  override readonly code = 'ERR_HTTP_POOL_TIMEOUT'
}

/** The whole call, redirects, authentication and retries included, exceeded `timeout.total`. */
export class TotalTimeoutError extends TimeoutError {
  override name = 'TotalTimeoutError'
  override readonly code = 'ERR_HTTP_TOTAL_TIMEOUT'
}

/** The base of all failures of the network itself. */
export class NetworkError extends TransportError {
  override name = 'NetworkError'
  override readonly code: HttpErrorCode = 'ERR_HTTP_NETWORK'
}

/** Name resolution, TCP or TLS failed before a connection was established. */
export class ConnectError extends NetworkError {
  override name = 'ConnectError'
  override readonly code = 'ERR_HTTP_CONNECT'
}

/** The connection was reset while the response was awaited or read. */
export class ReadError extends NetworkError {
  override name = 'ReadError'
  override readonly code = 'ERR_HTTP_READ'
}

/** The connection failed while the request was being sent, before any response arrived. */
export class WriteError extends NetworkError {
  override name = 'WriteError'
  override readonly code = 'ERR_HTTP_WRITE'
}

/** The client was closed while the call was waiting or in progress. */
export class CloseError extends NetworkError {
  override name = 'CloseError'
  override readonly code = 'ERR_HTTP_CLOSE'
}

/** The base of violations of HTTP by either side. */
export class ProtocolError extends TransportError {
  override name = 'ProtocolError'
  override readonly code: HttpErrorCode = 'ERR_HTTP_PROTOCOL'
}

/** The request cannot be sent: a header has a line break, the body has another length, … */
export class LocalProtocolError extends ProtocolError {
  override name = 'LocalProtocolError'
  override readonly code = 'ERR_HTTP_LOCAL_PROTOCOL'
}

/** The response is malformed or truncated, or the server closed the connection before it. */
export class RemoteProtocolError extends ProtocolError {
  override name = 'RemoteProtocolError'
  override readonly code: HttpErrorCode = 'ERR_HTTP_REMOTE_PROTOCOL'
}

/**
 * An HTTP/2 server did not process the request, and refused it again when it was sent again (RFC
 * 9113, section 8.7). Sending it once more is safe, whatever its method.
 */
export class RefusedStreamError extends RemoteProtocolError {
  override name = 'RefusedStreamError'
  override readonly code = 'ERR_HTTP_REFUSED_STREAM'
}

/** The proxy refused or failed to connect to the origin. */
export class ProxyError extends TransportError {
  override name = 'ProxyError'
  override readonly code = 'ERR_HTTP_PROXY'
  /** The status with which the proxy answered CONNECT, if it did. */
  readonly statusCode: number | undefined

  constructor(message: string, options?: ErrorOptions & { statusCode?: number }) {
    super(message, options)
    this.statusCode = options?.statusCode
  }
}

/** The URL is neither http nor https, has no host, or is relative without a base URL. */
export class UnsupportedProtocolError extends TransportError {
  override name = 'UnsupportedProtocolError'
  override readonly code = 'ERR_HTTP_UNSUPPORTED_PROTOCOL'
}

/** The worker thread of `Client` died, hung or did not start. The next call starts a new one. */
export class WorkerError extends TransportError {
  override name = 'WorkerError'
  override readonly code = 'ERR_HTTP_WORKER'
}

/** A `RecordingTransport` has no recording of the request, or cannot use its file. */
export class RecordingError extends TransportError {
  override name = 'RecordingError'
  override readonly code = 'ERR_HTTP_RECORDING'
}

/** The content does not match its Content-Encoding, or has too many codings. */
export class DecodingError extends RequestError {
  override name = 'DecodingError'
  override readonly code: HttpErrorCode = 'ERR_HTTP_DECODING'
}

/** More redirects than `maxRedirects`, or more than ten requests for one authentication. */
export class TooManyRedirectsError extends RequestError {
  override name = 'TooManyRedirectsError'
  override readonly code = 'ERR_HTTP_TOO_MANY_REDIRECTS'
}

/** The decoded content is larger than `maxResponseBytes`. */
export class ResponseTooLargeError extends DecodingError {
  override name = 'ResponseTooLargeError'
  override readonly code = 'ERR_HTTP_RESPONSE_TOO_LARGE'
  /** The `maxResponseBytes` that was exceeded. */
  readonly maxBytes: number

  constructor(maxBytes: number) {
    super(
      `the decoded response is larger than ${maxBytes} bytes; read it with stream(), or raise ` +
        'maxResponseBytes, or set it to null',
    )
    this.maxBytes = maxBytes
  }
}

/** Thrown by `raiseForStatus()` when the status is not 2xx. */
export class HttpStatusError extends HttpError {
  override name = 'HttpStatusError'
  override readonly code = 'ERR_HTTP_STATUS'
  readonly #response: HttpMessages['response']

  constructor(message: string, response: HttpMessages['response']) {
    super(message)
    this.#response = response
  }

  /** The response whose status was not 2xx. */
  get response(): HttpMessages['response'] {
    return this.#response
  }

  /** The request of that response, after any redirects. Printing it masks secrets. */
  get request(): HttpMessages['request'] {
    return this.#response.request
  }

  /** Never 2xx; may be 3xx, as of a redirect that was not followed. */
  get statusCode(): number {
    return this.#response.statusCode
  }
}

/** The URL cannot be parsed, is too long, or contains a control character. */
export class InvalidUrlError extends TypeError {
  override name = 'InvalidUrlError'
  readonly code: HttpErrorCode = 'ERR_HTTP_INVALID_URL'
}

/** A body that cannot be sent: JSON with NaN or a cycle, two kinds of body at once, … */
export class InvalidBodyError extends TypeError {
  override name = 'InvalidBodyError'
  readonly code: HttpErrorCode = 'ERR_HTTP_INVALID_BODY'
}

/** The content of a response is not JSON. Its `name` is that of the class it extends. */
export class InvalidJsonError extends SyntaxError {
  readonly code: HttpErrorCode = 'ERR_HTTP_INVALID_JSON'
}

/** A cookie was looked up by name alone, and several match. */
export class CookieConflictError extends Error {
  override name = 'CookieConflictError'
  readonly code: HttpErrorCode = 'ERR_HTTP_COOKIE_CONFLICT'
}

/** The base of errors about a body that is used at the wrong time. */
export class StreamError extends Error {
  override name = 'StreamError'
  readonly code: HttpErrorCode = 'ERR_HTTP_STREAM'
}

/** A body that can be read only once was read or sent a second time. */
export class StreamConsumedError extends StreamError {
  override name = 'StreamConsumedError'
  override readonly code = 'ERR_HTTP_STREAM_CONSUMED'
}

/** A response was read after it had been closed. */
export class StreamClosedError extends StreamError {
  override name = 'StreamClosedError'
  override readonly code = 'ERR_HTTP_STREAM_CLOSED'
}

/** `content`, `text` or `json()` was used on a streamed response before `read()`. */
export class ResponseNotReadError extends StreamError {
  override name = 'ResponseNotReadError'
  override readonly code = 'ERR_HTTP_RESPONSE_NOT_READ'
}

/** `content` was used on a request with a streaming body before `read()`. */
export class RequestNotReadError extends StreamError {
  override name = 'RequestNotReadError'
  override readonly code = 'ERR_HTTP_REQUEST_NOT_READ'
}

/** A closed client was used, or something asynchronous was given to `Client`. */
export class ClientStateError extends Error {
  override name = 'ClientStateError'
  readonly code: HttpErrorCode = 'ERR_HTTP_CLIENT_STATE'
}
