/**
 * Bytes: collected, hashed and random.
 *
 * @module
 */
import crypto, { randomFillSync } from 'node:crypto'
import zlib from 'node:zlib'

/** Chunks from this size are kept as they are. */
const LARGE_BYTES = 16 * 1024
const FIRST_BLOCK_BYTES = 4 * 1024
const LAST_BLOCK_BYTES = 64 * 1024

/**
 * Collects the chunks of a message in memory that is proportional to their bytes. A chunk of one
 * byte takes hundreds as an object, and may keep the 64 KiB alive with which it arrived, so small
 * ones are copied.
 */
export class ByteCollector {
  #parts: Uint8Array[] = []
  /** Where small chunks go; its first bytes are not in `#parts` yet. */
  #block: Buffer = Buffer.alloc(0)
  #filled = 0
  #length = 0

  /** Bytes so far. */
  get length(): number {
    return this.#length
  }

  /** Adds a chunk, which the collector may keep. */
  add(chunk: Uint8Array): void {
    this.#length += chunk.length
    // Most messages arrive as one chunk, which is never copied.
    if (chunk.length >= LARGE_BYTES || this.#length === chunk.length) {
      this.#endPart()
      this.#parts.push(chunk)
      return
    }
    if (chunk.length > this.#block.length - this.#filled) {
      this.#endPart()
      const size = Math.min(LAST_BLOCK_BYTES, Math.max(FIRST_BLOCK_BYTES, this.#length))
      this.#block = Buffer.allocUnsafeSlow(size)
    }
    this.#block.set(chunk, this.#filled)
    this.#filled += chunk.length
  }

  /** All bytes, after which the collector is empty. A single chunk is returned as it is. */
  take(): Uint8Array {
    this.#endPart()
    const parts = this.#parts
    const all = parts.length === 1 ? parts[0]! : Buffer.concat(parts, this.#length)
    this.clear()
    return all
  }

  clear(): void {
    this.#parts = []
    this.#block = Buffer.alloc(0)
    this.#filled = 0
    this.#length = 0
  }

  /** Moves the filled bytes of the block to the parts; its rest takes the chunks that follow. */
  #endPart(): void {
    if (this.#filled === 0) return
    this.#parts.push(this.#block.subarray(0, this.#filled))
    this.#block = this.#block.subarray(this.#filled)
    this.#filled = 0
  }
}

/*
 * Functions that Node has had since 20.12 and 20.15. A module that imports one of them by its name
 * is a SyntaxError on an older Node, before anything can say which version is needed.
 */

export const hash: typeof crypto.hash = crypto.hash

export const crc32: typeof zlib.crc32 = zlib.crc32

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
