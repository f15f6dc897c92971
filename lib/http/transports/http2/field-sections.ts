import { HpackDecoder, type FieldSection } from './hpack.js'
import { CODE, FLAG, Http2Fault, withoutPadding } from './frames.js'

/** Frames that may carry one header section: more, and empty ones, are an attack. */
const MAX_CONTINUATIONS = 64

/** A header section and the stream to which it belongs. */
export interface StreamSection {
  readonly stream: number
  readonly endStream: boolean
  readonly section: FieldSection
}

/**
 * Puts header sections together from HEADERS and CONTINUATION frames (RFC 9113, section 6.10), and
 * decodes them in the order in which they come.
 */
export class FieldSectionReader {
  readonly #decoder: HpackDecoder
  readonly #maxOctets: number
  /** The section whose frames are still coming. */
  #open: { stream: number; endStream: boolean; parts: Buffer[]; length: number } | null = null

  /** @param maxOctets - Of one section, compressed and not. */
  constructor(maxOctets: number) {
    this.#decoder = new HpackDecoder(maxOctets)
    this.#maxOctets = maxOctets
  }

  /** @throws {@link Http2Fault} inside a section, where nothing but CONTINUATION may come. */
  expectNone(): void {
    if (this.#open !== null)
      throw new Http2Fault(CODE.protocolError, 'a header section is interrupted')
  }

  /** A HEADERS frame; null while the section is not whole. */
  begin(flags: number, stream: number, payload: Buffer): StreamSection | null {
    if (stream === 0)
      throw new Http2Fault(CODE.protocolError, 'a header section belongs to no stream')
    let block = (flags & FLAG.padded) === 0 ? payload : withoutPadding(payload)
    if ((flags & FLAG.priority) !== 0) block = block.subarray(5)
    const endStream = (flags & FLAG.endStream) !== 0
    if ((flags & FLAG.endHeaders) !== 0)
      return { stream, endStream, section: this.#decoder.decode(block) }
    this.#open = { stream, endStream, parts: [Buffer.from(block)], length: block.length }
    return null
  }

  /** A CONTINUATION frame; null while the section is not whole. */
  continue(flags: number, stream: number, payload: Buffer): StreamSection | null {
    const open = this.#open
    if (open === null || open.stream !== stream) {
      throw new Http2Fault(CODE.protocolError, 'a header section is continued that was not begun')
    }
    open.parts.push(Buffer.from(payload))
    open.length += payload.length
    if (open.length > this.#maxOctets || open.parts.length > MAX_CONTINUATIONS) {
      throw new Http2Fault(
        CODE.enhanceYourCalm,
        `a response head is larger than ${this.#maxOctets} octets`,
      )
    }
    if ((flags & FLAG.endHeaders) === 0) return null
    this.#open = null
    return {
      stream,
      endStream: open.endStream,
      section: this.#decoder.decode(Buffer.concat(open.parts)),
    }
  }
}
