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
