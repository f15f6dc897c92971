import { TextDecoder } from 'node:util'

/** Common labels that the WHATWG Encoding Standard does not define. */
const ALIASES: Readonly<Record<string, string>> = {
  'latin-1': 'latin1',
  'utf-8-sig': 'utf-8',
  utf_8: 'utf-8',
  utf16: 'utf-16le',
  'utf-16-le': 'utf-16le',
  'utf-16-be': 'utf-16be',
}

/** The standard name of `label`; null if no decoder supports it. UTF-32 is supported here. */
export function encodingName(label: string): string | null {
  if (label === 'utf-8' || label === 'UTF-8') return 'utf-8'
  const key = label.trim().toLowerCase()
  const name = ALIASES[key] ?? key
  if (/^utf-?32(le|be)?$/.test(name)) return name.endsWith('be') ? 'utf-32be' : 'utf-32le'
  try {
    return new TextDecoder(name).encoding
  } catch {
    return null
  }
}

/** The encoding of a byte order mark, which overrides any label (Encoding Standard, 6.1). */
function bomEncoding(head: Uint8Array): string | null {
  if (hasUtf8Bom(head)) return 'utf-8'
  if (head[0] === 0xfe && head[1] === 0xff) return 'utf-16be'
  if (head[0] === 0xff && head[1] === 0xfe) {
    return head.length >= 4 && head[2] === 0 && head[3] === 0 ? 'utf-32le' : 'utf-16le'
  }
  const wide = head[0] === 0 && head[1] === 0 && head[2] === 0xfe && head[3] === 0xff
  return wide ? 'utf-32be' : null
}

function hasUtf8Bom(head: Uint8Array): boolean {
  return head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf
}

/** The Unicode encoding of JSON text, by the position of NUL bytes (RFC 4627, section 3). */
export function jsonEncoding(head: Uint8Array): string {
  const bom = bomEncoding(head)
  if (bom !== null) return bom
  if (head.length < 2 || (head[0] !== 0 && head[1] !== 0)) return 'utf-8'
  const [a, b, c, d] = [head[0] === 0, head[1] === 0, head[2] === 0, head[3] === 0]
  if (a && b && c) return 'utf-32be'
  if (b && c && d && head.length >= 4) return 'utf-32le'
  if (a) return 'utf-16be'
  return b ? 'utf-16le' : 'utf-8'
}

/** Decodes whole content. Invalid bytes become U+FFFD. */
export function decodeText(content: Uint8Array, encoding: string): string {
  const name = bomEncoding(content) ?? encoding
  if (name === 'utf-8') {
    const { buffer, byteOffset, byteLength } = content
    const bytes =
      content instanceof Buffer ? content : Buffer.from(buffer, byteOffset, byteLength)
    return bytes.toString('utf8', hasUtf8Bom(content) ? 3 : 0)
  }
  const decoder = new IncrementalText(name)
  return decoder.feed(content) + decoder.end()
}

/** Decodes content chunk by chunk; characters may be split between chunks. */
export class IncrementalText {
  #decoder: TextDecoder | Utf32 | null = null
  readonly #encoding: string
  #head: Uint8Array = new Uint8Array(0)

  constructor(encoding: string) {
    this.#encoding = encoding
  }

  /** The text that `chunk` completes, which may be empty. */
  feed(chunk: Uint8Array): string {
    if (this.#decoder !== null) return this.#decoder.decode(chunk, { stream: true })
    this.#head = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk])
    // A byte order mark has up to four bytes; the first byte of other text rules it out.
    const first = this.#head[0]
    const maybeBom = first === 0xef || first === 0xfe || first === 0xff || first === 0
    if (this.#head.length < 4 && (maybeBom || first === undefined)) return ''
    return this.#start().decode(this.#head, { stream: true })
  }

  /** The rest of the text; a truncated character becomes U+FFFD. */
  end(): string {
    if (this.#decoder !== null) return this.#decoder.decode(new Uint8Array(0))
    return this.#start().decode(this.#head)
  }

  #start(): TextDecoder | Utf32 {
    const name = bomEncoding(this.#head) ?? this.#encoding
    this.#decoder = name.startsWith('utf-32')
      ? new Utf32(name === 'utf-32be')
      : new TextDecoder(name)
    return this.#decoder
  }
}

/** A decoder for UTF-32, which TextDecoder lacks. */
class Utf32 {
  readonly #bigEndian: boolean
  #rest: Uint8Array = new Uint8Array(0)
  #first = true

  constructor(bigEndian: boolean) {
    this.#bigEndian = bigEndian
  }

  decode(chunk: Uint8Array, options?: { stream?: boolean }): string {
    const all = Buffer.concat([this.#rest, chunk])
    const whole = all.length - (all.length % 4)
    let text = ''
    for (let i = 0; i < whole; i += 4) {
      const point = this.#bigEndian ? all.readUInt32BE(i) : all.readUInt32LE(i)
      const valid = point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff)
      if (!(this.#first && point === 0xfeff)) text += valid ? String.fromCodePoint(point) : '\ufffd'
      this.#first = false
    }
    this.#rest = all.subarray(whole)
    if (options?.stream !== true && this.#rest.length > 0) text += '\ufffd'
    return text
  }
}

/** Splits text into lines, without line ends, at CR, LF and CRLF only. */
export class LineSplitter {
  #rest = ''
  #skipLineFeed = false

  /** The lines that `text` completes. A CR at its end completes one: an LF may follow, or not. */
  feed(text: string): string[] {
    let input = text
    if (this.#skipLineFeed && input !== '') {
      if (input.startsWith('\n')) input = input.slice(1)
      this.#skipLineFeed = false
    }
    if (input === '') return []
    if (input.endsWith('\r')) this.#skipLineFeed = true
    const lines = input.split(/\r\n?|\n/)
    lines[0] = this.#rest + lines[0]!
    this.#rest = lines.pop()!
    return lines
  }

  /** The last line, if the text does not end with a line end. */
  end(): string[] {
    const last = this.#rest
    this.#rest = ''
    return last === '' ? [] : [last]
  }
}

/** Regroups bytes into chunks of equal size; only the last may be shorter. */
export class ByteChunker {
  readonly #size: number
  #pending: Uint8Array[] = []
  #pendingLength = 0

  constructor(size: number) {
    if (!Number.isInteger(size) || size < 1) {
      throw new RangeError(`chunkSize must be a whole number from 1, got ${size}`)
    }
    this.#size = size
  }

  /** The chunks that `bytes` completes; they may share its memory. */
  feed(bytes: Uint8Array): Uint8Array[] {
    this.#pending.push(bytes)
    this.#pendingLength += bytes.length
    if (this.#pendingLength < this.#size) return []
    const all = this.#pending.length === 1 ? bytes : Buffer.concat(this.#pending)
    const chunks: Uint8Array[] = []
    let at = 0
    for (; at + this.#size <= all.length; at += this.#size) {
      chunks.push(all.subarray(at, at + this.#size))
    }
    const rest = all.subarray(at)
    this.#pending = rest.length > 0 ? [rest] : []
    this.#pendingLength = rest.length
    return chunks
  }

  /** The last, shorter chunk, if there is one. */
  end(): Uint8Array[] {
    const rest = this.#pendingLength > 0 ? [Buffer.concat(this.#pending)] : []
    this.#pending = []
    this.#pendingLength = 0
    return rest
  }
}

/**
 * Regroups text into pieces of `size` UTF-16 units, or passes it through when `size` is undefined.
 * A surrogate pair is never split: its piece is one unit longer.
 */
export class TextChunker {
  readonly #size: number | undefined
  #pending = ''

  constructor(size: number | undefined) {
    if (size !== undefined && !(Number.isInteger(size) && size >= 1)) {
      throw new RangeError(`chunkSize must be a whole number from 1, got ${size}`)
    }
    this.#size = size
  }

  /** The pieces that `text` completes. */
  feed(text: string): string[] {
    if (this.#size === undefined) return text === '' ? [] : [text]
    this.#pending += text
    const pieces: string[] = []
    let at = 0
    for (let end; (end = this.#pieceEnd(at, this.#size)) <= this.#pending.length; at = end) {
      pieces.push(this.#pending.slice(at, end))
    }
    this.#pending = this.#pending.slice(at)
    return pieces
  }

  /** Where the piece that starts at `at` ends: behind a surrogate pair, not inside it. */
  #pieceEnd(at: number, size: number): number {
    const last = this.#pending.charCodeAt(at + size - 1)
    return at + size + (last >= 0xd800 && last <= 0xdbff ? 1 : 0)
  }

  /** The last, shorter piece, if there is one. */
  end(): string[] {
    const rest = this.#pending
    this.#pending = ''
    return rest === '' ? [] : [rest]
  }
}
