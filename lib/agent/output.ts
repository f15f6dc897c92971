/**
 * Texts in bounded size. What is cut is redacted first, with its context: of a secret that a cut
 * leaves in two, neither half could be recognized afterwards. Whatever shortens a text that may
 * hold a secret does it here.
 *
 * @module
 */
import { checkString } from '../internal/options.js'
import { warn as warnProcess } from '../internal/errors.js'
import { redactor } from './redaction/redactor.js'

/** Characters around a cut in streamed output that are kept to find secrets: a private key's. */
const MARGIN = 16_384

/** Output that may have been shortened. */
export interface KeptOutput {
  /** The whole, or head and tail with a line between; invalid UTF-8 becomes U+FFFD. */
  readonly text: string
  /** True when the middle was dropped. */
  readonly truncated: boolean
}

/**
 * Keeps the beginning and the end of streamed output in bounded memory, whatever its length. Chunks
 * are copied, so the caller may reuse its buffers.
 */
export class OutputKeeper {
  readonly #half: number
  /** The beginning, with a margin. */
  readonly #head: Buffer
  /** The end, with a margin. A ring buffer; the newest byte is the one before `#tailAt`. */
  readonly #tail: Buffer
  #headLength = 0
  #tailAt = 0
  #total = 0

  constructor(maxBytes: number) {
    this.#half = Math.max(0, Math.floor(maxBytes / 2))
    this.#head = Buffer.allocUnsafe(this.#half + MARGIN)
    this.#tail = Buffer.allocUnsafe(this.#half + MARGIN)
  }

  /** Bytes added so far, dropped ones included. */
  get total(): number {
    return this.#total
  }

  add(chunk: Uint8Array): void {
    this.#total += chunk.length
    const intoHead = Math.min(chunk.length, this.#head.length - this.#headLength)
    this.#head.set(chunk.subarray(0, intoHead), this.#headLength)
    this.#headLength += intoHead
    const size = this.#tail.length
    if (intoHead === chunk.length || size === 0) return
    // Only the end of a chunk that is larger than the ring matters.
    const rest = chunk.subarray(Math.max(intoHead, chunk.length - size))
    this.#tailAt = (this.#tailAt + chunk.length - intoHead - rest.length) % size
    const first = rest.subarray(0, size - this.#tailAt)
    this.#tail.set(first, this.#tailAt)
    this.#tail.set(rest.subarray(first.length), 0)
    this.#tailAt = (this.#tailAt + rest.length) % size
  }

  /** The kept output; cuts fall between characters. What was not cut is not redacted here. */
  finish(): KeptOutput {
    const head = this.#head.subarray(0, this.#headLength)
    const beyond = this.#total - this.#headLength
    const size = this.#tail.length
    if (beyond <= size) {
      const text = Buffer.concat([head, this.#tail.subarray(0, beyond)]).toString('utf8')
      const truncated = this.#total > 2 * this.#half
      return { text: truncated ? headAndTail(text, 2 * this.#half) : text, truncated }
    }
    const tail = Buffer.concat([
      this.#tail.subarray(this.#tailAt),
      this.#tail.subarray(0, this.#tailAt),
    ])
    const [first, last] = [head.subarray(0, wholeEnd(head)), tail.subarray(wholeStart(tail))]
    const ends = [first.toString('utf8'), last.toString('utf8')] as const
    return { text: joinEnds(...ends, this.#half, this.#total), truncated: true }
  }
}

/**
 * Returns the text, or its beginning and end in about `maxBytes` of UTF-8 with a line between that
 * says how many bytes were left out. Secrets next to a cut are redacted, since the log can't
 * recognize half of one: shorten the output of a tool with this function.
 *
 * @throws TypeError for a text that is not a string.
 */
export function headAndTail(text: string, maxBytes: number): string {
  checkString('text', text)
  // A UTF-16 unit takes at most three bytes of UTF-8.
  if (text.length * 3 <= maxBytes) return text
  const size = Buffer.byteLength(text)
  if (size <= maxBytes) return text
  return joinEnds(text, text, Math.max(0, Math.floor(maxBytes / 2)), size)
}

/** The text, or its beginning in at most `characters` and a mark, redacted and `…`. */
export function clip(text: string, characters: number): string {
  return text.length <= characters ? text : `${redactor.part(text, 0, whole(text, characters))}…`
}

/** The beginning of a text in about `maxBytes` of UTF-8, redacted if that is not the whole text. */
export function firstBytes(text: string, maxBytes: number): string {
  const size = Buffer.byteLength(text)
  return size <= maxBytes ? text : redactor.part(text, 0, charactersOf(text, maxBytes))
}

/** A text for an error, which no log redacts later. */
export function redacted(text: string): string {
  return redactor.text(text)
}

/** A warning of this process, redacted. */
export function warn(message: string, options: { type?: string; code?: string } = {}): void {
  warnProcess(redactor.text(message), options)
}

/** The end of streamed text, redacted; memory is bounded whatever its length. */
export class TextTail {
  readonly #characters: number
  #text = ''

  constructor(characters: number) {
    this.#characters = characters
  }

  add(text: string): void {
    this.#text = (this.#text + text).slice(-this.#characters - MARGIN)
  }

  get shown(): string {
    const { length } = this.#text
    return redactor.part(this.#text, Math.max(0, length - this.#characters), length)
  }
}

/**
 * The beginning of `first` and the end of `last` in `half` bytes each. Both are longer, so that the
 * secrets at the cuts are known; a secret that `first` does not complete is not shown either.
 */
function joinEnds(first: string, last: string, half: number, total: number): string {
  const from = charactersOf(first, half)
  const to = last.length - charactersAtEnd(last, half)
  const [head, tail] = [first.slice(0, from), last.slice(to)]
  const left = total - Buffer.byteLength(head) - Buffer.byteLength(tail)
  const shown = redactor.part(first, 0, from, first !== last)
  return `${shown}\n[… ${left} bytes left out …]\n${redactor.part(last, to, last.length)}`
}

/** Characters at the beginning of a text that `bytes` of UTF-8 hold. */
function charactersOf(text: string, bytes: number): number {
  const head = Buffer.from(text.slice(0, bytes)).subarray(0, bytes)
  return head.subarray(0, wholeEnd(head)).toString('utf8').length
}

/** Characters at the end of a text that `bytes` of UTF-8 hold. */
function charactersAtEnd(text: string, bytes: number): number {
  const all = Buffer.from(text.slice(Math.max(0, text.length - bytes)))
  const tail = all.subarray(Math.max(0, all.length - bytes))
  return tail.subarray(wholeStart(tail)).toString('utf8').length
}

/** A number of characters that does not end in a surrogate pair. */
function whole(text: string, characters: number): number {
  const code = text.charCodeAt(characters - 1)
  return code >= 0xd800 && code < 0xdc00 ? characters - 1 : characters
}

/** The end of the last complete character. */
function wholeEnd(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(4, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!
    if ((byte & 0xc0) === 0x80) continue
    const length = byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
    return length > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}

/** The start of the first complete character. */
function wholeStart(bytes: Buffer): number {
  let start = 0
  while (start < Math.min(3, bytes.length) && (bytes[start]! & 0xc0) === 0x80) start += 1
  return start
}
