import { similarity } from '../similarity.js'
import { isKeyString } from '../source.js'
import { stringBody } from '../token.js'
import type { Operator } from './patch.js'

const FLIPS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries<readonly string[]>({
    true: ['false'],
    false: ['true'],
    True: ['False'],
    False: ['True'],
  }),
)

export const boolean: Operator = (context, at) => {
  const token = context.file.tokens[at]!
  if (token.kind !== 'keyword') return
  for (const other of FLIPS.get(token.text) ?? []) context.replace(at, at, other, 'boolean', 0.8)
}

/** Replaces an empty value by another one. */
export const empty: Operator = (context, at) => {
  const { file } = context
  const token = file.tokens[at]!
  const python = file.language === 'python'
  if (token.kind === 'keyword' && (token.text === 'null' || token.text === 'undefined')) {
    for (const other of ['null', 'undefined', '0', "''", '[]', 'false', 'true']) {
      if (other !== token.text) context.replace(at, at, other, 'null', other.length > 4 ? 0.4 : 0.2)
    }
  } else if (token.text === 'None' && python) {
    for (const other of ['0', "''", '[]', '{}', 'False', 'True'])
      context.replace(at, at, other, 'null', 0.2)
  } else if (
    token.text === '[' &&
    token.match === at + 1 &&
    !/[\w)\]]/.test(file.text[token.start - 1] ?? '')
  ) {
    for (const other of ['{}', python ? 'None' : 'null', '0', "''"])
      context.replace(at, at + 1, other, 'null', 0.12)
  } else if (token.text === '{' && token.match === at + 1 && file.tokens[at - 1]?.text === '=') {
    for (const other of ['[]', python ? 'None' : 'null'])
      context.replace(at, at + 1, other, 'null', 0.12)
  }
}

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
    for (const [other, count] of clues.keys) {
      put(
        other,
        0.3 * (isMissing ? 6 : 1) * (0.4 + similarity(parsed.body, other)) * (count > 1 ? 1.1 : 1),
      )
    }
  }
  if (PUNCTUATION.includes(parsed.body))
    for (const other of PUNCTUATION)
      put(other, other.trim() === '' || other === '-' || other === ', ' ? 0.3 : 0.18)
  if (parsed.body.length > 1) {
    put(parsed.body.toLowerCase(), 0.25)
    put(parsed.body.toUpperCase(), 0.2)
    put(parsed.body.trim(), 0.3)
  }
}

function template(context: Parameters<Operator>[0], at: number): void {
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

/** Changes flags, anchors and quantifiers of a regular expression. */
export const pattern: Operator = (context, at) => {
  const { file } = context
  const token = file.tokens[at]!
  const python = file.language === 'python'
  let open = '/'
  let body: string
  let close: string
  if (token.kind === 'regex') {
    const slash = token.text.lastIndexOf('/')
    body = token.text.slice(1, slash)
    const flags = token.text.slice(slash + 1)
    close = `/${flags}`
    for (const flag of ['g', 'i', 'm']) {
      const other = flags.includes(flag) ? flags.replace(flag, '') : flags + flag
      context.replace(at, at, `/${body}/${other}`, 'pattern', flags.includes(flag) ? 0.3 : 0.5)
    }
  } else if (python && token.kind === 'string' && /^r/i.test(token.text)) {
    const parsed = stringBody(token.text)
    if (parsed === null) return
    body = parsed.body
    open = parsed.prefix + parsed.quote
    close = parsed.quote
  } else return
  const put = (other: string, weight: number): void =>
    context.replace(at, at, open + other + close, 'pattern', weight)
  if (!body.startsWith('^')) put(`^${body}`, 0.3)
  else put(body.slice(1), 0.25)
  if (!body.endsWith('$')) put(`${body}$`, 0.3)
  else put(body.slice(0, -1), 0.25)
  for (const found of body.matchAll(/(?<!\\)[+*?]|\\[dDwWsSbB]|\{\d+(?:,\d*)?\}|\[\^?/g)) {
    const others =
      PATTERN_SWAPS.get(found[0]) ?? (found[0].startsWith('{') ? countSwaps(found[0]) : [])
    for (const other of others) {
      put(body.slice(0, found.index) + other + body.slice(found.index + found[0].length), 0.35)
    }
  }
  for (const found of body.matchAll(/\\[dws]|\]|(?<=[^\\])\./g)) {
    const end = found.index + found[0].length
    if (!/[+*?{]/.test(body[end] ?? '')) put(`${body.slice(0, end)}+${body.slice(end)}`, 0.25)
  }
  for (const found of body.matchAll(/(?<!\\)\.(?![*+?])/g))
    put(`${body.slice(0, found.index)}\\${body.slice(found.index)}`, 0.3)
}

const PATTERN_SWAPS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries<readonly string[]>({
    '+': ['*', ''],
    '*': ['+'],
    '?': ['', '*'],
    '\\d': ['\\D', '\\w'],
    '\\D': ['\\d'],
    '\\w': ['\\W', '\\d', '\\S'],
    '\\W': ['\\w', '\\s'],
    '\\s': ['\\S', '\\W'],
    '\\S': ['\\s'],
    '\\b': ['\\B', ''],
    '\\B': ['\\b'],
    '[': ['[^'],
    '[^': ['['],
  }),
)

function countSwaps(text: string): string[] {
  const [low, high] = text.slice(1, -1).split(',')
  const value = Number(low)
  const rest = high === undefined ? '' : `,${high}`
  const swaps = [`{${value + 1}${rest}}`, `{${Math.max(0, value - 1)}${rest}}`]
  if (high !== undefined && high !== '')
    swaps.push(`{${value},${Number(high) + 1}}`, `{${value},${Number(high) - 1}}`)
  return swaps
}
