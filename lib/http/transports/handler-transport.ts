import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import { abandonChunks, type Body } from '../content/body.js'
import { DEFAULT_MAX_HEADER_BYTES, DEFAULT_TIMEOUTS } from '../config.js'
import { ClientStateError, ReadTimeoutError, RemoteProtocolError } from '../errors.js'
import { Headers } from '../headers.js'
import type { Request } from '../request.js'
import { Timer } from '../timer-wheel.js'
import type { AsyncTransport, SyncByteStream, Transport, TransportResponse } from './base.js'
import { ResponseParser, type ParserEvents, type ResponseHead } from './http1/response-parser.js'
import { HandlerSocket } from './handler-socket.js'
import { checkHost } from './request-checks.js'
import { ResponseBody, type BodySource } from './response-body.js'
import { openUpload } from './upload.js'

/** A Node request listener, as passed to `http.createServer`; an Express app is one too. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => unknown

/** Options of {@link HandlerTransport}. */
export interface HandlerTransportOptions {
  /**
   * Whether an error of the handler fails the call; otherwise it becomes a 500 response.
   *
   * @defaultValue true
   */
  readonly raiseHandlerErrors?: boolean | undefined
  /** The remote address that the handler sees. @defaultValue 127.0.0.1, port 123 */
  readonly clientAddress?: readonly [address: string, port: number] | undefined
}

const OPTIONS: OptionKinds<HandlerTransportOptions> = {
  raiseHandlerErrors: 'boolean', clientAddress: 'array',
}

/**
 * Calls a `(request, response)` handler in this process, without a socket or port. The request and
 * response are Node's own, and what the handler writes is parsed as if it came from a socket.
 *
 * It works with both clients; under `Client` the handler must end its response before it returns.
 *
 * @example
 * ```ts
 * const app = (request, response) => response.end('hello')
 * const client = new AsyncClient({ transport: new HandlerTransport(app), baseUrl: 'http://app' })
 * ```
 */
export class HandlerTransport implements AsyncTransport, Transport {
  readonly #handler: RequestHandler
  readonly #options: HandlerTransportOptions

  constructor(handler: RequestHandler, options: HandlerTransportOptions = {}) {
    checkOptions(options, OPTIONS, 'new HandlerTransport()')
    if (typeof handler !== 'function') {
      throw new TypeError('a HandlerTransport needs a handler: (request, response) => …')
    }
    this.#handler = handler
    this.#options = { ...options }
  }

  handleRequest(request: Request): TransportResponse<SyncByteStream> & Promise<TransportResponse> {
    checkHost(request.headers)
    const exchange = new HandlerExchange(request, this.#options)
    const answer: unknown = request.blocking
      ? exchange.runSync(this.#handler)
      : exchange.run(this.#handler)
    // Both interfaces share this method; `blocking` says which of them is in use.
    return answer as TransportResponse<SyncByteStream> & Promise<TransportResponse>
  }

  close(): void {
    // Nothing is kept between requests.
  }
}

/** One call of the handler: the request that it reads, and the response that it writes. */
class HandlerExchange implements ParserEvents, BodySource {
  readonly #request: Request
  readonly #raise: boolean
  readonly #parser = new ResponseParser(this, DEFAULT_MAX_HEADER_BYTES)
  readonly #socket: HandlerSocket
  readonly #incoming: IncomingMessage
  readonly #response: ServerResponse
  readonly #chunks: Uint8Array[] = []
  readonly #timer: Timer
  #head: ResponseHead | null = null
  #body: ResponseBody | null = null
  #trailers: Headers = new Headers()
  #complete = false
  #over = false
  #error: unknown
  #resolve: ((response: TransportResponse) => void) | null = null
  #reject: ((error: unknown) => void) | null = null

  constructor(request: Request, options: HandlerTransportOptions) {
    this.#request = request
    this.#raise = options.raiseHandlerErrors ?? true
    const [address, port] = options.clientAddress ?? ['127.0.0.1', 123]
    this.#socket = new HandlerSocket(address, port, request.url.protocol === 'https:')
    this.#socket.onBytes = (chunk) => this.#onBytes(chunk)
    this.#socket.on('close', () => this.#onClose())
    this.#socket.on('error', () => {})
    this.#incoming = incomingMessage(request, this.#socket as unknown as Socket)
    this.#response = new (nodeHttp().ServerResponse)(this.#incoming)
    this.#response.assignSocket(this.#socket as unknown as Socket)
    this.#response.on('error', () => {})
    this.#socket.on('drain', () => relayDrain(this.#response))
    const onTimeout = (ms: number): void => {
      this.#fail(new ReadTimeoutError(`the handler wrote nothing for ${ms} ms`, ms))
    }
    this.#timer = new Timer(onTimeout, { keepsAlive: true })
    this.#parser.reset(request.method)
  }

  run(handler: RequestHandler): Promise<TransportResponse> {
    const { signal } = this.#request
    signal?.throwIfAborted()
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      signal?.addEventListener('abort', this.#onAbort, { once: true })
      this.#timer.start((this.#request.timeouts ?? DEFAULT_TIMEOUTS).read)
      feedBody(this.#incoming, this.#request.body, (error) => this.#fail(error))
      try {
        const result = handler(this.#incoming, this.#response)
        Promise.resolve(result).catch((error: unknown) => this.#onHandlerError(error))
      } catch (error) {
        this.#onHandlerError(error)
      }
    })
  }

  runSync(handler: RequestHandler): TransportResponse<SyncByteStream> {
    const { body } = this.#request
    if (body !== null) this.#incoming.push(this.#request.readSync())
    this.#incoming.push(null)
    try {
      const result = handler(this.#incoming, this.#response)
      Promise.resolve(result).catch(() => {})
    } catch (error) {
      this.#onHandlerError(error)
    }
    if (this.#error !== undefined) throw this.#error
    if (!this.#complete) {
      this.#socket.destroy()
      throw new ClientStateError(
        'the handler did not end its response before it returned, and Client cannot wait for it; ' +
          'use AsyncClient',
      )
    }
    return this.#answer(this.#chunks) as TransportResponse<SyncByteStream>
  }

  onHead(head: ResponseHead): void {
    if (head.statusCode < 200) {
      this.#request.extensions.onInformation?.(head.statusCode, head.headers)
      return
    }
    this.#head = head
    this.#timer.stop()
    if (this.#resolve === null) return
    this.#body = new ResponseBody(this)
    this.#resolve(this.#answer(this.#body))
  }

  onContent(chunk: Uint8Array): void {
    this.#timer.stop()
    // The handler may reuse its buffer after the write.
    const copy = Buffer.from(chunk)
    if (this.#body === null) this.#chunks.push(copy)
    else this.#body.push(copy)
  }

  onComplete(trailers: Headers | null): void {
    for (const [name, value] of trailers?.raw ?? []) this.#trailers.append(name, value)
    this.#complete = true
    this.#settle()
    this.#body?.end()
    this.#socket.destroy()
  }

  waiting(): void {
    this.#timer.start((this.#request.timeouts ?? DEFAULT_TIMEOUTS).read)
  }

  pause(): void {
    this.#socket.holdWrites()
  }

  resume(): void {
    this.#socket.releaseWrites()
  }

  abandon(): void {
    this.#settle()
    this.#socket.destroy()
  }

  #onAbort = (): void => this.#fail(this.#request.signal!.reason)

  #answer(stream: ResponseBody | SyncByteStream): TransportResponse {
    const { statusCode, reasonPhrase, headers } = this.#head!
    return {
      statusCode,
      reasonPhrase,
      headers,
      httpVersion: 'HTTP/1.1',
      stream,
      trailers: this.#trailers,
    }
  }

  #onBytes(chunk: Buffer): void {
    if (this.#over) return
    try {
      this.#parser.feed(chunk)
    } catch (error) {
      this.#fail(error)
    }
  }

  #onClose(): void {
    this.#incoming.destroy()
    if (this.#over) return
    this.#fail(new RemoteProtocolError('the handler destroyed its response before the end'))
  }

  #onHandlerError(error: unknown): void {
    if (this.#raise || this.#head !== null) {
      this.#fail(error)
      return
    }
    this.#response.statusCode = 500
    this.#response.end('Internal Server Error')
  }

  #fail(error: unknown): void {
    if (this.#over) return
    this.#settle()
    this.#error = error
    if (this.#body !== null) this.#body.fail(error)
    else this.#reject?.(error)
    this.#socket.destroy()
  }

  #settle(): void {
    this.#over = true
    this.#timer.clear()
    this.#request.signal?.removeEventListener('abort', this.#onAbort)
  }
}

/** Emits `drain` to a handler whose `write()` returned false, as Node's HTTP server does. */
function relayDrain(response: ServerResponse): void {
  if (!response.writableNeedDrain) return
  const flag = Object.getOwnPropertySymbols(response).find(
    ({ description }) => description === 'kNeedDrain',
  )
  if (flag !== undefined) (response as unknown as Record<symbol, boolean>)[flag] = false
  response.emit('drain')
}

/** Loaded on demand: most programs that import this module use no handler. */
function nodeHttp(): typeof import('node:http') {
  return process.getBuiltinModule('node:http')
}

function incomingMessage(request: Request, socket: Socket): IncomingMessage {
  const incoming = new (nodeHttp().IncomingMessage)(socket)
  incoming.method = request.method
  incoming.url = request.extensions.target ?? request.url.pathname + request.url.search
  incoming.httpVersion = '1.1'
  incoming.httpVersionMajor = 1
  incoming.httpVersionMinor = 1
  const fields: [string, string][] = request.headers.raw
  if (!request.headers.has('host')) fields.unshift(['Host', request.url.host])
  incoming.rawHeaders = fields.flat()
  const headers: Record<string, string> = {}
  for (const [name, value] of fields) {
    const key = name.toLowerCase()
    const before = headers[key]
    headers[key] =
      before === undefined ? value : `${before}${key === 'cookie' ? '; ' : ', '}${value}`
  }
  incoming.headers = headers
  return incoming
}

/** Feeds `body` to the handler as it reads, with backpressure on the body's source. */
function feedBody(
  incoming: IncomingMessage,
  body: Body | null,
  onError: (error: unknown) => void,
): void {
  incoming.on('error', () => {})
  if (body === null || body.bytes !== null) {
    if (body?.bytes != null && body.bytes.length > 0) incoming.push(body.bytes)
    incoming.complete = true
    incoming.push(null)
    return
  }
  const upload = openUpload(body)
  let pulling = false
  // A flowing IncomingMessage calls _read() only once, so this pushes for as long as there is room.
  const pull = async (): Promise<void> => {
    if (pulling) return
    pulling = true
    try {
      for (let room = true; room && !incoming.destroyed; ) {
        const next = await upload.next()
        if (next.done === true) incoming.complete = true
        room = incoming.push(next.done === true ? null : next.value)
      }
    } catch (error) {
      onError(error)
      incoming.destroy(error as Error)
    } finally {
      pulling = false
    }
  }
  incoming._read = () => void pull()
  incoming.once('close', () => abandonChunks(upload))
}
