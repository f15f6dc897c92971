import { endsOperand, isCall, operandEnd, operandStart, partsOf, textOf } from '../expression.js'
import type { Operator } from './patch.js'

const SWAPS: ReadonlyMap<string, readonly (readonly [string, number])[]> = new Map(
  Object.entries<readonly (readonly [string, number])[]>({
    '+': [
      ['-', 0.95],
      ['*', 0.35],
    ],
    '-': [
      ['+', 0.95],
      ['/', 0.2],
    ],
    '*': [
      ['/', 0.7],
      ['+', 0.5],
      ['**', 0.2],
    ],
    '/': [
      ['*', 0.7],
      ['%', 0.4],
      ['-', 0.2],
    ],
    '%': [
      ['/', 0.7],
      ['*', 0.3],
    ],
    '**': [['*', 0.7]],
    '//': [
      ['/', 0.7],
      ['%', 0.6],
    ],
    '&': [['|', 0.7]],
    '|': [['&', 0.7]],
    '<<': [['>>', 0.7]],
    '>>': [['<<', 0.7]],
  }),
)

/** Replaces an arithmetic or bitwise operator. */
export const arithmetic: Operator = (context, at) => {
  const { file } = context
  const token = file.tokens[at]!
  const swaps = SWAPS.get(token.text)
  if (swaps === undefined || token.kind !== 'punctuator') return
  if (!endsOperand(file.tokens[at - 1])) {
    if (token.text === '-') context.replace(at, at, '', 'arithmetic', 0.6)
    return
  }
  const python = file.language === 'python'
  for (const [other, weight] of swaps) context.replace(at, at, other, 'arithmetic', weight)
  if (python && token.text === '/') context.replace(at, at, '//', 'arithmetic', 0.75)
  if (python && token.text === '%') context.replace(at, at, '//', 'arithmetic', 0.75)
  if (!python && token.text === '/') {
    const first = operandStart(file.tokens, at - 1)
    const last = operandEnd(file.tokens, at + 1)
    context.replace(first, last, `Math.floor(${textOf(file, first, last)})`, 'arithmetic', 0.3)
  }
}

const ASSIGNMENTS: ReadonlyMap<string, readonly (readonly [string, number])[]> = new Map(
  Object.entries<readonly (readonly [string, number])[]>({
    '+=': [
      ['-=', 0.9],
      ['=', 0.6],
      ['*=', 0.3],
    ],
    '-=': [
      ['+=', 0.9],
      ['=', 0.4],
    ],
    '*=': [
      ['/=', 0.6],
      ['+=', 0.5],
      ['=', 0.4],
    ],
    '/=': [
      ['*=', 0.6],
      ['-=', 0.3],
    ],
    '++': [['--', 0.8]],
    '--': [['++', 0.8]],
    '&&=': [['||=', 0.6]],
    '||=': [
      ['&&=', 0.6],
      ['??=', 0.6],
    ],
    '??=': [
      ['=', 0.4],
      ['||=', 0.3],
    ],
  }),
)

/** Replaces an assignment operator by another; `=` only where the variable already exists. */
export const assignment: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  for (const [other, weight] of ASSIGNMENTS.get(token.text) ?? [])
    context.replace(at, at, other, 'assignment', weight)
  if (token.text !== '=' || token.kind !== 'punctuator' || !endsOperand(tokens[at - 1])) return
  const first = operandStart(tokens, at - 1)
  // Only an existing variable can be added to.
  const declares = ['const', 'let', 'var', ',', '(', '{', ':'].includes(
    tokens[first - 1]?.text ?? '',
  )
  if (declares || (file.language === 'python' && !tokens[first]!.first)) return
  context.replace(at, at, '+=', 'assignment', 0.4)
  context.replace(at, at, '-=', 'assignment', 0.15)
}

/** Replaces a number: plus or minus one, another sign or scale, or one that a test expected. */
export const number: Operator = (context, at) => {
  const { file, clues } = context
  const token = file.tokens[at]!
  if (token.kind !== 'number' || !/^[\d._]+$/.test(token.text)) return
  const value = Number(token.text.replace(/_/g, ''))
  if (!Number.isFinite(value)) return
  const put = (other: number, weight: number): void => {
    const text = Number(other.toFixed(10)).toString()
    const before = file.tokens[at - 1]
    const glued = text.startsWith('-') && before?.text === '-' && before.end === token.start
    const idle =
      text === '0' &&
      (before?.text === '+' || before?.text === '-') &&
      endsOperand(file.tokens[at - 2])
    if (text !== token.text && !glued && !idle && !text.includes('e'))
      context.replace(at, at, text, 'number', weight)
  }
  const isInteger = Number.isInteger(value)
  if (isInteger) {
    put(value + 1, value < 10 ? 0.8 : 0.5)
    put(value - 1, value < 10 ? 0.8 : 0.5)
    if (value > 1) put(0, 0.25)
    if (value > 2) put(1, 0.2)
    if (value === 1 || value === 2) put(-value, 0.3)
    if (value === 0) put(2, 0.1)
    if (value === 1) put(3, 0.08)
  }
  if (value !== 0 && (value >= 10 || !isInteger)) {
    for (const factor of [10, 0.1, 100, 0.01, 2, 0.5, 1000, 0.001])
      put(value * factor, factor === 10 || factor === 0.1 ? 0.4 : 0.2)
  }
  const common = value >= 5 ? [7, 12, 24, 28, 30, 31, 60, 100, 180, 360, 365, 1000, 1024, 3600] : []
  for (const other of common) if (other !== value) put(other, 0.12)
  for (const expected of clues.numbers) put(Number(expected), 0.12)
}

/** Adds or removes `+ 1` or `- 1` at a bound, an index, an argument or a returned value. */
export const offset: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  const binary =
    (token.text === '+' || token.text === '-') &&
    endsOperand(tokens[at - 1]) &&
    tokens[at + 1] !== undefined
  if (binary) {
    const last = operandEnd(tokens, at + 1)
    const isOne = tokens[at + 1]!.kind === 'number' && last === at + 1
    context.splice(tokens[at - 1]!.end, tokens[last]!.end, '', 'offset', isOne ? 0.75 : 0.3, at)
  }
  if (
    ['*', '/', '%', '//'].includes(token.text) &&
    token.kind === 'punctuator' &&
    endsOperand(tokens[at - 1])
  ) {
    within(operandStart(tokens, at - 1), at - 1)
    if (tokens[at + 1] !== undefined) within(at + 1, operandEnd(tokens, at + 1))
  }
  const bounds = ['<', '<=', '>', '>='].includes(token.text) && token.kind === 'punctuator'
  if (bounds && endsOperand(tokens[at - 1]) && tokens[at + 1] !== undefined) around(at + 1, 0.35)
  if (token.text === '[' && token.match > at + 1 && endsOperand(tokens[at - 1])) {
    if (operandEnd(tokens, at + 1) === token.match - 1) around(at + 1, 0.6)
  }
  if (token.text === '(' && isCall(file, at)) {
    for (const { first, last } of partsOf(tokens, at)) {
      const plain =
        ['name', 'number'].includes(tokens[first]!.kind) && operandEnd(tokens, first) === last
      if (plain) around(first, sliceLike.has(tokens[at - 1]!.text) ? 0.55 : 0.25)
    }
  }
  if (token.text === 'return' && tokens[at + 1] !== undefined && !tokens[at + 1]!.first) {
    const last = operandEnd(tokens, at + 1)
    const after = tokens[last + 1]
    if (after === undefined || after.first || after.text === ';' || after.text === '}')
      around(at + 1, 0.25)
  }

  /** Plus or minus one around a factor, which needs parentheses. */
  function within(first: number, last: number): void {
    const { kind, text } = tokens[first]!
    if (kind !== 'name' && text !== 'this') return
    for (const sign of ['-', '+'])
      context.replace(first, last, `(${textOf(file, first, last)} ${sign} 1)`, 'offset', 0.4)
  }

  function around(first: number, weight: number): void {
    const operand = tokens[first]!
    if (operand.kind !== 'name' && operand.kind !== 'number' && operand.text !== 'this') return
    const last = operandEnd(tokens, first)
    if (operand.kind === 'number' && last === first) return
    const after = tokens[last + 1]?.text
    if (after === '+' || after === '-' || after === '=>') return
    context.splice(tokens[last]!.end, tokens[last]!.end, ' + 1', 'offset', weight, last)
    context.splice(tokens[last]!.end, tokens[last]!.end, ' - 1', 'offset', weight, last)
  }
}

const sliceLike: ReadonlySet<string> = new Set([
  'slice',
  'substring',
  'substr',
  'splice',
  'range',
  'at',
  'charAt',
  'fill',
  'randint',
])

/** Swaps the operands of an operator. */
export const operands: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  const python = file.language === 'python'
  const ordered = ['-', '/', '%', '**', '//', '+', 'in', '??'].includes(token.text)
  if (
    token.kind === 'string' ||
    !ordered ||
    !endsOperand(tokens[at - 1]) ||
    tokens[at + 1] === undefined
  )
    return
  if (token.text === 'in' && !python) return
  const first = operandStart(tokens, at - 1)
  const last = operandEnd(tokens, at + 1)
  const left = textOf(file, first, at - 1)
  const right = textOf(file, at + 1, last)
  if (left === right || left.length + right.length > 200) return
  const between = file.text.slice(tokens[at - 1]!.end, tokens[at + 1]!.start)
  context.replace(first, last, right + between + left, 'operands', token.text === '+' ? 0.3 : 0.6)
  // Divide or multiply a whole sum in place of one term, or the reverse.
  if (!['*', '/', '//', '%'].includes(token.text)) return
  const before = tokens[first - 1]?.text
  if ((before === '+' || before === '-') && endsOperand(tokens[first - 2])) {
    const from = operandStart(tokens, first - 2)
    context.replace(from, at - 1, `(${textOf(file, from, at - 1)})`, 'operands', 0.35)
  }
}

/** Adds or removes parentheses around a sum. */
export const grouping: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (token.text !== '*' && token.text !== '/' && token.text !== '%') return
  const next = tokens[at + 1]
  if (!endsOperand(tokens[at - 1]) || next === undefined) return
  const last = operandEnd(tokens, at + 1)
  const sign = tokens[last + 1]?.text
  if ((sign === '+' || sign === '-') && tokens[last + 2] !== undefined) {
    const to = operandEnd(tokens, last + 2)
    context.replace(at + 1, to, `(${textOf(file, at + 1, to)})`, 'operands', 0.3)
  }
  const close = tokens[at - 1]!
  if (close.text === ')' && close.match >= 0 && !endsOperand(tokens[close.match - 1])) {
    context.replace(close.match, at - 1, textOf(file, close.match + 1, at - 2), 'operands', 0.3)
  }
}
