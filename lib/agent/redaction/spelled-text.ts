/**
 * Finds a text however programs spell its characters: as they are, escaped in JSON once or several
 * times, or encoded in a URL. Programs differ in which characters they escape, and in upper and
 * lower case of the digits, so each character may be spelled in its own way. Base64 may be broken
 * into lines.
 *
 * A character is never tried twice at a place, so the search is linear.
 *
 * @module
 */

/** Characters that no program escapes. */
const PLAIN = /^[\w.-]*$/
const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '\v': 'v',
}
/** Characters that one character may take: four bytes, encoded twice. */
const MOST = 20

/** What is no match, and what may become one once the text continues. */
const NO_MATCH = -1
const CUT = Infinity

/** A text to find, with the forms of its characters. */
export class SpelledText {
  readonly length: number
  readonly #text: string
  /** The bytes of each character in hexadecimal digits, by its offset; empty for second halves. */
  readonly #bytes: readonly string[]

  readonly #isBase64: boolean

  /** @param isBase64 - the text may be broken into lines. */
  constructor(text: string, isBase64 = false) {
    this.#text = text
    this.#isBase64 = isBase64
    this.length = text.length * MOST
    this.#bytes = bytesOf(text)
  }

  /** True if a text is always spelled as it is. */
  static isPlain(text: string): boolean {
    return PLAIN.test(text)
  }

  /** The first three characters of each spelling; letters may be of either case. */
  heads(): ReadonlySet<string> {
    const heads = new Set<string>()
    const add = (head: string, at: number): void => {
      if (head.length >= 3) heads.add(head.slice(0, 3))
      else if (at < this.#text.length) for (const next of this.#starts(at)) add(head + next, at + 1)
    }
    add('', 0)
    return heads
  }

  /** How the character at `at` may begin: in full, or its first three characters. */
  #starts(at: number): string[] {
    const char = this.#text[at]!
    const broken = this.#isBase64 && at > 0 ? [`\n${char}`, '\r\n'] : []
    if (PLAIN.test(char)) return [char, ...broken]
    const escapes = [`u${codeOf(char)}`, SHORT_ESCAPES[char] ?? char]
    const escaped = ['\\', '\\\\', '\\\\\\'].flatMap((run) => escapes.map((one) => run + one))
    const hex = this.#bytes[at]!.slice(0, 2)
    const plus = char === ' ' ? ['+'] : []
    return [char, ...plus, ...broken, `%${hex}`, '%25', ...escaped]
  }

  /** Where this text ends that begins at `from`: -1 nowhere, Infinity beyond the end of `text`. */
  endIn(text: string, from: number): number {
    let to = from
    let isEscaped = false
    for (let at = 0; at < this.#text.length; ) {
      const char = this.#text[at]!
      if (this.#isBase64 && at > 0) {
        if (text[to] === '\r') to += 1
        if (text[to] === '\n') to += 1
      }
      const run = to
      while (text[to] === '\\') to += 1
      if (char === '\\' && to > run) {
        // All backslashes of the text stand for all of this one.
        while (this.#text[at] === '\\') at += 1
        isEscaped = true
        continue
      }
      isEscaped ||= to > run
      const next = this.#next(text, to, at, isEscaped)
      if (next === NO_MATCH || next === CUT) return next
      // A character of two units is encoded as a whole.
      at += text[to] === '%' && this.#bytes[at + 1] === '' ? 2 : 1
      to = next
      isEscaped = false
    }
    return to
  }

  /** The end of one character. */
  #next(text: string, to: number, at: number, isEscaped: boolean): number {
    const char = this.#text[at]!
    const found = text[to]
    if (found === undefined) return CUT
    // It may become `%2525`; with two more characters to come it is not complete.
    const isOpen = char === '%' && to === text.length - 4 && text.endsWith('%252')
    if (isOpen && at < this.#text.length - 2) return CUT
    if (found === '%' && !(char === '%' && this.#isRawPercent(text, to, at))) {
      const end = encodedEnd(text, to, this.#bytes[at]!)
      if (end !== NO_MATCH || char !== '%') return end
    }
    if (found === char || (found === '+' && char === ' ')) return to + 1
    if (!isEscaped) return NO_MATCH
    if (found === SHORT_ESCAPES[char]) return to + 1
    return found === 'u' ? sameEnd(text, to + 1, codeOf(char)) : NO_MATCH
  }

  /** `%25` of this text as it is, rather than its `%` encoded. */
  #isRawPercent(text: string, to: number, at: number): boolean {
    return this.#text.startsWith('25', at + 1) && !text.startsWith('%2525', to)
  }
}

/** The digits of a `\u` escape. */
function codeOf(char: string): string {
  return char.charCodeAt(0).toString(16).padStart(4, '0')
}

function bytesOf(text: string): string[] {
  const bytes: string[] = []
  for (const char of text) {
    bytes.push(Buffer.from(char).toString('hex'))
    if (char.length > 1) bytes.push('')
  }
  return bytes
}

/** The end of bytes that are encoded once or twice: `%2B`, `%252b`. */
function encodedEnd(text: string, from: number, hex: string): number {
  if (hex === '') return NO_MATCH
  let to = from
  for (let at = 0; at < hex.length; at += 2) {
    if (to >= text.length) return CUT
    if (text[to] !== '%') return NO_MATCH
    const byte = hex.slice(at, at + 2)
    // `%2` may become `%25`.
    if (to === text.length - 2 && text.endsWith('2')) return CUT
    const isTwice = text.startsWith(byte === '25' ? '2525' : '25', to + 1)
    const end = sameEnd(text, to + (isTwice ? 3 : 1), byte)
    if (end === NO_MATCH || end === CUT) return end
    to = end
  }
  return to
}

/** The end of hexadecimal digits in either case. */
function sameEnd(text: string, from: number, digits: string): number {
  const found = text.slice(from, from + digits.length).toLowerCase()
  if (found === digits) return from + digits.length
  return from + found.length === text.length && digits.startsWith(found) ? CUT : NO_MATCH
}
