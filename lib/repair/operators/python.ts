import { operandEnd, partsOf, textOf } from '../expression.js'
import { statementEnd } from '../outline-python.js'
import type { Operator } from './patch.js'
import { scopeAt } from './scope.js'
import { type Alternative, replaceByAny, spread } from './spread.js'

/** Moves a statement one level out or in, such as a `return` out of a loop. */
export const indentation: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (!token.first || token.indent === 0 || file.language !== 'python') return
  if (
    [
      'def',
      'class',
      '@',
      'else',
      'elif',
      'except',
      'finally',
      'if',
      'for',
      'while',
      'with',
      'try',
    ].includes(token.text)
  )
    return
  const last = statementEnd(tokens, at)
  if (tokens[last]!.line !== token.line) return
  const lineStart = token.start - token.indent
  const previous = tokens[at - 1]
  const next = tokens[last + 1]
  const step = stepOf(file.text)
  const weight =
    token.text === 'return' ? 0.5 : token.text === 'yield' || token.text === 'raise' ? 0.3 : 0.12
  const outer = token.indent - step
  if (
    previous !== undefined &&
    outer > 0 &&
    previous.text !== ':' &&
    (next === undefined || next.indent < token.indent)
  ) {
    context.splice(lineStart, token.start, ' '.repeat(outer), 'indent', weight, at)
  }
  if (previous !== undefined && indentBefore(tokens, at) > token.indent) {
    context.splice(lineStart, token.start, ' '.repeat(token.indent + step), 'indent', weight, at)
  }
}

function stepOf(text: string): number {
  return /^( {2,8})\S/m.exec(text)?.[1]?.length ?? 4
}

/** Indentation of the statement before that at `at`. */
function indentBefore(
  tokens: readonly { readonly first: boolean; readonly indent: number }[],
  at: number,
): number {
  for (let i = at - 1; i >= 0; i--) if (tokens[i]!.first) return tokens[i]!.indent
  return 0
}

/** Changes bounds of slices and ranges, and swaps first and last element. */
export const slices: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (file.language !== 'python' || token.match <= at) return
  const close = token.match
  if (token.text === '[' && /[\w)\]]/.test(file.text[token.start - 1] ?? '')) {
    const colon = tokens.slice(at + 1, close).findIndex(({ text }) => text === ':')
    if (colon < 0) {
      const index = textOf(file, at + 1, close - 1)
      if (index === '0') context.replace(at + 1, close - 1, '-1', 'number', 0.6)
      if (index === '-1') context.replace(at + 1, close - 1, '0', 'number', 0.6)
      return
    }
    const middle = at + 1 + colon
    const low = middle === at + 1 ? '' : textOf(file, at + 1, middle - 1)
    const high = middle === close - 1 ? '' : textOf(file, middle + 1, close - 1)
    const put = (text: string, weight: number): void =>
      context.splice(token.end, tokens[close]!.start, text, 'offset', weight, at)
    if (low === '') put(`1:${high}`, 0.3)
    else put(`:${high}`, 0.25)
    if (high === '') put(`${low}:-1`, 0.3)
    else put(`${low}:`, 0.25)
    if (low !== high) put(`${high}:${low}`, 0.2)
    if (low !== '') put(`${low} + 1:${high}`, 0.25)
    if (high !== '' && !high.includes(':')) {
      put(`${low}:${high} + 1`, 0.5)
      put(`${low}:${high} - 1`, 0.5)
    }
    if (low === '' && high === '') put('::-1', 0.4)
  }
  if (token.text === '(' && tokens[at - 1]?.text === 'range') {
    const parts = partsOf(tokens, at).map(({ first, last }) => textOf(file, first, last))
    const put = (values: readonly string[], weight: number): void =>
      context.replace(at + 1, close - 1, values.join(', '), 'offset', weight)
    if (parts.length === 1) {
      put(['1', parts[0]!], 0.5)
      put(['1', `${parts[0]!} + 1`], 0.55)
      put([`${parts[0]!} + 1`], 0.6)
      put([`${parts[0]!} - 1`], 0.6)
    } else if (parts.length > 1) {
      put([parts[0]!, `${parts[1]!} + 1`, ...parts.slice(2)], 0.6)
      put([parts[0]!, `${parts[1]!} - 1`, ...parts.slice(2)], 0.5)
      put([`${parts[0]!} + 1`, ...parts.slice(1)], 0.4)
    }
  }
}

/** Creates a list or dictionary in each call if it is a default value, which all calls share. */
export const sharedDefault: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (
    file.language !== 'python' ||
    token.text !== '=' ||
    !['[', '{'].includes(tokens[at + 1]?.text ?? '')
  )
    return
  const open = at + 1
  if (tokens[open]!.match !== open + 1 || tokens[at - 1]?.kind !== 'name') return
  const region = file.regions.find(
    ({ kind, first, bodyFirst }) => kind === 'function' && first < at && at < bodyFirst,
  )
  if (region === undefined) return
  const body = tokens[region.bodyFirst]
  if (body === undefined || !body.first) return
  const name = tokens[at - 1]!.text
  const indent = ' '.repeat(body.indent)
  const between = file.text.slice(tokens[open + 1]!.end, body.start)
  const value = textOf(file, open, open + 1)
  const guard = `if ${name} is None:\n${indent}    ${name} = ${value}\n${indent}`
  context.splice(tokens[open]!.start, body.start, `None${between}${guard}`, 'default', 0.8, at)
}

/** Fixes lost results: of in-place methods, which return None, and of printing. */
export const lostResult: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (file.language !== 'python') return
  if (
    token.text === 'print' &&
    token.first &&
    tokens[at + 1]?.text === '(' &&
    tokens[at + 1]!.match > at + 2
  ) {
    const close = tokens[at + 1]!.match
    context.replace(at, close, `return ${textOf(file, at + 2, close - 1)}`, 'return', 0.3)
  }
  const inPlace =
    ['sort', 'reverse'].includes(token.text) &&
    tokens[at - 1]?.text === '.' &&
    tokens[at + 1]?.text === '('
  if (!inPlace) return
  let first = at - 2
  while (first > 0 && tokens[first - 1]!.text === '.') first -= 2
  if (first <= 0 || !['=', 'return'].includes(tokens[first - 1]!.text)) return
  const close = tokens[at + 1]!.match
  const value = textOf(file, first, at - 2)
  const inner = close > at + 2 ? `, ${textOf(file, at + 2, close - 1)}` : ''
  const call = token.text === 'sort' ? `sorted(${value}${inner})` : `list(reversed(${value}))`
  context.replace(first, operandEnd(tokens, first), call, 'call', 0.7)
}

const EXCEPTIONS: readonly string[] = (
  'ValueError TypeError KeyError IndexError AttributeError RuntimeError OSError LookupError ' +
  'NotImplementedError StopIteration Exception'
).split(' ')

/** Replaces the class of an exception that is raised or handled. */
export const exceptionClass: Operator = (context, at) => {
  const { file } = context
  const token = file.tokens[at]!
  if (file.language !== 'python' || token.kind !== 'name') return
  const before = file.tokens[at - 1]?.text
  if (before !== 'raise' && before !== 'except') return
  if (!/(Error|Exception|Warning|Iteration|Exit)$/.test(token.text)) return
  const found = EXCEPTIONS.map((name, i): Alternative => [name, 1 / (1 + 0.2 * i)])
  for (const near of [-600, 600]) {
    for (let i = at; i !== at + near; i += Math.sign(near)) {
      const other = file.tokens[i]
      if (other === undefined) break
      const word = file.tokens[i - 1]?.text
      if (other.kind === 'name' && (word === 'raise' || word === 'except') && i !== at)
        found.push([other.text, 1.1])
    }
  }
  const others = found.filter(([name]) => name !== token.text)
  replaceByAny(context, at, at, others, 'identifier', 2.2, 12)
}

/** Replaces a name in a field of an f-string by another one that is in scope. */
export const formattedField: Operator = (context, at) => {
  const { file } = context
  const token = file.tokens[at]!
  if (file.language !== 'python' || token.kind !== 'string' || !/^[rR]?[fF]/.test(token.text))
    return
  const scope = scopeAt(file, at)
  for (const field of token.text.matchAll(/(?<=\{)([A-Za-z_]\w*)/g)) {
    const found: Alternative[] = []
    for (const { name, depth, isFunction, isUnused } of scope.names)
      if (name !== field[1] && depth < 9 && !isFunction) found.push([name, isUnused ? 3 : 1])
    for (const [name, weight] of spread(found, 0.5, 8)) {
      const start = token.start + field.index
      context.splice(start, start + field[1]!.length, name, 'identifier', weight, at)
    }
  }
}
