import { matchBrackets, type Token, type TokenKind } from './token.js'

const KEYWORDS: ReadonlySet<string> = new Set(
  (
    'await break case catch class const continue debugger default delete do else export extends ' +
    'finally for function if import in instanceof let new return static super switch this throw ' +
    'try typeof var void while with yield async of true false null undefined'
  ).split(' '),
)

/** Keywords that end an expression, so that a slash after them is a division. */
const VALUES: ReadonlySet<string> = new Set(['this', 'super', 'true', 'false', 'null', 'undefined'])

const PUNCTUATORS: readonly string[] = [
  '>>>=',
  '...',
  '===',
  '!==',
  '**=',
  '<<=',
  '>>=',
  '>>>',
  '&&=',
  '||=',
  '??=',
  '=>',
  '==',
  '!=',
  '<=',
  '>=',
  '&&',
  '||',
  '??',
  '?.',
  '++',
  '--',
  '+=',
  '-=',
  '*=',
  '/=',
  '%=',
  '&=',
  '|=',
  '^=',
  '<<',
  '>>',
  '**',
]

const NAME = /[#A-Za-z_$\u0080-\uffff][\w$\u0080-\uffff]*/y
const NUMBER = /0[xXbBoO][\da-fA-F_]+n?|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?n?/y

/**
 * Splits JavaScript or TypeScript into tokens. It never fails: an unknown character becomes a
 * punctuator, and an unterminated string ends with its line.
 */
export function tokenizeJavaScript(text: string): Token[] {
  const tokens: Token[] = []
  /** For each open `${`, the number of open braces inside it. */
  const templates: number[] = []
  let at = 0
  let line = 1
  let lineStart = 0
  let fresh = true
  let indent = 0

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
      fresh = true
    } else if (char === ' ' || char === '\t' || char === '\r' || char === '\ufeff') {
      at++
    } else if (text.startsWith('//', at) || (at === 0 && text.startsWith('#!'))) {
      const end = text.indexOf('\n', at)
      at = end < 0 ? text.length : end
    } else if (text.startsWith('/*', at)) {
      const close = text.indexOf('*/', at + 2)
      const end = close < 0 ? text.length : close + 2
      for (; at < end; at++) {
        if (text[at] !== '\n') continue
        line++
        lineStart = at + 1
        fresh = true
      }
    } else if (char === "'" || char === '"') {
      push('string', stringEnd(text, at))
    } else if (char === '`') {
      const part = templateEnd(text, at + 1)
      if (part.opens) templates.push(0)
      push('template', part.end)
    } else if (char === '}' && templates.at(-1) === 0) {
      const part = templateEnd(text, at + 1)
      if (!part.opens) templates.pop()
      push('template', part.end)
    } else if (char === '/' && regexMayStart(tokens)) {
      push('regex', regexEnd(text, at))
    } else if (/[0-9]/.test(char) || (char === '.' && /[0-9]/.test(text[at + 1] ?? ''))) {
      push('number', Math.max(match(NUMBER), at + 1))
    } else {
      const nameEnd = match(NAME)
      if (nameEnd > at) {
        const word = text.slice(at, nameEnd)
        push(isKeyword(word, tokens, text, nameEnd) ? 'keyword' : 'name', nameEnd)
        continue
      }
      if (templates.length > 0 && (char === '{' || char === '}')) {
        templates[templates.length - 1]! += char === '{' ? 1 : -1
      }
      const long = PUNCTUATORS.find((punctuator) => text.startsWith(punctuator, at))
      const optional = long === '?.' && /[0-9]/.test(text[at + 2] ?? '')
      push('punctuator', at + (long === undefined || optional ? 1 : long.length))
    }
  }
  matchBrackets(tokens)
  return tokens
}

function isKeyword(word: string, tokens: readonly Token[], text: string, end: number): boolean {
  if (!KEYWORDS.has(word)) return false
  const before = tokens.at(-1)?.text
  if (before === '.' || before === '?.') return false
  return !/^\s*:(?!:)/.test(text.slice(end, end + 8)) || word === 'default' || VALUES.has(word)
}

function stringEnd(text: string, from: number): number {
  const quote = text[from]
  for (let i = from + 1; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === quote) return i + 1
    else if (text[i] === '\n') return i
  }
  return text.length
}

function templateEnd(text: string, from: number): { end: number; opens: boolean } {
  for (let i = from; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === '`') return { end: i + 1, opens: false }
    else if (text[i] === '$' && text[i + 1] === '{') return { end: i + 2, opens: true }
  }
  return { end: text.length, opens: false }
}

function regexMayStart(tokens: readonly Token[]): boolean {
  const last = tokens.at(-1)
  if (last === undefined) return true
  if (last.kind === 'punctuator') return ![')', ']', '}', '++', '--'].includes(last.text)
  if (last.kind === 'template') return last.text.endsWith('${')
  return last.kind === 'keyword' && !VALUES.has(last.text)
}

function regexEnd(text: string, from: number): number {
  let inClass = false
  for (let i = from + 1; i < text.length; i++) {
    const char = text[i]
    if (char === '\\') i++
    else if (char === '[') inClass = true
    else if (char === ']') inClass = false
    else if (char === '\n') return from + 1
    else if (char === '/' && !inClass) {
      let end = i + 1
      while (/[a-z]/.test(text[end] ?? '')) end++
      return end
    }
  }
  return from + 1
}
