/** Types of frames (RFC 9113, section 6). */
export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

/** Flags of frames. */
export const FLAG = {
  ack: 0x1,
  endStream: 0x1,
  endHeaders: 0x4,
  padded: 0x8,
  priority: 0x20,
} as const

/** Parameters of SETTINGS (RFC 9113, section 6.5.2). */
export const SETTING = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const

/** Error codes (RFC 9113, section 7). */
export const CODE = {
  noError: 0,
  protocolError: 1,
  internalError: 2,
  flowControlError: 3,
  settingsTimeout: 4,
  streamClosed: 5,
  frameSizeError: 6,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  enhanceYourCalm: 11,
} as const

/** Octets before the payload of every frame. */
const HEAD = 9
/** The largest payload that either side takes until it has said otherwise. */
export const DEFAULT_FRAME_SIZE = 16_384
/** The flow-control windows that both sides begin with. */
export const DEFAULT_WINDOW = 65_535
/** No window may grow beyond this. */
export const MAX_WINDOW: number = 2 ** 31 - 1
/** What a client says first (RFC 9113, section 3.4). */
export const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

/** Breaks the rules of HTTP/2 in a way that ends the connection. */
export class Http2Fault extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** What the parser finds. */
export interface FrameEvents {
  /** A piece of the payload of a DATA frame, without padding; `length` is what the window is charged. */
  onData(stream: number, chunk: Buffer, length: number, endStream: boolean): void
  /** Any other frame, whole. `payload` is valid during the call only. */
  onFrame(type: number, flags: number, stream: number, payload: Buffer): void
}

const NOTHING = Buffer.alloc(0)

/**
 * Cuts octets into frames, wherever they are cut themselves. Content is passed on as it comes; other
 * frames are held until they are whole, which the largest frame size bounds.
 */
export class FrameParser {
  readonly #events: FrameEvents
  #held: Buffer[] = []
  #heldLength = 0
  /** Octets needed before it is worth looking at what is held. */
  #needed = HEAD
  #dataLeft = 0
  #dataStream = 0
  #dataEnds = false

  constructor(events: FrameEvents) {
    this.#events = events
  }

  /** @throws {@link Http2Fault} when a frame is too large or malformed, or a handler throws one. */
  feed(input: Buffer): void {
    let octets = input
    if (this.#heldLength > 0) {
      this.#hold(input)
      if (this.#heldLength < this.#needed) return
      octets = Buffer.concat(this.#held, this.#heldLength)
      this.#held = []
      this.#heldLength = 0
    }
    let at = 0
    for (;;) {
      if (this.#dataLeft > 0) {
        if (at === octets.length) return
        at = this.#data(octets, at)
        continue
      }
      const there = octets.length - at
      if (there < HEAD) return this.#keep(octets, at, HEAD)
      const length = octets.readUIntBE(at, 3)
      if (length > DEFAULT_FRAME_SIZE)
        throw new Http2Fault(CODE.frameSizeError, 'a frame is too large')
      const type = octets[at + 3]!
      const flags = octets[at + 4]!
      const stream = octets.readUInt32BE(at + 5) & MAX_WINDOW
      if (type === FRAME.data && (flags & FLAG.padded) === 0 && length > 0) {
        this.#dataLeft = length
        this.#dataStream = stream
        this.#dataEnds = (flags & FLAG.endStream) !== 0
        at += HEAD
        continue
      }
      if (there < HEAD + length) return this.#keep(octets, at, HEAD + length)
      const payload = length === 0 ? NOTHING : octets.subarray(at + HEAD, at + HEAD + length)
      at += HEAD + length
      if (type !== FRAME.data) this.#events.onFrame(type, flags, stream, payload)
      else {
        const content = (flags & FLAG.padded) === 0 ? payload : withoutPadding(payload)
        this.#events.onData(stream, content, length, (flags & FLAG.endStream) !== 0)
      }
    }
  }

  #data(octets: Buffer, at: number): number {
    const end = Math.min(octets.length, at + this.#dataLeft)
    this.#dataLeft -= end - at
    const last = this.#dataLeft === 0 && this.#dataEnds
    this.#events.onData(this.#dataStream, octets.subarray(at, end), end - at, last)
    return end
  }

  #keep(octets: Buffer, at: number, needed: number): void {
    this.#needed = needed
    if (at < octets.length) this.#hold(octets.subarray(at))
  }

  #hold(octets: Buffer): void {
    this.#held.push(octets)
    this.#heldLength += octets.length
  }
}

/** The payload of a DATA or HEADERS frame whose first octet says how much padding ends it. */
export function withoutPadding(payload: Buffer): Buffer {
  const padding = payload[0]
  if (padding === undefined || padding >= payload.length) {
    throw new Http2Fault(CODE.protocolError, 'a frame has more padding than payload')
  }
  return payload.subarray(1, payload.length - padding)
}

/** The head of a frame, one character for each octet. */
export function frameHead(length: number, type: number, flags: number, stream: number): string {
  return (
    String.fromCharCode(length >> 16, (length >> 8) & 255, length & 255, type, flags) +
    uint32(stream)
  )
}

/** A whole frame, one character for each octet. */
export function frame(type: number, flags: number, stream: number, payload: string): string {
  return frameHead(payload.length, type, flags, stream) + payload
}

/** HEADERS, and CONTINUATION where the block is larger than a frame may be. */
export function headerFrames(
  stream: number,
  block: string,
  endStream: boolean,
  maxFrame: number,
): string {
  const flags = endStream ? FLAG.endStream : 0
  if (block.length <= maxFrame) return frame(FRAME.headers, flags | FLAG.endHeaders, stream, block)
  let frames = frame(FRAME.headers, flags, stream, block.slice(0, maxFrame))
  for (let at = maxFrame; at < block.length; at += maxFrame) {
    const last = at + maxFrame >= block.length
    frames += frame(
      FRAME.continuation,
      last ? FLAG.endHeaders : 0,
      stream,
      block.slice(at, at + maxFrame),
    )
  }
  return frames
}

/** Lets the peer send so many octets more. */
export function windowUpdate(stream: number, octets: number): string {
  return frame(FRAME.windowUpdate, 0, stream, uint32(octets))
}

/** @throws {@link Http2Fault} when a payload of fixed length has another. */
export function expectLength(payload: Buffer, length: number): void {
  if (payload.length !== length)
    throw new Http2Fault(CODE.frameSizeError, 'a frame has a wrong length')
}

/** A SETTINGS frame of identifiers and values. */
export function settingsFrame(settings: readonly (readonly [number, number])[]): string {
  const payload = settings.map(
    ([id, value]) => String.fromCharCode(id >> 8, id & 255) + uint32(value),
  )
  return frame(FRAME.settings, 0, 0, payload.join(''))
}

/** Four octets, big-endian. */
export function uint32(value: number): string {
  return String.fromCharCode(
    (value >>> 24) & 255,
    (value >> 16) & 255,
    (value >> 8) & 255,
    value & 255,
  )
}
