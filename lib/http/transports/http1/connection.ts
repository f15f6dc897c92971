import type { Socket } from 'node:net'
import type { Body } from '../../content/body.js'
import type { Timeouts } from '../../config.js'
import { RemoteProtocolError } from '../../errors.js'
import { Headers } from '../../headers.js'
import type { Request } from '../../request.js'
import { Timer, timerWheel } from '../../timer-wheel.js'
import type { PhaseClock } from '../../timings.js'
import { ReceivedResponse, type TransportResponse } from '../base.js'
import { addressesOf } from '../connect.js'
import {
  closedEarly,
  connectionFailed,
  lengthMismatch,
  readTimeout,
  sendFailed,
  writeTimeout,
} from '../failures.js'
import { hasMember } from '../../field-values.js'
import { checkFraming } from '../request-checks.js'
import { Http1Exchange } from './exchange.js'
import { encodeHead, type WireOptions } from './request-head.js'
import { ResponseParser, type ParserEvents, type ResponseHead } from './response-parser.js'
import { ResponseBody, type BodySource } from '../response-body.js'
import { openUpload, Turns } from '../upload.js'
import { outliveWriteFailures } from '../write-failures.js'

/** Bodies up to this size are written together with the head. */
const MAX_INLINE_BODY_BYTES = 64 * 1024
/** The end of a chunked body without trailers. */
const LAST_CHUNK = '0\r\n\r\n'

/** Keeps connections for reuse; the pool, through `HttpTransport`. */
export interface ConnectionOwner {
  /** The exchange is over and the connection can carry another. */
  onIdle(connection: Http1Connection): void
  /** The connection is closed; called once. */
  onClose(connection: Http1Connection): void
}

/**
 * One HTTP/1.1 connection, carrying one exchange after another (RFC 9112).
 *
 * 1. It is idle or has exactly one exchange; bytes that arrive while it is idle close it.
 * 2. It becomes idle again only when request and response were transferred completely, both sides
 *    keep it alive, and no bytes are left over. In every other case it is destroyed.
 * 3. A response takes precedence over a failure to send: what has arrived is read first.
 * 4. However an exchange ends, its timers are stopped and its abort listener is removed.
 */
export class Http1Connection implements ParserEvents, BodySource {
  readonly protocol = 'HTTP/1.1'
  readonly socket: Socket
  /** Exchanges started; more than one means that the connection was reused. */
  exchanges = 0
  /** `performance.now()` when it last became idle. */
  idleSince = 0
  /** The server's own idle timeout in ms, from `Keep-Alive: timeout=…`. */
  keepAliveHint: number | null = null
  /** Whether any byte of the current response has arrived. */
  answered = false
  readonly #owner: ConnectionOwner
  readonly #parser: ResponseParser
  readonly #readTimer: Timer
  readonly #writeTimer: Timer
  readonly #info: Readonly<Record<string, unknown>>
  #exchange: Http1Exchange | null = null
  #drained: (() => void) | null = null
  /** Why nothing more can be sent. */
  #writeFailure: NodeJS.ErrnoException | null = null
  /** Whether the reader of the response is too slow. */
  #paused = false
  #closed = false

  constructor(socket: Socket, owner: ConnectionOwner, maxHeaderBytes: number) {
    this.socket = socket
    this.#owner = owner
    this.#parser = new ResponseParser(this, maxHeaderBytes)
    this.#readTimer = new Timer((ms) => this.destroy(readTimeout(ms)))
    this.#writeTimer = new Timer((ms) => this.#onWriteTimeout(ms))
    this.#info = addressesOf(socket)
    socket.setNoDelay(true)
    outliveWriteFailures(socket, (error) => this.#onWriteFailure(error))
    socket.on('data', (chunk: Buffer) => this.#onData(chunk))
    // A proxy handshake leaves the socket paused.
    socket.resume()
    socket.on('end', () => this.#onEnd())
    socket.on('error', (error: NodeJS.ErrnoException) => this.#onError(error))
    socket.on('drain', () => this.#onDrain())
    socket.on('close', () => this.#onClose())
  }

  /** Whether it can take a request now: open, idle, and with no bytes unread. */
  get usable(): boolean {
    const { socket } = this
    return (
      !this.#closed &&
      this.#exchange === null &&
      !socket.destroyed &&
      socket.writable &&
      socket.readable &&
      socket.readableLength === 0
    )
  }

  /** Sends `request` and resolves once the head of its response has arrived. */
  request(
    request: Request,
    timeouts: Timeouts,
    wire: WireOptions,
    clock: PhaseClock,
  ): Promise<TransportResponse> {
    return new Promise((resolve, reject) => {
      const exchange = new Http1Exchange({ request, timeouts, clock, resolve, reject })
      let head: string
      try {
        // The signal may have aborted while the caller waited for this connection.
        request.signal?.throwIfAborted()
        checkFraming(request)
        head = encodeHead(request, wire)
      } catch (error) {
        // Nothing was sent, so the connection can be reused.
        this.#goIdle()
        reject(error as Error)
        return
      }
      this.#exchange = exchange
      this.exchanges++
      this.answered = false
      this.socket.ref()
      this.#parser.reset(request.method)
      const { signal } = request
      if (signal !== null) {
        exchange.onAbort = () => this.destroy(signal.reason)
        signal.addEventListener('abort', exchange.onAbort, { once: true })
      }
      try {
        this.#send(exchange, head)
      } catch (error) {
        this.destroy(error)
      }
    })
  }

  /** Fails the current exchange, if any, with `error` and closes the socket. */
  destroy(error?: unknown): void {
    const exchange = this.#exchange
    this.#exchange = null
    if (exchange !== null) {
      this.#detach(exchange)
      exchange.fail(error ?? closedEarly())
    }
    this.socket.destroy()
    this.#onClose()
  }

  // --- called by the parser

  onHead(head: ResponseHead): void {
    const exchange = this.#exchange!
    if (head.statusCode === 101) {
      throw new RemoteProtocolError('the server switched protocols (101), which was not requested')
    }
    if (head.statusCode < 200) {
      exchange.onInformation(head)
      return
    }
    const { clock } = exchange.call
    if (!exchange.sent) clock.lap('send')
    clock.lap('wait')
    exchange.head = head
    exchange.continueUpload()
    if (head.statusCode >= 300) this.#stopUpload(exchange)
    this.keepAliveHint = keepAliveTimeout(head.headers)
    const body = new ResponseBody(this)
    exchange.body = body
    this.#readTimer.stop()
    exchange.trailers = head.contentLength === null ? new Headers() : undefined
    exchange.call.resolve(
      new ReceivedResponse({
        statusCode: head.statusCode,
        reasonPhrase: head.reasonPhrase,
        httpVersion: head.minorVersion === 0 ? 'HTTP/1.0' : 'HTTP/1.1',
        headers: head.headers,
        stream: body,
        trailers: exchange.trailers,
        extensions: this.#info,
        timings: clock,
      }),
    )
  }

  onContent(chunk: Uint8Array): void {
    this.#readTimer.stop()
    this.#exchange?.body?.push(chunk)
  }

  onComplete(trailers: Headers | null): void {
    const exchange = this.#exchange
    if (exchange === null) return
    exchange.complete = true
    this.#readTimer.stop()
    if (trailers !== null)
      for (const [name, value] of trailers.raw) exchange.trailers?.append(name, value)
  }

  // --- called by the response body

  waiting(): void {
    if (this.#exchange !== null) this.#readTimer.start(this.#exchange.call.timeouts.read)
  }

  pause(): void {
    this.#paused = true
    this.socket.pause()
  }

  resume(): void {
    this.#paused = false
    this.socket.resume()
  }

  abandon(): void {
    const exchange = this.#exchange
    if (exchange === null) return
    this.#exchange = null
    this.#detach(exchange)
    exchange.abandonUpload()
    this.socket.destroy()
    this.#onClose()
  }

  // --- called by the socket

  #onData(chunk: Buffer): void {
    timerWheel.arrivals++
    const exchange = this.#exchange
    if (exchange === null) {
      this.destroy()
      return
    }
    this.answered = true
    try {
      const rest = this.#parser.feed(chunk)
      if (exchange.complete) this.#finish(exchange, rest === null)
      else if (exchange.head === null && exchange.sent && this.#exchange === exchange) {
        this.#readTimer.start(exchange.call.timeouts.read)
      }
    } catch (error) {
      this.destroy(error)
    }
  }

  #onEnd(): void {
    const exchange = this.#exchange
    if (exchange === null) {
      this.destroy()
      return
    }
    try {
      this.#parser.end()
      this.#finish(exchange, false)
    } catch (error) {
      const unanswered = this.#writeFailure !== null && !this.answered
      this.destroy(unanswered ? this.#failure(this.#writeFailure!) : error)
    }
  }

  #onError(error: NodeJS.ErrnoException): void {
    // What a paused socket holds arrived before the failure.
    const unread = this.socket.read() as Buffer | null
    if (unread !== null && this.#exchange !== null) this.#onData(unread)
    const exchange = this.#exchange
    if (exchange === null) return
    // The part of the upload that the server left unread is reason enough for its reset.
    if (this.#parser.endsWithConnection && !exchange.tookAll) this.#onEnd()
    else this.destroy(this.#failure(this.#writeFailure ?? error))
  }

  /** Stops sending and goes on reading, up to the response or the end of the connection. */
  #onWriteFailure(error: NodeJS.ErrnoException): void {
    const exchange = this.#exchange
    if (exchange === null) return this.destroy()
    this.#writeFailure = error
    this.#stopUpload(exchange)
    if (exchange.head === null) this.#readTimer.start(exchange.call.timeouts.read)
  }

  #failure(cause: NodeJS.ErrnoException): Error {
    return this.#exchange!.sent || this.answered ? connectionFailed(cause) : sendFailed(cause)
  }

  #onWriteTimeout(ms: number): void {
    // The server may wait until this reader takes more: that is not its silence.
    if (this.#paused) this.#writeTimer.start(ms)
    else this.destroy(writeTimeout(ms))
  }

  #onDrain(): void {
    this.#writeTimer.stop()
    this.#drained?.()
    this.#drained = null
  }

  #onClose(): void {
    if (this.#closed) return
    this.#closed = true
    this.#readTimer.clear()
    this.#writeTimer.clear()
    if (this.#exchange !== null) this.destroy()
    this.#drained?.()
    this.#drained = null
    this.#owner.onClose(this)
  }

  /** Ends the exchange whose response is complete. `clean`: no bytes follow it. */
  #finish(exchange: Http1Exchange, clean: boolean): void {
    this.#exchange = null
    this.#detach(exchange)
    const { call, head } = exchange
    const closing = hasMember(call.request.headers.get('connection'), 'close')
    const taken = exchange.tookAll && this.socket.writableLength === 0
    const keep = clean && taken && head!.keepAlive && !closing
    const delimited = head!.contentLength !== null || head!.headers.has('transfer-encoding')
    if (keep && delimited && !this.socket.destroyed) this.#goIdle()
    else {
      exchange.abandonUpload()
      this.socket.destroy()
      this.#onClose()
    }
    exchange.body!.end()
  }

  #goIdle(): void {
    this.idleSince = performance.now()
    this.#paused = false
    this.socket.resume()
    this.socket.unref()
    this.#owner.onIdle(this)
  }

  #detach(exchange: Http1Exchange): void {
    this.#readTimer.stop()
    this.#writeTimer.stop()
    exchange.detach()
  }

  /** Sends no further chunk: the server has answered without waiting for the rest. */
  #stopUpload(exchange: Http1Exchange): void {
    this.#onDrain()
    exchange.stopUpload()
  }

  // --- sending

  #send(exchange: Http1Exchange, head: string): void {
    const { body } = exchange.call.request
    const encoding = /[^\0-\x7f]/.test(head) ? 'utf8' : 'latin1'
    const chunked = exchange.call.request.headers.has('transfer-encoding')
    const bytes = body?.bytes ?? null
    if (body === null) {
      this.socket.write(chunked ? head + LAST_CHUNK : head, encoding)
      this.#sent(exchange)
    } else if (
      bytes !== null &&
      bytes.length <= MAX_INLINE_BODY_BYTES &&
      !chunked &&
      !expectsContinue(exchange)
    ) {
      this.socket.cork()
      this.socket.write(head, encoding)
      this.socket.write(bytes)
      this.socket.uncork()
      this.#sent(exchange)
    } else {
      if (this.socket.write(head, encoding)) this.#writeTimer.stop()
      exchange.large = true
      void this.#upload(exchange, body, chunked)
    }
  }

  #sent(exchange: Http1Exchange): void {
    exchange.sent = true
    const { onUpload } = exchange.call.request.extensions
    const length = exchange.call.request.body?.bytes?.length
    if (onUpload !== undefined && length !== undefined) onUpload(length, length)
    if (exchange.head === null && this.#exchange === exchange) this.#awaitResponse(exchange)
  }

  #awaitResponse(exchange: Http1Exchange): void {
    const { clock, timeouts } = exchange.call
    this.#readTimer.start(timeouts.read, clock.lap('send'))
  }

  async #upload(exchange: Http1Exchange, body: Body, chunked: boolean): Promise<void> {
    try {
      if (expectsContinue(exchange)) await exchange.waitForContinue()
      const sent = await this.#writeBody(exchange, body, chunked)
      if (!sent || this.#exchange !== exchange) return
      exchange.sent = true
      if (exchange.head === null) this.#awaitResponse(exchange)
    } catch (error) {
      if (this.#exchange === exchange) this.destroy(error)
    }
  }

  /** Writes the body; false when the upload was stopped before its end. */
  async #writeBody(exchange: Http1Exchange, body: Body, chunked: boolean): Promise<boolean> {
    const expected = chunked ? null : Number(exchange.call.request.headers.get('content-length'))
    const { onUpload } = exchange.call.request.extensions
    const stopped = (): boolean => {
      if (!exchange.uploadStopped && this.#exchange === exchange) return false
      exchange.abandonUpload()
      return true
    }
    const upload = openUpload(body)
    exchange.upload = upload
    const turns = new Turns()
    let sent = 0
    for (;;) {
      if (stopped()) return false
      const next = await upload.next()
      if (next.done === true) break
      if (stopped()) return false
      const chunk = next.value
      sent += chunk.length
      if (expected !== null && sent > expected) throw lengthMismatch(sent, expected)
      if (!this.#writeChunk(chunk, chunked)) await this.#drain(exchange)
      onUpload?.(sent, body.length)
      const turn = turns.next()
      if (turn !== null) await turn
    }
    exchange.upload = null
    if (expected !== null && sent !== expected) throw lengthMismatch(sent, expected)
    if (chunked) this.socket.write(LAST_CHUNK, 'latin1')
    return true
  }

  /** Chunks that are ready at the same time are written together. */
  #writeChunk(chunk: Uint8Array, chunked: boolean): boolean {
    const { socket } = this
    if (socket.writableCorked === 0) {
      socket.cork()
      process.nextTick(uncork, socket)
    }
    if (!chunked) return socket.write(chunk)
    socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1')
    socket.write(chunk)
    return socket.write('\r\n', 'latin1')
  }

  async #drain(exchange: Http1Exchange): Promise<void> {
    if (this.#closed || !this.socket.writableNeedDrain) return
    this.#writeTimer.start(exchange.call.timeouts.write)
    await new Promise<void>((resolve) => {
      this.#drained = resolve
    })
  }
}

function uncork(socket: Socket): void {
  socket.uncork()
}

function expectsContinue(exchange: Http1Exchange): boolean {
  return exchange.call.request.headers.get('expect')?.toLowerCase() === '100-continue'
}

function keepAliveTimeout(headers: Headers): number | null {
  const value = headers.get('keep-alive')
  const seconds = value === null ? null : /(?:^|[\s,;])timeout\s*=\s*"?([0-9]{1,6})/i.exec(value)
  return seconds === null ? null : Number(seconds[1]) * 1_000
}
