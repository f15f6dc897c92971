/**
 * Hashes, checksums and ids. HTTP and WebSocket do not import this module: `node:crypto` would add
 * a tenth to the cost of their import.
 *
 * @module
 */
import crypto, { randomFillSync } from 'node:crypto'

/*
 * Added in Node 20.12 and 20.15. On an older Node, importing one of them by name is a SyntaxError,
 * which would come before the message that names the required version.
 */

export const hash: typeof crypto.hash = crypto.hash

let zlib: typeof import('node:zlib') | undefined

/** The first call loads `node:zlib`: a tenth of what importing `runwright/agent` takes. */
export function crc32(data: string | Uint8Array, value?: number): number {
  zlib ??= process.getBuiltinModule('node:zlib')
  return zlib.crc32(data, value)
}

const pool = Buffer.alloc(1024)
let used = pool.length
let lastMs = 0
let counter = 0

/**
 * A version 7 UUID (RFC 9562, section 5.7) in lower case. UUIDs of one process sort in the order of
 * their creation: the 12 bits after the time count up within a millisecond.
 */
export function uuidV7(nowMs: number): string {
  if (used + 10 > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const random = pool.subarray(used, used + 10)
  used += 10
  const now = Math.max(Math.floor(nowMs), lastMs)
  counter = now === lastMs ? counter + 1 : random.readUInt16BE(0) & 0x7ff
  lastMs = counter > 0xfff ? now + 1 : now
  if (counter > 0xfff) counter = 0
  const time = lastMs.toString(16).padStart(12, '0')
  const sequence = counter.toString(16).padStart(3, '0')
  const variant = (((random[2] ?? 0) & 0x3f) | 0x80).toString(16)
  const rest = random.toString('hex', 3, 10)
  const first = `${time.slice(0, 8)}-${time.slice(8)}-7${sequence}`
  return `${first}-${variant}${rest.slice(0, 2)}-${rest.slice(2)}`
}
