import { HpackDecoder, type FieldSection } from './hpack.js'
import { CODE, FLAG, Http2Fault, withoutPadding, wrongLength } from './frames.js'

/** Frames that may carry one field section: a flood of small or empty ones is an attack. */
const MAX_FRAMES = 64

/** A field section and the stream to which it belongs. */
export interface StreamSection {
  readonly stream: number
  readonly endStream: boolean
  readonly section: FieldSection
}

/**
 * Assembles field sections from HEADERS and CONTINUATION frames (RFC 9113, section 6.10), and
 * decodes them in the order of arrival.
 */
export class FieldSectionReader {
  readonly #decoder: HpackDecoder
  readonly #maxBytes: number
  /** The section whose CONTINUATION frames have not all arrived. */
  #open: { stream: number; endStream: boolean; parts: Buffer[]; length: number } | null = null

  /** @param maxBytes - Largest section, compressed as well as uncompressed. */
  constructor(maxBytes: number) {
    this.#decoder = new HpackDecoder(maxBytes)
    this.#maxBytes = maxBytes
  }

  /** @throws {@link Http2Fault} inside a section, where only CONTINUATION is allowed. */
  assertNoneOpen(): void {
    if (this.#open !== null)
      throw new Http2Fault(CODE.protocolError, 'a field section is interrupted by another frame')
  }

  /** Takes a HEADERS frame; null while the section is incomplete. */
  begin(flags: number, stream: number, payload: Buffer): StreamSection | null {
    let block = (flags & FLAG.padded) === 0 ? payload : withoutPadding(payload)
    if ((flags & FLAG.priority) !== 0) {
      if (block.length < 5) throw wrongLength('HEADERS', payload.length)
      block = block.subarray(5)
    }
    const endStream = (flags & FLAG.endStream) !== 0
    if ((flags & FLAG.endHeaders) !== 0)
      return { stream, endStream, section: this.#decoder.decode(block) }
    this.#open = { stream, endStream, parts: [Buffer.from(block)], length: block.length }
    return null
  }

  /** Takes a CONTINUATION frame; null while the section is incomplete. */
  continue(flags: number, stream: number, payload: Buffer): StreamSection | null {
    const open = this.#open
    if (open === null || open.stream !== stream) {
      throw new Http2Fault(CODE.protocolError, 'a CONTINUATION frame without a HEADERS frame')
    }
    open.parts.push(Buffer.from(payload))
    open.length += payload.length
    if (open.length > this.#maxBytes || open.parts.length > MAX_FRAMES) {
      throw new Http2Fault(
        CODE.enhanceYourCalm,
        `a response head is larger than ${this.#maxBytes} bytes or ${MAX_FRAMES} frames`,
      )
    }
    if ((flags & FLAG.endHeaders) === 0) return null
    this.#open = null
    const section = this.#decoder.decode(Buffer.concat(open.parts))
    return { stream, endStream: open.endStream, section }
  }
}
