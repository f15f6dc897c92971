/** Output that may have been shortened. */
export interface KeptOutput {
  /** The whole, or head and tail with a line between; invalid UTF-8 becomes U+FFFD. */
  readonly text: string
  /** True when the middle was dropped. */
  readonly truncated: boolean
}

/**
 * Keeps the beginning and the end of streamed output in at most `maxBytes` of memory, whatever its
 * length. Chunks are copied, so the caller may reuse its buffers.
 */
export class OutputKeeper {
  readonly #head: Buffer
  /** A ring buffer; the newest byte is the one before `#tailAt`. */
  readonly #tail: Buffer
  #headLength = 0
  #tailAt = 0
  #total = 0

  constructor(maxBytes: number) {
    const half = Math.max(0, Math.floor(maxBytes / 2))
    this.#head = Buffer.allocUnsafe(half)
    this.#tail = Buffer.allocUnsafe(half)
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

  /** The kept output; cuts fall between characters. */
  finish(): KeptOutput {
    const head = this.#head.subarray(0, this.#headLength)
    const beyond = this.#total - this.#headLength
    const size = this.#tail.length
    if (beyond <= size) {
      const tail = this.#tail.subarray(0, beyond)
      return { text: Buffer.concat([head, tail]).toString('utf8'), truncated: false }
    }
    const tail = Buffer.concat([
      this.#tail.subarray(this.#tailAt),
      this.#tail.subarray(0, this.#tailAt),
    ])
    return { text: joinEnds(head, tail, this.#total), truncated: true }
  }
}

/**
 * The text, or its beginning and end in about `maxBytes` of UTF-8, with a line between that says
 * how many bytes were dropped.
 */
export function headAndTail(text: string, maxBytes: number): string {
  // A UTF-16 unit takes at most three bytes of UTF-8.
  if (text.length * 3 <= maxBytes) return text
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length <= maxBytes) return text
  const half = Math.max(0, Math.floor(maxBytes / 2))
  return joinEnds(bytes.subarray(0, half), bytes.subarray(bytes.length - half), bytes.length)
}

function joinEnds(head: Buffer, tail: Buffer, total: number): string {
  const [first, last] = [head.subarray(0, wholeEnd(head)), tail.subarray(wholeStart(tail))]
  const left = total - first.length - last.length
  return `${first.toString('utf8')}\n[… ${left} bytes left out …]\n${last.toString('utf8')}`
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
