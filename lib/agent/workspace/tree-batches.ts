/**
 * Blobs on their way to an object store, many in one buffer, which another thread can take over
 * without copying it.
 *
 * @module
 */

/** Bytes of a batch, unless one blob has more. */
const BATCH_BYTES = 4 * 1024 * 1024
/** Bytes for blobs of which only the next is known. */
const SMALL_BATCH_BYTES = 256 * 1024
/** Blobs of a batch. */
const BATCH_BLOBS = 512
/** Batches that are under way at the same time. */
const AT_ONCE = 2

/** Blobs, one behind the other in one buffer. */
export interface Batch {
  readonly buffer: ArrayBuffer
  readonly hashes: readonly string[]
  /** Where each of them ends. */
  readonly ends: readonly number[]
  /** True for objects of trees. */
  readonly isTree: boolean
}

/** Stores a batch; resolves when it is durable. */
export type SendBatch = (batch: Batch) => Promise<void>

/** Collects blobs, and sends them in batches. Without `send`, contents are only read. */
export class Batches {
  readonly #send: SendBatch | null
  readonly #isTree: boolean
  #buffer: Buffer<ArrayBuffer> = Buffer.allocUnsafeSlow(0)
  #used = 0
  #hashes: string[] = []
  #ends: number[] = []
  #stored: (() => void)[] = []
  readonly #sent: Set<Promise<void>> = new Set()
  #failure: { readonly error: unknown } | null = null

  constructor(send: SendBatch | null, isTree: boolean) {
    this.#send = send
    this.#isTree = isTree
  }

  /** Waits until there is room for `bytes` more; `expected` are those of this and all to come. */
  async makeRoom(bytes: number, expected: number = bytes): Promise<void> {
    const fits = this.#used + bytes <= this.#buffer.length && this.#hashes.length < BATCH_BLOBS
    if (fits) return
    await this.#flush()
    if (bytes <= this.#buffer.length) return
    const size = Math.max(bytes, Math.min(expected, BATCH_BYTES))
    this.#buffer = Buffer.allocUnsafeSlow(size)
  }

  /** Memory for `bytes`, after {@link Batches.makeRoom}; a new one if that was not asked for. */
  room(bytes: number): Buffer {
    const room = this.#buffer.subarray(this.#used, this.#used + bytes)
    return room.length === bytes ? room : Buffer.allocUnsafeSlow(bytes)
  }

  /** Adds a blob, which may lie in what {@link Batches.room} gave. `onStored`: it is durable. */
  async add(hash: string, content: Uint8Array, onStored: () => void): Promise<void> {
    if (this.#send === null) return
    if (content.byteOffset !== this.#used || content.buffer !== this.#buffer.buffer) {
      await this.makeRoom(content.length, SMALL_BATCH_BYTES)
      this.#buffer.set(content, this.#used)
    }
    this.#used += content.length
    this.#hashes.push(hash)
    this.#ends.push(this.#used)
    this.#stored.push(onStored)
  }

  /** Sends what is left, and waits for all of it to be durable. */
  async end(): Promise<void> {
    await this.#flush()
    await Promise.all(this.#sent)
    this.#check()
  }

  async #flush(): Promise<void> {
    if (this.#send === null || this.#hashes.length === 0) return
    const stored = this.#stored
    const batch = {
      buffer: this.#buffer.buffer, hashes: this.#hashes, ends: this.#ends, isTree: this.#isTree,
    }
    this.#buffer = Buffer.allocUnsafeSlow(0)
    this.#used = 0
    this.#hashes = []
    this.#ends = []
    this.#stored = []
    const sending = this.#send(batch)
      .then(() => stored.forEach((onStored) => onStored()))
      .catch((error: unknown) => (this.#failure ??= { error }))
      .then(() => void this.#sent.delete(sending))
    this.#sent.add(sending)
    if (this.#sent.size >= AT_ONCE) await Promise.race(this.#sent)
    this.#check()
  }

  #check(): void {
    if (this.#failure !== null) throw this.#failure.error
  }
}
