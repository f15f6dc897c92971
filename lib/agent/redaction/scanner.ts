/**
 * Finds many texts and patterns in one pass: a table tells, by three characters, where one may
 * begin, and only there it is tried. The cost of a text without any of them is that of the table,
 * however many there are.
 *
 * @module
 */

/** From `start` up to, but not including, `end`. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** A pattern that is tried wherever one of its anchors is, in upper or lower case. */
export interface Pattern {
  /** What matches begin with; the first three characters count. */
  readonly anchors: readonly string[]
  /** Sticky. Its first group, if it has one, is what stands before the text to find. */
  readonly regex: RegExp
  /** True if only what stands before the text shows that it is one to find. */
  readonly isContext: boolean
}

interface Candidates {
  /** The longest first. */
  readonly literals: string[]
  readonly patterns: Pattern[]
}

/** What is searched for. */
export interface SearchOptions {
  /** Stop at the first one. */
  readonly first?: boolean
  /** Leave out patterns that are recognized by their context. */
  readonly noContexts?: boolean
}

/** Characters that select an entry of the table. */
const BLOCK = 3
/** Characters of a text that is read without a copy. */
const SHORT = 256

export class Scanner {
  readonly #candidates = new Map<number, Candidates>()
  /** 1 where something may begin, by the hash of a block. */
  readonly #table: Uint8Array
  readonly #longest: number

  /** @param literals - those of less than three characters are ignored. */
  constructor(literals: Iterable<string>, patterns: readonly Pattern[]) {
    const long = [...new Set(literals)].filter(({ length }) => length >= BLOCK)
    long.sort((a, b) => b.length - a.length)
    this.#longest = long[0]?.length ?? 0
    this.#table = new Uint8Array(long.length < 500 ? 1 << 16 : 1 << 20)
    for (const literal of long) this.#candidatesOf(literal).literals.push(literal)
    for (const pattern of patterns) {
      const heads = new Set(pattern.anchors.map((anchor) => anchor.slice(0, BLOCK).toLowerCase()))
      for (const head of heads) this.#candidatesOf(head).patterns.push(pattern)
    }
  }

  #candidatesOf(head: string): Candidates {
    const [a, b, c] = [0, 1, 2].map((at) => foldedAt(head, at)) as [number, number, number]
    this.#table[hashOf(a, b, c) & (this.#table.length - 1)] = 1
    const key = keyOf(a, b, c)
    const candidates = this.#candidates.get(key) ?? { literals: [], patterns: [] }
    this.#candidates.set(key, candidates)
    return candidates
  }

  /** Where texts and patterns are, by their start; they may overlap. */
  find(text: string, { first = false, noContexts = false }: SearchOptions = {}): Span[] {
    const spans: Span[] = []
    const table = this.#table
    const mask = table.length - 1
    // Bytes are several times as fast to read; of short texts, the copy costs more. Of other
    // characters than those of Latin-1 the low byte is left, which costs an attempt at most.
    const bytes = text.length < SHORT ? null : Buffer.from(text, 'latin1')
    let a = foldedAt(text, 0)
    let b = foldedAt(text, 1)
    // Patterns do not begin inside a text that a pattern has found.
    let covered = 0
    for (let next = BLOCK - 1; next < text.length; next++) {
      const c = bytes === null ? foldedAt(text, next) : bytes[next]! | 0x20
      if (table[hashOf(a, b, c) & mask] !== 0) {
        const candidates = this.#candidates.get(keyOf(a, b, c))
        if (candidates !== undefined) {
          const at = next - BLOCK + 1
          covered = tryAt(text, at, candidates, at < covered, noContexts, spans) ?? covered
          if (first && spans.length > 0) return spans
        }
      }
      a = b
      b = c
    }
    return spans
  }

  /** Offset of the first given text that the end of `text` cuts; else the length of `text`. */
  openAt(text: string): number {
    for (let at = Math.max(0, text.length - this.#longest + 1); at < text.length; at++) {
      const rest = text.slice(at)
      const isOpen = (one: string): boolean => one.length > rest.length && one.startsWith(rest)
      const [a, b, c] = [0, 1, 2].map((i) => foldedAt(rest, i)) as [number, number, number]
      const places =
        rest.length < BLOCK
          ? this.#candidates.values()
          : [this.#candidates.get(keyOf(a, b, c)) ?? NOTHING]
      for (const { literals } of places) if (literals.some(isOpen)) return at
    }
    return text.length
  }
}

const NOTHING: Candidates = { literals: [], patterns: [] }

/** Adds what begins at `at`; returns where the text of patterns ends, if any. */
function tryAt(
  text: string,
  at: number,
  { literals, patterns }: Candidates,
  isCovered: boolean,
  noContexts: boolean,
  spans: Span[],
): number | undefined {
  const literal = literals.find((one) => text.startsWith(one, at))
  if (literal !== undefined) spans.push({ start: at, end: at + literal.length })
  if (isCovered) return undefined
  let covered: number | undefined
  for (const { regex, isContext } of patterns) {
    if (noContexts && isContext) continue
    regex.lastIndex = at
    const found = regex.exec(text)
    if (found === null) continue
    const end = at + found[0].length
    spans.push({ start: at + (found[1]?.length ?? 0), end })
    covered = Math.max(covered ?? 0, end)
  }
  return covered
}

/** The low byte of a character, the same for both cases of a letter. */
function foldedAt(text: string, at: number): number {
  return (text.charCodeAt(at) & 0xff) | 0x20
}

function hashOf(a: number, b: number, c: number): number {
  return (a << 11) ^ (b << 5) ^ c
}

function keyOf(a: number, b: number, c: number): number {
  return (a << 16) | (b << 8) | c
}
