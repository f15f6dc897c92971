import { ByteCollector } from '../internal/bytes.js'
import { decodeContent, decodeStream } from './content/decoders.js'
import { ByteChunker, IncrementalText, LineSplitter, TextChunker } from './content/text.js'
import { BaseResponse, initOf, pieceSize, type IterOptions, type ResponseInit } from './response.js'
import type { AsyncByteStream, SyncByteStream, TransportResponse } from './transports/base.js'
import { ResponseBody } from './transports/response-body.js'

/** The response of {@link AsyncClient}. It differs from `Response` in that reading is awaited. */
export class AsyncResponse extends BaseResponse implements AsyncDisposable {
  /** The raw content, not decoded. To read it, use `read()` or the `iter…` methods. */
  readonly stream: SyncByteStream | AsyncByteStream

  constructor(statusCode: number, init: ResponseInit = {}) {
    super(statusCode, init)
    this.stream = init.stream ?? (this.rawContent === null ? [] : [this.rawContent])
  }

  /** Wraps the response of a transport. @internal */
  static from(raw: TransportResponse): AsyncResponse {
    return new AsyncResponse(raw.statusCode, initOf(raw))
  }

  /**
   * Reads and decodes the whole content and frees the connection. Later calls return it again.
   *
   * @throws {@link ResponseTooLargeError} when it is larger than `maxResponseBytes`.
   */
  async read(): Promise<Uint8Array> {
    if (this.contentRead !== null) {
      if (!this.closed) await this.close()
      return this.contentRead
    }
    if (this.readArrived()) return this.content
    try {
      const codings = this.codings()
      const collector = new ByteCollector()
      for await (const chunk of this.#raw()) {
        collector.add(chunk)
        this.checkSize(collector.length)
      }
      const raw = collector.take()
      this.contentRead =
        codings.length === 0
          ? raw
          : await decodeContent(raw, codings, this.settings.maxResponseBytes)
    } catch (error) {
      throw this.blame(error)
    }
    return this.contentRead
  }

  /**
   * Reads content that arrived whole together with the head and is not encoded, which is the common
   * case, without waiting.
   *
   * @internal
   */
  override readArrived(): boolean {
    if (this.consumed || this.closed || !(this.stream instanceof ResponseBody)) return false
    if (this.settings.signal?.aborted === true) return false
    if (this.codings().length > 0) return false
    const chunks = this.stream.takeWhole()
    if (chunks === null) return false
    try {
      this.begin()
      let length = 0
      for (const chunk of chunks) {
        this.count(chunk.length)
        this.checkSize((length += chunk.length))
      }
      this.contentRead = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length)
    } catch (error) {
      throw this.blame(error)
    } finally {
      this.finish()
    }
    return true
  }

  /** The bytes as received, still encoded. */
  async *iterRaw(options: IterOptions = {}): AsyncGenerator<Uint8Array, void, undefined> {
    yield* rechunk(this.#blaming(this.#raw()), pieceSize(options))
  }

  /** The decoded content; after `read()`, from memory. */
  async *iterBytes(options: IterOptions = {}): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.contentRead !== null) {
      yield* rechunk(oneChunk(this.contentRead), pieceSize(options))
      return
    }
    const codings = this.codings()
    const raw = this.#raw()
    const decoded = codings.length === 0 ? raw : decodeStream(raw, codings)
    yield* rechunk(this.#blaming(decoded), pieceSize(options))
  }

  /** The decoded content as text, split between characters. */
  async *iterText(options: IterOptions = {}): AsyncGenerator<string, void, undefined> {
    const decoder = new IncrementalText(this.streamEncoding())
    const chunker = new TextChunker(pieceSize(options))
    for await (const chunk of this.iterBytes()) yield* chunker.feed(decoder.feed(chunk))
    yield* chunker.feed(decoder.end())
    yield* chunker.end()
  }

  /** The lines of the text, split at CR, LF and CRLF only, without line ends. */
  async *iterLines(): AsyncGenerator<string, void, undefined> {
    const splitter = new LineSplitter()
    for await (const text of this.iterText()) yield* splitter.feed(text)
    yield* splitter.end()
  }

  /** Frees the connection and drops unread content. Safe to call twice. */
  async close(): Promise<void> {
    if (this.closed) return
    this.finish()
    if ('close' in this.stream) await this.stream.close?.()
  }

  /** Closes the response at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async *#raw(): AsyncGenerator<Uint8Array, void, undefined> {
    this.begin()
    try {
      for await (const chunk of this.stream) {
        if (chunk.length === 0) continue
        this.settings.signal?.throwIfAborted()
        this.count(chunk.length)
        yield chunk
      }
    } finally {
      await this.close()
    }
  }

  async *#blaming(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield* source
    } catch (error) {
      throw this.blame(error)
    }
  }
}

async function* oneChunk(content: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  if (content.length > 0) yield content
}

async function* rechunk(
  source: AsyncIterable<Uint8Array>,
  size: number | undefined,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (size === undefined) {
    yield* source
    return
  }
  const chunker = new ByteChunker(size)
  for await (const chunk of source) yield* chunker.feed(chunk)
  yield* chunker.end()
}
