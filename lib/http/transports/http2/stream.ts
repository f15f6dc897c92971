import { abandonChunks, type Body } from '../../content/body.js'
import { RemoteProtocolError } from '../../errors.js'
import { Headers } from '../../headers.js'
import type { Request } from '../../request.js'
import { Timer } from '../../timer-wheel.js'
import type { ExchangeCall } from '../exchange-call.js'
import {
  lengthMismatch,
  MAX_INFORMATIONAL,
  readTimeout,
  tooManyInformational,
  writeTimeout,
} from '../failures.js'
import { ReceivedResponse } from '../base.js'
import { ResponseBody, type BodySource } from '../response-body.js'
import { openUpload, Turns, type Upload } from '../upload.js'
import { EMPTY_WINDOW_UPDATE, ReceiveWindow, STREAM_WINDOW } from './flow-control.js'
import { CODE, MAX_WINDOW, windowTooLarge } from './frames.js'
import { contentLengthOf, parseHead, parseTrailers } from './head.js'
import type { FieldSection } from './hpack.js'

/** Bodies up to this size are sent as one chunk. */
const UPLOAD_SLICE_BYTES = 128 * 1024

/** The connection, as its streams use it. */
export interface StreamLink {
  /** Whether unread content has used up the window of the connection. */
  readonly held: boolean
  /** The connection's part of a response's `extensions`. */
  readonly info: Readonly<Record<string, unknown>>
  /** Sends as many bytes of `chunk` from `at` as windows and socket allow; returns how many. */
  sendData(stream: Http2Stream, chunk: Uint8Array, at: number): number
  /** Ends the request's side of the stream. */
  sendEnd(stream: Http2Stream): void
  /** Resolves when there may be room to send, or the connection has ended. */
  waitForRoom(): Promise<void>
  /** Widens the windows by bytes that the reader took; `stream` is null once it is over. */
  consumed(bytes: number, stream: Http2Stream | null): void
  /** Ends the stream before its end, with an error code for the server. */
  reset(stream: Http2Stream, code: number): void
  /** Forgets a stream that both sides have ended. */
  finished(stream: Http2Stream): void
}

/** One exchange: a stream of an HTTP/2 connection. */
export class Http2Stream implements BodySource {
  readonly id: number
  readonly request: Request
  /** Bytes that the server allows us to send. */
  sendWindow: number
  readonly receiveWindow: ReceiveWindow = new ReceiveWindow(STREAM_WINDOW)
  readonly #link: StreamLink
  readonly #call: ExchangeCall
  readonly #readTimer = new Timer((ms) => this.#onReadTimeout(ms))
  #writeTimer: Timer | null = null
  #body: ResponseBody | null = null
  #trailers: Headers | null = null
  /** Bytes of Content-Length still to come; null without that field. */
  #expected: number | null = null
  #informational = 0
  #paused = false
  /** Bytes received and not yet counted as consumed. */
  #unread = 0
  /** Whether the whole request was sent. */
  #sent = false
  #over = false
  #upload: Upload | null = null
  #uploadStopped = false

  constructor(id: number, call: ExchangeCall, sendWindow: number, link: StreamLink) {
    this.id = id
    this.request = call.request
    this.sendWindow = sendWindow
    this.#call = call
    this.#link = link
  }

  /** Sends the body, once the head was written. */
  begin(): void {
    const { signal, body } = this.request
    signal?.addEventListener('abort', this.#onAbort, { once: true })
    if (body === null) this.#onSent()
    else void this.#send(body)
  }

  /** Whether the request was not sent completely, and no head of a response has arrived. */
  get unanswered(): boolean {
    return !this.#sent && this.#body === null
  }

  /** Sends no more: the server has answered without waiting for the rest, or cannot be reached. */
  stopUpload(): void {
    if (this.#sent || this.#over) return
    this.#uploadStopped = true
    this.#writeTimer?.stop()
    this.#abandonUpload()
    if (this.#body === null) this.#readTimer.start(this.#call.timeouts.read)
  }

  /**
   * Ends the exchange with `error`. `code` is for the server, null when it has ended the stream; a
   * malformed response is a protocol error (RFC 9113, section 8.1.1).
   */
  fail(error: unknown, code: number | null = codeOf(error)): void {
    if (this.#over) return
    this.#settle()
    if (code !== null) this.#link.reset(this, code)
    if (this.#body === null) this.#call.reject(error)
    else this.#body.fail(error)
  }

  // --- called by the connection

  /** Takes a WINDOW_UPDATE, of which an invalid one ends this stream only. */
  widen(change: number): void {
    if (change === 0) return this.fail(new RemoteProtocolError(EMPTY_WINDOW_UPDATE))
    if (this.sendWindow + change > MAX_WINDOW) {
      const { message, code } = windowTooLarge()
      return this.fail(new RemoteProtocolError(message), code)
    }
    this.sendWindow += change
  }

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
    if (body === null) return this.fail(malformed('content before the head'))
    this.#readTimer.stop()
    if (this.#expected !== null && (this.#expected -= chunk.length) < 0) {
      return this.fail(malformed('more content than its Content-Length'))
    }
    this.#unread += length
    if (chunk.length > 0) body.push(chunk)
    if (!this.#paused) this.#reportConsumed()
    if (endStream) this.#onEnd()
  }

  // --- called by the response body

  waiting(): void {
    if (!this.#over) this.#readTimer.start(this.#call.timeouts.read)
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#reportConsumed()
  }

  abandon(): void {
    if (this.#over) return
    this.#settle()
    this.#link.reset(this, CODE.cancel)
  }

  // --- receiving

  readonly #onAbort = (): void => this.fail(this.request.signal!.reason)

  #onReadTimeout(ms: number): void {
    // Unread content of other streams keeps the server from sending: that is not its silence.
    if (this.#link.held) this.#readTimer.start(ms)
    else this.fail(readTimeout(ms))
  }

  #onHead(section: FieldSection, endStream: boolean): void {
    const { statusCode, headers } = parseHead(section)
    if (statusCode < 200) {
      if (endStream || statusCode === 101)
        throw malformed(`status ${statusCode} where a final status is required`)
      if (++this.#informational > MAX_INFORMATIONAL) throw tooManyInformational()
      if (this.#sent) this.#readTimer.start(this.#call.timeouts.read)
      this.request.extensions.onInformation?.(statusCode, headers)
      return
    }
    this.#readTimer.stop()
    if (!this.#sent) this.#call.clock.lap('send')
    this.#call.clock.lap('wait')
    const bodiless = this.request.method === 'HEAD' || statusCode === 204 || statusCode === 304
    this.#expected = bodiless ? 0 : contentLengthOf(headers)
    this.#body = new ResponseBody(this)
    this.#trailers = new Headers()
    if (statusCode >= 300) this.stopUpload()
    this.#call.resolve(
      new ReceivedResponse({
        statusCode,
        reasonPhrase: undefined,
        httpVersion: 'HTTP/2',
        headers,
        stream: this.#body,
        trailers: this.#trailers,
        extensions: { ...this.#link.info, streamId: this.id },
        timings: this.#call.clock,
      }),
    )
  }

  #onTrailers(section: FieldSection, endStream: boolean): void {
    if (!endStream) throw malformed('trailers without the END_STREAM flag')
    parseTrailers(section).visit((name, value) => this.#trailers!.append(name, value))
  }

  #onEnd(): void {
    if (this.#over) return
    if (this.#expected !== null && this.#expected !== 0) {
      return this.fail(malformed(`incomplete content: ${this.#expected} bytes are missing`))
    }
    if (this.#body === null) return this.fail(malformed('no final head'))
    const sent = this.#sent
    this.#settle()
    if (sent) this.#link.finished(this)
    else this.#link.reset(this, CODE.noError)
    this.#body.end()
  }

  #reportConsumed(): void {
    const bytes = this.#unread
    this.#unread = 0
    if (bytes > 0) this.#link.consumed(bytes, this.#over ? null : this)
  }

  // --- sending

  async #send(body: Body): Promise<void> {
    try {
      const whole = body.bytes !== null && body.bytes.length <= UPLOAD_SLICE_BYTES
      if (whole) await this.#sendChunk(body.bytes!)
      else if (!(await this.#sendStream(body))) return
      if (this.#over || this.#uploadStopped) return
      if (whole) this.request.extensions.onUpload?.(body.bytes!.length, body.bytes!.length)
      this.#link.sendEnd(this)
      this.#onSent()
    } catch (error) {
      this.fail(error)
    }
  }

  /** Sends the body; false when the upload was abandoned before its end. */
  async #sendStream(body: Body): Promise<boolean> {
    const upload = openUpload(body, UPLOAD_SLICE_BYTES)
    this.#upload = upload
    const declared = this.request.headers.get('content-length')
    const expected = declared === null ? null : Number(declared)
    const turns = new Turns()
    let sent = 0
    for (;;) {
      const turn = turns.next()
      if (turn !== null) await turn
      if (this.#upload === null) return false
      const next = await upload.next()
      if (this.#upload === null) return false
      if (next.done === true) break
      sent += next.value.length
      if (expected !== null && sent > expected) throw lengthMismatch(sent, expected)
      await this.#sendChunk(next.value)
      if (this.#uploadStopped) return false
      this.request.extensions.onUpload?.(sent, body.length)
    }
    this.#upload = null
    if (expected !== null && sent !== expected) throw lengthMismatch(sent, expected)
    return true
  }

  async #sendChunk(chunk: Uint8Array): Promise<void> {
    let waiting = false
    for (let at = 0; at < chunk.length && !this.#over && !this.#uploadStopped; ) {
      const taken = this.#link.sendData(this, chunk, at)
      at += taken
      if (taken === 0) {
        // Other streams may take the room: the timeout runs until this one sends something.
        if (!waiting) this.#startWriteTimer()
        waiting = true
        await this.#link.waitForRoom()
      } else if (waiting) {
        waiting = false
        this.#writeTimer?.stop()
      }
    }
  }

  #startWriteTimer(): void {
    this.#writeTimer ??= new Timer((ms) => this.#onWriteTimeout(ms))
    this.#writeTimer.start(this.#call.timeouts.write)
  }

  #onWriteTimeout(ms: number): void {
    // The server may wait until this reader takes more: that is not its silence.
    if (this.#paused || this.#link.held) this.#writeTimer!.start(ms)
    else this.fail(writeTimeout(ms))
  }

  #onSent(): void {
    this.#writeTimer?.stop()
    this.#sent = true
    if (this.#body !== null || this.#over) return
    this.#call.clock.lap('send')
    this.#readTimer.start(this.#call.timeouts.read)
  }

  // --- the end of the exchange

  #settle(): void {
    this.#over = true
    this.#readTimer.clear()
    this.#writeTimer?.clear()
    this.request.signal?.removeEventListener('abort', this.#onAbort)
    this.#abandonUpload()
    this.#reportConsumed()
  }

  #abandonUpload(): void {
    const upload = this.#upload
    this.#upload = null
    abandonChunks(upload)
  }
}

function codeOf(error: unknown): number {
  return error instanceof RemoteProtocolError ? CODE.protocolError : CODE.cancel
}

function malformed(what: string): RemoteProtocolError {
  return new RemoteProtocolError(`the response is malformed: it has ${what}`)
}
