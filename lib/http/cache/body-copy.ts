import { ByteCollector } from '../../internal/bytes.js'
import type { AsyncByteStream, SyncByteStream } from '../transports/base.js'

/** Bytes that the copies of one transport may take while their responses are being read. */
const MAX_OPEN_BYTES = 64 * 1024 * 1024

/** Bytes in all open copies of a transport. */
export interface OpenBytes {
  count: number
}

/**
 * Copies content as it passes to its reader. There is a copy only of what was read to its end: a
 * reader that stops, an error, or a limit drops it, and nothing is read for its sake.
 */
export class BodyCopy {
  readonly #maxBytes: number
  readonly #open: OpenBytes
  #collector: ByteCollector | null = new ByteCollector()

  constructor(maxBytes: number, open: OpenBytes) {
    this.#maxBytes = maxBytes
    this.#open = open
  }

  /** Whether there can still be a copy. */
  get isOpen(): boolean {
    return this.#collector !== null
  }

  add(chunk: Uint8Array): void {
    const collector = this.#collector
    if (collector === null) return
    const isTooLarge = collector.length + chunk.length > this.#maxBytes
    if (isTooLarge || this.#open.count + chunk.length > MAX_OPEN_BYTES) return this.drop()
    this.#open.count += chunk.length
    // The reader may change its bytes.
    collector.add(new Uint8Array(chunk))
  }

  /** All bytes, in memory of just their size; null if they were dropped. */
  take(): Uint8Array | null {
    const collector = this.#collector
    if (collector === null) return null
    const body = collector.take()
    this.drop(body.length)
    return body.buffer.byteLength === body.length ? body : new Uint8Array(body)
  }

  /** Frees the bytes. */
  drop(bytes: number = this.#collector?.length ?? 0): void {
    if (this.#collector === null) return
    this.#open.count -= bytes
    this.#collector = null
  }
}

/** What is done with a complete copy. */
type Save = (body: Uint8Array) => unknown

/** Content that is stored when it was read to its end, for `Client`. */
export class SyncStoringStream implements SyncByteStream {
  readonly #source: SyncByteStream
  readonly #copy: BodyCopy
  readonly #save: Save

  constructor(source: SyncByteStream, copy: BodyCopy, save: Save) {
    this.#source = source
    this.#copy = copy
    this.#save = save
  }

  *[Symbol.iterator](): Generator<Uint8Array, void, undefined> {
    try {
      for (const chunk of this.#source) {
        this.#copy.add(chunk)
        yield chunk
      }
      const body = this.#copy.take()
      if (body !== null) this.#save(body)
    } finally {
      this.#copy.drop()
    }
  }

  close(): void {
    this.#copy.drop()
    this.#source.close?.()
  }
}

/** The counterpart of {@link SyncStoringStream} for `AsyncClient`. */
export class AsyncStoringStream implements AsyncByteStream {
  readonly #source: SyncByteStream | AsyncByteStream
  readonly #copy: BodyCopy
  readonly #save: Save

  constructor(source: SyncByteStream | AsyncByteStream, copy: BodyCopy, save: Save) {
    this.#source = source
    this.#copy = copy
    this.#save = save
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for await (const chunk of this.#source) {
        this.#copy.add(chunk)
        yield chunk
      }
      const body = this.#copy.take()
      if (body !== null) await this.#save(body)
    } finally {
      this.#copy.drop()
    }
  }

  async close(): Promise<void> {
    this.#copy.drop()
    await this.#source.close?.()
  }

  /** Reads and stores the rest, unless it is too large; for nobody else reads it. */
  async drain(): Promise<void> {
    try {
      for await (const chunk of this) if (chunk.length > 0 && !this.#copy.isOpen) break
    } finally {
      await this.close()
    }
  }
}
