/**
 * Matches regular expressions of strangers in time linear in the text, by following all ways
 * through the expression at once (K. Thompson, "Regular expression search algorithm", 1968).
 * `RegExp` backtracks: for some expressions of a few characters it takes minutes on a short text.
 *
 * 1. An expression means what it means to `RegExp` with the flag `u`, or is refused. Refused are
 *    lookarounds, back references, modifiers, and what needs too many instructions.
 * 2. `RegExp` itself only sees single characters: it decides what is in `[…]`, `.` and `\p{…}`.
 *
 * @module
 */

/** Characters of an expression. */
const MAX_SOURCE = 1_000
/** Instructions; counted repetitions are written out. Each costs a step per character of a text. */
const MAX_PROGRAM = 1_000

/** Decides whether some part of a text matches. */
export interface Matcher {
  test(text: string): boolean
  /** Steps per character of the text, at most; 0 when it is not known. */
  readonly cost: number
}

/** A matcher, or why there is none. */
export type LinearPattern =
  | { readonly matcher: Matcher; readonly problem: null }
  | { readonly matcher: null; readonly problem: string }

/** Prepares an expression of a stranger. Never throws. */
export function linearPattern(source: string): LinearPattern {
  try {
    if (source.length > MAX_SOURCE) throw new Refused(`has more than ${MAX_SOURCE} characters`)
    try {
      new RegExp(source, 'u')
    } catch {
      throw new Refused('is not a regular expression')
    }
    return { matcher: new LinearMatcher(new Parser(source).parse()), problem: null }
  } catch (error) {
    if (error instanceof Refused) return { matcher: null, problem: error.message }
    throw error
  }
}

class Refused extends Error {}

type Node =
  | { readonly kind: 'character'; readonly source: string }
  | { readonly kind: 'sequence'; readonly parts: readonly Node[] }
  | { readonly kind: 'choice'; readonly parts: readonly Node[] }
  | { readonly kind: 'repeat'; readonly body: Node; readonly min: number; readonly max: number }
  | { readonly kind: 'assertion'; readonly sign: '^' | '$' | '\\b' | '\\B' }

/** One character of an expression: a class, an escape, a pair of escaped surrogates, or itself. */
const CHARACTER = new RegExp(
  [
    String.raw`\[(?:[^\]\\]|\\[^])*\]`,
    String.raw`\\[pPu]\{[^}]*\}`,
    String.raw`\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}`,
    String.raw`\\(?:u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[a-zA-Z]|[^])`,
    '[^]',
  ].join('|'),
  'uy',
)

/** Splits an expression that `RegExp` has accepted into its parts. */
class Parser {
  readonly #source: string
  #at = 0

  constructor(source: string) {
    this.#source = source
  }

  parse(): Node {
    const node = this.#choice()
    if (this.#at < this.#source.length) throw new Refused('is not understood')
    return node
  }

  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false
    this.#at += text.length
    return true
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#source)
    if (match !== null) this.#at += match[0].length
    return match
  }

  #choice(): Node {
    const parts = [this.#sequence()]
    while (this.#take('|')) parts.push(this.#sequence())
    return parts.length === 1 ? parts[0]! : { kind: 'choice', parts }
  }

  #sequence(): Node {
    const parts: Node[] = []
    while (this.#at < this.#source.length && !'|)'.includes(this.#source[this.#at]!)) {
      parts.push(this.#repeated(this.#atom()))
    }
    return parts.length === 1 ? parts[0]! : { kind: 'sequence', parts }
  }

  #atom(): Node {
    if (this.#take('(')) return this.#group()
    const [source] = this.#match(CHARACTER)!
    if (/^\\[1-9k]/.test(source)) throw new Refused('has a back reference')
    if (source === '^' || source === '$' || source === '\\b' || source === '\\B') {
      return { kind: 'assertion', sign: source }
    }
    return { kind: 'character', source }
  }

  #group(): Node {
    if (this.#take('?') && this.#match(/:|<(?![=!])[^>]*>/y) === null) {
      throw new Refused('has a lookaround or a modifier')
    }
    const node = this.#choice()
    if (!this.#take(')')) throw new Refused('is not understood')
    return node
  }

  #repeated(body: Node): Node {
    const match = this.#match(/(?:([*+?])|\{(\d+)(?:,(\d*))?\})\??/y)
    if (match === null) return body
    const [, sign, min, max] = match
    if (sign !== undefined) {
      return { kind: 'repeat', body, min: sign === '+' ? 1 : 0, max: sign === '?' ? 1 : Infinity }
    }
    const most = max === undefined ? Number(min) : max === '' ? Infinity : Number(max)
    return { kind: 'repeat', body, min: Number(min), max: most }
  }
}

const [READ, FORK, JUMP, START, END, WORD_EDGE, NO_WORD_EDGE, MATCH] = [0, 1, 2, 3, 4, 5, 6, 7]

const ASSERTIONS = { '^': START, '$': END, '\\b': WORD_EDGE, '\\B': NO_WORD_EDGE } as const

/** What one character of an expression accepts: a table for ASCII, and `RegExp` for the rest. */
interface CharacterSet {
  readonly ascii: Uint8Array
  readonly rest: RegExp
}

function characterSet(source: string): CharacterSet {
  const rest = new RegExp(`^${source}$`, 'u')
  const ascii = Uint8Array.from({ length: 128 }, (_, code) =>
    rest.test(String.fromCharCode(code)) ? 1 : 0,
  )
  return { ascii, rest }
}

function accepts({ ascii, rest }: CharacterSet, code: number): boolean {
  return code < 128 ? ascii[code] === 1 : rest.test(String.fromCodePoint(code))
}

/** Code of what lies beyond the ends of a text. */
const NOTHING = -1

class LinearMatcher implements Matcher {
  readonly #kinds: number[] = []
  /** Where a fork or a jump leads; the number of the set of a read. */
  readonly #first: number[] = []
  readonly #second: number[] = []
  readonly #sets: CharacterSet[] = []
  readonly #numbers = new Map<string, number>()
  /** The position, counted from 1, at which an instruction was last reached. */
  readonly #reached: Int32Array

  constructor(tree: Node) {
    this.#emit(tree)
    this.#add(MATCH)
    this.#reached = new Int32Array(this.#kinds.length)
  }

  get cost(): number {
    return this.#kinds.length
  }

  #add(kind: number, first = 0, second = 0): number {
    if (this.#kinds.length >= MAX_PROGRAM) throw new Refused('is too large')
    this.#first.push(first)
    this.#second.push(second)
    return this.#kinds.push(kind) - 1
  }

  #emit(node: Node): void {
    switch (node.kind) {
      case 'character':
        this.#add(READ, this.#setOf(node.source))
        return
      case 'assertion':
        this.#add(ASSERTIONS[node.sign])
        return
      case 'sequence':
        for (const part of node.parts) this.#emit(part)
        return
      case 'choice':
        this.#emitChoice(node.parts)
        return
      case 'repeat':
        this.#emitRepeat(node.body, node.min, node.max)
    }
  }

  #setOf(source: string): number {
    let number = this.#numbers.get(source)
    if (number === undefined) {
      number = this.#sets.push(characterSet(source)) - 1
      this.#numbers.set(source, number)
    }
    return number
  }

  #emitChoice(parts: readonly Node[]): void {
    const jumps: number[] = []
    for (const [i, part] of parts.entries()) {
      const isLast = i === parts.length - 1
      const fork = isLast ? -1 : this.#add(FORK, this.#kinds.length + 1)
      this.#emit(part)
      if (isLast) continue
      jumps.push(this.#add(JUMP))
      this.#second[fork] = this.#kinds.length
    }
    for (const jump of jumps) this.#first[jump] = this.#kinds.length
  }

  #emitRepeat(body: Node, min: number, max: number): void {
    const before = this.#kinds.length
    for (let i = 0; i < min; i++) {
      this.#emit(body)
      // A body without instructions can be repeated for ever.
      if (this.#kinds.length === before) return
    }
    if (max === Infinity) {
      const fork = this.#add(FORK, this.#kinds.length + 1)
      this.#emit(body)
      this.#add(JUMP, fork)
      this.#second[fork] = this.#kinds.length
      return
    }
    const forks: number[] = []
    for (let i = min; i < max; i++) {
      forks.push(this.#add(FORK, this.#kinds.length + 1))
      this.#emit(body)
    }
    for (const fork of forks) this.#second[fork] = this.#kinds.length
  }

  test(text: string): boolean {
    this.#reached.fill(0)
    const isAnchored = this.#kinds[0] === START
    let next: number[] = []
    let before = NOTHING
    for (let at = 0, position = 1; ; position++) {
      const code = text.codePointAt(at) ?? NOTHING
      const reads: number[] = []
      if (position === 1 || !isAnchored) next.push(0)
      if (next.length === 0) return false
      if (this.#follow(next, position, before, code, reads)) return true
      if (code === NOTHING) return false
      next = []
      for (const instruction of reads) {
        const set = this.#sets[this.#first[instruction]!]!
        if (accepts(set, code)) next.push(instruction + 1)
      }
      at += code > 0xffff ? 2 : 1
      before = code
    }
  }

  /** Collects the reads that lie ahead of `pending`; true when the expression has matched. */
  #follow(
    pending: number[],
    position: number,
    before: number,
    after: number,
    reads: number[],
  ): boolean {
    for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
      if (this.#reached[at] === position) continue
      this.#reached[at] = position
      const kind = this.#kinds[at]!
      if (kind === MATCH) return true
      if (kind === READ) reads.push(at)
      else if (kind === JUMP) pending.push(this.#first[at]!)
      else if (kind === FORK) pending.push(this.#second[at]!, this.#first[at]!)
      else if (holds(kind, before, after)) pending.push(at + 1)
    }
    return false
  }
}

function holds(assertion: number, before: number, after: number): boolean {
  if (assertion === START) return before === NOTHING
  if (assertion === END) return after === NOTHING
  return (isWord(before) !== isWord(after)) === (assertion === WORD_EDGE)
}

function isWord(code: number): boolean {
  const isLetter = (code >= 97 && code <= 122) || (code >= 65 && code <= 90)
  return isLetter || (code >= 48 && code <= 57) || code === 95
}
