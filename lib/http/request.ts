import { setMaxListeners } from 'node:events'
import { ByteCollector } from '../internal/bytes.js'
import { checkOptions, type OptionKinds } from '../internal/options.js'
import type { Timeouts } from './config.js'
import { type Body, type BodyContent, bytesBody, contentBody, formBody } from './content/body.js'
import { jsonBody } from './content/json-body.js'
import { filePairs, multipartBody, type FilesInit } from './content/multipart.js'
import { Destination } from './destination.js'
import { InvalidBodyError, LocalProtocolError, RequestNotReadError } from './errors.js'
import { Headers, type HeadersInit } from './headers.js'
import { printAs } from './inspect.js'
import { blockingChunks } from './transports/blocking/request-body.js'
import { applyParams, parseUrl, redactUrl, sharesSecrets, type ParamsInit } from './url.js'

/** At most one body: `json`, `content`, or `data` and `files` together. */
export interface BodyOptions {
  /** Sent as compact JSON. `undefined` is left out, as by JSON.stringify(); NaN is an error. */
  readonly json?: unknown
  /** Sent as a form; with `files`, or as a FormData that has files, as multipart/form-data. */
  readonly data?: ParamsInit | FormData | undefined
  /** Sent unchanged. */
  readonly content?: BodyContent | undefined
  /** Sent as multipart/form-data (RFC 7578). */
  readonly files?: FilesInit | undefined
}

/**
 * Extra settings for the transport. Unknown keys are kept, for custom transports; redirects keep
 * them within one origin.
 */
export interface RequestExtensions {
  /** TLS server name (SNI and certificate check) in place of the host of this origin's URLs. */
  readonly sniHostname?: string | undefined
  /** Request target in place of the URL's path and query; redirects do not keep it. */
  readonly target?: string | undefined
  /** Called with the bytes of the request body sent so far, and its length when known. */
  readonly onUpload?: ((sent: number, total: number | null) => void) | undefined
  /** Called with the raw bytes of the response read so far, and Content-Length when known. */
  readonly onDownload?: ((received: number, total: number | null) => void) | undefined
  /** Called with each informational response (1xx) that precedes the final one. */
  readonly onInformation?: ((statusCode: number, headers: Headers) => void) | undefined
  readonly [key: string]: unknown
}

/** Options of {@link Request}. */
export interface RequestInit extends BodyOptions {
  readonly headers?: HeadersInit | null | undefined
  readonly params?: ParamsInit | null | undefined
  readonly extensions?: RequestExtensions | undefined
  readonly signal?: AbortSignal | null | undefined
}

/** For {@link checkOptions}. */
export const REQUEST_INIT: OptionKinds<RequestInit> = {
  json: 'any', data: 'any', content: 'any', files: 'any', headers: 'any', params: 'any',
  extensions: 'object', signal: 'object|null',
}

declare module './errors.js' {
  interface HttpMessages {
    readonly request: Request
  }
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const STANDARD_METHODS = new Set('GET HEAD POST PUT PATCH DELETE OPTIONS TRACE'.split(' '))
/** Methods that send `Content-Length: 0` when there is no body (RFC 9110, section 8.6). */
const BODY_EXPECTED = new Set(['POST', 'PUT', 'PATCH'])

/**
 * The parts of a request that were checked before: nothing of them is copied or checked again. A
 * body that is undefined is encoded from the options.
 */
class CheckedParts {
  /** In place of a URL. */
  readonly destination: Destination | null
  readonly headers: Headers
  readonly options: RequestInit
  readonly body: Body | null | undefined

  constructor(
    destination: Destination | null,
    headers: Headers,
    options: RequestInit,
    body: Body | null | undefined,
  ) {
    this.destination = destination
    this.headers = headers
    this.options = options
    this.body = body
  }
}

/**
 * One HTTP request, as `buildRequest()` returns it and transports receive it. Its headers may be
 * changed until it is sent. It may be sent again if its body can be read again.
 *
 * @example
 * ```ts
 * const request = new Request('POST', 'https://api.example/items', { json: { name: 'nut' } })
 * request.headers.get('content-type') // 'application/json'
 * ```
 */
export class Request {
  /** As sent: standard methods in upper case, others as given (RFC 9110, section 9.1). */
  readonly method: string
  readonly headers: Headers
  readonly extensions: RequestExtensions
  /** Aborting it ends the call with the signal's reason. */
  readonly signal: AbortSignal | null
  /** The body, or null for none. @internal */
  body: Body | null
  /** Time limits of this request, set by the client. @internal */
  timeouts: Timeouts | null = null
  /** The `performance.now()` at which `timeout.total` ends the call. @internal */
  deadlineAt: number | null = null
  /**
   * Cookies given with this call, as a field value. Null turns cookies off for the call; requests
   * that no client built have null too.
   *
   * @internal
   */
  callCookies: string | null = null
  /** The URL that the caller named, if redirects led from there to this one. @internal */
  namedUrl: URL | null = null
  /** Whether the calling thread blocks, so that nothing can be awaited. @internal */
  blocking = false
  /** Whether redirects change the method as the Fetch Standard has it, section 4.4. @internal */
  standardRedirects = false
  /** Null until somebody asks for the URL that `#destination` stands for. */
  #url: URL | null
  readonly #destination: Destination | null

  /**
   * @throws {@link InvalidUrlError} when the URL does not parse.
   * @throws {@link LocalProtocolError} when the method or a header is malformed.
   * @throws {@link InvalidBodyError} when the body cannot be encoded.
   */
  constructor(method: string, url: string | URL, init: RequestInit = {}) {
    this.method = checkedMethod(method)
    if (init instanceof CheckedParts) {
      const { options, body } = init
      this.#url = init.destination === null ? (url as URL) : null
      this.#destination = init.destination
      this.headers = init.headers
      this.extensions = options.extensions ?? {}
      this.signal = options.signal ?? null
      this.body = body === undefined ? encodeBody(options, this.headers) : body
      if (body === undefined) this.#describeBody()
      return
    }
    checkOptions(init, REQUEST_INIT, 'new Request()')
    this.#url = parseUrl(url)
    this.#destination = null
    applyParams(this.#url, init.params)
    this.headers = new Headers(init.headers)
    this.extensions = { ...init.extensions }
    this.signal = checkedSignal(init.signal)
    this.body = encodeBody(init, this.headers)
    this.#describeBody()
  }

  /**
   * Makes the request of a call, whose options were checked by name. `url` and `headers` belong to
   * it, with the parameters and headers of the call.
   *
   * @internal
   */
  static ofCall(
    method: string,
    url: URL | Destination,
    headers: Headers,
    options: RequestInit,
  ): Request {
    const { extensions, json, data, content, files } = options
    const signal = checkedSignal(options.signal)
    const copied = { json, data, content, files, signal, extensions: { ...extensions } }
    const destination = url instanceof Destination ? url : null
    const parts = new CheckedParts(destination, headers, copied, undefined)
    return new Request(method, url as URL, parts as RequestInit)
  }

  /** Makes a request from parts that were validated before. @internal */
  static fromParts(
    method: string,
    url: URL,
    headers: Headers,
    body: Body | null,
    from: RequestInit,
  ): Request {
    return new Request(method, url, new CheckedParts(null, headers, from, body) as RequestInit)
  }

  /** The absolute URL; its fragment is never sent. */
  get url(): URL {
    return (this.#url ??= new URL(this.#destination!.href))
  }

  /** The parts of the URL, as it is now. @internal */
  get destination(): Destination {
    return this.#url === null ? this.#destination! : new Destination(this.#url)
  }

  /** Whether redirects led to an origin that must not get what was given for another. @internal */
  get isForeign(): boolean {
    return this.namedUrl !== null && !sharesSecrets(this.namedUrl, this.url)
  }

  /**
   * The bytes of the body.
   *
   * @throws {@link RequestNotReadError} for a streaming body before `read()`.
   */
  get content(): Uint8Array {
    if (this.body === null) return new Uint8Array(0)
    if (this.body.bytes === null) {
      throw new RequestNotReadError('the request body is a stream; call read() before content')
    }
    return this.body.bytes
  }

  /**
   * Length of the body in bytes: 0 without one, null if it is known only after reading. The
   * headers have it as Content-Length, unless the caller set other framing.
   */
  get bodyLength(): number | null {
    return this.body === null ? 0 : this.body.length
  }

  /**
   * The body piece by piece, for transports: each piece is read from its source when it is asked
   * for, and ending the iteration early lets the source clean up. Pieces are not copied. A body
   * that is a stream can be iterated only once, by the first reader; others any number of times.
   *
   * Reports nothing to `onUpload`, which is for the transport to call.
   *
   * @throws {@link StreamConsumedError} when the body is a stream that was iterated before.
   */
  async *iterBytes(): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.body !== null) yield* this.body.open()
  }

  /**
   * Blocking counterpart of {@link Request.iterBytes}.
   *
   * @throws {@link ClientStateError} when the body is asynchronous.
   */
  *iterBytesSync(): Generator<Uint8Array, void, undefined> {
    if (this.body !== null) yield* blockingChunks(this.body.open())
  }

  /** Reads a streaming body into memory, so that it can be inspected and sent again. */
  async read(): Promise<Uint8Array> {
    if (this.body !== null && this.body.bytes === null) {
      const collector = new ByteCollector()
      for await (const chunk of this.iterBytes()) collector.add(chunk)
      this.body = bytesBody(collector.take(), this.body.contentType)
    }
    return this.content
  }

  /**
   * Blocking counterpart of {@link Request.read}.
   *
   * @throws {@link ClientStateError} when the body is asynchronous.
   */
  readSync(): Uint8Array {
    if (this.body !== null && this.body.bytes === null) {
      const content = Buffer.concat([...this.iterBytesSync()])
      this.body = bytesBody(content, this.body.contentType)
    }
    return this.content
  }

  /** Method, URL and headers for logs, secrets masked. */
  toJSON(): { method: string; url: string; headers: Record<string, string> } {
    return { method: this.method, url: redactUrl(this.url), headers: this.headers.toJSON() }
  }

  static {
    printAs(Request, (self) => {
      return `<Request [${self.method} ${redactUrl(self.url)}]>`
    })
  }

  #describeBody(): void {
    const { headers, body } = this
    if (body === null) {
      if (BODY_EXPECTED.has(this.method) && !headers.has('transfer-encoding')) {
        headers.setDefault('Content-Length', '0')
      }
      return
    }
    if (body.contentType !== null) headers.setDefault('Content-Type', body.contentType)
    if (headers.has('content-length')) return
    if (body.length === null) headers.setDefault('Transfer-Encoding', 'chunked')
    else if (!headers.has('transfer-encoding'))
      headers.append('Content-Length', String(body.length))
  }
}

/** Standard methods in upper case; others as given. */
function checkedMethod(method: string): string {
  if (STANDARD_METHODS.has(method)) return method
  if (typeof method !== 'string' || !TOKEN.test(method)) {
    throw new LocalProtocolError(`the method ${JSON.stringify(method) ?? ''} is not a token`)
  }
  const upper = method.toUpperCase()
  return STANDARD_METHODS.has(upper) ? upper : method
}

function checkedSignal(signal: AbortSignal | null | undefined): AbortSignal | null {
  if (signal === undefined || signal === null) return null
  if (typeof signal.throwIfAborted === 'function') {
    // One signal may serve any number of calls at once, so many listeners are not a leak.
    if (signal instanceof EventTarget) setMaxListeners(0, signal)
    return signal
  }
  throw new TypeError('signal must be an AbortSignal; of a controller, pass its signal')
}

function encodeBody(init: BodyOptions, headers: Headers): Body | null {
  const { json, content, data } = init
  const hasForm = data !== undefined || init.files !== undefined
  if (json === undefined && content === undefined && !hasForm) return null
  const kinds = [
    json !== undefined && 'json',
    content !== undefined && 'content',
    hasForm && 'data/files',
  ].filter((kind) => kind !== false)
  if (kinds.length > 1) {
    throw new InvalidBodyError(`a request can have only one body, got ${kinds.join(' and ')}`)
  }
  if (json !== undefined) return jsonBody(json)
  if (content !== undefined) return contentBody(content)
  const { fields, files } = isForm(data) ? splitForm(data) : { fields: data, files: [] }
  if (init.files !== undefined || files.length > 0) {
    const more = init.files === undefined ? [] : filePairs(init.files)
    const given = headers.get('content-type')
    const body = multipartBody(fields, [...files, ...more], given)
    // The parts cannot be told apart without the boundary, which the caller could not know.
    if (given !== null && /^multipart\/form-data\s*$/i.test(given))
      headers.set('Content-Type', body.contentType!)
    return body
  }
  return fields === undefined ? null : formBody(fields)
}

/** Tests the tag: naming the class would make Node load all of fetch. */
function isForm(data: BodyOptions['data']): data is FormData {
  return Object.prototype.toString.call(data) === '[object FormData]'
}

function splitForm(form: FormData): {
  readonly fields: [string, string][]
  readonly files: [string, File][]
} {
  const fields: [string, string][] = []
  const files: [string, File][] = []
  for (const [name, value] of form) {
    if (typeof value === 'string') fields.push([name, value])
    else files.push([name, value])
  }
  return { fields, files }
}
