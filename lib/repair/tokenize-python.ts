import { matchBrackets, type Token, type TokenKind } from './token.js'

const KEYWORDS: ReadonlySet<string> = new Set(
  (
    'False None True and as assert async await break class continue def del elif else except ' +
    'finally for from global if import in is lambda nonlocal not or pass raise return try while ' +
    'with yield'
  ).split(' '),
)

const PUNCTUATORS: readonly string[] = [
  '**=',
  '//=',
  '>>=',
  '<<=',
  '...',
  '->',
  ':=',
  '==',
  '!=',
  '<=',
  '>=',
  '**',
  '//',
  '<<',
  '>>',
  '+=',
  '-=',
  '*=',
  '/=',
  '%=',
  '&=',
  '|=',
  '^=',
  '@=',
]

const NAME = /[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*/y
const NUMBER = /0[xXbBoO][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?[jJ]?/y
const STRING = /[A-Za-z]{0,2}('''|"""|'|")/y

/** Splits Python into tokens. Like the JavaScript tokenizer, it never fails. */
export function tokenizePython(text: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  let line = 1
  let lineStart = 0
  let fresh = true
  let indent = 0
  let depth = 0

  const push = (kind: TokenKind, end: number): void => {
    const piece = text.slice(at, end)
    if (fresh) indent = at - lineStart
    tokens.push({ kind, text: piece, start: at, end, line, first: fresh, indent, match: -1 })
    fresh = false
    for (let i = at; i < end; i++) {
      if (text[i] !== '\n') continue
      line++
      lineStart = i + 1
    }
    at = end
  }
  const match = (pattern: RegExp): number => {
    pattern.lastIndex = at
    return pattern.test(text) ? pattern.lastIndex : -1
  }

  while (at < text.length) {
    const char = text[at]!
    if (char === '\n') {
      at++
      line++
      lineStart = at
      if (depth === 0) fresh = true
    } else if (char === '\\' && /^\r?\n/.test(text.slice(at + 1, at + 3))) {
      at = text.indexOf('\n', at) + 1
      line++
      lineStart = at
    } else if (/\s|\ufeff/.test(char)) {
      at++
    } else if (char === '#') {
      const end = text.indexOf('\n', at)
      at = end < 0 ? text.length : end
    } else if (/[0-9]/.test(char) || (char === '.' && /[0-9]/.test(text[at + 1] ?? ''))) {
      push('number', Math.max(match(NUMBER), at + 1))
    } else {
      const quoted = match(STRING)
      if (quoted > at && /['"]/.test(text[quoted - 1]!)) {
        push('string', stringEnd(text, at, quoted))
        continue
      }
      const nameEnd = match(NAME)
      if (nameEnd > at) {
        push(KEYWORDS.has(text.slice(at, nameEnd)) ? 'keyword' : 'name', nameEnd)
        continue
      }
      if ('([{'.includes(char)) depth++
      if (')]}'.includes(char)) depth = Math.max(0, depth - 1)
      const long = PUNCTUATORS.find((punctuator) => text.startsWith(punctuator, at))
      push('punctuator', at + (long?.length ?? 1))
    }
  }
  matchBrackets(tokens)
  return tokens
}

/** End of the string whose opening quote ends at `open`. */
function stringEnd(text: string, from: number, open: number): number {
  const quote = /('''|"""|'|")$/.exec(text.slice(from, open))![1]!
  for (let i = open; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text.startsWith(quote, i)) return i + quote.length
    else if (text[i] === '\n' && quote.length === 1) return i
  }
  return text.length
}
