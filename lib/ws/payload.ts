import { isAnyArrayBuffer, isSharedArrayBuffer } from 'node:util/types'
import { describeValue } from '../internal/options.js'

/** Bytes in any form of JavaScript: a Buffer, any typed array, a DataView, or a whole buffer. */
export type WebSocketBytes = ArrayBufferView | ArrayBufferLike

const ACCEPTED = 'a string, Buffer, typed array, DataView, ArrayBuffer or SharedArrayBuffer'

/**
 * The bytes of `value`, of which a view counts as far as it reaches: its `byteOffset` and
 * `byteLength`, not its `length`. Shared with `value`, except that shared memory is copied, because
 * another thread may change it at any time.
 *
 * @throws TypeError naming what is accepted, for anything else.
 */
export function toBytes(value: unknown, what: string): Uint8Array {
  const bytes = viewOf(value, what)
  return isSharedArrayBuffer(bytes.buffer) ? Uint8Array.from(bytes) : bytes
}

function viewOf(value: unknown, what: string): Uint8Array {
  if (value instanceof Uint8Array) return value
  if (ArrayBuffer.isView(value)) {
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  }
  if (isAnyArrayBuffer(value)) return new Uint8Array(value)
  const hint = value instanceof Blob ? ' a Blob: send(await blob.arrayBuffer())' : ''
  throw new TypeError(`${what} must be ${ACCEPTED}, got${hint || ` ${describeValue(value)}`}`)
}
