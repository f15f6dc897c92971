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
  return !file.regions.some(
    ({ kind, first, name }) => kind === 'function' && first === open - 1 && name === before.text,
  )
}
