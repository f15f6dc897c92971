import { toBytes, type WebSocketBytes } from './payload.js'

/** The status codes of Close frames in RFC 6455, section 7.4.1, and in its registry. */
export const CloseCode = {
  /** The purpose of the connection has been fulfilled. */
  NORMAL: 1000,
  /** The server is shutting down, or the user left the page. */
  GOING_AWAY: 1001,
  /** A frame broke the protocol. */
  PROTOCOL_ERROR: 1002,
  /** The endpoint does not accept this kind of data (text or binary). */
  UNSUPPORTED_DATA: 1003,
  /** Never sent: the Close frame had no code. */
  NO_STATUS: 1005,
  /** Never sent: the connection ended without a Close frame. */
  ABNORMAL: 1006,
  /** A text message is not UTF-8, or compressed data is invalid. */
  INVALID_PAYLOAD: 1007,
  /** The peer broke a rule of this endpoint. */
  POLICY_VIOLATION: 1008,
  /** A message is larger than this endpoint accepts. */
  MESSAGE_TOO_BIG: 1009,
  /** The client requires an extension that the server did not accept. */
  MANDATORY_EXTENSION: 1010,
  /** An unexpected condition on the server. */
  INTERNAL_ERROR: 1011,
  /** The service is restarting: reconnect later. */
  SERVICE_RESTART: 1012,
  /** The service is overloaded, or the reader is too slow. */
  TRY_AGAIN_LATER: 1013,
  /** A gateway received an invalid response from upstream. */
  BAD_GATEWAY: 1014,
} as const

/** A control frame has 125 bytes, of which the code takes 2 (RFC 6455, section 5.5). */
const MAX_REASON_BYTES = 123

/**
 * Whether `code` is allowed in a Close frame: 1000 to 1003, 1007 to 1014, and 3000 to 4999. The
 * others are reserved, undefined, or for local use only (RFC 6455, section 7.4).
 */
export function isCloseCode(code: number): boolean {
  if (code >= 3000 && code <= 4999) return Number.isInteger(code)
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014)
}

/** @throws RangeError for a code that must not be sent. */
export function checkCloseCode(code: number): void {
  if (Number.isInteger(code) && isCloseCode(code)) return
  throw new RangeError(
    `close code must be 1000 to 1003, 1007 to 1014, or 3000 to 4999, got ${String(code)}`,
  )
}

/** `reason` as UTF-8, cut after the last code point that fits (RFC 6455, section 5.5.1). */
export function encodeReason(reason: string | WebSocketBytes): Buffer {
  const text =
    typeof reason === 'string'
      ? reason
      : new TextDecoder().decode(toBytes(reason, 'the reason of a Close frame'))
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length <= MAX_REASON_BYTES) return bytes
  let end = MAX_REASON_BYTES
  while ((bytes[end]! & 0xc0) === 0x80) end--
  return bytes.subarray(0, end)
}
