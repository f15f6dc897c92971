import {
  faultOfFirst, parseClose, type ReceiverEvents, type ReceiverLimits, type WebSocketMessage,
} from './frame-rules.js'
import {
  InvalidPayloadError,
  MessageTooBigError,
  PolicyError,
  ProtocolError,
  type WebSocketError,
} from './errors.js'
import { FIN, KEY_BYTES, MASK, MAX_CONTROL_BYTES, MAX_HEADER_BYTES, Opcode } from './frame.js'
import { type Role, RSV1, unmaskedHeaderBytes } from './frame.js'
import type { Inflater } from './inflater.js'
import { unmask } from './mask.js'
import { checkUtf8, decodeUtf8, UTF8_BAD, UTF8_BOUNDARY } from './utf8.js'

/*
 * Bytes in, messages out (RFC 6455, sections 5.2 to 5.5).
 *
 *   header ──▶ payload ──▶ header …      one frame; a control frame may come between fragments
 *      │          │
 *      └──────────┴──▶ done               a Close frame came, or the peer broke a rule
 *
 * 1. A rule is checked at the first byte that can break it: header fields and the length before any
 *    payload, text before its frame is complete.
 * 2. Once done, all input is ignored, the rest of the same chunk included (sections 5.5.1, 7.1.7).
 * 3. A frame that lies within one chunk is unmasked in place and never copied. Everything else is
 *    copied into one growing buffer per message, so that tiny fragments and chunks do not keep
 *    larger buffers in memory. The buffer grows with the bytes received, not the length declared.
 * 4. While paused, nothing is parsed: the consumer is full, or a compressed message is being
 *    inflated. The rest of the chunk waits in `#unparsed`, and the socket is paused.
 */

export type { ReceiverEvents, ReceiverLimits, WebSocketMessage } from './frame-rules.js'

const EMPTY = Buffer.alloc(0)
/** First capacity of a message's buffer, unless the message is smaller or the chunk larger. */
const FIRST_CAPACITY = 4_096

/** Ranges of numbers, one for each second of the clock, in which control frames are counted. */
const CONTROLS_PER_SECOND = 2 ** 20

/**
 * Parses what the peer of one connection sends. One that is at rest can serve another connection
 * with the same limits and role, so that idle connections need none.
 */
export class Receiver<Owner> {
  #owner: Owner
  readonly #events: ReceiverEvents<Owner>
  readonly #limits: ReceiverLimits
  readonly #inflater: Inflater | null
  /** The size of a masking key in the peer's frames. */
  readonly #keyBytes: number
  #done = false
  #discarding = false
  /** Input not parsed yet while paused; `null` while parsing. */
  #unparsed: Buffer | null = null
  /** Whether a chunk is being parsed, and what a handler has fed meanwhile. */
  #parsing = false
  #fed: Buffer | null = null
  #inflating = false

  // The present frame.
  #inPayload = false
  #fin = false
  #opcode = 0
  #length = 0
  #read = 0
  #key = 0
  #partialHeader: Buffer | null = null
  #partialBytes = 0
  #control: Buffer | null = null

  // The present message.
  /** Its opcode; 0 between messages. */
  #message = 0
  #compressed = false
  #fragments = 0
  #total = 0
  #utf8 = UTF8_BOUNDARY
  #buffer: Buffer = EMPTY
  #filled = 0

  /** The control frames of this second, above the start of its range. */
  #controls = 0

  constructor(
    owner: Owner,
    events: ReceiverEvents<Owner>,
    limits: ReceiverLimits,
    inflater: Inflater | null,
    role: Role,
  ) {
    this.#keyBytes = role === 'server' ? KEY_BYTES : 0
    this.#owner = owner
    this.#events = events
    this.#limits = limits
    this.#inflater = inflater
  }

  /**
   * Whether nothing of a frame or message is here: all that a connection has to keep is
   * {@link Receiver.controls}.
   */
  get atRest(): boolean {
    const between = this.#message === 0 && !this.#inPayload && this.#partialHeader === null
    const ended = this.#done || this.#discarding
    const waits = this.#parsing || this.#unparsed !== null
    return between && !ended && !waits && this.#inflater === null
  }

  /** A number that says how many control frames came lately. */
  get controls(): number {
    return this.#controls
  }

  /** Continues with another connection; only at rest. */
  serve(owner: Owner, controls: number): this {
    this.#owner = owner
    this.#controls = controls
    return this
  }

  /** Whether input waits until the consumer resumes, or a message is inflated. */
  get paused(): boolean {
    return this.#unparsed !== null
  }

  /** Parses a chunk of input, which the receiver owns from here on and may change. */
  push(chunk: Buffer): void {
    if (this.#done) return
    if (this.#parsing) this.#fed = this.#fed === null ? chunk : Buffer.concat([this.#fed, chunk])
    else if (this.#unparsed !== null) this.#unparsed = Buffer.concat([this.#unparsed, chunk])
    else this.#run(chunk)
  }

  /** Resumes parsing after `message` returned false; no effect while a message is inflated. */
  resume(): void {
    const rest = this.#unparsed
    if (rest === null || this.#inflating) return
    this.#unparsed = null
    if (this.#done) return
    this.#run(rest)
    if (this.#unparsed === null) this.#events.paused(this.#owner, false)
  }

  /** From now on only the peer's Close matters: data frames are skipped unchecked. */
  discard(): void {
    this.#discarding = true
    this.#buffer = EMPTY
    this.#stopInflating()
    // A complete message whose inflating was just stopped is over.
    if (this.#message !== 0 && !this.#inPayload && this.#fin && this.#unparsed !== null) {
      this.#endMessage()
    }
    this.resume()
  }

  /** Ignores all further input and frees all buffers. */
  destroy(): void {
    this.#done = true
    this.#unparsed = null
    this.#buffer = EMPTY
    this.#partialHeader = null
    this.#stopInflating()
  }

  #stopInflating(): void {
    this.#inflating = false
    this.#inflater?.destroy()
  }

  #run(chunk: Buffer): void {
    let at = 0
    this.#parsing = true
    while (at < chunk.length && !this.#done && this.#unparsed === null) {
      at = this.#inPayload ? this.#takePayload(chunk, at) : this.#takeHeader(chunk, at)
    }
    this.#parsing = false
    // `#pause()` cannot see the rest of this chunk.
    if (this.#unparsed !== null && !this.#done) this.#unparsed = chunk.subarray(at)
    const fed = this.#fed
    if (fed === null) return
    this.#fed = null
    this.push(fed)
  }

  #pause(): void {
    this.#unparsed = EMPTY
    this.#events.paused(this.#owner, true)
  }

  #fail(error: WebSocketError): number {
    this.destroy()
    this.#events.failed(this.#owner, error)
    return 0
  }

  #protocolError(message: string): number {
    return this.#fail(new ProtocolError(message))
  }

  // Header (section 5.2)

  #takeHeader(chunk: Buffer, at: number): number {
    const available = chunk.length - at
    const partial = this.#partialHeader !== null || available < 2
    if (partial || available < unmaskedHeaderBytes(chunk[at + 1]!) + this.#keyBytes) {
      return this.#takeHeaderByte(chunk, at)
    }
    const size = this.#parseHeader(chunk, at, available)
    if (this.#done) return chunk.length
    this.#beginPayload()
    return at + size
  }

  /** The rare case: the header may span chunks, so it is collected byte by byte. */
  #takeHeaderByte(chunk: Buffer, at: number): number {
    this.#partialHeader ??= Buffer.allocUnsafe(MAX_HEADER_BYTES)
    this.#partialHeader[this.#partialBytes++] = chunk[at]!
    const size = this.#parseHeader(this.#partialHeader, 0, this.#partialBytes)
    if (size > 0 && !this.#done) {
      this.#partialHeader = null
      this.#partialBytes = 0
      this.#beginPayload()
    }
    return at + 1
  }

  /** Reads and checks the header as far as available; 0 if more bytes are needed. */
  #parseHeader(bytes: Buffer, at: number, available: number): number {
    const first = bytes[at]!
    const fault = faultOfFirst(first, this.#inflater !== null, this.#message !== 0)
    if (fault !== null) return this.#protocolError(fault)
    if (available < 2) return 0
    const second = bytes[at + 1]!
    if (((second & MASK) !== 0) !== (this.#keyBytes > 0)) {
      return this.#protocolError('a client must mask its frames, a server must not')
    }
    const short = second & 0x7f
    if ((first & 0x0f) >= Opcode.CLOSE && short > MAX_CONTROL_BYTES) {
      return this.#protocolError('the payload of a control frame has at most 125 bytes')
    }
    const beforeKey = unmaskedHeaderBytes(second)
    if (short >= 126 && available >= beforeKey && !this.#readLength(bytes, at, short)) return 0
    if (short < 126) this.#length = short
    else if (short === 127 && available >= 3 && bytes[at + 2]! >= 0x80) {
      return this.#protocolError('the top bit of a 64-bit length must be 0')
    }
    if (available >= beforeKey && !this.#checkSize(first & 0x0f, (first & RSV1) !== 0)) return 0
    if (available < beforeKey + this.#keyBytes) return 0
    this.#fin = (first & FIN) !== 0
    this.#opcode = first & 0x0f
    if (this.#keyBytes > 0) this.#key = bytes.readInt32BE(at + beforeKey)
    if ((first & RSV1) !== 0) this.#compressed = true
    return beforeKey + this.#keyBytes
  }

  /** Reads the extended length: shortest form only, top bit 0 (section 5.2). */
  #readLength(bytes: Buffer, at: number, short: number): boolean {
    if (short === 126) {
      this.#length = bytes.readUInt16BE(at + 2)
      if (this.#length < 126) this.#protocolError('a length must take its shortest form')
      return !this.#done
    }
    const high = bytes.readUInt32BE(at + 2)
    if (high >= 2 ** 31) this.#protocolError('the top bit of a 64-bit length must be 0')
    else this.#length = high * 2 ** 32 + bytes.readUInt32BE(at + 6)
    if (!this.#done && this.#length < 65_536) {
      this.#protocolError('a length must take its shortest form')
    }
    return !this.#done
  }

  /** Checks the declared length against the limits, before any payload (section 10.4). */
  #checkSize(opcode: number, rsv1: boolean): boolean {
    if (opcode >= Opcode.CLOSE || this.#discarding) return true
    const compressed = opcode === Opcode.CONTINUATION ? this.#compressed : rsv1
    const total = (opcode === Opcode.CONTINUATION ? this.#total : 0) + this.#length
    const { maxMessageBytes } = this.#limits
    if (total > (compressed ? mostDeflated(maxMessageBytes) : maxMessageBytes)) {
      this.#fail(this.#tooBig())
    } else if (opcode === Opcode.CONTINUATION && this.#fragments >= this.#limits.maxFragments) {
      this.#fail(new PolicyError(`a message has at most ${this.#limits.maxFragments} fragments`))
    }
    return !this.#done
  }

  #tooBig(): MessageTooBigError {
    return new MessageTooBigError(`a message has at most ${this.#limits.maxMessageBytes} bytes`)
  }

  #beginPayload(): void {
    this.#inPayload = true
    this.#read = 0
    if (this.#opcode < Opcode.CLOSE) {
      if (this.#opcode !== Opcode.CONTINUATION) this.#beginMessage()
      this.#fragments++
      this.#total += this.#length
    }
    if (this.#length === 0) this.#endFrame(EMPTY)
  }

  #beginMessage(): void {
    this.#message = this.#opcode
    this.#fragments = 0
    this.#total = 0
    this.#filled = 0
    this.#utf8 = UTF8_BOUNDARY
  }

  // Payload (section 5.3)

  #takePayload(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#length - this.#read)
    const skips = this.#discarding && this.#opcode < Opcode.CLOSE
    const seen = skips ? 0 : unmask(chunk, at, end, this.#key, this.#read)
    const whole = this.#read === 0 && end - at === this.#length
    this.#read += end - at
    if (this.#read === this.#length) this.#inPayload = false
    if (this.#opcode >= Opcode.CLOSE) this.#takeControl(chunk, at, end, whole)
    else if (this.#discarding) this.#endFrameIfRead()
    else if (this.#compressed) this.#inflate(chunk.subarray(at, end))
    else this.#takeData(chunk, at, end, whole, seen < 0x80)
    return end
  }

  #takeControl(chunk: Buffer, at: number, end: number, whole: boolean): void {
    if (whole) return this.#endFrame(chunk.subarray(at, end))
    this.#control ??= Buffer.allocUnsafe(this.#length)
    chunk.copy(this.#control, this.#read - (end - at), at, end)
    if (this.#read < this.#length) return
    const payload = this.#control
    this.#control = null
    this.#endFrame(payload)
  }

  #endFrameIfRead(): void {
    if (this.#read === this.#length) this.#endFrame(EMPTY)
  }

  #takeData(chunk: Buffer, at: number, end: number, whole: boolean, ascii: boolean): void {
    if (this.#message === Opcode.TEXT && !(ascii && this.#utf8 === UTF8_BOUNDARY)) {
      this.#utf8 = checkUtf8(chunk, at, end, this.#utf8)
      if (this.#utf8 === UTF8_BAD) {
        this.#failText()
        return
      }
    }
    if (whole && this.#fin && this.#filled === 0) {
      // The common case. Reading ASCII as latin1 is faster and gives the same text.
      if (this.#message !== Opcode.TEXT) this.#deliver(own(chunk.subarray(at, end)))
      else if (this.#utf8 !== UTF8_BOUNDARY) this.#failText()
      else if (ascii) this.#deliver(chunk.toString('latin1', at, end))
      else this.#deliver(decodeUtf8(chunk.subarray(at, end)))
    } else {
      this.#append(chunk, at, end)
      this.#endFrameIfRead()
    }
  }

  /** Copies into the message's buffer, which grows fourfold, but not beyond the largest total. */
  #append(chunk: Buffer, at: number, end: number): void {
    const needed = this.#filled + end - at
    if (needed > this.#buffer.length) {
      const totalKnown = this.#fin && !this.#compressed
      const most = totalKnown ? this.#total : this.#limits.maxMessageBytes
      const capacity = Math.min(this.#buffer.length * 4 || FIRST_CAPACITY, most)
      const grown = Buffer.allocUnsafe(Math.max(needed, capacity))
      this.#buffer.copy(grown, 0, 0, this.#filled)
      this.#buffer = grown
    }
    chunk.copy(this.#buffer, this.#filled, at, end)
    this.#filled = needed
  }

  /** A frame is complete; `payload` is that of a control frame, otherwise unused. */
  #endFrame(payload: Buffer): void {
    this.#inPayload = false
    if (this.#opcode >= Opcode.CLOSE) this.#endControl(payload)
    else if (!this.#fin) return
    else if (this.#discarding) this.#endMessage()
    else if (this.#compressed) this.#finishInflating()
    else this.#deliverBuffer()
  }

  #endMessage(): void {
    this.#message = 0
    this.#compressed = false
    this.#buffer = EMPTY
    this.#filled = 0
  }

  /** Delivers the message collected in the buffer. */
  #deliverBuffer(): void {
    const bytes = this.#buffer.subarray(0, this.#filled)
    if (this.#message !== Opcode.TEXT) this.#deliver(own(bytes))
    else if (this.#utf8 !== UTF8_BOUNDARY) this.#failText()
    else this.#deliver(decodeUtf8(bytes))
  }

  #deliver(message: WebSocketMessage): void {
    this.#endMessage()
    const wantsMore = this.#events.message(this.#owner, message)
    if (!wantsMore && !this.#done && !this.#discarding) this.#pause()
  }

  #failText(): void {
    this.#fail(new InvalidPayloadError('a text message must be UTF-8'))
  }

  // Compressed messages (RFC 7692, section 7.2.2)

  #inflate(bytes: Buffer): void {
    this.#pause()
    this.#inflating = true
    this.#inflater!.push(bytes, (chunks, fault) => {
      this.#inflating = false
      if (!this.#takeInflated(chunks, fault)) return
      if (this.#inPayload || !this.#fin) this.resume()
      else this.#finishInflating()
    })
  }

  #finishInflating(): void {
    if (this.#unparsed === null) this.#pause()
    this.#inflating = true
    this.#inflater!.finish((chunks, fault) => {
      this.#inflating = false
      if (!this.#takeInflated(chunks, fault)) return
      const rest = this.#unparsed
      this.#unparsed = null
      this.#deliverBuffer()
      if (this.#done) return
      const full = this.#unparsed !== null
      this.#unparsed = rest
      if (!full) this.resume()
    })
  }

  #takeInflated(chunks: readonly Buffer[], fault: WebSocketError | null): boolean {
    for (const chunk of chunks) {
      if (this.#message === Opcode.TEXT) {
        this.#utf8 = checkUtf8(chunk, 0, chunk.length, this.#utf8)
        if (this.#utf8 === UTF8_BAD) {
          this.#failText()
          return false
        }
      }
      this.#append(chunk, 0, chunk.length)
    }
    if (fault !== null) this.#fail(fault)
    return !this.#done
  }

  // Control frames (section 5.5)

  #endControl(payload: Buffer): void {
    if (this.#opcode === Opcode.CLOSE) return this.#endClose(payload)
    if (this.#tooManyControls()) {
      this.#fail(new PolicyError('too many control frames within one second'))
    } else if (this.#opcode === Opcode.PING) this.#events.ping(this.#owner, payload)
    else this.#events.pong(this.#owner, payload)
  }

  #tooManyControls(): boolean {
    const limit = this.#limits.maxControlFramesPerSecond
    if (limit === null) return false
    const range = Math.floor(performance.now() / 1_000) * CONTROLS_PER_SECOND
    if (this.#controls < range) this.#controls = range
    return ++this.#controls - range > limit
  }

  #endClose(payload: Buffer): void {
    const { code, reason, fault } = parseClose(payload)
    if (fault !== null) return void this.#fail(fault)
    this.destroy()
    this.#events.close(this.#owner, code, reason)
  }
}

/**
 * The most bytes of a compressed message before it is inflated; the limit itself applies to the
 * output. Data that cannot be compressed grows by an eighth at most, and by a few bytes per flush.
 */
function mostDeflated(limit: number): number {
  return limit * 2 + 65_536
}

/** A copy if `bytes` is a small part of a large chunk, which it would keep in memory. */
function own(bytes: Buffer): Buffer {
  return bytes.length * 2 >= bytes.buffer.byteLength ? bytes : Buffer.from(bytes)
}
