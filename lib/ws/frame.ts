import { encodeReason } from './close-codes.js'
import type { WebSocketBytes } from './payload.js'

/** The opcodes of RFC 6455, section 5.2; 8 and above are control frames. */
export const Opcode = {
  CONTINUATION: 0,
  TEXT: 1,
  BINARY: 2,
  CLOSE: 8,
  PING: 9,
  PONG: 10,
} as const

/** The side of a connection: a client masks its frames, a server must not (section 5.1). */
export type Role = 'client' | 'server'

/** First byte: the frame ends its message. */
export const FIN = 0x80
/** First byte: the message is compressed (RFC 7692, section 6). */
export const RSV1 = 0x40
/** First byte: the three bits reserved for extensions. */
export const RSV = 0x70
/** Second byte: the payload is masked. */
export const MASK = 0x80
/** The size of a masking key, between the length and the payload. */
export const KEY_BYTES = 4
/** The longest header: 2 bytes, 8 of length, 4 of masking key. */
export const MAX_HEADER_BYTES = 14
/** The longest payload of a control frame (RFC 6455, section 5.5). */
export const MAX_CONTROL_BYTES = 125

/** The size of a header, without a masking key, whose second byte is `second`. */
export function unmaskedHeaderBytes(second: number): number {
  const short = second & 0x7f
  return short < 126 ? 2 : short === 126 ? 4 : 10
}

/** The size of the header of an unmasked payload of `length` bytes. */
function headerBytes(length: number): number {
  return length < 126 ? 2 : length < 65_536 ? 4 : 10
}

/** Writes an unmasked header in its shortest form and returns where the payload begins. */
function writeHeader(target: Buffer, first: number, length: number): number {
  target[0] = first
  if (length < 126) {
    target[1] = length
    return 2
  }
  if (length < 65_536) {
    target[1] = 126
    target[2] = length >>> 8
    target[3] = length & 0xff
    return 4
  }
  target[1] = 127
  target.writeUInt32BE(Math.floor(length / 2 ** 32), 2)
  target.writeUInt32BE(length >>> 0, 6)
  return 10
}

/** A header, for a payload that is written separately because it is too large to copy. */
export function encodeHeader(opcode: number, length: number): Buffer {
  const header = Buffer.allocUnsafe(headerBytes(length))
  writeHeader(header, FIN | opcode, length)
  return header
}

/** A frame that ends its message: the header and a copy of `payload` in one buffer. */
export function encodeFrame(opcode: number, payload: Uint8Array, rsv1 = 0): Buffer {
  return encodeFragment(FIN | rsv1 | opcode, payload)
}

/** Any frame; `first` is its first byte. */
export function encodeFragment(first: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(headerBytes(payload.length) + payload.length)
  const at = writeHeader(frame, first, payload.length)
  if (payload.length > 0) frame.set(payload, at)
  return frame
}

/** A text frame, encoded directly after its header. Lone surrogates become U+FFFD. */
export function encodeText(text: string): Buffer {
  const length = Buffer.byteLength(text)
  const frame = Buffer.allocUnsafe(headerBytes(length) + length)
  const at = writeHeader(frame, FIN | Opcode.TEXT, length)
  // As many bytes as code units: all ASCII, which the latin1 writer copies faster.
  frame.write(text, at, length, length === text.length ? 'latin1' : 'utf8')
  return frame
}

/** A Close frame, without payload if `code` is null (RFC 6455, section 5.5.1). */
export function encodeClose(code: number | null, reason: string | WebSocketBytes): Buffer {
  if (code === null) return encodeFrame(Opcode.CLOSE, Buffer.alloc(0))
  const text = encodeReason(reason)
  const payload = Buffer.allocUnsafe(2 + text.length)
  payload.writeUInt16BE(code, 0)
  payload.set(text, 2)
  return encodeFrame(Opcode.CLOSE, payload)
}
