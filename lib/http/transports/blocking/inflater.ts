import type { Transform } from 'node:stream'
import type { Gunzip } from 'node:zlib'
import { createDecoder, TailCheck, type Coding } from '../../content/decoders.js'
import { DecodingError } from '../../errors.js'
import { encodeError, type FromWorker } from './protocol.js'

type Post = (message: FromWorker, transfer?: ArrayBuffer[]) => void

/** Bytes of inflated content in one message. */
const BATCH_BYTES = 256 * 1024

/** Undoes one content coding for the caller, in batches, so that a zip bomb stays small. */
export class Inflater {
  readonly #id: number
  readonly #coding: Coding
  readonly #post: Post
  #zlib: Transform | null = null
  readonly #tail = new TailCheck()
  #written = true
  #ended = false
  #finishing = false
  #wake: (() => void) | null = null
  #error: Error | null = null

  constructor(id: number, coding: Coding, post: Post) {
    this.#id = id
    this.#coding = coding
    this.#post = post
  }

  /** Inflates a chunk and posts a batch; an empty chunk asks for the next one, null is the end. */
  async take(chunk: Uint8Array | null): Promise<void> {
    if (chunk !== null && chunk.byteLength > 0) {
      this.#zlib ??= this.#create(chunk)
      this.#tail.add(chunk)
      this.#written = false
      this.#zlib.write(chunk, () => {
        this.#written = true
        this.#wake?.()
      })
    } else if (chunk === null && !this.#finishing) {
      this.#finishing = true
      this.#zlib?.end()
    }
    if (this.#zlib === null) this.#postBatch([], false)
    else await this.#collect(this.#zlib)
  }

  close(): void {
    this.#zlib?.destroy()
  }

  async #collect(stream: Transform): Promise<void> {
    const chunks: Uint8Array<ArrayBuffer>[] = []
    let length = 0
    while (this.#error === null) {
      const chunk = stream.read() as Uint8Array | null
      if (chunk !== null) {
        chunks.push(new Uint8Array(chunk))
        if ((length += chunk.byteLength) >= BATCH_BYTES) return this.#postBatch(chunks, true)
        continue
      }
      if (this.#finishing ? this.#ended : this.#written) {
        if (!this.#finishing || this.#checkTail(stream)) return this.#postBatch(chunks, false)
        continue
      }
      await new Promise<void>((resolve) => (this.#wake = resolve))
      this.#wake = null
    }
    const reason = this.#error.message
    const error = new DecodingError(
      `the content is not valid ${this.#coding}, or is cut short: ${reason}`,
    )
    this.#post({ t: 'error', id: this.#id, error: encodeError(error) })
    this.close()
  }

  /** Whether the input ended with the encoded data; otherwise sets the error. */
  #checkTail(stream: Transform): boolean {
    try {
      if (this.#coding !== 'zstd') this.#tail.check((stream as Gunzip).bytesWritten)
      return true
    } catch (error) {
      this.#error = error as Error
      return false
    }
  }

  #postBatch(chunks: Uint8Array<ArrayBuffer>[], more: boolean): void {
    this.#post({ t: 'inflated', id: this.#id, chunks, more }, chunks.map((chunk) => chunk.buffer))
  }

  #create(head: Uint8Array): Transform {
    const stream = createDecoder(this.#coding, head)
    stream.on('readable', () => this.#wake?.())
    stream.on('end', () => {
      this.#ended = true
      this.#wake?.()
    })
    stream.on('error', (error) => {
      this.#error = error
      this.#wake?.()
    })
    return stream
  }
}
