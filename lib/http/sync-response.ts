import { ByteCollector } from '../internal/bytes.js'
import { decodeContentSync } from './content/decoders.js'
import { ByteChunker, IncrementalText, LineSplitter, TextChunker } from './content/text.js'
import { ClientStateError } from './errors.js'
import { BaseResponse, initOf, pieceSize, type IterOptions, type ResponseInit } from './response.js'
import type { SyncByteStream, TransportResponse } from './transports/base.js'
import { inflateSync } from './transports/blocking/inflate.js'

/** The response of {@link Client}. It differs from `AsyncResponse` in that reading blocks. */
export class Response extends BaseResponse implements Disposable {
  /** The raw content, not decoded. To read it, use `read()` or the `iter…` methods. */
  readonly stream: SyncByteStream

  constructor(statusCode: number, init: ResponseInit<SyncByteStream> = {}) {
    super(statusCode, init)
    this.stream = init.stream ?? (this.rawContent === null ? [] : [this.rawContent])
  }

  /**
   * Wraps the response of a transport.
   *
   * @throws {@link ClientStateError} when its stream is asynchronous.
   * @internal
   */
  static from(raw: TransportResponse): Response {
    if (!(Symbol.iterator in raw.stream)) {
      throw new ClientStateError(
        'the transport returned an asynchronous stream, which Client cannot wait for',
      )
    }
    return new Response(raw.statusCode, initOf(raw as TransportResponse<SyncByteStream>))
  }

  /**
   * Reads and decodes the whole content and frees the connection. Later calls return it again.
   *
   * @throws {@link ResponseTooLargeError} when it is larger than `maxResponseBytes`.
   */
  read(): Uint8Array {
    if (this.contentRead !== null) {
      if (!this.closed) this.close()
      return this.contentRead
    }
    try {
      const codings = this.codings()
      const collector = new ByteCollector()
      for (const chunk of this.#raw()) {
        collector.add(chunk)
        this.checkSize(collector.length)
      }
      const raw = collector.take()
      this.contentRead =
        codings.length === 0 ? raw : decodeContentSync(raw, codings, this.settings.maxResponseBytes)
    } catch (error) {
      throw this.blame(error)
    }
    return this.contentRead
  }

  /** The bytes as received, still encoded. */
  *iterRaw(options: IterOptions = {}): Generator<Uint8Array, void, undefined> {
    yield* rechunk(this.#blaming(this.#raw()), pieceSize(options))
  }

  /** The decoded content; after `read()`, from memory. */
  *iterBytes(options: IterOptions = {}): Generator<Uint8Array, void, undefined> {
    if (this.contentRead !== null) {
      yield* rechunk(this.contentRead.length > 0 ? [this.contentRead] : [], pieceSize(options))
      return
    }
    const codings = this.codings()
    const raw = this.#raw()
    const decoded = codings.reduce<Iterable<Uint8Array>>(inflateSync, raw)
    yield* rechunk(this.#blaming(decoded), pieceSize(options))
  }

  /** The decoded content as text, split between characters. */
  *iterText(options: IterOptions = {}): Generator<string, void, undefined> {
    const decoder = new IncrementalText(this.streamEncoding())
    const chunker = new TextChunker(pieceSize(options))
    for (const chunk of this.iterBytes()) yield* chunker.feed(decoder.feed(chunk))
    yield* chunker.feed(decoder.end())
    yield* chunker.end()
  }

  /** The lines of the text, split at CR, LF and CRLF only, without line ends. */
  *iterLines(): Generator<string, void, undefined> {
    const splitter = new LineSplitter()
    for (const text of this.iterText()) yield* splitter.feed(text)
    yield* splitter.end()
  }

  /** Frees the connection and drops unread content. Safe to call twice. */
  close(): void {
    if (this.closed) return
    this.finish()
    this.stream.close?.()
  }

  /** Closes the response at the end of a `using` block. */
  [Symbol.dispose](): void {
    this.close()
  }

  *#raw(): Generator<Uint8Array, void, undefined> {
    this.begin()
    try {
      for (const chunk of this.stream) {
        if (chunk.length === 0) continue
        this.settings.signal?.throwIfAborted()
        this.count(chunk.length)
        yield chunk
      }
    } finally {
      this.close()
    }
  }

  *#blaming(source: Iterable<Uint8Array>): Generator<Uint8Array, void, undefined> {
    try {
      yield* source
    } catch (error) {
      throw this.blame(error)
    }
  }
}

function* rechunk(
  source: Iterable<Uint8Array>,
  size: number | undefined,
): Generator<Uint8Array, void, undefined> {
  if (size === undefined) {
    yield* source
    return
  }
  const chunker = new ByteChunker(size)
  for (const chunk of source) yield* chunker.feed(chunk)
  yield* chunker.end()
}
