import { checkOptions, type OptionKinds } from '../internal/options.js'
import type { CacheOutcome } from './cache/store.js'
import { codingsOf } from './content/decoders.js'
import { decodeText, encodingName, jsonEncoding } from './content/text.js'
import { Cookies } from './cookies/jar.js'
import {
  ClientStateError,
  HttpStatusError,
  InvalidJsonError,
  RequestError,
  ResponseNotReadError,
  ResponseTooLargeError,
  StreamClosedError,
  StreamConsumedError,
} from './errors.js'
import { Headers, type HeadersInit } from './headers.js'
import { printAs } from './inspect.js'
import { parseLinks, relationsOf, type Link } from './links.js'
import type { Request } from './request.js'
import { completeTimings, type PhaseTimings, type Timings } from './timings.js'
import { ReceivedResponse, type TransportResponse } from './transports/base.js'
import type { AsyncByteStream, SyncByteStream } from './transports/base.js'
import { redactUrl } from './url.js'

/** The encoding of text without a charset: a label, or a function that picks one by content. */
export type DefaultEncoding = string | ((content: Uint8Array) => string)

/** What a transport says about a response, besides the response itself. */
export interface ResponseExtensions {
  /** What `CacheTransport` did; undefined without one. */
  readonly cache?: CacheOutcome | undefined
  readonly [key: string]: unknown
}

/** Options of a response. Give at most one of `content`, `text`, `html`, `json` and `stream`. */
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
  /** What the transport measured up to the response head. */
  readonly timings?: PhaseTimings | null | undefined
}

const RESPONSE_INIT: OptionKinds<ResponseInit> = {
  headers: 'any', content: 'any', text: 'string', html: 'string', json: 'any', stream: 'any',
  request: 'object', reasonPhrase: 'string', httpVersion: 'string', trailers: 'object',
  extensions: 'object', timings: 'object|null',
}
const ITER_OPTIONS: OptionKinds<IterOptions> = { chunkSize: 'number' }

declare module './errors.js' {
  interface HttpMessages {
    readonly response: BaseResponse
  }
}

/** Client settings that a response needs. @internal */
export interface ResponseSettings {
  readonly defaultEncoding: DefaultEncoding
  readonly maxResponseBytes: number | null
  /** Checked before each chunk. */
  readonly signal: AbortSignal | null
}

const NO_BYTES = new Uint8Array(0)
const NONE: readonly BaseResponse[] = Object.freeze([])
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
const NO_SETTINGS: ResponseSettings = {
  defaultEncoding: 'utf-8',
  maxResponseBytes: null,
  signal: null,
}

/** Names of status classes in the message of `raiseForStatus()`. */
const STATUS_KINDS: Readonly<Record<number, string>> = {
  3: 'redirect',
  4: 'client error',
  5: 'server error',
}

/** What `Response` and `AsyncResponse` share: everything but reading the content. */
export abstract class BaseResponse {
  readonly statusCode: number
  /** As sent by the server; over HTTP/2, the registered phrase for the status. */
  readonly reasonPhrase: string
  /** "HTTP/1.0", "HTTP/1.1" or "HTTP/2". */
  readonly httpVersion: string
  readonly headers: Headers
  /** Extras from the transport, such as `remoteAddress`, `localAddress` and `cache`. */
  readonly extensions: ResponseExtensions
  /** The redirect responses that led here, oldest first. */
  history: readonly BaseResponse[] = NONE
  /** The responses to earlier requests of the same authentication, oldest first. */
  authHistory: readonly BaseResponse[] = NONE
  /** For a redirect that was not followed, the request that following it would send. */
  nextRequest: Request | null = null

  /** @internal */ protected contentRead: Uint8Array | null = null
  /** @internal */ protected consumed = false
  /** @internal */ protected closed = false
  /** @internal */ protected settings: ResponseSettings = NO_SETTINGS
  #request: Request | undefined
  #trailers: Headers | undefined
  #text: string | null = null
  #encoding: string | null = null
  /** `performance.now()` when the request was sent; null if it was not sent by a client. */
  #startedAt: number | null = null
  readonly #phases: PhaseTimings | null
  /** `performance.now()` when the head arrived. */
  #headAt = 0
  /** `performance.now()` when the content was read or closed. */
  #finishedAt: number | null = null
  #downloaded = 0
  #onFinish: (() => void) | null = null

  constructor(statusCode: number, init: ResponseInit = {}) {
    const received = init instanceof ReceivedResponse
    if (!received) checkOptions(init, RESPONSE_INIT, 'a response')
    this.statusCode = statusCode
    this.reasonPhrase = init.reasonPhrase ?? reasonPhraseOf(statusCode)
    this.httpVersion = init.httpVersion ?? 'HTTP/1.1'
    this.headers = init.headers instanceof Headers ? init.headers : new Headers(init.headers)
    this.extensions = init.extensions ?? {}
    this.#request = init.request
    this.#trailers = init.trailers
    this.#phases = init.timings ?? null
    if (received) return
    const content = this.#contentOf(init)
    if (init.stream === undefined) {
      const hasContent = content.length > 0 || init.content !== undefined
      if (hasContent && !this.headers.has('transfer-encoding')) {
        this.headers.setDefault('Content-Length', String(content.length))
      }
      if (codingsOf(this.headers).length === 0) this.contentRead = content
      this.rawContent = content
    }
  }

  /** Content given to the constructor, not decoded. @internal */
  protected readonly rawContent: Uint8Array | null = null

  /** Attaches the request, when it was sent, and the client's settings. @internal */
  adopt(request: Request, settings: ResponseSettings, startedAt: number): this {
    this.#request = request
    this.#startedAt = startedAt
    this.settings = settings
    this.#headAt = performance.now()
    return this
  }

  /** Calls `then` when the response closes, or at once if it is closed. @internal */
  whenFinished(then: () => void): void {
    if (this.closed) then()
    else this.#onFinish = then
  }

  /** The request of this response. @throws {@link ClientStateError} if it was made without one. */
  get request(): Request {
    if (this.#request === undefined) {
      throw new ClientStateError('the response has no request; it was made without one')
    }
    return this.#request
  }

  /** The URL of the request: after redirects, of the last one. */
  get url(): URL {
    return this.request.url
  }

  /** Trailer fields, complete once the content was read (RFC 9110, section 6.5). */
  get trailers(): Headers {
    return (this.#trailers ??= new Headers())
  }

  /**
   * The links of the Link header, by relation type in lower case. A link with several types is
   * listed under each; one without a type, under its target.
   */
  get links(): Record<string, Link> {
    const links = new Map<string, Link>()
    for (const link of parseLinks(this.headers.getList('link').join(', '))) {
      for (const relation of relationsOf(link)) if (!links.has(relation)) links.set(relation, link)
    }
    return Object.fromEntries(links)
  }

  /** The cookies that this response sets. */
  get cookies(): Cookies {
    const cookies = new Cookies()
    cookies.extract(this.url, this.headers)
    return cookies
  }

  /**
   * Milliseconds from sending `request` to closing the response. Earlier redirects, authentication
   * requests and retries do not count.
   *
   * @throws {@link ClientStateError} while the response is open.
   */
  get elapsed(): number {
    if (this.#finishedAt === null) {
      throw new ClientStateError('elapsed is not known before the response is read or closed')
    }
    return this.#startedAt === null ? 0 : this.#finishedAt - this.#startedAt
  }

  /**
   * How long each phase of this exchange took, in ms; null if the transport does not measure, as
   * `MockTransport` does not. `receive` and `total` are null while the response is open.
   */
  get timings(): Timings | null {
    if (this.#phases === null) return null
    return completeTimings(
      this.#phases,
      this.#finishedAt === null ? null : this.#finishedAt - this.#headAt,
    )
  }

  /** Bytes of content received so far, before decoding. */
  get numBytesDownloaded(): number {
    return this.#downloaded
  }

  /** Whether the status is 1xx. */
  get isInformational(): boolean {
    return this.#statusClass === 1
  }

  /** Whether the status is 2xx; `raiseForStatus()` throws for any other. */
  get isSuccess(): boolean {
    return this.#statusClass === 2
  }

  /** The same as {@link BaseResponse.isSuccess}, by its name in `fetch()`. */
  get ok(): boolean {
    return this.isSuccess
  }

  /** Whether the status is 3xx; see {@link BaseResponse.hasRedirectLocation}. */
  get isRedirect(): boolean {
    return this.#statusClass === 3
  }

  /** Whether the status is 4xx. */
  get isClientError(): boolean {
    return this.#statusClass === 4
  }

  /** Whether the status is 5xx. */
  get isServerError(): boolean {
    return this.#statusClass === 5
  }

  /** Whether the status is 4xx or 5xx. */
  get isError(): boolean {
    return this.isClientError || this.isServerError
  }

  /** Whether the redirect can be followed: 301, 302, 303, 307 or 308 with a Location. */
  get hasRedirectLocation(): boolean {
    return REDIRECTS.has(this.statusCode) && this.headers.has('location')
  }

  /** Whether the content was read or closed, which frees the connection. */
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
      throw new ResponseNotReadError('the content is not read yet; call read() first')
    }
    return this.contentRead
  }

  /** The charset of Content-Type; null when it is missing or no decoder supports it. */
  get charsetEncoding(): string | null {
    const type = this.headers.get('content-type') ?? ''
    const match = /;\s*charset\s*=\s*(?:"([^"]*)"|([^\s;]+))/i.exec(type)
    const label = match?.[1] ?? match?.[2]
    return label === undefined ? null : encodingName(label)
  }

  /** The encoding of `text`. It can be set until `text` is first read. */
  get encoding(): string {
    if (this.#encoding === null) {
      const chosen = this.charsetEncoding ?? this.#defaultEncoding()
      this.#encoding = encodingName(chosen) ?? 'utf-8'
    }
    return this.#encoding
  }

  /** @throws {@link ClientStateError} after `text` was read; TypeError for an unknown label. */
  set encoding(label: string) {
    if (this.#text !== null) {
      throw new ClientStateError('encoding must be set before text is first read')
    }
    const name = encodingName(label)
    if (name === null) throw new TypeError(`unknown encoding ${JSON.stringify(label)}`)
    this.#encoding = name
  }

  /** The content as text. A byte order mark overrides the charset; invalid bytes become U+FFFD. */
  get text(): string {
    return (this.#text ??= decodeText(this.content, this.encoding))
  }

  /**
   * The content parsed as JSON, in UTF-8, UTF-16 or UTF-32.
   *
   * @throws {@link InvalidJsonError}, a SyntaxError, when it is not JSON, as when it is empty.
   */
  json<T = unknown>(): T {
    const text =
      this.#text ?? decodeText(this.content, this.charsetEncoding ?? jsonEncoding(this.content))
    try {
      return JSON.parse(text) as T
    } catch (cause) {
      throw this.#notJson(cause)
    }
  }

  /**
   * Returns the response if its status is 2xx.
   *
   * @throws {@link HttpStatusError} for every other status, 1xx and 3xx included.
   */
  raiseForStatus(): this {
    if (this.isSuccess) return this
    const kind = STATUS_KINDS[this.#statusClass] ?? 'status'
    const phrase = this.reasonPhrase === '' ? '' : ` ${this.reasonPhrase}`
    const { method } = this.request
    let message = `${kind} ${this.statusCode}${phrase} for ${method} ${redactUrl(this.url)}`
    const location = this.headers.get('location')
    if (this.isRedirect && location !== null) message += ` (to ${redactUrl(location)})`
    throw new HttpStatusError(message, this)
  }

  /** Status, URL and headers for logs, secrets masked. */
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

  /** Reads the content if that needs no waiting; false if it might. @internal */
  readArrived(): boolean {
    return false
  }

  /** Lowers the limit on decoded content for one reading. @internal */
  limitContent(bytes: number): void {
    const maxResponseBytes = Math.min(this.settings.maxResponseBytes ?? bytes, bytes)
    this.settings = { ...this.settings, maxResponseBytes }
  }

  /** Marks the content as being read, which can happen once. @internal */
  protected begin(): void {
    if (this.consumed) {
      throw new StreamConsumedError(
        'the content was read already, and a stream can be read only once',
      )
    }
    if (this.closed) throw new StreamClosedError('the response was closed before it was read')
    this.consumed = true
  }

  /** Counts raw bytes and reports them to `onDownload`. @internal */
  protected count(bytes: number): void {
    this.#downloaded += bytes
    const onDownload = this.#request?.extensions.onDownload
    if (onDownload === undefined) return
    const length = this.headers.get('content-length')
    onDownload(this.#downloaded, length === null ? null : Number(length))
  }

  /** Marks the response as closed and stops its clock. @internal */
  protected finish(): void {
    this.closed = true
    this.#finishedAt ??= performance.now()
    this.#onFinish?.()
    this.#onFinish = null
  }

  /** Attaches the request to an error thrown while reading. @internal */
  protected blame(error: unknown): unknown {
    return error instanceof RequestError && this.#request !== undefined
      ? error.for(this.#request)
      : error
  }

  /** Throws when `length` exceeds the client's `maxResponseBytes`. @internal */
  protected checkSize(length: number): void {
    const { maxResponseBytes } = this.settings
    if (maxResponseBytes !== null && length > maxResponseBytes) {
      throw new ResponseTooLargeError(maxResponseBytes)
    }
  }

  /** The content codings to undo, outermost first. @internal */
  protected codings(): ReturnType<typeof codingsOf> {
    return codingsOf(this.headers)
  }

  /** The encoding for text that is streamed, when no content is there to guess from. @internal */
  protected streamEncoding(): string {
    const guesses = typeof this.settings.defaultEncoding === 'function'
    if (this.contentRead !== null || !guesses) return this.encoding
    return this.charsetEncoding ?? 'utf-8'
  }

  get #statusClass(): number {
    return Math.floor(this.statusCode / 100)
  }

  #notJson(cause: unknown): InvalidJsonError {
    const request = this.#request
    const whose = request === undefined ? '' : ` to ${request.method} ${redactUrl(request.url)}`
    const type = this.headers.get('content-type') ?? 'none'
    const facts = `status ${this.statusCode}, content type ${type}`
    const message = `the response${whose} is not JSON (${facts}): ${(cause as Error).message}`
    return new InvalidJsonError(message, { cause })
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
    const subtype = init.text !== undefined ? 'plain' : init.html !== undefined ? 'html' : null
    if (subtype !== null) this.headers.setDefault('Content-Type', `text/${subtype}; charset=utf-8`)
    const content = init.content ?? init.text ?? init.html ?? NO_BYTES
    return typeof content === 'string' ? Buffer.from(content) : content
  }
}

/** The registered reason phrase of `statusCode`, or "". */
function reasonPhraseOf(statusCode: number): string {
  // Loaded lazily: node:http costs half this module's load time, and HTTP/1.1 sends phrases.
  return process.getBuiltinModule('node:http').STATUS_CODES[statusCode] ?? ''
}

/** The options for a response with what a transport returned. @internal */
export function initOf<S>(raw: TransportResponse<S>): ResponseInit<S> {
  if (raw instanceof ReceivedResponse) return raw as ResponseInit<S>
  const { headers, stream, reasonPhrase, httpVersion, trailers, extensions, timings } = raw
  return { headers, stream, reasonPhrase, httpVersion, trailers, extensions, timings }
}

/** Options of `iterRaw()`, `iterBytes()` and `iterText()`. */
export interface IterOptions {
  /** Bytes (for text, characters) of each piece but the last; by default pieces as they arrive. */
  readonly chunkSize?: number | undefined
}

/** The size of pieces that a caller wants. @throws TypeError for an unknown option. */
export function pieceSize(options: IterOptions): number | undefined {
  checkOptions(options, ITER_OPTIONS, 'an iteration')
  return options.chunkSize
}
