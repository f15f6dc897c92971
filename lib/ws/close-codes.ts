/** The status codes of a Close frame that RFC 6455, section 7.4.1, and its registry define. */
export const CloseCode = {
  /** The purpose of the connection has been fulfilled. */
  NORMAL: 1000,
  /** The server shuts down, or the page was left. */
  GOING_AWAY: 1001,
  /** A frame broke the protocol. */
  PROTOCOL_ERROR: 1002,
  /** A kind of data (text or binary) that this endpoint does not take. */
  UNSUPPORTED_DATA: 1003,
  /** Only ever seen locally: the Close frame carried no code. */
  NO_STATUS: 1005,
  /** Only ever seen locally: the connection ended without a Close frame. */
  ABNORMAL: 1006,
  /** A text message that is not UTF-8, or compressed data that cannot be inflated. */
  INVALID_PAYLOAD: 1007,
  /** A rule of this server was broken. */
  POLICY_VIOLATION: 1008,
  /** A message beyond the size this endpoint takes. */
  MESSAGE_TOO_BIG: 1009,
  /** A client asked for an extension that the server did not choose. */
  MANDATORY_EXTENSION: 1010,
  /** The server met a condition it did not expect. */
  INTERNAL_ERROR: 1011,
  /** The service restarts: come back in a moment. */
  SERVICE_RESTART: 1012,
  /** The service is overloaded, or this reader is too slow. */
  TRY_AGAIN_LATER: 1013,
  /** A gateway got no valid answer from upstream. */
  BAD_GATEWAY: 1014,
} as const

/** The most octets of UTF-8 that fit in a Close frame behind its code (RFC 6455, section 5.5). */
const MAX_REASON_BYTES = 123

/**
 * Whether `code` may travel in a Close frame: 1000 to 1003, 1007 to 1014, and 3000 to 4999. The
 * others are reserved, undefined, or stand for what happened locally (RFC 6455, section 7.4).
 */
export function isCloseCode(code: number): boolean {
  if (code >= 3000 && code <= 4999) return Number.isInteger(code)
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014)
}

/** Throws unless `code` may be sent: misuse is told to the caller, not to the peer. */
export function checkCloseCode(code: number): void {
  if (Number.isInteger(code) && isCloseCode(code)) return
  throw new RangeError(
    `close code must be 1000 to 1003, 1007 to 1014, or 3000 to 4999, got ${String(code)}`,
  )
}

/** `reason` as UTF-8, cut behind the last whole code point that fits (RFC 6455, section 5.5.1). */
export function encodeReason(reason: string | Uint8Array): Buffer {
  const text = typeof reason === 'string' ? reason : new TextDecoder().decode(reason)
  const octets = Buffer.from(text, 'utf8')
  if (octets.length <= MAX_REASON_BYTES) return octets
  let end = MAX_REASON_BYTES
  while ((octets[end]! & 0xc0) === 0x80) end--
  return octets.subarray(0, end)
}
