import { inspect } from 'node:util'
import { codingsOf, decodeContent, decodeStream } from './decoders.js'
import {
  ClientStateError,
  HttpStatusError,
  RequestError,
  ResponseNotReadError,
  ResponseTooLargeError,
  StreamClosedError,
  StreamConsumedError,
} from './errors.js'
import { Headers, type HeadersInit } from './headers.js'
import { parseLinks, type Link } from './links.js'
import type { Request } from './request.js'
import * as status from './status-codes.js'
import { ByteChunker, decodeText, encodingName, IncrementalText, jsonEncoding, LineSplitter } from './text.js'
import type { AsyncByteStream, SyncByteStream, TransportResponse } from './transports/base.js'
import { redactUrl } from './url.js'

/** A name for, or a function from content to, the encoding of text without a charset. */
export type DefaultEncoding = string | ((content: Uint8Array) => string)

/** What a response is made from; give one of `content`, `text`, `html`, `json` and `stream`. */
export interface ResponseInit<S = SyncByteStream | AsyncByteStream> {
  readonly headers?: HeadersInit | undefined
  readonly content?: string | Uint8Array | undefined
  /** As `content`, with `text/plain; charset=utf-8`. */
  readonly text?: string | undefined
  /** As `content`, with `text/html; charset=utf-8`. */
  readonly html?: string | undefined
  /** As compact JSON, with `application/json`. */
  readonly json?: unknown
  readonly stream?: S | undefined
  readonly request?: Request | undefined
  readonly reasonPhrase?: string | undefined
  readonly httpVersion?: string | undefined
  readonly trailers?: Headers | undefined
  readonly extensions?: Readonly<Record<string, unknown>> | undefined
}

/** What the client tells its responses. @internal */
export interface ResponseSettings {
  readonly defaultEncoding: DefaultEncoding
  readonly maxResponseBytes: number | null
  /** `performance.now()` when the call began. */
  readonly startedAt: number
  /** Called once the response is closed. */
  readonly onFinish: (() => void) | null
}

const NO_OCTETS = new Uint8Array(0)
const NO_SETTINGS: ResponseSettings = { defaultEncoding: 'utf-8', maxResponseBytes: null, startedAt: 0, onFinish: null }
const emptyStream: SyncByteStream = []

/** Everything that `Response` and `AsyncResponse` share: all but reading the content. */
export abstract class BaseResponse {
  readonly statusCode: number
  /** As the server sent it; the registry's phrase over HTTP/2. */
  readonly reasonPhrase: string
  /** "HTTP/1.0", "HTTP/1.1" or "HTTP/2". */
  readonly httpVersion: string
  readonly headers: Headers
  /** What the transport adds, such as `remoteAddress` and `localAddress`. */
  readonly extensions: Readonly<Record<string, unknown>>
  /** The redirects that led here, oldest first; its length is the number of hops. */
  history: readonly BaseResponse[] = []
  /** The responses of the authentication legs before this one, oldest first. */
  authHistory: readonly BaseResponse[] = []
  /** The request that following this redirect would send, when it was not followed. */
  nextRequest: Request | null = null

  /** @internal */ protected contentRead: Uint8Array | null = null
  /** @internal */ protected consumed = false
  /** @internal */ protected closed = false
  /** @internal */ protected settings: ResponseSettings = NO_SETTINGS
  #request: Request | undefined
  #trailers: Headers | undefined
  #text: string | null = null
  #encoding: string | null = null
  #elapsed: number | null = null
  #downloaded = 0

  constructor(statusCode: number, init: ResponseInit = {}) {
    this.statusCode = statusCode
    this.reasonPhrase = init.reasonPhrase ?? status.reasonPhraseOf(statusCode)
    this.httpVersion = init.httpVersion ?? 'HTTP/1.1'
    this.headers = init.headers instanceof Headers ? init.headers : new Headers(init.headers)
    this.extensions = init.extensions ?? {}
    this.#request = init.request
    this.#trailers = init.trailers
    const content = this.#contentOf(init)
    if (init.stream === undefined) {
      if (!this.headers.has('transfer-encoding') && (content.length > 0 || init.content !== undefined)) {
        this.headers.setDefault('Content-Length', String(content.length))
      }
      if (codingsOf(this.headers).length === 0) this.contentRead = content
      this.rawContent = content
    }
  }

  /** Octets given at construction, before decoding. @internal */
  protected readonly rawContent: Uint8Array | null = null

  /** Binds the response to its request and to what the client wants. @internal */
  adopt(request: Request, settings: ResponseSettings): this {
    this.#request = request
    this.settings = settings
    return this
  }

  /** The request that this answers. @throws {@link ClientStateError} on one made by hand without. */
  get request(): Request {
    if (this.#request === undefined) {
      throw new ClientStateError('this response was made without a request')
    }
    return this.#request
  }

  /** The URL of the request: after redirects, the last. */
  get url(): URL {
    return this.request.url
  }

  /** Fields that followed the content; complete once it was read (RFC 9110, section 6.5). */
  get trailers(): Headers {
    return (this.#trailers ??= new Headers())
  }

  /** The links of the Link header by relation type, or by target where there is none. */
  get links(): Record<string, Link> {
    const links: Record<string, Link> = {}
    for (const link of parseLinks(this.headers.getList('link').join(', '))) {
      links[link.rel ?? link.url] ??= link
    }
    return links
  }

  /**
   * Milliseconds from sending the request to closing the response.
   *
   * @throws {@link ClientStateError} while the response is open.
   */
  get elapsed(): number {
    if (this.#elapsed === null) {
      throw new ClientStateError('elapsed is known once the response was read or closed')
    }
    return this.#elapsed
  }

  /** Raw octets of the content received so far, before decoding. */
  get numBytesDownloaded(): number {
    return this.#downloaded
  }

  get isInformational(): boolean {
    return status.isInformational(this.statusCode)
  }

  get isSuccess(): boolean {
    return status.isSuccess(this.statusCode)
  }

  /** Any 3xx; see {@link BaseResponse.hasRedirectLocation}. */
  get isRedirect(): boolean {
    return status.isRedirect(this.statusCode)
  }

  get isClientError(): boolean {
    return status.isClientError(this.statusCode)
  }

  get isServerError(): boolean {
    return status.isServerError(this.statusCode)
  }

  get isError(): boolean {
    return this.statusCode >= 400 && this.statusCode <= 599
  }

  /** Whether this is a redirect that can be followed: 301, 302, 303, 307 or 308 with Location. */
  get hasRedirectLocation(): boolean {
    return [301, 302, 303, 307, 308].includes(this.statusCode) && this.headers.has('location')
  }

  /** Whether the content was read or closed, and the connection freed. */
  get isClosed(): boolean {
    return this.closed
  }

  /** Whether reading the content has begun. */
  get isStreamConsumed(): boolean {
    return this.consumed
  }

  /**
   * The decoded content.
   *
   * @throws {@link ResponseNotReadError} on a streamed response before `read()`.
   */
  get content(): Uint8Array {
    if (this.contentRead === null) {
      throw new ResponseNotReadError('the content was not read yet; call read() first')
    }
    return this.contentRead
  }

  /** The charset of Content-Type, or null when there is none or no decoder knows it. */
  get charsetEncoding(): string | null {
    const type = this.headers.get('content-type') ?? ''
    const match = /;\s*charset\s*=\s*(?:"([^"]*)"|([^\s;]+))/i.exec(type)
    const label = match?.[1] ?? match?.[2]
    return label === undefined ? null : encodingName(label)
  }

  /** The encoding of `text`. It may be set until `text` was read. */
  get encoding(): string {
    if (this.#encoding === null) {
      const chosen = this.charsetEncoding ?? this.#defaultEncoding()
      this.#encoding = encodingName(chosen) ?? 'utf-8'
    }
    return this.#encoding
  }

  set encoding(label: string) {
    if (this.#text !== null) {
      throw new ClientStateError('encoding cannot be set after text was read')
    }
    const name = encodingName(label)
    if (name === null) throw new TypeError(`there is no decoder for the encoding ${label}`)
    this.#encoding = name
  }

  /** The content as text. A byte order mark wins over the charset; bad octets become U+FFFD. */
  get text(): string {
    return (this.#text ??= decodeText(this.content, this.encoding))
  }

  /**
   * The content as JSON, in UTF-8, UTF-16 or UTF-32.
   *
   * @throws SyntaxError when it is not JSON.
   */
  json<T = unknown>(): T {
    const text =
      this.#text ?? decodeText(this.content, this.charsetEncoding ?? jsonEncoding(this.content))
    return JSON.parse(text) as T
  }

  /**
   * Returns the response when its status is 2xx.
   *
   * @throws {@link HttpStatusError} for every other status, 1xx and 3xx included.
   */
  raiseForStatus(): this {
    if (this.isSuccess) return this
    const kind = this.isClientError
      ? 'client error'
      : this.isServerError
        ? 'server error'
        : this.isRedirect
          ? 'redirect'
          : 'status'
    const phrase = this.reasonPhrase === '' ? '' : ` ${this.reasonPhrase}`
    const { method } = this.request
    let message = `${kind} ${this.statusCode}${phrase} for ${method} ${redactUrl(this.url)}`
    const location = this.headers.get('location')
    if (this.isRedirect && location !== null) message += ` (to ${redactUrl(location)})`
    throw new HttpStatusError(message, this)
  }

  /** Status, headers without secrets, and the URL, for logs. */
  toJSON(): Record<string, unknown> {
    return {
      statusCode: this.statusCode,
      reasonPhrase: this.reasonPhrase,
      httpVersion: this.httpVersion,
      url: this.#request === undefined ? null : redactUrl(this.#request.url),
      headers: this.headers.toJSON(),
    }
  }

  [inspect.custom](): string {
    const phrase = this.reasonPhrase === '' ? '' : ` ${this.reasonPhrase}`
    return `<${this.constructor.name} [${this.statusCode}${phrase}]>`
  }

  /** Begins reading. @internal */
  protected begin(): void {
    if (this.consumed) {
      throw new StreamConsumedError('the content was read already, and a stream can be read once only')
    }
    if (this.closed) throw new StreamClosedError('the response was closed before it was read')
    this.consumed = true
  }

  /** Counts raw octets and tells the caller of them. @internal */
  protected count(octets: number): void {
    this.#downloaded += octets
    const report = this.#request?.extensions.onDownload
    if (report === undefined) return
    const length = this.headers.get('content-length')
    report(this.#downloaded, length === null ? null : Number(length))
  }

  /** Notes the end. @internal */
  protected finish(): void {
    this.closed = true
    this.#elapsed ??= this.settings.startedAt === 0 ? 0 : performance.now() - this.settings.startedAt
    this.settings.onFinish?.()
  }

  /** Adds the request to an error that came while reading. @internal */
  protected blame(error: unknown): unknown {
    return error instanceof RequestError && this.#request !== undefined
      ? error.for(this.#request)
      : error
  }

  /** Throws when `length` passes the limit of the client. @internal */
  protected checkSize(length: number): void {
    const { maxResponseBytes } = this.settings
    if (maxResponseBytes !== null && length > maxResponseBytes) {
      throw new ResponseTooLargeError(maxResponseBytes)
    }
  }

  /** Whether HTTP allows content here at all (RFC 9110, section 6.4.1). @internal */
  protected codings(): ReturnType<typeof codingsOf> {
    return codingsOf(this.headers)
  }

  #defaultEncoding(): string {
    const { defaultEncoding } = this.settings
    return typeof defaultEncoding === 'function' ? defaultEncoding(this.content) : defaultEncoding
  }

  #contentOf(init: ResponseInit): Uint8Array {
    if (init.json !== undefined) {
      this.headers.setDefault('Content-Type', 'application/json')
      return Buffer.from(JSON.stringify(init.json))
    }
    if (init.text !== undefined) this.headers.setDefault('Content-Type', 'text/plain; charset=utf-8')
    if (init.html !== undefined) this.headers.setDefault('Content-Type', 'text/html; charset=utf-8')
    const content = init.content ?? init.text ?? init.html ?? NO_OCTETS
    return typeof content === 'string' ? Buffer.from(content) : content
  }
}

/** Size of the pieces in which content is iterated; pieces as they come when left out. */
export interface IterOptions {
  /** Octets (or, for text, characters) of each piece but the last. */
  readonly chunkSize?: number | undefined
}

/** The response of {@link AsyncClient}. Reading is awaited; everything else is as in `Response`. */
export class AsyncResponse extends BaseResponse implements AsyncDisposable {
  /** The raw content, for transports; use the `iter…` methods to read. */
  readonly stream: SyncByteStream | AsyncByteStream

  constructor(statusCode: number, init: ResponseInit = {}) {
    super(statusCode, init)
    this.stream = init.stream ?? (this.rawContent === null ? emptyStream : [this.rawContent])
  }

  /** Wraps what a transport answered. @internal */
  static from(raw: TransportResponse): AsyncResponse {
    return new AsyncResponse(raw.statusCode, raw)
  }

  /**
   * Reads and decodes the whole content, then frees the connection. Later calls return the same.
   *
   * @throws {@link ResponseTooLargeError} beyond `maxResponseBytes`.
   */
  async read(): Promise<Uint8Array> {
    if (this.contentRead !== null) {
      if (!this.closed) await this.close()
      return this.contentRead
    }
    try {
      const codings = this.codings()
      const chunks: Uint8Array[] = []
      let length = 0
      for await (const chunk of this.#raw()) {
        chunks.push(chunk)
        this.checkSize((length += chunk.length))
      }
      const raw = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length)
      this.contentRead =
        codings.length === 0 ? raw : await decodeContent(raw, codings, this.settings.maxResponseBytes)
    } catch (error) {
      throw this.blame(error)
    }
    return this.contentRead
  }

  /** The octets as they came, still encoded. */
  async *iterRaw(options: IterOptions = {}): AsyncGenerator<Uint8Array, void, undefined> {
    yield* rechunk(this.#blaming(this.#raw()), options.chunkSize)
  }

  /** The decoded content; after `read()`, from memory. */
  async *iterBytes(options: IterOptions = {}): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.contentRead !== null) {
      yield* rechunk(oneChunk(this.contentRead), options.chunkSize)
      return
    }
    const codings = this.codings()
    const raw = this.#raw()
    const decoded = codings.length === 0 ? raw : decodeStream(raw, codings)
    yield* rechunk(this.#blaming(decoded), options.chunkSize)
  }

  /** The decoded content as text, cut between characters. */
  async *iterText(options: IterOptions = {}): AsyncGenerator<string, void, undefined> {
    const decoder = new IncrementalText(this.#streamEncoding())
    const size = options.chunkSize
    let held = ''
    for await (const chunk of this.iterBytes()) {
      held += decoder.feed(chunk)
      const keep = size === undefined ? 0 : held.length % size
      const ready = held.slice(0, held.length - keep)
      held = held.slice(ready.length)
      yield* textPieces(ready, size)
    }
    yield* textPieces(held + decoder.end(), size)
  }

  /** The lines of the text, cut at CR, LF and CRLF only, without their ends. */
  async *iterLines(): AsyncGenerator<string, void, undefined> {
    const splitter = new LineSplitter()
    for await (const text of this.iterText()) yield* splitter.feed(text)
    yield* splitter.end()
  }

  /** Frees the connection. What was not read is lost. Calling it twice is harmless. */
  async close(): Promise<void> {
    if (this.closed) return
    this.finish()
    if ('close' in this.stream) await this.stream.close?.()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #streamEncoding(): string {
    if (this.contentRead !== null) return this.encoding
    return typeof this.settings.defaultEncoding === 'function'
      ? (this.charsetEncoding ?? 'utf-8')
      : this.encoding
  }

  async *#raw(): AsyncGenerator<Uint8Array, void, undefined> {
    this.begin()
    try {
      for await (const chunk of this.stream) {
        if (chunk.length === 0) continue
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

function* textPieces(text: string, size: number | undefined): Generator<string, void, undefined> {
  const step = size ?? text.length
  for (let at = 0; at < text.length; at += step) yield text.slice(at, at + step)
}

