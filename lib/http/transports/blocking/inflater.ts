import type { Transform } from 'node:stream'
import { createDecoder, type Coding } from '../../content/decoders.js'
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
    if (chunk === null) {
      if (this.#zlib === null) this.#postBatch([], false)
      else if (!this.#finishing) {
        this.#finishing = true
        this.#zlib.end()
      }
    } else if (chunk.byteLength > 0) {
      this.#zlib ??= this.#create(chunk)
      this.#written = false
      this.#zlib.write(chunk, () => {
        this.#written = true
        this.#wake?.()
      })
    }
    if (this.#zlib !== null) await this.#collect(this.#zlib)
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
      if (this.#finishing ? this.#ended : this.#written) return this.#postBatch(chunks, false)
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
