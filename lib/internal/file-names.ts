/**
 * Names of files as text. Linux permits any bytes in a name; one that is no part of valid UTF-8
 * becomes the lone surrogate U+DC00 + byte, so that every name has exactly one text, and back.
 *
 * @module
 */

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text of a name. */
export function nameOfBytes(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    let name = ''
    for (let at = 0; at < bytes.length;) {
      const length = sequenceAt(bytes, at)
      if (length === 0) name += String.fromCharCode(0xdc00 + bytes[at]!)
      else name += utf8.decode(bytes.subarray(at, at + length))
      at += Math.max(length, 1)
    }
    return name
  }
}

/** The bytes of a name; a lone surrogate that stands for no byte becomes U+FFFD. */
export function bytesOfName(name: string): Buffer {
  // Whole pairs only match with the flag, so what matches is alone.
  const parts = name.split(/([\udc80-\udcff])/u)
  const bytes = parts.map((part, i) =>
    i % 2 === 0 ? Buffer.from(part) : Buffer.of(part.charCodeAt(0) - 0xdc00),
  )
  return bytes.length === 1 ? bytes[0]! : Buffer.concat(bytes)
}

/** Least code point of a sequence of so many bytes. */
const LEAST = [0, 0, 0x80, 0x800, 0x10000]

/** The length of the valid UTF-8 sequence that begins at `at`; 0 when none does (RFC 3629). */
function sequenceAt(bytes: Uint8Array, at: number): number {
  const lead = bytes[at]!
  if (lead < 0x80) return 1
  const length = lead >= 0xf8 ? 0 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0
  if (length === 0 || at + length > bytes.length) return 0
  let point = lead & (0xff >> (length + 1))
  for (let i = 1; i < length; i++) {
    const byte = bytes[at + i]!
    if (byte >> 6 !== 2) return 0
    point = (point << 6) | (byte & 0x3f)
  }
  const isSurrogate = point >= 0xd800 && point <= 0xdfff
  return point < LEAST[length]! || point > 0x10ffff || isSurrogate ? 0 : length
}
