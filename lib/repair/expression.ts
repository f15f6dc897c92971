import type { SourceFile } from './source.js'
import type { Token } from './token.js'

const VALUE_WORDS: ReadonlySet<string> = new Set([
  'this',
  'super',
  'true',
  'false',
  'null',
  'undefined',
  'True',
  'False',
  'None',
])

/** Whether an expression can end with this token, which tells a binary minus from a sign. */
export function endsOperand(token: Token | undefined): boolean {
  if (token === undefined) return false
  if (token.kind === 'punctuator')
    return token.text === ')' || token.text === ']' || token.text === '}'
  if (token.kind === 'keyword') return VALUE_WORDS.has(token.text)
  return token.kind !== 'template' || token.text.endsWith('`')
}

/** The first token of the member or call chain that ends at `last`: `a` of `a.b(c)[d]`. */
export function operandStart(tokens: readonly Token[], last: number): number {
  let at = last
  for (;;) {
    const token = tokens[at]!
    if (token.kind === 'punctuator' && token.match >= 0 && token.match < at) {
      at = token.match
      const before = tokens[at - 1]
      const applied =
        before !== undefined && !tokens[at]!.first && token.text !== '}' && endsOperand(before)
      if (applied) {
        at--
        continue
      }
    }
    if (tokens[at - 1]?.text === '.' || tokens[at - 1]?.text === '?.') {
      at -= 2
      if (at < 0) return 0
      continue
    }
    return at
  }
}

/** The last token of the chain that starts at `first`, which may be a sign or `await`. */
export function operandEnd(tokens: readonly Token[], first: number): number {
  let at = first
  while (
    at + 1 < tokens.length &&
    ['-', '+', '!', '~', 'not', 'new', 'await', 'typeof'].includes(tokens[at]!.text)
  )
    at++
  const token = tokens[at]!
  if (token.match > at) at = token.match
  else if (token.kind === 'template' && token.text.endsWith('${')) at = templateEnd(tokens, at)
  for (;;) {
    const next = tokens[at + 1]
    if (next === undefined) return at
    if ((next.text === '.' || next.text === '?.') && tokens[at + 2] !== undefined) {
      at += 2
      if (tokens[at]!.match > at) at = tokens[at]!.match
    } else if ((next.text === '(' || next.text === '[') && !next.first && next.match > at)
      at = next.match
    else return at
  }
}

function templateEnd(tokens: readonly Token[], from: number): number {
  let depth = 0
  for (let at = from; at < tokens.length; at++) {
    const { kind, text } = tokens[at]!
    if (kind !== 'template') continue
    if (text.startsWith('`') && text.endsWith('${')) depth++
    if (!text.startsWith('`') && text.endsWith('`')) depth--
    if (depth === 0) return at
  }
  return tokens.length - 1
}

/** The non-empty parts between commas in the bracket at `open`, as first and last token. */
export function partsOf(tokens: readonly Token[], open: number): { first: number; last: number }[] {
  const close = tokens[open]!.match
  const parts: { first: number; last: number }[] = []
  let first = open + 1
  for (let at = open + 1; at <= close; at++) {
    const { text, match } = tokens[at]!
    if (at === close || text === ',') {
      if (first < at) parts.push({ first, last: at - 1 })
      first = at + 1
    } else if (match > at) at = match
  }
  return parts
}

/** Whether the bracket at `open` holds a comprehension of Python, which nothing stands beside. */
export function isComprehension({ tokens, language }: SourceFile, open: number): boolean {
  const close = tokens[open]!.match
  for (let at = open + 1; language === 'python' && at < close; at++) {
    const { kind, text, match } = tokens[at]!
    if (kind === 'keyword' && text === 'for') return true
    if (match > at) at = match
  }
  return false
}

/** The source of the tokens from `first` to `last`. */
export function textOf(file: SourceFile, first: number, last: number): string {
  return file.text.slice(file.tokens[first]!.start, file.tokens[last]!.end)
}

/** Whether this parenthesis is the argument list of a call, not a declaration or a grouping. */
export function isCall(file: SourceFile, open: number): boolean {
  const before = file.tokens[open - 1]
  if (before === undefined || file.tokens[open]!.text !== '(' || file.tokens[open]!.match < 0)
    return false
  if (
    before.kind !== 'name' &&
    before.text !== ')' &&
    before.text !== ']' &&
    before.text !== 'super'
  )
    return false
  const twoBefore = file.tokens[open - 2]?.text
  if (twoBefore === 'function' || twoBefore === 'def' || twoBefore === 'class') return false
  return !headsOf(file).has(open - 1)
}

const heads = new WeakMap<SourceFile, ReadonlySet<number>>()

/** Tokens at which a function is declared by its name, as methods are. */
export function headsOf(file: SourceFile): ReadonlySet<number> {
  const known = heads.get(file)
  if (known !== undefined) return known
  const found = new Set<number>()
  for (const { kind, first, name } of file.regions)
    if (kind === 'function' && file.tokens[first]!.text === name) found.add(first)
  heads.set(file, found)
  return found
}

/** A part of a file, as its first and last token. */
export interface Span {
  readonly first: number
  readonly last: number
}

const LOGICAL: ReadonlySet<string> = new Set(['&&', '||', '??', 'and', 'or'])

/** Whether this is a logical operator and not a string or name that looks like one. */
export function isLogical(token: Token | undefined): boolean {
  return (
    token !== undefined &&
    (token.kind === 'punctuator' || token.kind === 'keyword') &&
    LOGICAL.has(token.text)
  )
}

/** The condition of the `if`, `elif` or `while` at `at`, without its parentheses; or null. */
export function conditionOf(file: SourceFile, at: number): Span | null {
  const { tokens } = file
  const token = tokens[at]!
  if (token.kind !== 'keyword' || !['if', 'while', 'elif'].includes(token.text)) return null
  const next = tokens[at + 1]
  if (next === undefined) return null
  if (file.language !== 'python')
    return next.text === '(' && next.match > at + 2 ? { first: at + 2, last: next.match - 1 } : null
  for (let i = at + 1; i < tokens.length; i++) {
    const { text, match, first, kind } = tokens[i]!
    const ends =
      kind !== 'string' && (text === ':' || text === 'else' || text === 'for' || text === ',')
    if (first || ends || text === ')' || text === ']' || text === '}' || text === 'if')
      return i > at + 1 ? { first: at + 1, last: i - 1 } : null
    if (match > i) i = match
  }
  return null
}

const BEFORE: ReadonlySet<string> = new Set(
  '( { [ , ; = => ? : += -= return if elif while yield throw else ${ || or ?? && and'.split(' '),
)
const AFTER: ReadonlySet<string> = new Set(') ] } , ; ? : if else for || or ?? && and'.split(' '))

/** Where the left operand of the logical operator or `?` at `at` starts. */
export function leftOperand(file: SourceFile, at: number, whole: boolean): number {
  const { tokens } = file
  let first = at - 1
  for (; first >= 0; first--) {
    const token = tokens[first]!
    if (token.match >= 0 && token.match < first) {
      first = token.match
      continue
    }
    if (token.kind === 'template' && token.text.endsWith('${')) break
    if (token.kind !== 'string' && BEFORE.has(token.text) && !(whole && isLogical(token))) break
    if (token.first && (file.language === 'python' || token.kind === 'keyword')) return first
    if (token.first && tokens[first - 1]?.text === '}' && token.kind === 'name') return first
  }
  return first + 1
}

/** Where the right operand of the logical operator at `at` ends. */
export function rightOperand(file: SourceFile, at: number, whole: boolean): number {
  const { tokens } = file
  let last = at + 1
  for (; last < tokens.length; last++) {
    const token = tokens[last]!
    if (token.match > last) {
      last = token.match
      continue
    }
    if (token.kind === 'template' && token.text.startsWith('}')) break
    if (token.kind !== 'string' && AFTER.has(token.text) && !(whole && isLogical(token))) break
    if (token.first && last > at + 1) {
      if (file.language === 'python' || ['keyword', 'name'].includes(token.kind)) break
    }
  }
  return last - 1
}

/** The parts of a condition between its logical operators outside of brackets. */
export function conjuncts(file: SourceFile, { first, last }: Span): Span[] {
  const found: Span[] = []
  let from = first
  for (let at = first; at <= last + 1; at++) {
    const token = file.tokens[at]
    if (at === last + 1 || isLogical(token)) {
      if (from < at) found.push({ first: from, last: at - 1 })
      from = at + 1
    } else if (token !== undefined && token.match > at) at = token.match
  }
  return found
}
