import { randomFillSync } from 'node:crypto'
import { KEY_BYTES, MASK, unmaskedHeaderBytes } from './frame.js'

/** From this length on, XORing 32-bit words is faster in spite of creating a view. */
const WORDS_FROM = 1_024

const littleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1

/**
 * Unmasks `bytes[start, end)` in place. `key` is the masking key as a big-endian 32-bit number and
 * `phase` is how many bytes of this frame's payload came before `start`: byte i of a payload is
 * XORed with byte i mod 4 of the key (RFC 6455, section 5.3).
 *
 * @returns all bytes ORed together: below 0x80, the payload is ASCII. For large payloads 0xff,
 * because checking those with `isUtf8` is faster.
 */
export function unmask(
  bytes: Uint8Array,
  start: number,
  end: number,
  key: number,
  phase: number,
): number {
  if (end - start < WORDS_FROM) return unmaskBytes(bytes, start, end, rotate(key, phase))
  if (key !== 0) unmaskWords(bytes, start, end, rotate(key, phase))
  return 0xff
}

/** The key for a payload that begins `phase` bytes later. */
function rotate(key: number, phase: number): number {
  const bits = (phase & 3) * 8
  return bits === 0 ? key : (key << bits) | (key >>> (32 - bits))
}

function unmaskBytes(bytes: Uint8Array, start: number, end: number, key: number): number {
  const k0 = key >>> 24
  const k1 = (key >>> 16) & 0xff
  const k2 = (key >>> 8) & 0xff
  const k3 = key & 0xff
  let all = 0
  let i = start
  for (; i + 3 < end; i += 4) {
    all |= bytes[i]! ^= k0
    all |= bytes[i + 1]! ^= k1
    all |= bytes[i + 2]! ^= k2
    all |= bytes[i + 3]! ^= k3
  }
  if (i < end) all |= bytes[i]! ^= k0
  if (i + 1 < end) all |= bytes[i + 1]! ^= k1
  if (i + 2 < end) all |= bytes[i + 2]! ^= k2
  return all
}

function unmaskWords(bytes: Uint8Array, start: number, end: number, key: number): void {
  const lead = -(bytes.byteOffset + start) & 3
  const first = start + lead
  const count = (end - first) >>> 2
  const last = first + count * 4
  unmaskBytes(bytes, start, first, key)
  const aligned = rotate(key, lead)
  const word = littleEndian ? swap(aligned) : aligned
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset + first, count)
  for (let i = 0; i < count; i++) words[i]! ^= word
  unmaskBytes(bytes, last, end, aligned)
}

function swap(word: number): number {
  return (
    (word << 24) | ((word << 8) & 0xff0000) | ((word >>> 8) & 0xff00) | (word >>> 24)
  )
}

/** Random bytes for keys, from one call for many of them, which is eighty times as fast. */
const KEY_POOL = Buffer.allocUnsafeSlow(8_192)
let unusedKeysFrom = KEY_POOL.length

/** A new key that no peer can predict (RFC 6455, sections 5.3 and 10.3). */
function newKey(): number {
  if (unusedKeysFrom === KEY_POOL.length) {
    randomFillSync(KEY_POOL)
    unusedKeysFrom = 0
  }
  const key = KEY_POOL.readInt32BE(unusedKeysFrom)
  unusedKeysFrom += KEY_BYTES
  return key
}

/** A copy of an unmasked frame, masked with a key of its own; `frame` may be shared. */
export function maskFrame(frame: Buffer): Buffer {
  const key = newKey()
  const keyAt = unmaskedHeaderBytes(frame[1]!)
  const payloadAt = keyAt + KEY_BYTES
  const masked = Buffer.allocUnsafe(frame.length + KEY_BYTES)
  frame.copy(masked, 0, 0, keyAt)
  masked[1]! |= MASK
  masked.writeInt32BE(key, keyAt)
  frame.copy(masked, payloadAt, keyAt)
  unmask(masked, payloadAt, masked.length, key, 0)
  return masked
}
