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

/** A step of a match: it reads a character, holds between two of them, or leads elsewhere. */
interface Instruction {
  readonly read?: CharacterSet
  readonly holds?: (before: number, after: number) => boolean
  /** What follows, relative to this instruction. */
  readonly next: readonly number[]
}

type Program = readonly Instruction[]

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

/** Instructions by which a match holds at a place, without a character of its own. */
const ASSERTIONS: Readonly<Record<string, Instruction>> = {
  '^': { holds: (before) => before === NOTHING, next: [1] },
  '$': { holds: (_, after) => after === NOTHING, next: [1] },
  '\\b': { holds: (before, after) => isWord(before) !== isWord(after), next: [1] },
  '\\B': { holds: (before, after) => isWord(before) === isWord(after), next: [1] },
}

/** Writes the program of an expression that `RegExp` has accepted. */
class Parser {
  readonly #source: string
  readonly #sets = new Map<string, CharacterSet>()
  #at = 0

  constructor(source: string) {
    this.#source = source
  }

  parse(): Program {
    const program = this.#choice()
    if (this.#at < this.#source.length) throw new Refused('is not understood')
    return program
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

  #choice(): Program {
    const parts = [this.#sequence()]
    while (this.#take('|')) parts.push(this.#sequence())
    return parts.reduceRight((rest, part) =>
      bounded([{ next: [1, part.length + 2] }, ...part, { next: [rest.length + 1] }, ...rest]),
    )
  }

  #sequence(): Program {
    const program: Instruction[] = []
    while (this.#at < this.#source.length && !'|)'.includes(this.#source[this.#at]!)) {
      program.push(...this.#repeated(this.#atom()))
      bounded(program)
    }
    return program
  }

  #atom(): Program {
    if (this.#take('(')) return this.#group()
    const [source] = this.#match(CHARACTER)!
    if (/^\\[1-9k]/.test(source)) throw new Refused('has a back reference')
    if (Object.hasOwn(ASSERTIONS, source)) return [ASSERTIONS[source]!]
    const read = this.#sets.get(source) ?? characterSet(source)
    this.#sets.set(source, read)
    return [{ read, next: [1] }]
  }

  #group(): Program {
    if (this.#take('?') && this.#match(/:|<(?![=!])[^>]*>/y) === null) {
      throw new Refused('has a lookaround or a modifier')
    }
    const program = this.#choice()
    if (!this.#take(')')) throw new Refused('is not understood')
    return program
  }

  #repeated(body: Program): Program {
    const match = this.#match(/(?:([*+?])|\{(\d+)(?:,(\d*))?\})\??/y)
    // A body without instructions can be repeated for ever.
    if (match === null || body.length === 0) return body
    const [, sign, min, max] = match
    const least = sign === undefined ? Number(min) : sign === '+' ? 1 : 0
    const isOpen = sign === '*' || sign === '+' || max === ''
    const most = sign === '?' ? 1 : Number(max ?? min)
    const size = body.length
    let program: Program = []
    const add = (...part: Program): void => {
      program = bounded([...program, ...part])
    }
    for (let i = 0; i < least; i++) add(...body)
    if (isOpen) add({ next: [1, size + 2] }, ...body, { next: [-size - 1] })
    else for (let i = most - least; i > 0; i--) add({ next: [1, i * (size + 1)] }, ...body)
    return program
  }
}

function bounded(program: Program): Program {
  if (program.length >= MAX_PROGRAM) throw new Refused('is too large')
  return program
}

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
  readonly #program: Program
  /** The position, counted from 1, at which an instruction was last reached. */
  readonly #reached: Int32Array

  constructor(program: Program) {
    this.#program = program
    this.#reached = new Int32Array(program.length)
  }

  get cost(): number {
    return this.#program.length + 1
  }

  test(text: string): boolean {
    this.#reached.fill(0)
    const isAnchored = this.#program[0] === ASSERTIONS['^']
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
      for (const index of reads) {
        if (accepts(this.#program[index]!.read!, code)) next.push(index + 1)
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
      const instruction = this.#program[at]
      // The end of the program.
      if (instruction === undefined) return true
      if (this.#reached[at] === position) continue
      this.#reached[at] = position
      const { read, holds, next } = instruction
      if (read !== undefined) reads.push(at)
      else if (holds === undefined || holds(before, after)) {
        for (const step of next) pending.push(at + step)
      }
    }
    return false
  }
}

function isWord(code: number): boolean {
  const isLetter = (code >= 97 && code <= 122) || (code >= 65 && code <= 90)
  return isLetter || (code >= 48 && code <= 57) || code === 95
}
