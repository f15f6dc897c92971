import type { Socket } from 'node:net'
import { MAX_TIMER_MS, type Timeouts } from '../../config.js'
import { ReadError, RefusedStreamError, RemoteProtocolError } from '../../errors.js'
import type { Request } from '../../request.js'
import type { PhaseClock } from '../../timings.js'
import type { TransportResponse } from '../base.js'
import { HpackEncoder, HpackError } from './hpack.js'
import { checkFraming, checkTarget } from '../http1/request-head.js'
import {
  CODE,
  DEFAULT_FRAME_SIZE,
  DEFAULT_WINDOW,
  FLAG,
  FRAME,
  expectLength,
  frame,
  frameHead,
  FrameParser,
  headerFrames,
  Http2Fault,
  MAX_WINDOW,
  PREFACE,
  SETTING,
  settingsFrame,
  uint32,
  windowUpdate,
  type FrameEvents,
} from './frames.js'
import { encodeHead } from './head.js'
import { Http2Stream, STREAM_WINDOW, type StreamLink } from './stream.js'
import { HealthCheck } from './health-check.js'
import { FrameWriter } from './frame-writer.js'
import { FieldSectionReader, type StreamSection } from './field-sections.js'
import { TimerPool } from '../reusable-timer.js'

/** Octets that all streams together may have under way. */
const SESSION_WINDOW = 64 * 1024 * 1024
/** The octets of our pings; any eight do. */
const PING = 'are you?'
const NOT_HTTP2 = 'the server does not speak HTTP/2'
/** Octets of answers to a server that asks without reading them; it is left then. */
const MAX_BACKLOG = 1024 * 1024

/** Who keeps the connection and is told what becomes of it. */
export interface Http2Owner {
  /** A stream is over: there is room for another. */
  onRoom(connection: Http2Connection): void
  /** The connection takes no more streams; called once. */
  onClose(connection: Http2Connection): void
}

/** What {@link Http2Connection} is made from. */
export interface Http2Options {
  /** How long it is kept without streams; `null` for ever. */
  readonly idleMs: number | null
  /** How long the server may take to send its SETTINGS; `null` for ever. */
  readonly settingsMs: number | null
  /** How long it may be silent before it is asked whether it lives; `null` for ever. */
  readonly pingMs: number | null
  /** Octets of a response's head at most. */
  readonly maxHeaderBytes: number
}

/**
 * One HTTP/2 connection, carrying many exchanges at a time (RFC 9113).
 *
 * It speaks the protocol itself rather than through `node:http2`, whose stream objects cost more
 * than everything else in an exchange.
 *
 * 1. What is written within one turn of the event loop leaves in one piece.
 * 2. A window is given back as the consumer takes octets, so a slow reader holds up its own stream
 *    and no more than a window of memory.
 * 3. A fault in one stream ends that stream; a fault in the framing or in HPACK, which all streams
 *    share, ends the connection.
 * 4. Header blocks are decoded even when nobody waits for them: those that follow refer to them.
 */
export class Http2Connection implements FrameEvents, StreamLink {
  readonly protocol = 'HTTP/2'
  readonly keepAliveHint = null
  idleSince: number = performance.now()
  exchanges = 0
  /** Whether it was cut off or found dead, so that a safe request without an answer may be sent again. */
  lost = false
  readonly timers: TimerPool = new TimerPool()
  readonly info: Readonly<Record<string, unknown>>
  /** Resolves when the server has said how many streams it takes, or the connection has ended. */
  readonly ready: Promise<void>
  #onReady: () => void = () => {}
  #settingsTimer: NodeJS.Timeout | null = null
  readonly #socket: Socket
  readonly #owner: Http2Owner
  readonly #idleMs: number | null
  readonly #frames = new FrameParser(this)
  readonly #encoder = new HpackEncoder()
  readonly #sections: FieldSectionReader
  readonly #streams = new Map<number, Http2Stream>()
  #nextId = 1
  #claims = 0
  /** What the server allows; it need not limit streams. */
  #maxStreams = Infinity
  #maxFrame = DEFAULT_FRAME_SIZE
  #streamWindow = DEFAULT_WINDOW
  #sendWindow = DEFAULT_WINDOW
  /** What the server may still send; what was taken and not yet told. */
  #receiveWindow = SESSION_WINDOW
  #taken = 0
  #settled = false
  readonly #out: FrameWriter
  #blocked: (() => void)[] = []
  #idleTimer: NodeJS.Timeout | null = null
  readonly #health: HealthCheck
  #state: 'open' | 'retired' | 'gone' = 'open'

  constructor(socket: Socket, owner: Http2Owner, options: Http2Options) {
    this.#socket = socket
    this.#out = new FrameWriter(socket)
    this.#owner = owner
    this.#idleMs = options.idleMs
    this.#sections = new FieldSectionReader(options.maxHeaderBytes)
    const { remoteAddress, remotePort, localAddress, localPort } = socket
    this.info = { remoteAddress, remotePort, localAddress, localPort }
    this.ready = new Promise((resolve) => (this.#onReady = resolve))
    if (options.settingsMs !== null) {
      const late = (): void => {
        this.#onFault(new Http2Fault(CODE.settingsTimeout, 'the server sent no SETTINGS in time'))
      }
      this.#settingsTimer = setTimeout(late, Math.min(options.settingsMs, MAX_TIMER_MS)).unref()
    }
    const ping = (): void => this.#out.write(frame(FRAME.ping, 0, 0, PING))
    this.#health = new HealthCheck(socket, options.pingMs, ping, () => {
      this.lost = true
      this.destroy(new ReadError(`the server did not answer a ping within ${options.pingMs} ms`))
    })
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#onOctets(chunk))
    // A handshake with a proxy leaves it paused.
    socket.resume()
    socket.on('drain', () => this.#wake())
    socket.on('end', () => this.#lose(null))
    socket.on('error', (error: NodeJS.ErrnoException) => this.#lose(error))
    socket.on('close', () => this.#lose(null))
    this.#out.write(
      PREFACE +
        settingsFrame([
          [SETTING.enablePush, 0],
          [SETTING.initialWindowSize, STREAM_WINDOW],
          [SETTING.maxHeaderListSize, options.maxHeaderBytes],
        ]) +
        windowUpdate(0, SESSION_WINDOW - DEFAULT_WINDOW),
    )
  }

  /** Whether it takes one more stream now. */
  get usable(): boolean {
    return (
      this.#state === 'open' &&
      !this.#socket.destroyed &&
      // Until the server has set its limit there is one stream, and those after it wait for `ready`.
      this.#streams.size + this.#claims < (this.#settled ? this.#maxStreams : 1) &&
      this.#nextId < MAX_WINDOW
    )
  }

  /** Keeps room for a stream that is about to be asked for. */
  claim(): void {
    this.#claims++
  }

  /** Sends `request`, for which there was a claim, and resolves with the head of its answer. */
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
        // Nothing was sent: there is as much room as before.
        this.#afterStream()
        reject(error as Error)
        return
      }
      this.exchanges++
      if (this.#streams.size === 0) this.#socket.ref()
      const id = this.#nextId
      this.#nextId += 2
      const stream = new Http2Stream(
        id,
        request,
        timeouts,
        clock,
        this.#streamWindow,
        this,
        resolve,
        reject,
      )
      this.#streams.set(id, stream)
      this.#out.write(
        headerFrames(
          id,
          encodeHead(this.#encoder, request, target),
          request.body === null,
          this.#maxFrame,
        ),
      )
      stream.begin()
    })
  }

  #check(request: Request, target: string): void {
    // It may have aborted while the connection was on its way to us.
    request.signal?.throwIfAborted()
    checkFraming(request)
    checkTarget(target)
    if (this.#state !== 'open')
      throw new RefusedStreamError('the HTTP/2 connection takes no more requests')
  }

  /** Ends whatever is going on with `error`, and closes. */
  destroy(error?: unknown): void {
    this.#end(
      error ?? new RemoteProtocolError('the connection was closed before the answer was complete'),
    )
    this.#socket.destroy()
  }

  // --- from the streams

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

  room(): Promise<void> {
    if (this.#state === 'gone') return Promise.resolve()
    return new Promise((resolve) => this.#blocked.push(resolve))
  }

  credit(octets: number, stream: Http2Stream | null): void {
    this.#taken += octets
    if (this.#taken >= SESSION_WINDOW / 2) {
      this.#out.write(windowUpdate(0, this.#taken))
      this.#receiveWindow += this.#taken
      this.#taken = 0
    }
    if (stream === null || (stream.taken += octets) < STREAM_WINDOW / 2) return
    this.#out.write(windowUpdate(stream.id, stream.taken))
    stream.receiveWindow += stream.taken
    stream.taken = 0
  }

  reset(stream: Http2Stream, code: number): void {
    if (this.#streams.has(stream.id))
      this.#out.write(frame(FRAME.reset, 0, stream.id, uint32(code)))
    this.over(stream)
  }

  over(stream: Http2Stream): void {
    if (!this.#streams.delete(stream.id)) return
    // Uploads that were given up wait no longer.
    if (this.#blocked.length > 0) this.#wake()
    this.#afterStream()
  }

  // --- from the frames

  onData(id: number, chunk: Buffer, length: number, endStream: boolean): void {
    this.#sections.expectNone()
    this.#receiveWindow -= length
    if (this.#receiveWindow < 0)
      throw new Http2Fault(CODE.flowControlError, 'the server sent more than the window takes')
    const stream = this.#stream(id)
    if (stream === null) return this.credit(length, null)
    stream.receiveWindow -= length
    if (stream.receiveWindow < 0)
      throw new Http2Fault(CODE.flowControlError, 'the server sent more than a window takes')
    stream.onData(chunk, length, endStream)
  }

  onFrame(type: number, flags: number, id: number, payload: Buffer): void {
    if (!this.#settled && type !== FRAME.settings)
      throw new Http2Fault(CODE.protocolError, NOT_HTTP2)
    if (type === FRAME.continuation)
      return this.#onSection(this.#sections.continue(flags, id, payload))
    this.#sections.expectNone()
    switch (type) {
      case FRAME.headers:
        return this.#onSection(this.#sections.begin(flags, id, payload))
      case FRAME.reset:
        return this.#onReset(id, payload)
      case FRAME.settings:
        return this.#onSettings(flags, id, payload)
      case FRAME.pushPromise:
        throw new Http2Fault(CODE.protocolError, 'the server pushed, which it was told not to')
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

  #onReset(id: number, payload: Buffer): void {
    expectLength(payload, 4)
    const stream = this.#stream(id)
    if (stream === null) return
    this.#streams.delete(id)
    const code = payload.readUInt32BE(0)
    stream.fail(
      code === CODE.refusedStream
        ? new RefusedStreamError('the server refused the stream')
        : new RemoteProtocolError(`the server reset the HTTP/2 stream (code ${code})`),
      false,
    )
    this.#afterStream()
  }

  #onSettings(flags: number, id: number, payload: Buffer): void {
    if (id !== 0) throw new Http2Fault(CODE.protocolError, 'SETTINGS belong to a stream')
    if ((flags & FLAG.ack) !== 0) return
    if (payload.length % 6 !== 0)
      throw new Http2Fault(CODE.frameSizeError, 'SETTINGS are cut short')
    for (let at = 0; at < payload.length; at += 6) {
      this.#onSetting(payload.readUInt16BE(at), payload.readUInt32BE(at + 2))
    }
    this.#settle()
    this.#answer(frame(FRAME.settings, FLAG.ack, 0, ''))
    this.#wake()
    this.#owner.onRoom(this)
  }

  /** The server has told its limits, or never will. */
  #settle(): void {
    this.#settled = true
    if (this.#settingsTimer !== null) clearTimeout(this.#settingsTimer)
    this.#settingsTimer = null
    this.#onReady()
  }

  #onSetting(id: number, value: number): void {
    if (id === SETTING.headerTableSize) this.#encoder.limitTable(value)
    else if (id === SETTING.maxConcurrentStreams) this.#maxStreams = value
    else if (id === SETTING.maxFrameSize) {
      if (value < DEFAULT_FRAME_SIZE || value > 0xffffff) {
        throw new Http2Fault(CODE.protocolError, `${value} cannot be a largest frame`)
      }
      this.#maxFrame = value
    } else if (id === SETTING.initialWindowSize) {
      if (value > MAX_WINDOW) throw new Http2Fault(CODE.flowControlError, 'a window is too large')
      const change = value - this.#streamWindow
      this.#streamWindow = value
      for (const stream of this.#streams.values()) grow(stream, change)
    }
  }

  #onPing(flags: number, payload: Buffer): void {
    expectLength(payload, 8)
    if ((flags & FLAG.ack) === 0)
      this.#answer(frame(FRAME.ping, FLAG.ack, 0, payload.toString('latin1')))
  }

  #onGoAway(payload: Buffer): void {
    if (payload.length < 8) throw new Http2Fault(CODE.frameSizeError, 'GOAWAY is cut short')
    const last = payload.readUInt32BE(0) & MAX_WINDOW
    const code = payload.readUInt32BE(4)
    this.#retire()
    for (const [id, stream] of [...this.#streams]) {
      if (id <= last) continue
      this.#streams.delete(id)
      stream.fail(
        new RefusedStreamError(`the server went away (code ${code}) before it looked`),
        false,
      )
    }
    this.#afterStream()
  }

  #onWindowUpdate(id: number, payload: Buffer): void {
    expectLength(payload, 4)
    const change = payload.readUInt32BE(0) & MAX_WINDOW
    if (id !== 0) {
      const stream = this.#stream(id)
      if (stream === null) return
      if (change === 0)
        return stream.fail(new RemoteProtocolError('the server widened a window by nothing'))
      grow(stream, change)
    } else {
      if (change === 0) throw new Http2Fault(CODE.protocolError, 'a window is widened by nothing')
      this.#sendWindow += change
      if (this.#sendWindow > MAX_WINDOW)
        throw new Http2Fault(CODE.flowControlError, 'a window is too large')
    }
    this.#wake()
  }

  /** The stream of a frame; null when it is over. */
  #stream(id: number): Http2Stream | null {
    const stream = this.#streams.get(id)
    if (stream !== undefined) return stream
    if (id % 2 === 0 || id >= this.#nextId)
      throw new Http2Fault(CODE.protocolError, `there is no stream ${id}`)
    return null
  }

  // --- from the socket

  #onOctets(chunk: Buffer): void {
    if (this.#state === 'gone') return
    try {
      this.#frames.feed(chunk)
    } catch (error) {
      this.#onFault(error)
    }
  }

  /** The connection can go on no longer: the server is told why. */
  #onFault(error: unknown): void {
    const known = error instanceof Http2Fault ? error : null
    const code =
      known?.code ?? (error instanceof HpackError ? CODE.compressionError : CODE.internalError)
    const cause = error as Error
    const what = this.#settled || code === CODE.settingsTimeout ? cause.message : NOT_HTTP2
    this.#out.write(frame(FRAME.goAway, 0, 0, uint32(0) + uint32(code)))
    this.#out.flush()
    this.#end(
      known !== null || error instanceof HpackError
        ? new RemoteProtocolError(`the HTTP/2 connection is broken: ${what}`, { cause })
        : error,
    )
    this.#socket.destroySoon()
  }

  /** The socket is gone. */
  #lose(cause: NodeJS.ErrnoException | null): void {
    if (this.#state === 'gone') return
    this.lost = true
    this.#end(
      cause === null
        ? new RemoteProtocolError(
            'the server closed the HTTP/2 connection before the answer was complete',
          )
        : new ReadError(
            `the connection failed while the response was awaited or read (${cause.code ?? cause.message})`,
            { cause },
          ),
    )
    this.#socket.destroy()
  }

  #end(error: unknown): void {
    if (this.#state === 'gone') return
    this.#retire()
    this.#gone()
    const streams = [...this.#streams.values()]
    this.#streams.clear()
    for (const stream of streams) stream.fail(error, false)
    this.#wake()
  }

  #gone(): void {
    this.#state = 'gone'
    this.timers.clear()
    this.#health.stop()
  }

  /** No new streams; those that are open go on to their end. */
  #retire(): void {
    if (this.#state !== 'open') return
    this.#state = 'retired'
    this.#settle()
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer)
    this.#owner.onClose(this)
    if (this.#streams.size === 0) this.#leave()
  }

  /** Says goodbye and closes. */
  #leave(): void {
    this.#gone()
    this.#out.write(frame(FRAME.goAway, 0, 0, uint32(0) + uint32(CODE.noError)))
    this.#out.flush()
    this.#socket.destroySoon()
  }

  /** A stream is over, or did not begin. */
  #afterStream(): void {
    if (this.#streams.size === 0) this.#idle()
    if (this.#state === 'open') this.#owner.onRoom(this)
  }

  #idle(): void {
    this.idleSince = performance.now()
    if (this.#state === 'retired') this.#leave()
    if (this.#state !== 'open') return
    this.#socket.unref()
    if (this.#idleMs === null) return
    if (this.#idleTimer === null) {
      this.#idleTimer = setTimeout(
        () => this.#streams.size === 0 && this.#retire(),
        Math.min(this.#idleMs, MAX_TIMER_MS),
      ).unref()
    } else this.#idleTimer.refresh()
  }

  // --- writing

  /** Answers what the server asks for, unless it asks without end and reads nothing. */
  #answer(text: string): void {
    if (this.#out.backlog > MAX_BACKLOG) {
      throw new Http2Fault(CODE.enhanceYourCalm, 'the server asks without reading the answers')
    }
    this.#out.write(text)
  }

  #wake(): void {
    for (const go of this.#blocked.splice(0)) go()
  }
}

function grow(stream: Http2Stream, change: number): void {
  stream.sendWindow += change
  if (stream.sendWindow > MAX_WINDOW)
    throw new Http2Fault(CODE.flowControlError, 'a window is too large')
}
