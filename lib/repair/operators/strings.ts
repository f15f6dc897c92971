import { lowerBound } from '../../internal/queues.js'
import { similarity } from '../similarity.js'
import { isKeyString, type SourceFile } from '../source.js'
import { stringBody, type Token } from '../token.js'
import type { Operator, OperatorContext } from './patch.js'
import { type Alternative, spread } from './spread.js'

/** Separators that are easily confused. */
const PUNCTUATION: readonly string[] = [
  '',
  ' ',
  ',',
  ', ',
  '-',
  '_',
  '.',
  ':',
  ': ',
  ';',
  '/',
  '\\n',
  '|',
  '&',
  '=',
  '+',
  '#',
  '0',
]

/**
 * Replaces a string: by one derived from expected and actual values, by one that a failing test
 * uses and this file misspells, by another separator, or by another case.
 */
export const string: Operator = (context, at) => {
  const { file, clues } = context
  const token = file.tokens[at]!
  if (token.kind === 'template') return template(context, at)
  const parsed = token.kind === 'string' ? stringBody(token.text) : null
  if (parsed === null || parsed.body.length > 120) return
  if (['from', 'import'].includes(file.tokens[at - 1]?.text ?? '')) return
  const put = (body: string, weight: number): void => {
    if (body === parsed.body || body.includes('\n') || body.includes(parsed.quote)) return
    context.replace(at, at, parsed.prefix + parsed.quote + body + parsed.quote, 'string', weight)
  }
  for (const [body, weight] of alternatives(parsed.body, clues.strings, clues.testStrings))
    put(body, weight)
  if (isKeyString(file, at)) {
    const isMissing = clues.missing.has(parsed.body)
    const others = [...clues.keys].map(([other, count]): Alternative => [
      other,
      (0.4 + similarity(parsed.body, other)) * (count > 1 ? 1.1 : 1),
    ])
    for (const [other, weight] of spread(others, isMissing ? 6 : 1, 16)) put(other, weight)
  }
  const isType = file.language !== 'python' && isComparedType(context, at)
  const others = isType ? types(parsed.body) : neighbours(context, at, parsed.body)
  // No value has a type of another name.
  const mass = isType && !TYPES.includes(parsed.body) ? 3 : parsed.body === '' ? 2 : 0.7
  for (const [body, weight] of spread(others, mass, 24)) put(body, weight)
  const closed = withClosed(parsed.body)
  if (closed !== null) put(closed, 0.6)
  if (parsed.body.length > 1) {
    put(parsed.body.toLowerCase(), 0.06)
    put(parsed.body.toUpperCase(), 0.05)
    put(parsed.body.trim(), 0.3)
  }
  if (parsed.body !== '') put('', 0.15)
}

/** Positions of the short strings of a file, ascending. */
const positions = new WeakMap<SourceFile, readonly number[]>()

function stringsOf(file: SourceFile): readonly number[] {
  const before = positions.get(file)
  if (before !== undefined) return before
  const found = file.tokens.flatMap(({ kind, text }, at) =>
    kind === 'string' && text.length <= 40 && !text.startsWith('"""') ? [at] : [],
  )
  positions.set(file, found)
  return found
}

const TYPES: readonly string[] =
  'string number boolean object function undefined symbol bigint'.split(' ')
const REACH = 16

/** Whether a string is what `typeof` is compared with. */
function isComparedType({ file: { tokens } }: OperatorContext, at: number): boolean {
  if (tokens.slice(Math.max(0, at - 5), at).some(({ text }) => text === 'typeof')) return true
  if (tokens[at - 1]?.text === 'case') return isCaseOfType(tokens, at - 1)
  return /^[!=]==?$/.test(tokens[at + 1]?.text ?? '') && tokens[at + 2]?.text === 'typeof'
}

/** Whether a `case` is one of `switch (typeof …)`. */
function isCaseOfType(tokens: readonly Token[], at: number): boolean {
  for (let i = at - 1; i >= 0; i--) {
    const { match, text } = tokens[i]!
    if (match >= 0 && match < i) i = match
    else if (text === '{') {
      const open = tokens[i - 1]?.match ?? -1
      return tokens[open - 1]?.text === 'switch' && tokens[open + 1]?.text === 'typeof'
    }
  }
  return false
}

function types(body: string): Alternative[] {
  return TYPES.filter((type) => type !== body).map((type) => {
    const usual = type === 'object' || type === 'string' ? 1.5 : 0.9
    return [type, usual + 8 * Math.max(0, similarity(body, type) - 0.6)]
  })
}

const BRACKETS: readonly string[] = ['[]', '()', '{}', '<>']

/** With the one bracket that lacks its other one; null when none or more do. */
function withClosed(body: string): string | null {
  const count = (sign: string): number => body.split(sign).length - 1
  const lacking = BRACKETS.flatMap(([open, close]) => {
    const more = count(open!) - count(close!)
    return more === 0 ? [] : [more === 1 ? body + close! : more === -1 ? open! + body : null]
  })
  return lacking.length === 1 && body.length > 2 ? lacking[0]! : null
}

/** What else a literal may say: strings near it, most of all those used in the same way. */
function neighbours({ file, clues }: OperatorContext, at: number, body: string): Alternative[] {
  const { tokens } = file
  const found = new Map<string, number>()
  const add = (text: string, strength: number): void => {
    if (text !== body) found.set(text, (found.get(text) ?? 0) + strength)
  }
  const before = tokens[at - 1]?.text
  const twoBefore = tokens[at - 2]?.text
  const all = stringsOf(file)
  const own = lowerBound(all.length, (i) => all[i]! < at)
  const isEmpty = body === ''
  const from = Math.max(0, own - REACH)
  for (let i = from; i < Math.min(all.length, own + REACH + 1); i++) {
    const place = all[i]!
    if (place === at) continue
    const other = stringBody(tokens[place]!.text)?.body
    if (other === undefined || other.includes('\n')) continue
    const alike = tokens[place - 1]?.text === before ? 0.5 : 0
    const same = alike > 0 && tokens[place - 2]?.text === twoBefore ? 0.8 : 0
    const likeness = isEmpty ? 0.3 : similarity(body, other)
    add(other, ((0.25 + alike + same) * (0.4 + likeness)) / (1 + 0.04 * Math.abs(i - own)))
  }
  if (PUNCTUATION.includes(body))
    for (const other of PUNCTUATION)
      add(other, other.trim() === '' || other === '-' || other === ', ' ? 0.3 : 0.18)
  if (isEmpty) {
    let read = 0
    for (const other of clues.testStrings) {
      if (read++ >= 40) break
      add(other, 0.12)
    }
  }
  return [...found]
}

function template(context: OperatorContext, at: number): void {
  const { file, clues } = context
  const { text } = file.tokens[at]!
  const open = text[0]!
  const close = text.endsWith('${') ? '${' : '`'
  const body = text.slice(1, -close.length)
  for (const [other, weight] of alternatives(body, clues.strings, clues.testStrings)) {
    if (other !== body && !/[`\\]|\$\{/.test(other))
      context.replace(at, at, open + other + close, 'string', weight)
  }
  if (PUNCTUATION.includes(body)) {
    for (const other of ['', ' ', ', ', '-', ': ', ':', '/']) {
      if (other !== body) context.replace(at, at, open + other + close, 'string', 0.15)
    }
  }
}

/** Alternatives for a literal, derived from compared values. */
export function alternatives(
  body: string,
  compared: readonly { readonly expected: string; readonly actual: string }[],
  testStrings: ReadonlySet<string>,
): [string, number][] {
  const found: [string, number][] = []
  for (const { expected, actual } of compared) {
    if (expected === actual) continue
    let head = 0
    while (head < Math.min(expected.length, actual.length) && expected[head] === actual[head])
      head++
    let tail = 0
    while (
      tail < Math.min(expected.length, actual.length) - head &&
      expected.at(-1 - tail) === actual.at(-1 - tail)
    )
      tail++
    const wrong = actual.slice(head, actual.length - tail)
    const right = expected.slice(head, expected.length - tail)
    if (right.length > 60 || wrong.length > 60) continue
    if (wrong !== '' && body.includes(wrong))
      found.push([body.replace(wrong, right), wrong.length > 2 ? 0.9 : 0.5])
    if (wrong === '' && body !== '') {
      // Text is missing at `head`: at the start, at the end or inside of this literal.
      const before = actual.slice(0, head)
      for (let cut = Math.min(body.length, head); cut >= 0; cut--) {
        const fits =
          before.endsWith(body.slice(0, cut)) && actual.slice(head).startsWith(body.slice(cut))
        if (!fits) continue
        found.push([body.slice(0, cut) + right + body.slice(cut), 0.5])
        break
      }
    }
    if (actual === body) found.push([expected, 0.4])
  }
  for (const other of testStrings) {
    if (body.length < 2 || other.length > 60 || other === body) continue
    const likeness = similarity(body, other)
    if (likeness >= 0.6) found.push([other, 0.7 * likeness])
  }
  return found
}
