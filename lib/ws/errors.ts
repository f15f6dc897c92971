import type { IncomingHttpHeaders } from 'node:http'

/**
 * WebSocketError            why a connection ended without a plain closing handshake
 * ├─ ProtocolError          1002: a frame that RFC 6455 or 7692 forbids
 * ├─ InvalidPayloadError    1007: text that is not UTF-8, invalid compressed data
 * ├─ PolicyError            1008: a limit of this side on fragments or control frames
 * ├─ MessageTooBigError     1009: a message over `maxMessageBytes`
 * ├─ SlowReaderError        1013: the peer reads too slowly, and `backpressure` says to close
 * ├─ HandlerError           1011: a handler of the program threw; `cause` is what it threw
 * ├─ ConnectionLostError    1006: the peer vanished: reset, end of stream, or silence
 * └─ OpeningError           a client did not get a connection, so there was none to close
 *    ├─ ConnectError          no transport: name resolution, TCP, TLS, a proxy
 *    ├─ HandshakeError        the server's response is no valid opening handshake
 *    ├─ HandshakeRefusedError the server answered with another status than 101
 *    └─ OpeningTimeoutError   `connectTimeoutMs` or `handshakeTimeoutMs` is over
 *
 * Misuse (a bad option or close code) is a TypeError or RangeError, thrown at once.
 */

/** The codes of all errors of this module. They never change. */
export type WebSocketErrorCode =
  | 'ERR_WS_PROTOCOL'
  | 'ERR_WS_INVALID_PAYLOAD'
  | 'ERR_WS_POLICY'
  | 'ERR_WS_MESSAGE_TOO_BIG'
  | 'ERR_WS_SLOW_READER'
  | 'ERR_WS_HANDLER'
  | 'ERR_WS_CONNECTION_LOST'
  | 'ERR_WS_CONNECT'
  | 'ERR_WS_HANDSHAKE'
  | 'ERR_WS_HANDSHAKE_REFUSED'
  | 'ERR_WS_OPENING_TIMEOUT'

/**
 * Why a connection did not end with a plain closing handshake, reported in `CloseInfo.error`; or
 * why a client could not open one, thrown by `connect()`.
 */
export abstract class WebSocketError extends Error {
  override name = 'WebSocketError'
  /** Stable identifier to match on; the message may change. */
  abstract readonly code: WebSocketErrorCode
  /** The status code in the Close frame of this side; 1006 when it could not send one. */
  abstract readonly closeCode: number
}

/** The peer sent a frame that the protocol forbids (RFC 6455, section 5; RFC 7692, section 6). */
export class ProtocolError extends WebSocketError {
  override name = 'ProtocolError'
  override readonly code = 'ERR_WS_PROTOCOL'
  override readonly closeCode = 1002
}

/** A text message is not UTF-8 (RFC 6455, section 8.1), or a compressed one is corrupt. */
export class InvalidPayloadError extends WebSocketError {
  override name = 'InvalidPayloadError'
  override readonly code = 'ERR_WS_INVALID_PAYLOAD'
  override readonly closeCode = 1007
}

/** The peer exceeded a limit on fragments or control frames (RFC 6455, section 10.4). */
export class PolicyError extends WebSocketError {
  override name = 'PolicyError'
  override readonly code = 'ERR_WS_POLICY'
  override readonly closeCode = 1008
}

/** A message exceeds `maxMessageBytes`: as declared, summed over fragments, or inflated. */
export class MessageTooBigError extends WebSocketError {
  override name = 'MessageTooBigError'
  override readonly code = 'ERR_WS_MESSAGE_TOO_BIG'
  override readonly closeCode = 1009
}

/** The peer left more than `backpressure.limitBytes` unread and the policy is `close`. */
export class SlowReaderError extends WebSocketError {
  override name = 'SlowReaderError'
  override readonly code = 'ERR_WS_SLOW_READER'
  override readonly closeCode = 1013
}

/** A handler of the program, or the source of a message, threw; `cause` is what it threw. */
export class HandlerError extends WebSocketError {
  override name = 'HandlerError'
  override readonly code = 'ERR_WS_HANDLER'
  override readonly closeCode = 1011
}

/** The transport ended without a Close frame: a reset, an early end, or no sign of life. */
export class ConnectionLostError extends WebSocketError {
  override name = 'ConnectionLostError'
  override readonly code = 'ERR_WS_CONNECTION_LOST'
  override readonly closeCode = 1006
}

/** The base of all reasons why `WebSocketClient.connect()` rejects. */
export abstract class OpeningError extends WebSocketError {
  override name = 'OpeningError'
  override readonly closeCode = 1006
}

/** There is no transport to the server: name resolution, TCP, TLS or a proxy failed. */
export class ConnectError extends OpeningError {
  override name = 'ConnectError'
  override readonly code = 'ERR_WS_CONNECT'
}

/** The response is no valid handshake (RFC 6455, section 4.1), or the transport was lost. */
export class HandshakeError extends OpeningError {
  override name = 'HandshakeError'
  override readonly code = 'ERR_WS_HANDSHAKE'
}

/**
 * The server answered with ordinary HTTP in place of the 101. Printing the error shows the status
 * only, since header fields and content may be secret.
 */
export class HandshakeRefusedError extends OpeningError {
  override name = 'HandshakeRefusedError'
  override readonly code = 'ERR_WS_HANDSHAKE_REFUSED'
  /** Never 101. */
  readonly statusCode: number
  readonly #headers: IncomingHttpHeaders
  readonly #body: Buffer

  constructor(message: string, statusCode: number, headers: IncomingHttpHeaders, body: Buffer) {
    super(message)
    this.statusCode = statusCode
    this.#headers = headers
    this.#body = body
  }

  /** The header fields by name in lower case, as `node:http` has them: `www-authenticate`. */
  get headers(): IncomingHttpHeaders {
    return this.#headers
  }

  /** The content, at most its first 16 KiB and what arrived within a second of the head. */
  get body(): Buffer {
    return this.#body
  }
}

/** The transport or the response took longer than the client's settings allow. */
export class OpeningTimeoutError extends OpeningError {
  override name = 'OpeningTimeoutError'
  override readonly code = 'ERR_WS_OPENING_TIMEOUT'
  /** The limit that was exceeded, in milliseconds. */
  readonly timeoutMs: number

  constructor(message: string, timeoutMs: number) {
    super(message)
    this.timeoutMs = timeoutMs
  }
}
