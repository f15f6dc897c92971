const EMPTY = Buffer.alloc(0)

/**
 * The bytes of an unfinished element. They are copied into room that doubles, so that an element
 * which arrives byte by byte is not copied anew with each byte.
 */
export class HeldBytes {
  #room: Buffer = EMPTY
  #length = 0

  get length(): number {
    return this.#length
  }

  /** All bytes with these; they are valid until the next call. */
  with(bytes: Buffer): Buffer {
    if (this.#length === 0) return bytes
    const length = this.#length + bytes.length
    this.#reserve(length)
    bytes.copy(this.#room, this.#length)
    return this.#room.subarray(0, length)
  }

  /** Keeps what {@link with} returned. */
  keep(all: Buffer): void {
    this.#reserve(all.length)
    if (this.#length === 0) all.copy(this.#room)
    this.#length = all.length
  }

  clear(): void {
    this.#room = EMPTY
    this.#length = 0
  }

  #reserve(length: number): void {
    if (length <= this.#room.length) return
    const room = Buffer.allocUnsafe(2 * length)
    this.#room.copy(room, 0, 0, this.#length)
    this.#room = room
  }
}
