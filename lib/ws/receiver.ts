import { isAscii } from 'node:buffer'
import { isCloseCode } from './close-codes.js'
import type { Inflater } from './inflater.js'
import {
  InvalidPayloadError,
  MessageTooBigError,
  PolicyError,
  ProtocolError,
  type WebSocketError,
} from './errors.js'
import { FIN, MASK, MAX_CONTROL_BYTES, MAX_HEADER_BYTES, Opcode, RSV, RSV1 } from './frame.js'
import { unmask } from './mask.js'
import { checkUtf8, UTF8_BAD, UTF8_BOUNDARY } from './utf8.js'

/*
 * Octets in, messages out (RFC 6455, sections 5.2 to 5.5).
 *
 *   header ──▶ payload ──▶ header …      one frame; a control frame may come between fragments
 *      │          │
 *      └──────────┴──▶ done               a Close frame came, or the peer broke a rule
 *
 * 1. A rule is checked with the first octet that can break it: header fields before any payload,
 *    a length before its payload, text before its frame is complete.
 * 2. Once done, every octet is ignored, those of the same chunk included (sections 5.5.1, 7.1.7).
 * 3. A frame that lies within one chunk is unmasked in place and never copied. Everything else is
 *    copied into one growing buffer per message, so that neither tiny fragments nor tiny chunks
 *    hold on to memory; the buffer grows as octets arrive, not as a header promises them.
 * 4. While `held`, nothing is parsed: a consumer is full, or a compressed message is inflating. The
 *    rest of the chunk waits, and so does the socket.
 */

/** A message as the program sees it: text is a string, binary a Buffer of its own. */
export type WebSocketMessage = string | Buffer

/** What a receiver tells the connection that owns it. One table serves all connections. */
export interface ReceiverEvents<Owner> {
  /** A whole message. `false` holds parsing until {@link Receiver.resume}. */
  message(owner: Owner, message: WebSocketMessage): boolean
  ping(owner: Owner, payload: Buffer): void
  pong(owner: Owner, payload: Buffer): void
  /** The peer's Close frame; `null` when it had no code. The receiver is done. */
  close(owner: Owner, code: number | null, reason: string): void
  /** The peer broke a rule. The receiver is done. */
  failed(owner: Owner, error: WebSocketError): void
  /** Parsing stopped, or goes on: the socket should pause, or flow. */
  held(owner: Owner, held: boolean): void
}

/** The limits of a receiver; see `WebSocketServerConfig`. */
export interface ReceiverLimits {
  readonly maxMessageBytes: number
  readonly maxFragments: number
  readonly maxControlFramesPerSecond: number | null
}

const EMPTY = Buffer.alloc(0)
/** The most octets that a growing buffer begins with. */
const FIRST_CAPACITY = 4_096

export class Receiver<Owner> {
  readonly #owner: Owner
  readonly #events: ReceiverEvents<Owner>
  readonly #limits: ReceiverLimits
  readonly #inflater: Inflater | null
  #done = false
  #discarding = false
  #held: Buffer | null = null
  #inflating = false

  // The frame at hand.
  #inPayload = false
  #fin = false
  #opcode = 0
  #length = 0
  #read = 0
  #key = 0
  #partialHeader: Buffer | null = null
  #partialBytes = 0
  #control: Buffer | null = null

  // The message at hand: its opcode, or 0 between messages.
  #message = 0
  #compressed = false
  #fragments = 0
  #total = 0
  #utf8 = UTF8_BOUNDARY
  #buffer: Buffer = EMPTY
  #filled = 0

  #controlFrames = 0
  #controlSince = 0

  constructor(
    owner: Owner,
    events: ReceiverEvents<Owner>,
    limits: ReceiverLimits,
    inflater: Inflater | null,
  ) {
    this.#owner = owner
    this.#events = events
    this.#limits = limits
    this.#inflater = inflater
  }

  /** Takes what arrived. The receiver owns `chunk` from here on and may change it. */
  push(chunk: Buffer): void {
    if (this.#done) return
    if (this.#held !== null) this.#held = Buffer.concat([this.#held, chunk])
    else this.#run(chunk)
  }

  /** Goes on after a `message` answered false; a message that is inflating is waited for. */
  resume(): void {
    const rest = this.#held
    if (rest === null || this.#inflating) return
    this.#held = null
    if (this.#done) return
    this.#run(rest)
    if (this.#held === null) this.#events.held(this.#owner, false)
  }

  /** From now on only the peer's Close matters: data is skipped, neither kept nor checked. */
  discard(): void {
    this.#discarding = true
    this.#buffer = EMPTY
    this.#stopInflating()
    // A message that was only waiting to be inflated is over.
    if (this.#message !== 0 && !this.#inPayload && this.#fin && this.#held !== null) {
      this.#endMessage()
    }
    this.resume()
  }

  /** Ignores all that may still come and frees what is held. */
  destroy(): void {
    this.#done = true
    this.#held = null
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
    while (at < chunk.length && !this.#done && this.#held === null) {
      at = this.#inPayload ? this.#takePayload(chunk, at) : this.#takeHeader(chunk, at)
    }
    // Whoever held has no rest to give, so the rest of this chunk is added here.
    if (this.#held !== null && !this.#done) this.#held = chunk.subarray(at)
  }

  #hold(): void {
    this.#held = EMPTY
    this.#events.held(this.#owner, true)
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
    if (this.#partialHeader !== null || available < 2 || available < headerBytes(chunk[at + 1]!)) {
      return this.#takeHeaderOctet(chunk, at)
    }
    const size = this.#parseHeader(chunk, at, available)
    if (this.#done) return chunk.length
    this.#beginPayload()
    return at + size
  }

  /** The rare way: the header may span chunks, so it is gathered octet by octet. */
  #takeHeaderOctet(chunk: Buffer, at: number): number {
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

  /** Reads and checks what there is of a header; 0 when more octets are needed. */
  #parseHeader(octets: Buffer, at: number, available: number): number {
    const first = octets[at]!
    const fault = this.#checkFirst(first)
    if (fault !== null) return this.#protocolError(fault)
    if (available < 2) return 0
    const second = octets[at + 1]!
    if ((second & MASK) === 0) return this.#protocolError('a client must mask its frames')
    const short = second & 0x7f
    if ((first & 0x0f) >= Opcode.CLOSE && short > MAX_CONTROL_BYTES) {
      return this.#protocolError('the payload of a control frame has at most 125 octets')
    }
    const size = headerBytes(second)
    if (short >= 126 && available >= size - 4 && !this.#readLength(octets, at, short)) return 0
    if (short < 126) this.#length = short
    else if (short === 127 && available >= 3 && octets[at + 2]! >= 0x80) {
      return this.#protocolError('the top bit of a 64-bit length must be 0')
    }
    if (available >= size - 4 && !this.#checkSize(first & 0x0f)) return 0
    if (available < size) return 0
    this.#fin = (first & FIN) !== 0
    this.#opcode = first & 0x0f
    this.#key = octets.readInt32BE(at + size - 4)
    if ((first & RSV1) !== 0) this.#compressed = true
    return size
  }

  /** What is wrong with the first octet, given the message at hand. */
  #checkFirst(first: number): string | null {
    const opcode = first & 0x0f
    if ((first & (RSV ^ RSV1)) !== 0) return 'RSV2 and RSV3 are not in use'
    if ((first & RSV1) !== 0) {
      if (this.#inflater === null) return 'RSV1 is not in use'
      // RFC 7692, section 6.1: set on the first frame of a message only.
      if (opcode !== Opcode.TEXT && opcode !== Opcode.BINARY) {
        return 'RSV1 belongs on the first frame of a message'
      }
    }
    if (opcode >= Opcode.CLOSE) {
      if (opcode > Opcode.PONG) return `opcode ${opcode} is reserved`
      return (first & FIN) === 0 ? 'a control frame cannot be fragmented' : null
    }
    if (opcode > Opcode.BINARY) return `opcode ${opcode} is reserved`
    if (opcode === Opcode.CONTINUATION) {
      return this.#message === 0 ? 'there is no message to continue' : null
    }
    return this.#message === 0 ? null : 'a message began inside another'
  }

  /** The extended length: in the shortest form, and without its top bit (section 5.2). */
  #readLength(octets: Buffer, at: number, short: number): boolean {
    if (short === 126) {
      this.#length = octets.readUInt16BE(at + 2)
      if (this.#length < 126) this.#protocolError('a length must take its shortest form')
      return !this.#done
    }
    const high = octets.readUInt32BE(at + 2)
    if (high >= 2 ** 31) this.#protocolError('the top bit of a 64-bit length must be 0')
    else this.#length = high * 2 ** 32 + octets.readUInt32BE(at + 6)
    if (!this.#done && this.#length < 65_536) {
      this.#protocolError('a length must take its shortest form')
    }
    return !this.#done
  }

  /** Limits are decided on the declared length, before any payload (section 10.4). */
  #checkSize(opcode: number): boolean {
    if (opcode >= Opcode.CLOSE || this.#discarding) return true
    const total = (opcode === Opcode.CONTINUATION ? this.#total : 0) + this.#length
    if (total > this.#limits.maxMessageBytes) {
      this.#fail(this.#tooBig())
    } else if (opcode === Opcode.CONTINUATION && this.#fragments >= this.#limits.maxFragments) {
      this.#fail(new PolicyError(`a message has at most ${this.#limits.maxFragments} fragments`))
    }
    return !this.#done
  }

  #tooBig(): MessageTooBigError {
    return new MessageTooBigError(`a message has at most ${this.#limits.maxMessageBytes} octets`)
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
      // The common case. ASCII is read as latin1, which is faster and comes to the same.
      if (this.#message !== Opcode.TEXT) this.#deliver(own(chunk.subarray(at, end)))
      else if (this.#utf8 !== UTF8_BOUNDARY) this.#failText()
      else
        this.#deliver(ascii ? chunk.toString('latin1', at, end) : decode(chunk.subarray(at, end)))
    } else {
      this.#append(chunk, at, end)
      this.#endFrameIfRead()
    }
  }

  /** Copies into the message's buffer, which grows fourfold but never past what is announced. */
  #append(chunk: Buffer, at: number, end: number): void {
    const needed = this.#filled + end - at
    if (needed > this.#buffer.length) {
      const known = this.#fin && !this.#compressed
      const announced = known ? this.#total : this.#limits.maxMessageBytes
      const generous = Math.max(
        needed,
        Math.min(this.#buffer.length * 4 || FIRST_CAPACITY, announced),
      )
      const grown = Buffer.allocUnsafe(generous)
      this.#buffer.copy(grown, 0, 0, this.#filled)
      this.#buffer = grown
    }
    chunk.copy(this.#buffer, this.#filled, at, end)
    this.#filled = needed
  }

  /** All octets of a frame are there; `payload` is theirs when it is a control frame. */
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

  /** Hands over what was gathered. */
  #deliverBuffer(): void {
    const octets = this.#buffer.subarray(0, this.#filled)
    if (this.#message !== Opcode.TEXT) this.#deliver(own(octets))
    else if (this.#utf8 !== UTF8_BOUNDARY) this.#failText()
    else this.#deliver(decode(octets))
  }

  #deliver(message: WebSocketMessage): void {
    this.#endMessage()
    const wantsMore = this.#events.message(this.#owner, message)
    if (!wantsMore && !this.#done && !this.#discarding) this.#hold()
  }

  #failText(): void {
    this.#fail(new InvalidPayloadError('a text message must be UTF-8'))
  }

  // Compressed messages (RFC 7692, section 7.2.2)

  #inflate(octets: Buffer): void {
    this.#hold()
    this.#inflating = true
    this.#inflater!.push(octets, (chunks, fault) => {
      this.#inflating = false
      if (!this.#takeInflated(chunks, fault)) return
      if (this.#inPayload || !this.#fin) this.resume()
      else this.#finishInflating()
    })
  }

  #finishInflating(): void {
    if (this.#held === null) this.#hold()
    this.#inflating = true
    this.#inflater!.finish((chunks, fault) => {
      this.#inflating = false
      if (!this.#takeInflated(chunks, fault)) return
      const rest = this.#held
      this.#held = null
      this.#deliverBuffer()
      if (this.#done) return
      const full = this.#held !== null
      this.#held = rest
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
    const now = performance.now()
    if (now - this.#controlSince >= 1_000) {
      this.#controlSince = now
      this.#controlFrames = 0
    }
    return ++this.#controlFrames > limit
  }

  /** Section 5.5.1: empty, or a code that may be sent (7.4) and a reason in UTF-8. */
  #endClose(payload: Buffer): void {
    if (payload.length === 1) return void this.#protocolError('a Close frame needs a whole code')
    const code = payload.length === 0 ? null : payload.readUInt16BE(0)
    if (code !== null && !isCloseCode(code)) {
      return void this.#protocolError(`close code ${code} may not be sent`)
    }
    if (checkUtf8(payload, 2, Math.max(2, payload.length), UTF8_BOUNDARY) !== UTF8_BOUNDARY) {
      return void this.#fail(new InvalidPayloadError('the reason of a Close frame must be UTF-8'))
    }
    this.destroy()
    this.#events.close(this.#owner, code, payload.toString('utf8', 2))
  }
}

/** Text that was found to be UTF-8. */
function decode(octets: Buffer): string {
  return octets.toString(isAscii(octets) ? 'latin1' : 'utf8')
}

/** How long a masked header is, by its second octet: the mask bit and the short length. */
function headerBytes(second: number): number {
  const short = second & 0x7f
  return short < 126 ? 6 : short === 126 ? 8 : MAX_HEADER_BYTES
}

/** A view that keeps little else alive; a small part of a large chunk is copied out. */
function own(octets: Buffer): Buffer {
  return octets.length * 2 >= octets.buffer.byteLength ? octets : Buffer.from(octets)
}
