import type { Socket } from 'node:net'
import type { Timeouts } from '../../config.js'
import { ReadError, RefusedStreamError, RemoteProtocolError } from '../../errors.js'
import type { Request } from '../../request.js'
import { Timer, timerWheel } from '../../timer-wheel.js'
import type { PhaseClock } from '../../timings.js'
import type { TransportResponse } from '../base.js'
import { addressesOf } from '../connect.js'
import { closedEarly, connectionFailed, sendFailed } from '../failures.js'
import { checkFraming, checkTarget } from '../request-checks.js'
import { FieldSectionReader, type StreamSection } from './field-sections.js'
import {
  CONNECTION_WINDOW,
  EMPTY_WINDOW_UPDATE,
  ReceiveWindow,
  STREAM_WINDOW,
  widened,
} from './flow-control.js'
import { FrameWriter } from './frame-writer.js'
import {
  CODE,
  DEFAULT_FRAME_SIZE,
  DEFAULT_WINDOW,
  FLAG,
  FRAME,
  checkFrame,
  frame,
  frameHead,
  FrameParser,
  headerFrames,
  Http2Fault,
  MAX_WINDOW,
  PREFACE,
  SETTING,
  settingsFrame,
  settingsIn,
  uint32,
  windowUpdate,
  wrongLength,
  type FrameEvents,
} from './frames.js'
import { encodeHead } from './head.js'
import { HealthCheck } from './health-check.js'
import { HpackEncoder, HpackError } from './hpack.js'
import type { Http2Limits } from './limits.js'
import { Http2Stream, type StreamLink } from './stream.js'

/** Payload of our pings: any eight bytes. */
const PING_PAYLOAD = 'are you?'
const NO_SETTINGS = 'the server sent no SETTINGS in time'
const NOT_HTTP2 = 'the server does not speak HTTP/2'

/** Keeps connections for reuse; the pool, through `HttpTransport`. */
export interface Http2Owner {
  /** The connection can take another stream. */
  onCapacity(connection: Http2Connection): void
  /** The connection takes no more streams; called once. */
  onClose(connection: Http2Connection): void
}

/**
 * One HTTP/2 connection, carrying many exchanges at a time (RFC 9113).
 *
 * It implements the protocol itself: the stream objects of `node:http2` cost more than everything
 * else in an exchange.
 *
 * 1. Frames written within one turn of the event loop leave in one write.
 * 2. A flow-control window is widened as the reader takes bytes, so a slow reader blocks only its
 *    own stream and holds at most one window of memory.
 * 3. A fault in one stream ends that stream; a fault in the framing or in HPACK, which all streams
 *    share, ends the connection.
 * 4. A response takes precedence over a failure to send: what has arrived is read first.
 * 5. Header blocks are decoded even when their stream is over: later ones refer to them.
 */
export class Http2Connection implements FrameEvents, StreamLink {
  readonly protocol = 'HTTP/2'
  readonly keepAliveHint = null
  idleSince: number = performance.now()
  exchanges = 0
  /** Whether the socket closed or a ping failed: an unanswered safe request may be repeated. */
  lost = false
  readonly info: Readonly<Record<string, unknown>>
  /** Resolves when the server's SETTINGS have arrived, or the connection has ended. */
  readonly ready: Promise<void>
  #onReady: () => void = () => {}
  readonly #settingsTimer = new Timer(() =>
    this.#onFault(new Http2Fault(CODE.settingsTimeout, NO_SETTINGS)),
  )
  readonly #socket: Socket
  readonly #owner: Http2Owner
  readonly #idleMs: number | null
  readonly #frames = new FrameParser(this)
  readonly #encoder = new HpackEncoder()
  readonly #sections: FieldSectionReader
  readonly #streams = new Map<number, Http2Stream>()
  #nextId = 1
  /** Streams that were promised to callers and not opened yet. */
  #claims = 0
  /** The server's limits, from its SETTINGS. */
  #maxStreams = Infinity
  #maxFrame = DEFAULT_FRAME_SIZE
  #streamWindow = DEFAULT_WINDOW
  #sendWindow = DEFAULT_WINDOW
  readonly #receiveWindow = new ReceiveWindow(CONNECTION_WINDOW)
  /** Whether the server's SETTINGS have arrived. */
  #settled = false
  readonly #out: FrameWriter
  /** Resolvers of uploads that wait for room to send. */
  #blocked: (() => void)[] = []
  readonly #idleTimer = new Timer(() => void (this.#streams.size === 0 && this.#retire()))
  readonly #health: HealthCheck
  #state: 'open' | 'retired' | 'gone' = 'open'

  constructor(socket: Socket, owner: Http2Owner, limits: Http2Limits) {
    this.#socket = socket
    this.#out = new FrameWriter(socket, () => this.#onWriteFailure())
    this.#owner = owner
    this.#idleMs = limits.idleMs
    this.#sections = new FieldSectionReader(limits.maxHeaderBytes)
    this.info = addressesOf(socket)
    this.ready = new Promise((resolve) => (this.#onReady = resolve))
    this.#settingsTimer.start(limits.settingsMs)
    const ping = (): void => this.#out.write(frame(FRAME.ping, 0, 0, PING_PAYLOAD))
    this.#health = new HealthCheck(socket, limits.pingMs, ping, () => {
      this.lost = true
      this.destroy(new ReadError(`the server did not answer a ping within ${limits.pingMs} ms`))
    })
    this.#listen()
    this.#out.write(
      PREFACE +
        settingsFrame([
          [SETTING.enablePush, 0],
          [SETTING.initialWindowSize, STREAM_WINDOW],
          [SETTING.maxHeaderListSize, limits.maxHeaderBytes],
        ]) +
        windowUpdate(0, CONNECTION_WINDOW - DEFAULT_WINDOW),
    )
  }

  #listen(): void {
    const socket = this.#socket
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#onBytes(chunk))
    // A proxy handshake leaves the socket paused.
    socket.resume()
    socket.on('drain', () => this.#wake())
    socket.on('end', () => this.#onLost(null))
    socket.on('error', (error: NodeJS.ErrnoException) => this.#onLost(error))
    socket.on('close', () => this.#onLost(null))
  }

  /** Whether it can take another stream now. */
  get usable(): boolean {
    return (
      this.#state === 'open' &&
      !this.#socket.destroyed &&
      // Until the server's limit is known there is one stream; other callers wait for `ready`.
      this.#streams.size + this.#claims < (this.#settled ? this.#maxStreams : 1) &&
      this.#nextId < MAX_WINDOW
    )
  }

  /** Reserves a stream for a call of `request()`. */
  claim(): void {
    this.#claims++
  }

  /** Sends `request` on a claimed stream and resolves once the head of its response has arrived. */
  request(
    request: Request,
    timeouts: Timeouts,
    target: string,
    clock: PhaseClock,
  ): Promise<TransportResponse> {
    this.#claims--
    return new Promise((resolve, reject) => {
      try {
        this.#check(request, target)
      } catch (error) {
        // Nothing was sent: the claimed stream is free again.
        this.#afterStream()
        reject(error as Error)
        return
      }
      this.exchanges++
      if (this.#streams.size === 0) this.#socket.ref()
      const id = this.#nextId
      this.#nextId += 2
      const call = { request, timeouts, clock, resolve, reject }
      const stream = new Http2Stream(id, call, this.#streamWindow, this)
      this.#streams.set(id, stream)
      const head = encodeHead(this.#encoder, request, target)
      this.#out.write(headerFrames(id, head, request.body === null, this.#maxFrame))
      stream.begin()
    })
  }

  #check(request: Request, target: string): void {
    // The signal may have aborted while the caller waited for this connection.
    request.signal?.throwIfAborted()
    checkFraming(request)
    checkTarget(target)
    if (this.#state !== 'open')
      throw new RefusedStreamError('the HTTP/2 connection accepts no more requests')
  }

  /** Fails all open streams with `error` and closes the socket. */
  destroy(error?: unknown): void {
    this.#fail(error ?? closedEarly())
    this.#socket.destroy()
  }

  // --- called by the streams

  get held(): boolean {
    return this.#receiveWindow.left < DEFAULT_FRAME_SIZE
  }

  sendData(stream: Http2Stream, chunk: Uint8Array, at: number): number {
    if (this.#state === 'gone' || this.#socket.writableNeedDrain) return 0
    const length = Math.min(chunk.length - at, this.#maxFrame, this.#sendWindow, stream.sendWindow)
    if (length <= 0) return 0
    this.#sendWindow -= length
    stream.sendWindow -= length
    this.#out.writeContent(
      frameHead(length, FRAME.data, 0, stream.id),
      chunk.subarray(at, at + length),
    )
    return length
  }

  sendEnd(stream: Http2Stream): void {
    this.#out.write(frame(FRAME.data, FLAG.endStream, stream.id, ''))
  }

  waitForRoom(): Promise<void> {
    if (this.#state === 'gone') return Promise.resolve()
    return new Promise((resolve) => this.#blocked.push(resolve))
  }

  consumed(bytes: number, stream: Http2Stream | null): void {
    const increment = this.#receiveWindow.consume(bytes)
    if (increment > 0) this.#out.write(windowUpdate(0, increment))
    if (stream === null) return
    const streamIncrement = stream.receiveWindow.consume(bytes)
    if (streamIncrement > 0) this.#out.write(windowUpdate(stream.id, streamIncrement))
  }

  reset(stream: Http2Stream, code: number): void {
    if (this.#streams.has(stream.id))
      this.#out.write(frame(FRAME.reset, 0, stream.id, uint32(code)))
    this.finished(stream)
  }

  finished(stream: Http2Stream): void {
    if (!this.#streams.delete(stream.id)) return
    // Wakes an abandoned upload of this stream, so that it ends.
    if (this.#blocked.length > 0) this.#wake()
    this.#afterStream()
  }

  // --- called by the frame parser

  onData(id: number, chunk: Buffer, length: number, endStream: boolean): void {
    if (!this.#settled) throw new Http2Fault(CODE.protocolError, NOT_HTTP2)
    this.#sections.assertNoneOpen()
    this.#receiveWindow.receive(length)
    const stream = this.#stream(id)
    if (stream === null) return this.consumed(length, null)
    stream.receiveWindow.receive(length)
    stream.onData(chunk, length, endStream)
  }

  onFrame(type: number, flags: number, id: number, payload: Buffer): void {
    if (!this.#settled && type !== FRAME.settings)
      throw new Http2Fault(CODE.protocolError, NOT_HTTP2)
    checkFrame(type, id, payload)
    if (type === FRAME.continuation)
      return this.#onSection(this.#sections.continue(flags, id, payload))
    this.#sections.assertNoneOpen()
    switch (type) {
      case FRAME.headers:
        return this.#onSection(this.#sections.begin(flags, id, payload))
      case FRAME.priority:
        return this.#onPriority(id, payload)
      case FRAME.reset:
        return this.#onReset(id, payload)
      case FRAME.settings:
        return this.#onSettings(flags, payload)
      case FRAME.pushPromise:
        throw new Http2Fault(CODE.protocolError, 'the server pushed, although push is disabled')
      case FRAME.ping:
        return this.#onPing(flags, payload)
      case FRAME.goAway:
        return this.#onGoAway(payload)
      case FRAME.windowUpdate:
        return this.#onWindowUpdate(id, payload)
    }
  }

  #onSection(whole: StreamSection | null): void {
    if (whole !== null) this.#stream(whole.stream)?.onFields(whole.section, whole.endStream)
  }

  /** Priorities are ignored (RFC 9113, section 5.3), but not what is no PRIORITY frame. */
  #onPriority(id: number, payload: Buffer): void {
    if (payload.length === 5) return
    const { message, code } = wrongLength('PRIORITY', payload.length)
    if (!this.#streams.has(id)) throw new Http2Fault(code, message)
    this.#streams.get(id)!.fail(new RemoteProtocolError(message), code)
  }

  #onReset(id: number, payload: Buffer): void {
    const stream = this.#stream(id)
    if (stream === null) return
    this.#streams.delete(id)
    const code = payload.readUInt32BE(0)
    stream.fail(
      code === CODE.refusedStream
        ? new RefusedStreamError('the server refused the stream')
        : new RemoteProtocolError(`the server reset the HTTP/2 stream (code ${code})`),
      null,
    )
    this.#afterStream()
  }

  #onSettings(flags: number, payload: Buffer): void {
    const settings = settingsIn(flags, payload)
    if ((flags & FLAG.ack) !== 0) {
      if (!this.#settled) throw new Http2Fault(CODE.protocolError, NOT_HTTP2)
      return
    }
    for (const [setting, value] of settings) this.#onSetting(setting, value)
    this.#settle()
    this.#out.reply(frame(FRAME.settings, FLAG.ack, 0, ''))
    this.#wake()
    this.#owner.onCapacity(this)
  }

  /** Ends the wait for SETTINGS: they have arrived, or never will. */
  #settle(): void {
    this.#settled = true
    this.#settingsTimer.clear()
    this.#onReady()
  }

  #onSetting(setting: number, value: number): void {
    if (setting === SETTING.headerTableSize) this.#encoder.limitTable(value)
    else if (setting === SETTING.maxConcurrentStreams) this.#maxStreams = value
    else if (setting === SETTING.maxFrameSize) this.#maxFrame = value
    else if (setting === SETTING.initialWindowSize) {
      const change = value - this.#streamWindow
      this.#streamWindow = value
      for (const stream of this.#streams.values()) {
        stream.sendWindow = widened(stream.sendWindow, change)
      }
    }
  }

  #onPing(flags: number, payload: Buffer): void {
    if ((flags & FLAG.ack) === 0)
      this.#out.reply(frame(FRAME.ping, FLAG.ack, 0, payload.toString('latin1')))
  }

  #onGoAway(payload: Buffer): void {
    const last = payload.readUInt32BE(0) & MAX_WINDOW
    const code = payload.readUInt32BE(4)
    this.#retire()
    for (const [id, stream] of [...this.#streams]) {
      if (id <= last) continue
      this.#streams.delete(id)
      const text = `the server closed the connection (code ${code}) without processing the request`
      stream.fail(new RefusedStreamError(text), null)
    }
    this.#afterStream()
  }

  #onWindowUpdate(id: number, payload: Buffer): void {
    const change = payload.readUInt32BE(0) & MAX_WINDOW
    if (id !== 0) {
      this.#stream(id)?.widen(change)
    } else {
      if (change === 0) throw new Http2Fault(CODE.protocolError, EMPTY_WINDOW_UPDATE)
      this.#sendWindow = widened(this.#sendWindow, change)
    }
    this.#wake()
  }

  /** The stream of a frame, or null when it is over. @throws {@link Http2Fault} if never opened. */
  #stream(id: number): Http2Stream | null {
    const stream = this.#streams.get(id)
    if (stream !== undefined) return stream
    if (id % 2 === 0 || id >= this.#nextId)
      throw new Http2Fault(CODE.protocolError, `stream ${id} was never opened`)
    return null
  }

  // --- called by the socket

  #onBytes(chunk: Buffer): void {
    if (this.#state === 'gone') return
    timerWheel.arrivals++
    try {
      this.#frames.feed(chunk)
    } catch (error) {
      this.#onFault(error)
    }
  }

  /** Reports an error of the whole connection to the server, and closes. */
  #onFault(error: unknown): void {
    const known = error instanceof Http2Fault ? error : null
    const code =
      known?.code ?? (error instanceof HpackError ? CODE.compressionError : CODE.internalError)
    const cause = error as Error
    const what = this.#settled || code === CODE.settingsTimeout ? cause.message : NOT_HTTP2
    this.#writeGoAway(code)
    this.#fail(
      known !== null || error instanceof HpackError
        ? new RemoteProtocolError(`the HTTP/2 connection failed: ${what}`, { cause })
        : error,
    )
    this.#out.close()
  }

  #onLost(cause: NodeJS.ErrnoException | null): void {
    if (this.#state === 'gone') return
    this.lost = true
    const reason = this.#out.failure ?? cause
    if (reason !== null)
      for (const stream of this.#streams.values())
        if (stream.unanswered) stream.fail(sendFailed(reason), null)
    this.#fail(reason === null ? closedEarly() : connectionFailed(reason))
    this.#socket.destroy()
  }

  /** Stops sending and goes on reading, up to the responses or the end of the connection. */
  #onWriteFailure(): void {
    if (this.#state === 'gone') return this.#out.close()
    for (const stream of this.#streams.values()) stream.stopUpload()
    this.#retire()
  }

  // --- the end of the connection

  #fail(error: unknown): void {
    if (this.#state === 'gone') return
    this.#retire()
    this.#markGone()
    const streams = [...this.#streams.values()]
    this.#streams.clear()
    for (const stream of streams) stream.fail(error, null)
    this.#wake()
  }

  #markGone(): void {
    this.#state = 'gone'
    this.#health.stop()
  }

  /** Takes no new streams; open ones go on to their end. */
  #retire(): void {
    if (this.#state !== 'open') return
    this.#state = 'retired'
    this.#settle()
    this.#idleTimer.clear()
    this.#owner.onClose(this)
    if (this.#streams.size === 0) this.#closeGracefully()
  }

  #closeGracefully(): void {
    this.#markGone()
    this.#writeGoAway(CODE.noError)
    this.#out.close()
  }

  #writeGoAway(code: number): void {
    this.#out.write(frame(FRAME.goAway, 0, 0, uint32(0) + uint32(code)))
    this.#out.flush()
  }

  /** Called when a stream has ended, or could not be opened. */
  #afterStream(): void {
    if (this.#streams.size === 0) this.#onIdle()
    if (this.#state === 'open') this.#owner.onCapacity(this)
  }

  #onIdle(): void {
    this.idleSince = performance.now()
    if (this.#state === 'retired') this.#closeGracefully()
    if (this.#state !== 'open') return
    this.#socket.unref()
    this.#idleTimer.start(this.#idleMs)
  }

  /** Lets blocked uploads look again: there is room, or their stream is over. */
  #wake(): void {
    for (const resolve of this.#blocked.splice(0)) resolve()
  }
}
