/**
 * Every error that this module throws, with a stable `code` to match on.
 *
 *     HttpError
 *       RequestError                  no answer could be had; `request` says for what
 *         TransportError
 *           TimeoutError              ConnectTimeoutError ReadTimeoutError WriteTimeoutError
 *                                     PoolTimeoutError TotalTimeoutError
 *           NetworkError              ConnectError ReadError WriteError CloseError
 *           ProtocolError             LocalProtocolError RemoteProtocolError
 *           ProxyError
 *           UnsupportedProtocolError
 *           WorkerError               the thread behind `Client` died or hung
 *         DecodingError
 *         TooManyRedirectsError
 *         ResponseTooLargeError
 *       HttpStatusError               raiseForStatus() on anything but 2xx
 *     InvalidUrlError  CookieConflictError  InvalidBodyError
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
  | 'ERR_HTTP_PROXY'
  | 'ERR_HTTP_UNSUPPORTED_PROTOCOL'
  | 'ERR_HTTP_WORKER'
  | 'ERR_HTTP_DECODING'
  | 'ERR_HTTP_TOO_MANY_REDIRECTS'
  | 'ERR_HTTP_RESPONSE_TOO_LARGE'
  | 'ERR_HTTP_STATUS'
  | 'ERR_HTTP_INVALID_URL'
  | 'ERR_HTTP_INVALID_BODY'
  | 'ERR_HTTP_COOKIE_CONFLICT'
  | 'ERR_HTTP_STREAM'
  | 'ERR_HTTP_STREAM_CONSUMED'
  | 'ERR_HTTP_STREAM_CLOSED'
  | 'ERR_HTTP_RESPONSE_NOT_READ'
  | 'ERR_HTTP_REQUEST_NOT_READ'
  | 'ERR_HTTP_CLIENT_STATE'

/**
 * The classes of requests and responses. They throw these errors, so this file cannot import them:
 * request.ts and response.ts each add theirs.
 *
 * @internal
 */
export interface HttpMessages {}

/** The base of all errors about an HTTP exchange. */
export class HttpError extends Error {
  override name = 'HttpError'
  readonly code: HttpErrorCode = 'ERR_HTTP'
}

/** The base of all errors that leave a request without a usable answer. */
export class RequestError extends HttpError {
  override name = 'RequestError'
  override readonly code: HttpErrorCode = 'ERR_HTTP_REQUEST'
  #request: HttpMessages['request'] | undefined

  /** The request that failed, when it was known; secrets are masked when it is printed. */
  get request(): HttpMessages['request'] | undefined {
    return this.#request
  }

  /** Remembers `request` unless one is remembered already, and returns the error. @internal */
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

/** The base of all time limits of ours; the caller's own signal ends with its own reason. */
export class TimeoutError extends TransportError {
  override name = 'TimeoutError'
  override readonly code: HttpErrorCode = 'ERR_HTTP_TIMEOUT'
  /** The limit that was passed, in milliseconds. */
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

/** No octet of the response arrived for `timeout.read`. */
export class ReadTimeoutError extends TimeoutError {
  override name = 'ReadTimeoutError'
  override readonly code = 'ERR_HTTP_READ_TIMEOUT'
}

/** The peer took no octet of the request for `timeout.write`. */
export class WriteTimeoutError extends TimeoutError {
  override name = 'WriteTimeoutError'
  override readonly code = 'ERR_HTTP_WRITE_TIMEOUT'
}

/** No connection of the pool came free within `timeout.pool`. */
export class PoolTimeoutError extends TimeoutError {
  override name = 'PoolTimeoutError'
  override readonly code = 'ERR_HTTP_POOL_TIMEOUT'
}

/** The whole call, redirects, authentication and retries included, passed `timeout.total`. */
export class TotalTimeoutError extends TimeoutError {
  override name = 'TotalTimeoutError'
  override readonly code = 'ERR_HTTP_TOTAL_TIMEOUT'
}

/** The base of all failures of the network itself. */
export class NetworkError extends TransportError {
  override name = 'NetworkError'
  override readonly code: HttpErrorCode = 'ERR_HTTP_NETWORK'
}

/** Name resolution, TCP or TLS failed before there was a connection. */
export class ConnectError extends NetworkError {
  override name = 'ConnectError'
  override readonly code = 'ERR_HTTP_CONNECT'
}

/** The connection was reset while the response was awaited or read. */
export class ReadError extends NetworkError {
  override name = 'ReadError'
  override readonly code = 'ERR_HTTP_READ'
}

/** The connection failed while the request was being sent, and no answer had come. */
export class WriteError extends NetworkError {
  override name = 'WriteError'
  override readonly code = 'ERR_HTTP_WRITE'
}

/** A connection could not be closed in order. */
export class CloseError extends NetworkError {
  override name = 'CloseError'
  override readonly code = 'ERR_HTTP_CLOSE'
}

/** The base of violations of HTTP by either side. */
export class ProtocolError extends TransportError {
  override name = 'ProtocolError'
  override readonly code: HttpErrorCode = 'ERR_HTTP_PROTOCOL'
}

/** The request cannot be put on the wire: a header with a line break, a body of another length. */
export class LocalProtocolError extends ProtocolError {
  override name = 'LocalProtocolError'
  override readonly code = 'ERR_HTTP_LOCAL_PROTOCOL'
}

/** The server broke the protocol: malformed or cut short, or closed before answering. */
export class RemoteProtocolError extends ProtocolError {
  override name = 'RemoteProtocolError'
  override readonly code = 'ERR_HTTP_REMOTE_PROTOCOL'
}

/** An HTTP/2 stream that the server has not looked at, so that it may be sent again. @internal */
export class RefusedStreamError extends RemoteProtocolError {}

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

/** The worker thread behind a `Client` died, hung or could not start. The next call gets a new one. */
export class WorkerError extends TransportError {
  override name = 'WorkerError'
  override readonly code = 'ERR_HTTP_WORKER'
}

/** The content does not decode as its Content-Encoding says, or has too many codings. */
export class DecodingError extends RequestError {
  override name = 'DecodingError'
  override readonly code: HttpErrorCode = 'ERR_HTTP_DECODING'
}

/** More redirects than `maxRedirects`, or more authentication legs than their cap. */
export class TooManyRedirectsError extends RequestError {
  override name = 'TooManyRedirectsError'
  override readonly code = 'ERR_HTTP_TOO_MANY_REDIRECTS'
}

/** The decoded content is larger than `maxResponseBytes`. */
export class ResponseTooLargeError extends DecodingError {
  override name = 'ResponseTooLargeError'
  override readonly code = 'ERR_HTTP_RESPONSE_TOO_LARGE'
  /** The limit in octets. */
  readonly maxBytes: number

  constructor(maxBytes: number) {
    super(
      `the response is larger than ${maxBytes} bytes once decoded; read it with stream(), or raise ` +
        'or switch off (null) maxResponseBytes',
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

  /** The response that was refused. */
  get response(): HttpMessages['response'] {
    return this.#response
  }

  /** The request that it answers. */
  get request(): HttpMessages['request'] {
    return this.#response.request
  }

  /** The status of the response. */
  get statusCode(): number {
    return this.#response.statusCode
  }
}

/** The URL cannot be parsed, is too long, or has control characters. */
export class InvalidUrlError extends TypeError {
  override name = 'InvalidUrlError'
  readonly code: HttpErrorCode = 'ERR_HTTP_INVALID_URL'
}

/** A body that cannot be sent: JSON with NaN or a cycle, two kinds of body at once, … */
export class InvalidBodyError extends TypeError {
  override name = 'InvalidBodyError'
  readonly code: HttpErrorCode = 'ERR_HTTP_INVALID_BODY'
}

/** A cookie was looked up by name alone, and several match. */
export class CookieConflictError extends Error {
  override name = 'CookieConflictError'
  readonly code: HttpErrorCode = 'ERR_HTTP_COOKIE_CONFLICT'
}

/** The base of misuses of a body. */
export class StreamError extends Error {
  override name = 'StreamError'
  readonly code: HttpErrorCode = 'ERR_HTTP_STREAM'
}

/** A body that can be read once was to be read, or sent, again. */
export class StreamConsumedError extends StreamError {
  override name = 'StreamConsumedError'
  override readonly code = 'ERR_HTTP_STREAM_CONSUMED'
}

/** A response was read after it had been closed. */
export class StreamClosedError extends StreamError {
  override name = 'StreamClosedError'
  override readonly code = 'ERR_HTTP_STREAM_CLOSED'
}

/** `content`, `text` or `json()` before `read()` on a streamed response. */
export class ResponseNotReadError extends StreamError {
  override name = 'ResponseNotReadError'
  override readonly code = 'ERR_HTTP_RESPONSE_NOT_READ'
}

/** `content` of a request with a streaming body, before `read()`. */
export class RequestNotReadError extends StreamError {
  override name = 'RequestNotReadError'
  override readonly code = 'ERR_HTTP_REQUEST_NOT_READ'
}

/** A closed client was used, or something asynchronous was given to `Client`. */
export class ClientStateError extends Error {
  override name = 'ClientStateError'
  readonly code: HttpErrorCode = 'ERR_HTTP_CLIENT_STATE'
}
