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

/** A text whose characters may be spelled in several ways. */
export interface Spelled {
  /** Characters of the longest spelling. */
  readonly length: number
  /** The first three characters of each spelling, in upper or lower case. */
  heads(): Iterable<string>
  /** Where it ends that begins at `from`: -1 nowhere, Infinity beyond the end of `text`. */
  endIn(text: string, from: number): number
}

interface Candidates {
  /** The longest first. */
  readonly literals: string[]
  readonly spelled: Spelled[]
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
  /** The first character, and the first two, of each text. */
  readonly #beginnings = new Set<number>()

  /** @param literals - those of less than three characters are ignored. */
  constructor(
    literals: Iterable<string>,
    patterns: readonly Pattern[],
    spelled: readonly Spelled[] = [],
  ) {
    const long = [...new Set(literals)].filter(({ length }) => length >= BLOCK)
    long.sort((a, b) => b.length - a.length)
    this.#longest = Math.max(long[0]?.length ?? 0, ...spelled.map(({ length }) => length))
    this.#table = new Uint8Array(long.length < 500 ? 1 << 16 : 1 << 20)
    for (const literal of long) this.#beginningWith(literal).literals.push(literal)
    for (const one of spelled)
      for (const head of one.heads()) this.#beginningWith(head).spelled.push(one)
    for (const pattern of patterns) {
      const heads = new Set(pattern.anchors.map((anchor) => anchor.slice(0, BLOCK).toLowerCase()))
      for (const head of heads) this.#candidatesOf(head).patterns.push(pattern)
    }
  }

  #beginningWith(head: string): Candidates {
    const [a, b] = [foldedAt(head, 0), foldedAt(head, 1)]
    this.#beginnings.add(a).add(keyOf(0, a, b) | ONE_MORE)
    return this.#candidatesOf(head)
  }

  #candidatesOf(head: string): Candidates {
    const [a, b, c] = [0, 1, 2].map((at) => foldedAt(head, at)) as [number, number, number]
    this.#table[hashOf(a, b, c) & (this.#table.length - 1)] = 1
    const key = keyOf(a, b, c)
    const candidates = this.#candidates.get(key) ?? { literals: [], spelled: [], patterns: [] }
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

  /** Offset of what may be the first given text that the end of `text` cuts; else its length. */
  openAt(text: string): number {
    const mask = this.#table.length - 1
    for (let at = Math.max(0, text.length - this.#longest + 1); at < text.length; at++) {
      const a = foldedAt(text, at)
      const b = foldedAt(text, at + 1)
      const c = foldedAt(text, at + 2)
      const left = text.length - at
      if (left < BLOCK) {
        if (this.#beginnings.has(left === 1 ? a : keyOf(0, a, b) | ONE_MORE)) return at
        continue
      }
      if (this.#table[hashOf(a, b, c) & mask] === 0) continue
      const { literals, spelled } = this.#candidates.get(keyOf(a, b, c)) ?? NOTHING
      if (literals.some((one) => one.length > left && one.startsWith(text.slice(at)))) return at
      if (spelled.some((one) => one.endIn(text, at) === Infinity)) return at
    }
    return text.length
  }
}

/** Tells two characters from one. */
const ONE_MORE = 1 << 24
const NOTHING: Candidates = { literals: [], spelled: [], patterns: [] }

/** Adds what begins at `at`; returns where the text of patterns ends, if any. */
function tryAt(
  text: string,
  at: number,
  { literals, spelled, patterns }: Candidates,
  isCovered: boolean,
  noContexts: boolean,
  spans: Span[],
): number | undefined {
  const literal = literals.find((one) => text.startsWith(one, at))
  if (literal !== undefined) spans.push({ start: at, end: at + literal.length })
  for (const one of spelled) {
    const end = one.endIn(text, at)
    if (end >= 0 && end < Infinity) spans.push({ start: at, end })
  }
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
