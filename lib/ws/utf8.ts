import { isUtf8 } from 'node:buffer'

/**
 * Incremental UTF-8 (RFC 3629) that fails at the first bad octet (RFC 6455, section 8.1).
 *
 * The state between two pieces is one number, so that a connection at rest holds no object for it:
 * {@link UTF8_BOUNDARY} between code points, {@link UTF8_BAD} for ever after a bad octet, and
 * otherwise the octets still owed (1 to 3) and the range that the next of them must lie in. Only
 * the second octet has a range of its own (E0 A0, ED 9F, F0 90, F4 8F): that is what rules out
 * overlong forms, surrogates and values beyond U+10FFFF before the code point is complete.
 */
export const UTF8_BOUNDARY = 0

/** The state after an octet that no UTF-8 text has in this place. */
export const UTF8_BAD = -1

/** Checks `octets[start, end)` from `state` on, and returns the state behind them. */
export function checkUtf8(octets: Uint8Array, start: number, end: number, state: number): number {
  let at = start
  while (state > UTF8_BOUNDARY && at < end) state = step(state, octets[at++]!)
  if (state !== UTF8_BOUNDARY || at === end) return state
  const cut = lastWhole(octets, at, end)
  if (cut > at && !isUtf8(octets.subarray(at, cut))) return UTF8_BAD
  for (at = cut; at < end && state !== UTF8_BAD; at++) state = step(state, octets[at]!)
  return state
}

/** Where the last code point begins if it is unfinished at `end`; otherwise `end`. */
function lastWhole(octets: Uint8Array, start: number, end: number): number {
  for (let back = 1; back <= 3 && end - back >= start; back++) {
    const octet = octets[end - back]!
    if (octet < 0x80) return end
    if (octet >= 0xc0) return sequenceLength(octet) > back ? end - back : end
  }
  return end
}

function sequenceLength(lead: number): number {
  return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2
}

const owing = (octets: number, low: number, high: number): number =>
  (octets << 16) | (low << 8) | high

function step(state: number, octet: number): number {
  if (state === UTF8_BOUNDARY) return lead(octet)
  if (octet < ((state >> 8) & 0xff) || octet > (state & 0xff)) return UTF8_BAD
  const left = (state >> 16) - 1
  return left === 0 ? UTF8_BOUNDARY : owing(left, 0x80, 0xbf)
}

function lead(octet: number): number {
  if (octet < 0x80) return UTF8_BOUNDARY
  if (octet < 0xc2 || octet > 0xf4) return UTF8_BAD
  if (octet < 0xe0) return owing(1, 0x80, 0xbf)
  if (octet < 0xf0) return owing(2, octet === 0xe0 ? 0xa0 : 0x80, octet === 0xed ? 0x9f : 0xbf)
  return owing(3, octet === 0xf0 ? 0x90 : 0x80, octet === 0xf4 ? 0x8f : 0xbf)
}
