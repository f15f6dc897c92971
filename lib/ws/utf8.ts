import buffer from 'node:buffer'

/**
 * Incremental UTF-8 (RFC 3629) that fails at the first bad byte (RFC 6455, section 8.1).
 *
 * The state between two pieces is one number, so that an idle connection needs no object for it:
 * {@link UTF8_BOUNDARY} between code points, {@link UTF8_BAD} after a bad byte, and otherwise the
 * number of bytes missing (1 to 3) with the range of the next one. Only the second byte has special
 * ranges (E0 A0, ED 9F, F0 90, F4 8F): they rule out overlong forms, surrogates and values beyond
 * U+10FFFF before the code point is complete.
 */
export const UTF8_BOUNDARY = 0

/** The state after an invalid byte; it never changes again. */
export const UTF8_BAD = -1

/** Checks `bytes[start, end)` from `state` on, and returns the state after them. */
export function checkUtf8(bytes: Uint8Array, start: number, end: number, state: number): number {
  let at = start
  while (state > UTF8_BOUNDARY && at < end) state = step(state, bytes[at++]!)
  if (state !== UTF8_BOUNDARY || at === end) return state
  const cut = lastBoundary(bytes, at, end)
  if (cut > at && !buffer.isUtf8(bytes.subarray(at, cut))) return UTF8_BAD
  for (at = cut; at < end && state !== UTF8_BAD; at++) state = step(state, bytes[at]!)
  return state
}

/** The start of the last code point if it is incomplete at `end`; otherwise `end`. */
function lastBoundary(bytes: Uint8Array, start: number, end: number): number {
  for (let back = 1; back <= 3 && end - back >= start; back++) {
    const byte = bytes[end - back]!
    if (byte < 0x80) return end
    if (byte >= 0xc0) return sequenceLength(byte) > back ? end - back : end
  }
  return end
}

function sequenceLength(lead: number): number {
  return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2
}

/** The state in which `bytes` are missing, the next of them from `low` to `high`. */
const missing = (bytes: number, low: number, high: number): number =>
  (bytes << 16) | (low << 8) | high

function step(state: number, byte: number): number {
  if (state === UTF8_BOUNDARY) return lead(byte)
  if (byte < ((state >> 8) & 0xff) || byte > (state & 0xff)) return UTF8_BAD
  const left = (state >> 16) - 1
  return left === 0 ? UTF8_BOUNDARY : missing(left, 0x80, 0xbf)
}

function lead(byte: number): number {
  if (byte < 0x80) return UTF8_BOUNDARY
  if (byte < 0xc2 || byte > 0xf4) return UTF8_BAD
  if (byte < 0xe0) return missing(1, 0x80, 0xbf)
  if (byte < 0xf0) return missing(2, byte === 0xe0 ? 0xa0 : 0x80, byte === 0xed ? 0x9f : 0xbf)
  return missing(3, byte === 0xf0 ? 0x90 : 0x80, byte === 0xf4 ? 0x8f : 0xbf)
}

/** Decodes text already checked to be UTF-8; ASCII as latin1, which is faster. */
export function decodeUtf8(bytes: Buffer): string {
  return bytes.toString(buffer.isAscii(bytes) ? 'latin1' : 'utf8')
}
