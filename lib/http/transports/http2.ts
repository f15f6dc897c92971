import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { isAsyncChunks, type Body } from '../body.js'
import { MAX_TIMER_MS, type Timeouts } from '../config.js'
import {
  LocalProtocolError,
  ReadError,
  ReadTimeoutError,
  RemoteProtocolError,
  WriteTimeoutError,
} from '../errors.js'
import { Headers } from '../headers.js'
import type { Request } from '../request.js'
import type { TransportResponse } from './base.js'
import { IncomingBody, type BodySource } from './incoming-body.js'
import { TimerStock, type PhaseTimer } from './phase-timer.js'

/** Fields of one connection, which HTTP/2 has no place for (RFC 9113, section 8.2.2). */
const CONNECTION_FIELDS = new Set([
  'connection',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
])
/** Octets of one stream that may be under way; small windows make large content crawl. */
const STREAM_WINDOW = 4 * 1024 * 1024
const SESSION_WINDOW = 16 * 1024 * 1024
/** Larger bodies go out in slices, so that the write limit sees progress. */
const SLICE = 128 * 1024
/** MB that Node lets one session hold; more than the window of the session. */
const SESSION_MEMORY = 64
/** Streams at a time until the server has said how many it takes. */
const STREAMS_AT_FIRST = 100

/** Who keeps the connection and is told what becomes of it. */
export interface Http2Owner {
  /** A stream is over: there is room for another. */
  onRoom(connection: Http2Connection): void
  /** The connection takes no more streams; called once. */
  onClose(connection: Http2Connection): void
}

/** What an {@link Http2Connection} is told. */
export interface Http2Options {
  /** How long it is kept without a stream; null for ever. */
  readonly idleMs: number | null
  readonly maxHeaderBytes: number
  /** How long it may be silent before it is asked whether it lives; null for ever. */
  readonly pingMs: number | null
}

/** An error of a stream that the server has not looked at, so that it may be sent again. */
export class RefusedStreamError extends RemoteProtocolError {}

/** One HTTP/2 connection, carrying many exchanges at a time (RFC 9113). */
export class Http2Connection {
  readonly protocol = 'HTTP/2'
  readonly keepAliveHint = null
  idleSince: number = performance.now()
  exchanges = 0
  readonly #session: ClientHttp2Session
  readonly #owner: Http2Owner
  readonly #idleMs: number | null
  readonly #pingMs: number | null
  readonly #socket: Socket
  readonly #info: Readonly<Record<string, unknown>>
  readonly #streams = new Set<Http2Exchange>()
  readonly #timers = new TimerStock()
  #referenced = true
  #idleTimer: NodeJS.Timeout | null = null
  #pingTimer: NodeJS.Timeout | null = null
  #pinged = false
  #octetsHeard = 0
  #closed = false
  #lost = false

  constructor(socket: Socket, origin: string, owner: Http2Owner, options: Http2Options) {
    this.#owner = owner
    this.#socket = socket
    this.#idleMs = options.idleMs
    this.#pingMs = options.pingMs
    for (const event of ['end', 'error', 'close']) socket.on(event, () => this.#onLost())
    const { remoteAddress, remotePort, localAddress, localPort } = socket
    this.#info = { remoteAddress, remotePort, localAddress, localPort }
    this.#session = connect(origin, {
      createConnection: () => socket,
      maxSessionMemory: SESSION_MEMORY,
      settings: {
        enablePush: false,
        initialWindowSize: STREAM_WINDOW,
        maxHeaderListSize: options.maxHeaderBytes,
      },
    })
    // Without a listener an error of the session would end the process.
    this.#session.on('error', () => this.#retire())
    this.#session.on('goaway', () => this.#retire())
    this.#session.on('close', () => {
      this.#retire()
      if (this.#pingTimer !== null) clearTimeout(this.#pingTimer)
    })
    this.#session.on('connect', () => this.#session.setLocalWindowSize(SESSION_WINDOW))
    if (this.#pingMs !== null) {
      this.#pingTimer = setTimeout(() => this.#checkHealth(), Math.min(this.#pingMs, MAX_TIMER_MS)).unref()
    }
  }

  /** Whether it was cut off or found dead, so that a safe request without an answer may be sent again. */
  get lost(): boolean {
    return this.#lost
  }

  /** Whether it takes one more stream now. */
  get usable(): boolean {
    if (this.#closed || this.#session.closed || this.#session.destroyed) return false
    const most = this.#session.remoteSettings?.maxConcurrentStreams ?? STREAMS_AT_FIRST
    return this.#streams.size < Math.min(most, 2 ** 31)
  }

  /** Sends `request` and resolves with the head of its answer. */
  request(request: Request, timeouts: Timeouts, target: string): Promise<TransportResponse> {
    if (request.signal?.aborted === true) {
      if (this.#streams.size === 0) this.#idle()
      this.#owner.onRoom(this)
      return Promise.reject(request.signal.reason as Error)
    }
    this.exchanges++
    this.#stopIdling()
    return new Promise((resolve, reject) => {
      let exchange: Http2Exchange
      try {
        const stream = this.#session.request(encodeHead(request, target), { endStream: request.body === null })
        exchange = new Http2Exchange(stream, request, timeouts, this.#info, this.#timers, resolve, reject)
      } catch (cause) {
        this.#retire()
        reject(refused(`the HTTP/2 connection takes no more requests: ${(cause as Error).message}`, cause))
        return
      }
      this.#streams.add(exchange)
      exchange.onEnd = () => {
        this.#streams.delete(exchange)
        if (this.#streams.size === 0) this.#idle()
        this.#owner.onRoom(this)
      }
      exchange.begin()
    })
  }

  /** Ends whatever is going on with `error`, and closes. */
  destroy(error?: unknown): void {
    for (const exchange of [...this.#streams]) {
      exchange.fail(error ?? new RemoteProtocolError('the connection was closed before the answer was complete'))
    }
    this.#retire()
    this.#session.destroy()
  }

  #onLost(): void {
    this.#lost = true
    if (this.#session !== undefined) this.#retire()
  }

  /**
   * Asks a connection that was silent for `pingMs` whether it lives, and gives it up when it is
   * silent as long again: neither an idle one nor a stream without a read limit would notice.
   */
  #checkHealth(): void {
    if (this.#session.destroyed) return
    const heard = this.#socket.bytesRead
    if (heard !== this.#octetsHeard) {
      this.#octetsHeard = heard
      this.#pinged = false
    } else if (this.#pinged) {
      this.#lost = true
      this.destroy(new ReadError(`the server did not answer a ping within ${this.#pingMs} ms`))
      return
    } else {
      this.#pinged = true
      this.#session.ping(() => {})
    }
    this.#pingTimer?.refresh()
  }

  /** No new streams; those that are open go on to their end. */
  #retire(): void {
    if (this.#closed) return
    this.#closed = true
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer)
    this.#timers.clear()
    if (!this.#session.closed && !this.#session.destroyed) this.#session.close()
    this.#owner.onClose(this)
  }

  #idle(): void {
    this.idleSince = performance.now()
    if (this.#closed || this.#session.destroyed) return
    this.#session.unref()
    this.#referenced = false
    if (this.#idleMs === null) return
    this.#idleTimer = setTimeout(() => this.#retire(), Math.min(this.#idleMs, MAX_TIMER_MS)).unref()
  }

  #stopIdling(): void {
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer)
    this.#idleTimer = null
    if (this.#referenced || this.#session.destroyed) return
    this.#referenced = true
    this.#session.ref()
  }
}

/** One stream. */
class Http2Exchange implements BodySource {
  onEnd: () => void = () => {}
  readonly #stream: ClientHttp2Stream
  readonly #request: Request
  readonly #timeouts: Timeouts
  readonly #info: Readonly<Record<string, unknown>>
  readonly #resolve: (response: TransportResponse) => void
  readonly #reject: (error: unknown) => void
  readonly #timers: TimerStock
  readonly #readTimer: PhaseTimer
  #writeTimer: PhaseTimer | null = null
  readonly #trailers = new Headers()
  #body: IncomingBody | null = null
  #sent = false
  #over = false
  #upload: Iterator<Uint8Array> | AsyncIterator<Uint8Array> | null = null

  constructor(
    stream: ClientHttp2Stream,
    request: Request,
    timeouts: Timeouts,
    info: Readonly<Record<string, unknown>>,
    timers: TimerStock,
    resolve: (response: TransportResponse) => void,
    reject: (error: unknown) => void,
  ) {
    this.#stream = stream
    this.#request = request
    this.#timeouts = timeouts
    this.#info = info
    this.#resolve = resolve
    this.#reject = reject
    this.#timers = timers
    this.#readTimer = timers.take((ms) => {
      this.fail(new ReadTimeoutError(`no octet of the response arrived for ${ms} ms`, ms))
    })
    stream.on('response', (headers, _flags, raw?: unknown) => this.#onResponse(headers, raw))
    stream.on('headers', (headers, _flags, raw?: unknown) => {
      this.#request.extensions.onInformation?.(Number(headers[':status']), fieldsOf(headers, raw))
    })
    stream.on('trailers', (headers, _flags) => {
      for (const [name, value] of fieldsOf(headers, undefined).raw) this.#trailers.append(name, value)
    })
    stream.on('error', (error) => this.#onError(error))
    stream.on('close', () => this.#onClose())
  }

  begin(): void {
    const { signal, body } = this.#request
    signal?.addEventListener('abort', this.#onAbort, { once: true })
    if (body === null) this.#sentAll()
    else void this.#send(body)
  }

  fail(error: unknown): void {
    if (this.#over) return
    this.#settle()
    if (this.#body === null) this.#reject(error)
    else this.#body.fail(error)
    this.#stream.close(constants.NGHTTP2_CANCEL)
  }

  waiting(): void {
    if (!this.#over) this.#readTimer.start(this.#timeouts.read)
  }

  pause(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  abandon(): void {
    if (this.#over) return
    this.#settle()
    this.#stream.close(constants.NGHTTP2_CANCEL)
  }

  readonly #onAbort = (): void => this.fail(this.#request.signal!.reason)

  #onResponse(headers: IncomingFields, raw: unknown): void {
    if (this.#over) return
    this.#readTimer.stop()
    const body = new IncomingBody(this)
    this.#body = body
    // Not before: Node tells of the head a tick later, and content must not overtake it.
    this.#stream.on('data', (chunk: Buffer) => {
      // Its timer may serve another stream by now.
      if (this.#over) return
      this.#readTimer.stop()
      body.push(chunk)
    })
    this.#stream.on('end', () => this.#complete())
    const statusCode = Number(headers[':status'])
    if (statusCode >= 300 && !this.#sent) this.#abandonUpload()
    this.#resolve({
      statusCode,
      reasonPhrase: undefined,
      httpVersion: 'HTTP/2',
      headers: fieldsOf(headers, raw),
      stream: body,
      trailers: this.#trailers,
      extensions: { ...this.#info, streamId: this.#stream.id },
    })
  }

  #complete(): void {
    if (this.#over) return
    const body = this.#body
    this.#settle()
    body!.end()
    if (!this.#sent) this.#stream.close(constants.NGHTTP2_NO_ERROR)
  }

  #onError(error: NodeJS.ErrnoException): void {
    this.fail(streamError(this.#stream.rstCode ?? 0, error))
  }

  #onClose(): void {
    if (this.#over) return
    const code = this.#stream.rstCode ?? 0
    if (code === constants.NGHTTP2_NO_ERROR && this.#body !== null && this.#stream.readableEnded) this.#complete()
    else this.fail(streamError(code, undefined))
  }

  async #send(body: Body): Promise<void> {
    try {
      if (body.bytes === null || body.bytes.length > SLICE) {
        await this.#sendStream(body)
        return
      }
      this.#stream.end(body.bytes)
      this.#request.extensions.onUpload?.(body.bytes.length, body.bytes.length)
      this.#sentAll()
    } catch (error) {
      this.fail(error)
    }
  }

  async #sendStream(body: Body): Promise<void> {
    const source = body.bytes === null ? body.open() : slices(body.bytes)
    const iterator = isAsyncChunks(source) ? source[Symbol.asyncIterator]() : source[Symbol.iterator]()
    this.#upload = iterator
    const declared = this.#request.headers.get('content-length')
    const expected = declared === null ? null : Number(declared)
    let sent = 0
    for (;;) {
      const next = await iterator.next()
      if (this.#upload === null || this.#over) return
      if (next.done === true) break
      sent += next.value.length
      if (expected !== null && sent > expected) throw lengthMismatch(sent, expected)
      if (!this.#stream.write(next.value)) await this.#drain()
      this.#request.extensions.onUpload?.(sent, body.length)
    }
    this.#upload = null
    if (expected !== null && sent !== expected) throw lengthMismatch(sent, expected)
    this.#stream.end()
    this.#sentAll()
  }

  async #drain(): Promise<void> {
    this.#writeTimer ??= this.#timers.take((ms) => {
      this.fail(new WriteTimeoutError(`the server took nothing of the request for ${ms} ms`, ms))
    })
    this.#writeTimer.start(this.#timeouts.write)
    await new Promise<void>((resolve) => {
      const go = (): void => {
        this.#stream.removeListener('drain', go)
        this.#stream.removeListener('close', go)
        resolve()
      }
      this.#stream.once('drain', go)
      this.#stream.once('close', go)
    })
    this.#writeTimer?.stop()
  }

  #sentAll(): void {
    this.#writeTimer?.stop()
    this.#sent = true
    if (this.#body === null && !this.#over) this.#readTimer.start(this.#timeouts.read)
  }

  #settle(): void {
    this.#over = true
    this.#timers.giveBack(this.#readTimer)
    if (this.#writeTimer !== null) this.#timers.giveBack(this.#writeTimer)
    this.#writeTimer = null
    this.#request.signal?.removeEventListener('abort', this.#onAbort)
    this.#abandonUpload()
    this.onEnd()
  }

  #abandonUpload(): void {
    const upload = this.#upload
    this.#upload = null
    if (upload?.return !== undefined) void Promise.resolve(upload.return()).catch(() => {})
  }
}

function* slices(bytes: Uint8Array): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += SLICE) yield bytes.subarray(at, at + SLICE)
}

type IncomingFields = Readonly<Record<string, string | number | string[] | undefined>>

function fieldsOf(headers: IncomingFields, raw: unknown): Headers {
  const flat: string[] = []
  if (Array.isArray(raw)) {
    for (let i = 0; i < raw.length; i += 2) {
      const name = String(raw[i])
      if (!name.startsWith(':')) flat.push(name, String(raw[i + 1]))
    }
  } else {
    for (const [name, value] of Object.entries(headers)) {
      if (name.startsWith(':') || value === undefined) continue
      for (const one of Array.isArray(value) ? value : [String(value)]) flat.push(name, one)
    }
  }
  return Headers.fromWire(flat)
}

function encodeHead(request: Request, target: string): Record<string, string | string[]> {
  const { headers, url } = request
  const fields: Record<string, string | string[]> = {
    ':method': request.method,
    ':scheme': url.protocol.slice(0, -1),
    ':authority': headers.get('host') ?? url.host,
    ':path': target,
  }
  const named = (headers.get('connection') ?? '').toLowerCase().split(',').map((name) => name.trim())
  for (const [name, value] of headers) {
    if (CONNECTION_FIELDS.has(name) || named.includes(name)) {
      if (name === 'te' && value.toLowerCase() === 'trailers') fields['te'] = 'trailers'
      continue
    }
    const before = fields[name]
    fields[name] = before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value]
  }
  return fields
}

function streamError(code: number, cause: Error | undefined): Error {
  const options = cause === undefined ? {} : { cause }
  if (code === constants.NGHTTP2_REFUSED_STREAM) return refused('the server refused the stream', cause)
  const text = (cause as NodeJS.ErrnoException | undefined)?.code
  if (text === 'ECONNRESET' || text === 'EPIPE') {
    return new ReadError(`the connection failed while the response was awaited or read (${text})`, options)
  }
  const why = cause?.message ?? `code ${code}`
  return new RemoteProtocolError(`the server reset the HTTP/2 stream (${why})`, options)
}

function refused(message: string, cause: unknown): RefusedStreamError {
  return new RefusedStreamError(message, { cause })
}

function lengthMismatch(sent: number, expected: number): LocalProtocolError {
  return new LocalProtocolError(
    sent > expected
      ? `the request body is longer than its Content-Length of ${expected}`
      : `the request body has ${sent} octets, but its Content-Length says ${expected}`,
  )
}
