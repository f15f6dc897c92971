/** What was kept of some output. */
export interface KeptOutput {
  /** Head and tail with a line between, or the whole; invalid UTF-8 replaced by U+FFFD. */
  readonly text: string
  /** True when something was left out. */
  readonly truncated: boolean
}

/**
 * Keeps the beginning and the end of output while it streams by, in at most `maxBytes` octets of
 * memory, whatever the length. What comes is copied, so the caller may reuse its buffers.
 */
export class OutputKeeper {
  readonly #head: Buffer
  /** A ring: the octet that came last stands before `#tailAt`. */
  readonly #tail: Buffer
  #headLength = 0
  #tailAt = 0
  #total = 0

  /** @param maxBytes octets to keep, half of them from the end */
  constructor(maxBytes: number) {
    const half = Math.max(0, Math.floor(maxBytes / 2))
    this.#head = Buffer.allocUnsafe(half)
    this.#tail = Buffer.allocUnsafe(half)
  }

  /** Octets that came so far. */
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
    // Of a chunk that is larger than the ring only the end matters.
    const rest = chunk.subarray(Math.max(intoHead, chunk.length - size))
    this.#tailAt = (this.#tailAt + chunk.length - intoHead - rest.length) % size
    const first = rest.subarray(0, size - this.#tailAt)
    this.#tail.set(first, this.#tailAt)
    this.#tail.set(rest.subarray(first.length), 0)
    this.#tailAt = (this.#tailAt + rest.length) % size
  }

  /** What was kept. Cuts fall between characters. */
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
 * The text, or its beginning and end in at most about `maxBytes` octets of UTF-8, with a line
 * between that tells how many octets were left out.
 */
export function headAndTail(text: string, maxBytes: number): string {
  // A UTF-16 unit takes at most three octets.
  if (text.length * 3 <= maxBytes) return text
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length <= maxBytes) return text
  const half = Math.max(0, Math.floor(maxBytes / 2))
  return joinEnds(bytes.subarray(0, half), bytes.subarray(bytes.length - half), bytes.length)
}

/** Controls, directions of writing, zero widths, and letters that are blank. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]/gu

/**
 * Text in which every character is seen: those that are not, or that turn the direction of writing
 * (and let a command or file name read as another), are spelled as `\u202e`.
 */
export function spellUnseen(text: string): string {
  return text.replaceAll(UNSEEN, (character) => {
    const code = character.codePointAt(0) as number
    return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`
  })
}

function joinEnds(head: Buffer, tail: Buffer, total: number): string {
  const [first, last] = [head.subarray(0, wholeEnd(head)), tail.subarray(wholeStart(tail))]
  const left = total - first.length - last.length
  return `${first.toString('utf8')}\n[… ${left} octets left out …]\n${last.toString('utf8')}`
}

/** Where the last whole character ends: a character that is cut off at the end is left out. */
function wholeEnd(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(4, bytes.length); back++) {
    const octet = bytes[bytes.length - back]!
    if ((octet & 0xc0) === 0x80) continue
    const needs = octet < 0xc0 ? 1 : octet < 0xe0 ? 2 : octet < 0xf0 ? 3 : 4
    return needs > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}

/** Where the first whole character begins. */
function wholeStart(bytes: Buffer): number {
  let start = 0
  while (start < Math.min(3, bytes.length) && (bytes[start]! & 0xc0) === 0x80) start += 1
  return start
}
