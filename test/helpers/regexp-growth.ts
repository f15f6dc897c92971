/**
 * Decides whether a regular expression takes linear time on every text, as V8's backtracking engine
 * runs it.
 *
 * An expression becomes an automaton whose states are its characters. A backtracking search costs
 * as many steps as there are paths through it, from all offsets of the text together, so it is
 * linear if
 *
 * 1. no state lies on two loops over the same text (else paths double with each round);
 * 2. no text leads around a loop, around a later loop, and from the one to the other (else each
 *    round may be the one that changes over);
 * 3. the same with the search itself as the first loop: `/ +$/` begins anew at every space.
 *
 * A state at which the expression may end has succeeded: nothing backtracks beyond it, so that what
 * is tried twice must avoid such states. All else errs on the safe side: any other text is assumed
 * to fail in the end, an assertion to hold and to fail, and what a lookahead reads counts as read
 * at every place.
 *
 * @module
 */

type Node =
  | { readonly kind: 'char'; readonly source: string }
  | { readonly kind: 'sequence'; readonly parts: readonly Node[] }
  | { readonly kind: 'choice'; readonly parts: readonly Node[] }
  | { readonly kind: 'repeat'; readonly body: Node; readonly min: number; readonly max: number }
  | { readonly kind: 'look'; readonly body: Node }
  | { readonly kind: 'assertion'; readonly source: string }

/** More copies than this count as any number of them… */
const MAX_COPIES = 24
/** …up to this number not for restarts: that many steps for each offset are linear still. */
const MAX_BOUND = 512

const LINE_ENDS = /[\n\r\u2028\u2029]/

/** Why an expression is not linear, with a text to be repeated; null for one that is. */
export function growthOf(source: string, flags: string): string | null {
  let tree: Node
  try {
    tree = new Parser(source).parse()
  } catch (error) {
    if (error instanceof Unprovable) return error.message
    throw error
  }
  return (
    new Automaton(tree, flags, MAX_COPIES).growth(false) ??
    new Automaton(tree, flags, MAX_BOUND).growth(true)
  )
}

class Unprovable extends Error {}

/** Splits a pattern into its parts; what a single character matches is left to `RegExp`. */
class Parser {
  readonly #source: string
  #at = 0

  constructor(source: string) {
    this.#source = source
  }

  parse(): Node {
    const node = this.#choice()
    if (this.#at < this.#source.length) throw new Unprovable(`not understood: ${this.#source}`)
    return node
  }

  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false
    this.#at += text.length
    return true
  }

  #choice(): Node {
    const parts = [this.#sequence()]
    while (this.#take('|')) parts.push(this.#sequence())
    return parts.length === 1 ? parts[0]! : { kind: 'choice', parts }
  }

  #sequence(): Node {
    const parts: Node[] = []
    while (this.#at < this.#source.length && !/[|)]/.test(this.#source[this.#at]!)) {
      parts.push(this.#quantified(this.#atom()))
    }
    return { kind: 'sequence', parts }
  }

  #atom(): Node {
    if (this.#take('(?=') || this.#take('(?!')) return { kind: 'look', body: this.#group() }
    if (this.#take('(?<=') || this.#take('(?<!')) {
      const isNot = this.#source[this.#at - 1] === '!'
      const body = this.#group()
      if (hasLoop(body)) throw new Unprovable('a lookbehind of any length')
      const only = body.kind === 'sequence' && body.parts.length === 1 ? body.parts[0] : undefined
      const source = only?.kind === 'char' ? `${isNot ? '!' : '='}${only.source}` : '(?<=)'
      return { kind: 'assertion', source }
    }
    if (this.#take('(')) {
      const name = /^\?(?::|<\w+>)/.exec(this.#source.slice(this.#at))?.[0] ?? ''
      this.#at += name.length
      return this.#group()
    }
    const pattern =
      /\[(?:[^\]\\]|\\[^])*\]|\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[\da-f]{4}|x[\da-f]{2}|k<\w+>|[^])|[^]/iy
    pattern.lastIndex = this.#at
    const source = pattern.exec(this.#source)![0]
    this.#at += source.length
    if (/^\\(?:[1-9]|k<)/.test(source)) throw new Unprovable('a back reference')
    if (/^(?:[$^]|\\[bB])$/.test(source)) return { kind: 'assertion', source }
    return { kind: 'char', source }
  }

  #group(): Node {
    const node = this.#choice()
    if (!this.#take(')')) throw new Unprovable(`not understood: ${this.#source}`)
    return node
  }

  #quantified(body: Node): Node {
    const pattern = /(?:([*+?])|\{(\d+)(,?)(\d*)\})\??/y
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#source)
    if (match === null) return body
    this.#at += match[0].length
    const [, sign, min, comma, max] = match
    if (sign !== undefined) {
      return { kind: 'repeat', body, min: sign === '+' ? 1 : 0, max: sign === '?' ? 1 : Infinity }
    }
    const most = comma === '' ? Number(min) : max === '' ? Infinity : Number(max)
    return { kind: 'repeat', body, min: Number(min), max: most }
  }
}

function hasLoop(node: Node): boolean {
  if (node.kind === 'repeat') return node.max > MAX_COPIES || hasLoop(node.body)
  if (node.kind === 'look') return hasLoop(node.body)
  return 'parts' in node && node.parts.some(hasLoop)
}

/** A point between characters: where the engine may go from here. */
interface Point {
  readonly steps: { readonly to: Point; readonly assertion: string | null }[]
  /** The character that is read here, by its number, before the only step. */
  char: number | null
  isEnd: boolean
}

/** A way from one character to the next. */
interface Edge {
  readonly to: number
  readonly assertions: readonly string[]
}

class Automaton {
  readonly #flags: string
  /** The highest bound of a repetition that is no loop. */
  readonly #longest: number
  readonly #points: Point[] = []
  readonly #sources: string[] = []
  /** Where each character leads; the last entry is where the search begins. */
  readonly #edges: Edge[][] = []
  readonly #ends: boolean[] = []
  /** For each character, one bit for every representative of the alphabet. */
  readonly #sets: bigint[]
  readonly #alphabet: readonly string[]

  constructor(tree: Node, flags: string, longest: number) {
    this.#flags = flags
    this.#longest = longest
    const end = this.#point()
    end.isEnd = true
    const begin = this.#build(tree, end)
    const chars = this.#points.filter((point) => point.char !== null)
    chars.sort((a, b) => a.char! - b.char!)
    for (const point of [...chars.map((char) => char.steps[0]!.to), begin]) {
      const edges: Edge[] = []
      this.#ends.push(this.#walk(point, [], [], edges))
      this.#edges.push(edges)
    }
    const behind = this.#edges.flat().flatMap(({ assertions }) => assertions.flatMap(behindOf))
    const sources = [...new Set([...this.#sources, ...behind])]
    const tests = sources.map((source) => this.#test(source))
    this.#alphabet = distinct(representatives(sources), tests)
    const sets = new Map(sources.map((source, i) => [source, this.#set(tests[i]!)]))
    this.#sets = this.#sources.map((source) => sets.get(source)!)
  }

  #test(source: string): RegExp {
    return new RegExp(`^${source}$`, this.#flags.replaceAll(/[gmy]/g, ''))
  }

  #set(test: RegExp): bigint {
    const bits = this.#alphabet.map((char, i) => (test.test(char) ? 1n << BigInt(i) : 0n))
    return bits.reduce((set, bit) => set | bit, 0n)
  }

  #point(): Point {
    const point: Point = { steps: [], char: null, isEnd: false }
    this.#points.push(point)
    return point
  }

  /** The point from which `node` is matched, and then what follows at `next`. */
  #build(node: Node, next: Point): Point {
    if (node.kind === 'sequence') {
      return node.parts.reduceRight((after, part) => this.#build(part, after), next)
    }
    const point = this.#point()
    if (node.kind === 'char') {
      point.char = this.#sources.push(node.source) - 1
      point.steps.push({ to: next, assertion: null })
    } else if (node.kind === 'choice') {
      for (const part of node.parts) {
        point.steps.push({ to: this.#build(part, next), assertion: null })
      }
    } else if (node.kind === 'assertion') point.steps.push({ to: next, assertion: node.source })
    else if (node.kind === 'look') {
      // Its end leads nowhere, and is no success of the whole.
      point.steps.push({ to: this.#build(node.body, this.#point()), assertion: '(?=)' })
      point.steps.push({ to: next, assertion: '(?=)' })
    } else return this.#repeat(node, next)
    return point
  }

  #repeat(node: Extract<Node, { kind: 'repeat' }>, next: Point): Point {
    const isLoop = node.max > this.#longest
    let point = next
    if (isLoop) {
      point = this.#point()
      point.steps.push({ to: this.#build(node.body, point), assertion: null })
      point.steps.push({ to: next, assertion: null })
    }
    for (let i = isLoop ? 0 : Math.min(node.max - node.min, MAX_COPIES); i > 0; i--) {
      const optional = this.#point()
      optional.steps.push({ to: this.#build(node.body, point), assertion: null })
      optional.steps.push({ to: next, assertion: null })
      point = optional
    }
    for (let i = Math.min(node.min, MAX_COPIES); i > 0; i--) point = this.#build(node.body, point)
    return point
  }

  /** Adds each way from `point` to a character; true when the end is reached unconditionally. */
  #walk(
    point: Point,
    assertions: readonly string[],
    path: readonly Point[],
    edges: Edge[],
  ): boolean {
    if (point.isEnd) return assertions.length === 0
    if (point.char !== null) {
      edges.push({ to: point.char, assertions })
      return false
    }
    // Twice: `(a*)*` leaves the inner loop and enters it again in the next round of the outer one.
    if (path.filter((one) => one === point).length === 2) return false
    let ends = false
    for (const { to, assertion } of point.steps) {
      const more = assertion === null ? assertions : [...assertions, assertion]
      ends = this.#walk(to, more, [...path, point], edges) || ends
    }
    return ends
  }

  /** With `restarts`, only what is due to them, else only all other growth. */
  growth(restarts: boolean): string | null {
    const begin = this.#sources.length
    const undecided = this.#edges.map((list) => list.filter(({ to }) => !this.#ends[to]))
    const reach = this.#edges.map((_, from) => reachable(this.#edges, from))
    const inner = undecided.map((_, from) => reachable(undecided, from))
    const loops = [...this.#sources.keys()].filter((state) => reach[state]!.has(state))
    for (const state of loops) {
      // Repeated work is done in loops without a success on the way.
      if (this.#ends[state]! || !inner[state]!.has(state) || !reach[begin]!.has(state)) continue
      const found = restarts
        ? this.#restarted(undecided, state)
        : (this.#exponential(undecided, inner, state) ??
          this.#polynomial(undecided, reach, inner, state, loops))
      if (found !== null) return found
    }
    return null
  }

  /** Two ways around one loop. */
  #exponential(undecided: Edge[][], reach: Set<number>[], state: number): string | null {
    const inLoop = undecided.map((list) => list.filter(({ to }) => reach[to]!.has(state)))
    for (const list of inLoop) {
      const targets = list.map(({ to }) => to)
      const twice = targets.find((to, i) => targets.indexOf(to) !== i)
      if (twice !== undefined && reach[state]!.has(twice)) {
        return this.#say('exponential', this.#one(this.#sets[twice]!))
      }
    }
    const text = this.#search([inLoop, inLoop], [state, state], [state, state], { apart: true })
    return text === null ? null : this.#say('exponential', text)
  }

  /** A loop that every new offset of the search enters again. */
  #restarted(undecided: Edge[][], state: number): string | null {
    if (this.#flags.includes('y')) return null
    const begin = this.#sources.length
    for (const edge of this.#edges[begin]!) {
      for (const { before, first } of this.#contexts(edge.assertions)) {
        const edges = [...this.#edges.slice(0, begin), [edge]]
        const automata = [edges, undecided]
        const text = this.#search(automata, [begin, state], [state, state], { before, first })
        if (text !== null) return this.#say('restarted', text)
      }
    }
    return null
  }

  /** Which characters may stand before and at the beginning of a match, by its assertions. */
  #contexts(assertions: readonly string[]): readonly { before: bigint; first: bigint }[] {
    let contexts = [{ before: -1n, first: -1n }]
    for (const one of assertions) {
      const only = (before: bigint, first = -1n): void => {
        contexts = contexts.map((old) => ({
          before: old.before & before,
          first: old.first & first,
        }))
      }
      if (one === '^') only(this.#flags.includes('m') ? this.#set(LINE_ENDS) : 0n)
      else if (one.startsWith('=')) only(this.#set(this.#test(one.slice(1))))
      else if (one.startsWith('!')) only(~this.#set(this.#test(one.slice(1))))
      else if (one === '\\b') {
        const word = this.#set(/\w/)
        contexts = contexts.flatMap(({ before, first }) => [
          { before: before & word, first: first & ~word },
          { before: before & ~word, first: first & word },
        ])
      }
    }
    return contexts
  }

  /** A loop that leads to this one over the same text. */
  #polynomial(
    undecided: Edge[][],
    reach: Set<number>[],
    inner: Set<number>[],
    state: number,
    loops: readonly number[],
  ): string | null {
    for (const earlier of loops) {
      // Two loops in one were seen by the search for exponential growth.
      const isSame = inner[state]!.has(earlier) && inner[earlier]!.has(state)
      if (isSame || !reach[earlier]!.has(state)) continue
      const first = this.#edges.map((list) => list.filter(({ to }) => reach[to]!.has(earlier)))
      const automata = [first, undecided, undecided]
      const text = this.#search(automata, [earlier, earlier, state], [earlier, state, state])
      if (text !== null) return this.#say('polynomial', text)
    }
    return null
  }

  /**
   * The shortest text over which all automata go from one set of states to another: `apart` if they
   * differ on the way, with a `first` character of that set, and a last one of the set `before`.
   */
  #search(
    automata: readonly Edge[][][],
    from: readonly number[],
    to: readonly number[],
    { apart = false, first = -1n, before = -1n } = {},
  ): string | null {
    let level = [{ states: from, differs: false, text: '' }]
    const seen = new Set<string>()
    while (level.length > 0) {
      const below: typeof level = []
      for (const { states, differs, text } of level) {
        for (const { next, set } of this.#together(automata, states, text === '' ? first : -1n)) {
          const isApart = differs || next.some((state) => state !== next[0])
          const last = this.#one(set & before)
          if (last !== '' && (isApart || !apart) && next.every((state, i) => state === to[i])) {
            return text + last
          }
          const key = `${next.join()} ${isApart}`
          if (seen.has(key)) continue
          seen.add(key)
          below.push({ states: next, differs: isApart, text: text + this.#one(set) })
        }
      }
      level = below
    }
    return null
  }

  *#together(
    automata: readonly Edge[][][],
    states: readonly number[],
    set: bigint,
    i = 0,
  ): Generator<{ readonly next: readonly number[]; readonly set: bigint }> {
    if (i === states.length) {
      yield { next: [], set }
      return
    }
    for (const { to } of automata[i]![states[i]!]!) {
      const both = set & this.#sets[to]!
      if (both === 0n) continue
      for (const rest of this.#together(automata, states, both, i + 1)) {
        yield { next: [to, ...rest.next], set: rest.set }
      }
    }
  }

  #one(set: bigint): string {
    return this.#alphabet.find((_, i) => (set & (1n << BigInt(i))) !== 0n) ?? ''
  }

  #say(growth: string, text: string): string {
    return `${growth}, for example over repeated ${JSON.stringify(text)}`
  }
}

/** What a lookbehind wants the character before to be, or not to be. */
function behindOf(assertion: string): readonly string[] {
  return /^[!=]/.test(assertion) ? [assertion.slice(1)] : []
}

function reachable(edges: readonly Edge[][], from: number): Set<number> {
  const seen = new Set<number>()
  const open = [from]
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    for (const { to } of edges[state]!) {
      if (seen.has(to)) continue
      seen.add(to)
      open.push(to)
    }
  }
  return seen
}

/** Characters of every kind that these sources can tell apart: ends of ranges, and beyond. */
function representatives(sources: readonly string[]): readonly string[] {
  const found = new Set('aAzZ09_ \t\n\r\v"\'!~\0\x7f\x85\xa0é\u1680\u2028\ufeff\u200b中'.split(''))
  for (const chars of ['\ud800', '\udc00', '😀', '\u0345', '\u00ad', '\u202e', '\ufffd', 'ſ', 'K']) {
    found.add(chars)
  }
  for (const source of sources) {
    const pattern = /\\u\{([\da-f]+)\}|\\u([\da-f]{4})|\\x([\da-f]{2})|\\?([^])/giu
    for (const [, long, short, byte, char] of source.matchAll(pattern)) {
      const hex = long ?? short ?? byte
      const code = hex === undefined ? char!.codePointAt(0)! : Number.parseInt(hex, 16)
      for (const near of [code - 1, code, code + 1]) {
        if (near >= 0 && near <= 0x10ffff) found.add(String.fromCodePoint(near))
      }
    }
  }
  return [...found]
}

/** Of characters that all tests treat alike, the first. */
function distinct(chars: readonly string[], tests: readonly RegExp[]): readonly string[] {
  const kinds = new Map<string, string>()
  for (const char of chars) {
    const kind = tests.map((test) => (test.test(char) ? '1' : '0')).join('')
    const key = `${kind} ${LINE_ENDS.test(char)} ${/\w/.test(char)}`
    if (kind.includes('1') && !kinds.has(key)) kinds.set(key, char)
  }
  return [...kinds.values()]
}
