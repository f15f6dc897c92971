/** Frame types (RFC 9113, section 6). */
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

/** Frame flags; `ack` is for SETTINGS and PING only. */
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
  frameSizeError: 6,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  enhanceYourCalm: 11,
} as const

/** Bytes before the payload of every frame. */
const HEAD = 9
/** The largest payload that is allowed before SETTINGS say otherwise. */
export const DEFAULT_FRAME_SIZE = 16_384
/** The size of every flow-control window before SETTINGS and WINDOW_UPDATE say otherwise. */
export const DEFAULT_WINDOW = 65_535
/** Largest flow-control window; also the mask of a stream identifier. */
export const MAX_WINDOW: number = 2 ** 31 - 1
/** The first bytes that a client sends (RFC 9113, section 3.4). */
export const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

/** A violation of HTTP/2 that ends the connection; `code` goes into its GOAWAY frame. */
export class Http2Fault extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** Receives the frames of a {@link FrameParser}. */
export interface FrameEvents {
  /**
   * Called with each piece of a DATA frame's content. `length` is what it takes of the flow-control
   * windows, padding included.
   */
  onData(stream: number, chunk: Buffer, length: number, endStream: boolean): void
  /** Called with every other frame. `payload` is valid during the call only. */
  onFrame(type: number, flags: number, stream: number, payload: Buffer): void
}

const NO_BYTES = Buffer.alloc(0)

/**
 * Splits a byte stream into frames. Content is passed on as it arrives; other frames are held until
 * they are complete, which the largest frame size bounds.
 */
export class FrameParser {
  readonly #events: FrameEvents
  #held: Buffer[] = []
  #heldLength = 0
  /** How many bytes must be held before parsing can go on. */
  #needed = HEAD
  #dataLeft = 0
  #dataStream = 0
  #dataEnds = false

  constructor(events: FrameEvents) {
    this.#events = events
  }

  /** @throws {@link Http2Fault} when a frame is too large or malformed, or a handler throws one. */
  feed(input: Buffer): void {
    let bytes = input
    if (this.#heldLength > 0) {
      this.#hold(input)
      if (this.#heldLength < this.#needed) return
      bytes = Buffer.concat(this.#held, this.#heldLength)
      this.#held = []
      this.#heldLength = 0
    }
    let at = 0
    for (;;) {
      if (this.#dataLeft > 0) {
        if (at === bytes.length) return
        at = this.#data(bytes, at)
        continue
      }
      const available = bytes.length - at
      if (available < HEAD) return this.#keep(bytes, at, HEAD)
      const length = bytes.readUIntBE(at, 3)
      if (length > DEFAULT_FRAME_SIZE) {
        const text = `a frame is larger than ${DEFAULT_FRAME_SIZE} bytes`
        throw new Http2Fault(CODE.frameSizeError, text)
      }
      const type = bytes[at + 3]!
      const flags = bytes[at + 4]!
      const stream = bytes.readUInt32BE(at + 5) & MAX_WINDOW
      if (type === FRAME.data && (flags & FLAG.padded) === 0 && length > 0) {
        this.#dataLeft = length
        this.#dataStream = stream
        this.#dataEnds = (flags & FLAG.endStream) !== 0
        at += HEAD
        continue
      }
      if (available < HEAD + length) return this.#keep(bytes, at, HEAD + length)
      const payload = length === 0 ? NO_BYTES : bytes.subarray(at + HEAD, at + HEAD + length)
      at += HEAD + length
      if (type !== FRAME.data) this.#events.onFrame(type, flags, stream, payload)
      else {
        const content = (flags & FLAG.padded) === 0 ? payload : withoutPadding(payload)
        this.#events.onData(stream, content, length, (flags & FLAG.endStream) !== 0)
      }
    }
  }

  #data(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.#dataLeft)
    this.#dataLeft -= end - at
    const last = this.#dataLeft === 0 && this.#dataEnds
    this.#events.onData(this.#dataStream, bytes.subarray(at, end), end - at, last)
    return end
  }

  #keep(bytes: Buffer, at: number, needed: number): void {
    this.#needed = needed
    if (at < bytes.length) this.#hold(bytes.subarray(at))
  }

  #hold(bytes: Buffer): void {
    this.#held.push(bytes)
    this.#heldLength += bytes.length
  }
}

/** The payload of a padded DATA or HEADERS frame; its first byte is the length of the padding. */
export function withoutPadding(payload: Buffer): Buffer {
  const padding = payload[0]
  if (padding === undefined) throw wrongLength('padded', 0)
  if (padding >= payload.length) {
    throw new Http2Fault(CODE.protocolError, 'a frame has more padding than payload')
  }
  return payload.subarray(1, payload.length - padding)
}

// Frames are encoded as strings of one byte per character: V8 joins those without copying.

export function frameHead(length: number, type: number, flags: number, stream: number): string {
  return (
    String.fromCharCode(length >> 16, (length >> 8) & 255, length & 255, type, flags) +
    uint32(stream)
  )
}

export function frame(type: number, flags: number, stream: number, payload: string): string {
  return frameHead(payload.length, type, flags, stream) + payload
}

/** A HEADERS frame, followed by CONTINUATION frames when `block` is larger than `maxFrame`. */
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
    const last = at + maxFrame >= block.length ? FLAG.endHeaders : 0
    frames += frame(FRAME.continuation, last, stream, block.slice(at, at + maxFrame))
  }
  return frames
}

/** Allows the peer to send `bytes` more; stream 0 is the whole connection. */
export function windowUpdate(stream: number, bytes: number): string {
  return frame(FRAME.windowUpdate, 0, stream, uint32(bytes))
}

interface FrameRule {
  readonly name: string
  /** Whether it belongs to a stream or to the connection; null for either. */
  readonly ofStream: boolean | null
  /** Fewest bytes of its payload, and most. */
  readonly least?: number
  readonly most?: number
}

/** What section 6 of RFC 9113 says about frames other than DATA, by type. */
const RULES: readonly (FrameRule | undefined)[] = [
  undefined,
  { name: 'HEADERS', ofStream: true },
  // Of the wrong length it is an error of its stream only.
  { name: 'PRIORITY', ofStream: true },
  { name: 'RST_STREAM', ofStream: true, least: 4, most: 4 },
  { name: 'SETTINGS', ofStream: false },
  { name: 'PUSH_PROMISE', ofStream: true },
  { name: 'PING', ofStream: false, least: 8, most: 8 },
  { name: 'GOAWAY', ofStream: false, least: 8 },
  { name: 'WINDOW_UPDATE', ofStream: null, least: 4, most: 4 },
  { name: 'CONTINUATION', ofStream: true },
]

/**
 * Checks whose a frame is, and the length of its payload; nothing about those of unknown types.
 *
 * @throws {@link Http2Fault}
 */
export function checkFrame(type: number, stream: number, payload: Buffer): void {
  const rule = RULES[type]
  if (rule === undefined) return
  const { name, ofStream, least = 0, most = DEFAULT_FRAME_SIZE } = rule
  if (ofStream !== null && ofStream !== (stream !== 0)) {
    const text = `a ${name} frame names ${ofStream ? 'no' : 'a'} stream`
    throw new Http2Fault(CODE.protocolError, text)
  }
  if (payload.length < least || payload.length > most) throw wrongLength(name, payload.length)
}

/** A frame whose payload cannot have this length (RFC 9113, section 4.2). */
export function wrongLength(name: string, length: number): Http2Fault {
  return new Http2Fault(CODE.frameSizeError, `a ${name} frame has a payload of ${length} bytes`)
}

/** A SETTINGS frame from pairs of identifier and value. */
export function settingsFrame(settings: readonly (readonly [number, number])[]): string {
  const payload = settings.map(
    ([id, value]) => String.fromCharCode(id >> 8, id & 255) + uint32(value),
  )
  return frame(FRAME.settings, 0, 0, payload.join(''))
}

/** Reads the pairs of a server's SETTINGS. @throws {@link Http2Fault} when they are invalid. */
export function settingsIn(flags: number, payload: Buffer): [setting: number, value: number][] {
  const isAck = (flags & FLAG.ack) !== 0
  if (payload.length % 6 !== 0 || (isAck && payload.length > 0))
    throw wrongLength('SETTINGS', payload.length)
  const settings: [number, number][] = []
  for (let at = 0; at < payload.length; at += 6) {
    const setting = payload.readUInt16BE(at)
    const value = payload.readUInt32BE(at + 2)
    checkSetting(setting, value)
    settings.push([setting, value])
  }
  return settings
}

function checkSetting(setting: number, value: number): void {
  if (setting === SETTING.initialWindowSize) {
    if (value > MAX_WINDOW) throw windowTooLarge()
    return
  }
  const valid =
    setting === SETTING.maxFrameSize
      ? value >= DEFAULT_FRAME_SIZE && value <= 0xffffff
      : // Only a client may enable it.
        setting !== SETTING.enablePush || value === 0
  if (!valid)
    throw new Http2Fault(CODE.protocolError, `the server set the setting ${setting} to ${value}`)
}

export function windowTooLarge(): Http2Fault {
  return new Http2Fault(
    CODE.flowControlError,
    `the server set a flow-control window of more than ${MAX_WINDOW} bytes`,
  )
}

/** Four bytes, big-endian, one per character. */
export function uint32(value: number): string {
  return String.fromCharCode(
    (value >>> 24) & 255,
    (value >> 16) & 255,
    (value >> 8) & 255,
    value & 255,
  )
}
