import { abandonChunks, isAsyncChunks, type Body } from '../../content/body.js'
import type { Timeouts } from '../../config.js'
import { ReadTimeoutError, RemoteProtocolError, WriteTimeoutError } from '../../errors.js'
import { Headers } from '../../headers.js'
import type { Request } from '../../request.js'
import type { PhaseClock } from '../../timings.js'
import type { TransportResponse } from '../base.js'
import type { FieldSection } from './hpack.js'
import { lengthMismatch } from '../http1/request-head.js'
import { MAX_INFORMATIONAL, tooManyInformational } from '../http1/response-parser.js'
import { CODE } from './frames.js'
import { contentLengthOf, parseHead, parseTrailers } from './head.js'
import { ResponseBody, type BodySource } from '../response-body.js'
import type { ReusableTimer, TimerPool } from '../reusable-timer.js'

/** Octets of one stream that may be under way; small windows make large content crawl. */
export const STREAM_WINDOW: number = 4 * 1024 * 1024
/** Larger bodies go out in slices, so that the write limit sees progress. */
const SLICE = 128 * 1024

/** What a stream asks of its connection. */
export interface StreamLink {
  readonly timers: TimerPool
  /** What the response says of the connection. */
  readonly info: Readonly<Record<string, unknown>>
  /** Sends as much of `chunk` from `at` as the windows and the socket take; how much, in octets. */
  sendData(stream: Http2Stream, chunk: Uint8Array, at: number): number
  /** Ends the request's side of the stream. */
  sendEnd(stream: Http2Stream): void
  /** Resolves when there may be room to send, or the connection has ended. */
  room(): Promise<void>
  /** So many octets were taken: the server may send as many more, on `stream` too unless it is over. */
  credit(octets: number, stream: Http2Stream | null): void
  /** Gives the stream up. */
  reset(stream: Http2Stream, code: number): void
  /** Both sides have ended: the stream is forgotten. */
  over(stream: Http2Stream): void
}

/** One exchange: a stream of an HTTP/2 connection. */
export class Http2Stream implements BodySource {
  readonly id: number
  readonly request: Request
  /** Octets that the server takes. */
  sendWindow: number
  /** Octets that the server may still send. */
  receiveWindow: number = STREAM_WINDOW
  /** Octets that were taken and of which the server was not told yet. */
  taken = 0
  readonly #link: StreamLink
  readonly #timeouts: Timeouts
  readonly #clock: PhaseClock
  readonly #resolve: (response: TransportResponse) => void
  readonly #reject: (error: unknown) => void
  readonly #readTimer: ReusableTimer
  #writeTimer: ReusableTimer | null = null
  #body: ResponseBody | null = null
  #trailers: Headers | null = null
  /** Octets of Content-Length that are still to come; null where it says nothing. */
  #expected: number | null = null
  #informational = 0
  #paused = false
  #unread = 0
  #sent = false
  #over = false
  #upload: Iterator<Uint8Array> | AsyncIterator<Uint8Array> | null = null

  constructor(
    id: number,
    request: Request,
    timeouts: Timeouts,
    clock: PhaseClock,
    sendWindow: number,
    link: StreamLink,
    resolve: (response: TransportResponse) => void,
    reject: (error: unknown) => void,
  ) {
    this.id = id
    this.request = request
    this.sendWindow = sendWindow
    this.#timeouts = timeouts
    this.#clock = clock
    this.#link = link
    this.#resolve = resolve
    this.#reject = reject
    this.#readTimer = link.timers.acquire(this.#onReadTimeout)
  }

  /** The head is on its way: sends the body. */
  begin(): void {
    const { signal, body } = this.request
    signal?.addEventListener('abort', this.#onAbort, { once: true })
    if (body === null) this.#sentAll()
    else void this.#send(body)
  }

  /** Ends the exchange with `error`; the server is told unless it has ended the stream itself. */
  fail(error: unknown, tell = true): void {
    if (this.#over) return
    this.#settle()
    if (tell) this.#link.reset(this, CODE.cancel)
    if (this.#body === null) this.#reject(error)
    else this.#body.fail(error)
  }

  // --- from the connection

  onFields(section: FieldSection, endStream: boolean): void {
    try {
      if (this.#body === null) this.#onHead(section, endStream)
      else this.#onTrailers(section, endStream)
    } catch (error) {
      this.fail(error)
      return
    }
    if (endStream) this.#onEnd()
  }

  onData(chunk: Uint8Array, length: number, endStream: boolean): void {
    const body = this.#body
    if (body === null) return this.fail(malformed('content before its head'))
    this.#readTimer.stop()
    if (this.#expected !== null && (this.#expected -= chunk.length) < 0) {
      return this.fail(malformed('more content than its Content-Length says'))
    }
    this.#unread += length
    if (chunk.length > 0) body.push(chunk)
    if (!this.#paused) this.#creditRead()
    if (endStream) this.#onEnd()
  }

  // --- from the body

  waiting(): void {
    if (!this.#over) this.#readTimer.start(this.#timeouts.read)
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#creditRead()
  }

  abandon(): void {
    if (this.#over) return
    this.#settle()
    this.#link.reset(this, CODE.cancel)
  }

  // ---

  readonly #onAbort = (): void => this.fail(this.request.signal!.reason)

  readonly #onReadTimeout = (ms: number): void => {
    this.fail(new ReadTimeoutError(`no octet of the response arrived for ${ms} ms`, ms))
  }

  #onHead(section: FieldSection, endStream: boolean): void {
    const { statusCode, headers } = parseHead(section)
    if (statusCode < 200) {
      if (endStream || statusCode === 101)
        throw malformed(`a head of status ${statusCode}, which cannot be`)
      if (++this.#informational > MAX_INFORMATIONAL) throw tooManyInformational()
      if (this.#sent) this.#readTimer.start(this.#timeouts.read)
      this.request.extensions.onInformation?.(statusCode, headers)
      return
    }
    this.#readTimer.stop()
    if (!this.#sent) this.#clock.lap('send')
    this.#clock.lap('wait')
    const bodiless = this.request.method === 'HEAD' || statusCode === 204 || statusCode === 304
    this.#expected = bodiless ? 0 : contentLengthOf(headers)
    this.#body = new ResponseBody(this)
    this.#trailers = new Headers()
    if (statusCode >= 300 && !this.#sent) this.#abandonUpload()
    this.#resolve({
      statusCode,
      reasonPhrase: undefined,
      httpVersion: 'HTTP/2',
      headers,
      stream: this.#body,
      trailers: this.#trailers,
      extensions: { ...this.#link.info, streamId: this.id },
      timings: this.#clock,
    })
  }

  #onTrailers(section: FieldSection, endStream: boolean): void {
    if (!endStream) throw malformed('trailers that do not end it')
    parseTrailers(section).visit((name, value) => this.#trailers!.append(name, value))
  }

  #onEnd(): void {
    if (this.#over) return
    if (this.#expected !== null && this.#expected !== 0) {
      return this.fail(malformed(`content that is cut short: ${this.#expected} octets are missing`))
    }
    if (this.#body === null) return this.fail(malformed('an end without a final head'))
    const sent = this.#sent
    this.#settle()
    if (sent) this.#link.over(this)
    else this.#link.reset(this, CODE.noError)
    this.#body.end()
  }

  #creditRead(): void {
    const octets = this.#unread
    this.#unread = 0
    if (octets > 0) this.#link.credit(octets, this.#over ? null : this)
  }

  // --- sending

  async #send(body: Body): Promise<void> {
    try {
      const whole = body.bytes !== null && body.bytes.length <= SLICE
      if (whole) await this.#sendChunk(body.bytes!)
      else if (!(await this.#sendStream(body))) return
      if (this.#over) return
      if (whole) this.request.extensions.onUpload?.(body.bytes!.length, body.bytes!.length)
      this.#link.sendEnd(this)
      this.#sentAll()
    } catch (error) {
      this.fail(error)
    }
  }

  /** False when the upload was given up half way. */
  async #sendStream(body: Body): Promise<boolean> {
    const source = body.bytes === null ? body.open() : slices(body.bytes)
    const iterator = isAsyncChunks(source)
      ? source[Symbol.asyncIterator]()
      : source[Symbol.iterator]()
    this.#upload = iterator
    const declared = this.request.headers.get('content-length')
    const expected = declared === null ? null : Number(declared)
    let sent = 0
    for (;;) {
      const next = await iterator.next()
      if (this.#upload === null || this.#over) return false
      if (next.done === true) break
      sent += next.value.length
      if (expected !== null && sent > expected) throw lengthMismatch(sent, expected)
      await this.#sendChunk(next.value)
      this.request.extensions.onUpload?.(sent, body.length)
    }
    this.#upload = null
    if (expected !== null && sent !== expected) throw lengthMismatch(sent, expected)
    return true
  }

  async #sendChunk(chunk: Uint8Array): Promise<void> {
    let waiting = false
    for (let at = 0; at < chunk.length && !this.#over; ) {
      const taken = this.#link.sendData(this, chunk, at)
      at += taken
      if (taken === 0) {
        // The room may go to others: the limit runs until some of ours is taken.
        if (!waiting) this.#awaitingRoom()
        waiting = true
        await this.#link.room()
      } else if (waiting) {
        waiting = false
        this.#writeTimer?.stop()
      }
    }
  }

  #awaitingRoom(): void {
    this.#writeTimer ??= this.#link.timers.acquire((ms) => {
      this.fail(new WriteTimeoutError(`the server took nothing of the request for ${ms} ms`, ms))
    })
    this.#writeTimer.start(this.#timeouts.write)
  }

  #sentAll(): void {
    this.#writeTimer?.stop()
    this.#sent = true
    if (this.#body !== null || this.#over) return
    this.#clock.lap('send')
    this.#readTimer.start(this.#timeouts.read)
  }

  #settle(): void {
    this.#over = true
    this.#link.timers.release(this.#readTimer)
    if (this.#writeTimer !== null) this.#link.timers.release(this.#writeTimer)
    this.#writeTimer = null
    this.request.signal?.removeEventListener('abort', this.#onAbort)
    this.#abandonUpload()
    this.#creditRead()
  }

  #abandonUpload(): void {
    const upload = this.#upload
    this.#upload = null
    abandonChunks(upload)
  }
}

function* slices(bytes: Uint8Array): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += SLICE) yield bytes.subarray(at, at + SLICE)
}

function malformed(what: string): RemoteProtocolError {
  return new RemoteProtocolError(`the response is malformed: it has ${what}`)
}
