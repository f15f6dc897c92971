import { printAs } from './inspect.js'
import { Cookies } from './cookies/jar.js'
import { codingsOf } from './content/decoders.js'
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
import { parseLinks, relationsOf, type Link } from './links.js'
import type { Request } from './request.js'
import * as status from './status-codes.js'
import { decodeText, encodingName, jsonEncoding } from './content/text.js'
import { completeTimings, type PhaseTimings, type Timings } from './timings.js'
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
  /** What a transport measured until the head was there. */
  readonly timings?: PhaseTimings | null | undefined
}

declare module './errors.js' {
  interface HttpMessages {
    readonly response: BaseResponse
  }
}

/** What the client tells its responses. @internal */
export interface ResponseSettings {
  readonly defaultEncoding: DefaultEncoding
  readonly maxResponseBytes: number | null
  /** Looked at before each chunk. */
  readonly signal: AbortSignal | null
}

const NO_OCTETS = new Uint8Array(0)
const NO_SETTINGS: ResponseSettings = {
  defaultEncoding: 'utf-8',
  maxResponseBytes: null,
  signal: null,
}

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
  /** `performance.now()` when its request was sent; null when it never was. */
  #startedAt: number | null = null
  readonly #phases: PhaseTimings | null
  /** `performance.now()` when the head was there, and when all of it was. */
  #headAt = 0
  #finishedAt: number | null = null
  #downloaded = 0
  #onFinish: (() => void) | null = null

  constructor(statusCode: number, init: ResponseInit = {}) {
    this.statusCode = statusCode
    this.reasonPhrase = init.reasonPhrase ?? status.reasonPhraseOf(statusCode)
    this.httpVersion = init.httpVersion ?? 'HTTP/1.1'
    this.headers = init.headers instanceof Headers ? init.headers : new Headers(init.headers)
    this.extensions = init.extensions ?? {}
    this.#request = init.request
    this.#trailers = init.trailers
    this.#phases = init.timings ?? null
    const content = this.#contentOf(init)
    if (init.stream === undefined) {
      if (
        !this.headers.has('transfer-encoding') &&
        (content.length > 0 || init.content !== undefined)
      ) {
        this.headers.setDefault('Content-Length', String(content.length))
      }
      if (codingsOf(this.headers).length === 0) this.contentRead = content
      this.rawContent = content
    }
  }

  /** Octets given at construction, before decoding. @internal */
  protected readonly rawContent: Uint8Array | null = null

  /** Binds the response to its request, when that was sent, and what the client wants. @internal */
  adopt(request: Request, settings: ResponseSettings, startedAt: number): this {
    this.#request = request
    this.#startedAt = startedAt
    this.settings = settings
    this.#headAt = performance.now()
    return this
  }

  /** Calls `then` once the response is closed, at once when it is. @internal */
  whenFinished(then: () => void): void {
    if (this.closed) then()
    else this.#onFinish = then
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

  /**
   * The links of the Link header by relation type, in lower case, or by target where there is none.
   * One with several types is found by each.
   */
  get links(): Record<string, Link> {
    const links = new Map<string, Link>()
    for (const link of parseLinks(this.headers.getList('link').join(', '))) {
      for (const relation of relationsOf(link)) if (!links.has(relation)) links.set(relation, link)
    }
    return Object.fromEntries(links)
  }

  /** The cookies that this response set. */
  get cookies(): Cookies {
    const cookies = new Cookies()
    cookies.extract(this.url, this.headers)
    return cookies
  }

  /**
   * Milliseconds from sending `request` to closing the response; redirects, authentication legs and
   * tries before it are not counted.
   *
   * @throws {@link ClientStateError} while the response is open.
   */
  get elapsed(): number {
    if (this.#finishedAt === null) {
      throw new ClientStateError('elapsed is known once the response was read or closed')
    }
    return this.#startedAt === null ? 0 : this.#finishedAt - this.#startedAt
  }

  /**
   * How long each phase of this exchange took, in ms; null where the transport measures nothing, as
   * `MockTransport` does. `receive` and `total` are null while the response is open.
   */
  get timings(): Timings | null {
    if (this.#phases === null) return null
    return completeTimings(
      this.#phases,
      this.#finishedAt === null ? null : this.#finishedAt - this.#headAt,
    )
  }

  /** Raw octets of the content received so far, before decoding. */
  get numBytesDownloaded(): number {
    return this.#downloaded
  }

  /** 1xx. */
  get isInformational(): boolean {
    return status.isInformational(this.statusCode)
  }

  /** 2xx. */
  get isSuccess(): boolean {
    return status.isSuccess(this.statusCode)
  }

  /** Any 3xx; see {@link BaseResponse.hasRedirectLocation}. */
  get isRedirect(): boolean {
    return status.isRedirect(this.statusCode)
  }

  /** 4xx. */
  get isClientError(): boolean {
    return status.isClientError(this.statusCode)
  }

  /** 5xx. */
  get isServerError(): boolean {
    return status.isServerError(this.statusCode)
  }

  /** 4xx or 5xx. */
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

  /** @throws {@link ClientStateError} once `text` was read; TypeError for an unknown label. */
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

  static {
    printAs(BaseResponse, (self) => {
      const phrase = self.reasonPhrase === '' ? '' : ` ${self.reasonPhrase}`
      return `<${self.constructor.name} [${self.statusCode}${phrase}]>`
    })
  }

  /** Reads the content where that needs no waiting; false where it may. @internal */
  readArrived(): boolean {
    return false
  }

  /** Begins reading. @internal */
  protected begin(): void {
    if (this.consumed) {
      throw new StreamConsumedError(
        'the content was read already, and a stream can be read once only',
      )
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
    this.#finishedAt ??= performance.now()
    this.#onFinish?.()
    this.#onFinish = null
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

  /** The encoding for text that is read piece by piece, before there is content to look at. @internal */
  protected streamEncoding(): string {
    const guesses = typeof this.settings.defaultEncoding === 'function'
    if (this.contentRead !== null || !guesses) return this.encoding
    return this.charsetEncoding ?? 'utf-8'
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
    if (init.text !== undefined)
      this.headers.setDefault('Content-Type', 'text/plain; charset=utf-8')
    if (init.html !== undefined) this.headers.setDefault('Content-Type', 'text/html; charset=utf-8')
    const content = init.content ?? init.text ?? init.html ?? NO_OCTETS
    return typeof content === 'string' ? Buffer.from(content) : content
  }
}

/** What a transport answered, as what a response is made from. @internal */
export function initOf<S>(raw: TransportResponse<S>): ResponseInit<S> {
  const { headers, stream, reasonPhrase, httpVersion, trailers, extensions, timings } = raw
  return { headers, stream, reasonPhrase, httpVersion, trailers, extensions, timings }
}

/** Size of the pieces in which content is iterated; pieces as they come when left out. */
export interface IterOptions {
  /** Octets (or, for text, characters) of each piece but the last. */
  readonly chunkSize?: number | undefined
}
