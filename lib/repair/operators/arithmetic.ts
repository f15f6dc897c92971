import { endsOperand, operandEnd, operandStart, textOf } from '../expression.js'
import { isMembership } from './comparisons.js'
import type { Operator } from './patch.js'

const SWAPS: ReadonlyMap<string, readonly (readonly [string, number])[]> = new Map(
  Object.entries<readonly (readonly [string, number])[]>({
    '+': [
      ['-', 0.9],
      ['*', 0.15],
    ],
    '-': [
      ['+', 0.9],
      ['/', 0.12],
    ],
    '*': [
      ['/', 0.75],
      ['+', 0.3],
      ['%', 0.25],
      ['**', 0.08],
    ],
    '/': [
      ['*', 0.7],
      ['%', 0.3],
      ['-', 0.15],
    ],
    '%': [
      ['/', 0.7],
      ['*', 0.5],
    ],
    '**': [['*', 0.7]],
    '//': [
      ['/', 0.7],
      ['%', 0.6],
    ],
    '&': [['|', 0.7]],
    '|': [['&', 0.7]],
    '^': [
      ['&', 0.3],
      ['|', 0.3],
    ],
    '<<': [['>>', 0.7]],
    '>>': [
      ['<<', 0.7],
      ['>>>', 0.2],
    ],
    '>>>': [['>>', 0.5]],
  }),
)

/** Replaces an arithmetic or bitwise operator. */
export const arithmetic: Operator = (context, at) => {
  const { file } = context
  const token = file.tokens[at]!
  const swaps = SWAPS.get(token.text)
  if ((swaps === undefined && token.text !== '~') || token.kind !== 'punctuator') return
  if (!endsOperand(file.tokens[at - 1])) {
    const isSign = token.text === '-' || token.text === '+' || token.text === '~'
    if (!isSign || file.tokens[at + 1]?.start !== token.end) return
    context.replace(at, at, '', 'arithmetic', 0.35)
    if (token.text !== '~')
      context.replace(
        at,
        at,
        token.text === '+' ? '-' : '+',
        'arithmetic',
        token.text === '+' ? 0.7 : 0.3,
      )
    return
  }
  const python = file.language === 'python'
  for (const [other, weight] of swaps ?? []) context.replace(at, at, other, 'arithmetic', weight)
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
      ['-=', 0.8],
      ['=', 0.4],
      ['*=', 0.15],
    ],
    '-=': [
      ['+=', 0.8],
      ['=', 0.25],
    ],
    '*=': [
      ['/=', 0.6],
      ['+=', 0.3],
      ['%=', 0.2],
      ['=', 0.2],
    ],
    '/=': [
      ['*=', 0.6],
      ['//=', 0.4],
      ['-=', 0.15],
    ],
    '++': [['--', 0.8]],
    '--': [['++', 0.8]],
    '%=': [['*=', 0.6]],
    '**=': [['*=', 0.6]],
    '//=': [
      ['/=', 0.6],
      ['*=', 0.6],
    ],
    '<<=': [['>>=', 0.7]],
    '>>=': [['<<=', 0.7]],
    '&=': [
      ['|=', 0.7],
      ['=', 0.2],
    ],
    '|=': [
      ['&=', 0.7],
      ['=', 0.2],
    ],
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
    if (other !== '//=' || file.language === 'python')
      context.replace(at, at, other, 'assignment', weight)
  if (token.text !== '=' || token.kind !== 'punctuator' || !endsOperand(tokens[at - 1])) return
  const first = operandStart(tokens, at - 1)
  // Only an existing variable can be added to.
  const declares = ['const', 'let', 'var', ',', '(', '{', ':'].includes(
    tokens[first - 1]?.text ?? '',
  )
  if (declares || (file.language === 'python' && !tokens[first]!.first)) return
  context.replace(at, at, '+=', 'assignment', 0.2)
  context.replace(at, at, '-=', 'assignment', 0.05)
}

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
  if (token.text === 'in' && !(python && isMembership(context, at))) return
  const first = operandStart(tokens, at - 1)
  const last = operandEnd(tokens, at + 1)
  const left = textOf(file, first, at - 1)
  const right = textOf(file, at + 1, last)
  if (left === right || left.length + right.length > 200) return
  const between = file.text.slice(tokens[at - 1]!.end, tokens[at + 1]!.start)
  context.replace(first, last, right + between + left, 'operands', token.text === '+' ? 0.12 : 0.35)
  // Divide or multiply a whole sum in place of one term, or the reverse.
  if (!['*', '/', '//', '%'].includes(token.text)) return
  const before = tokens[first - 1]?.text
  if ((before === '+' || before === '-') && endsOperand(tokens[first - 2])) {
    const from = operandStart(tokens, first - 2)
    context.replace(from, at - 1, `(${textOf(file, from, at - 1)})`, 'operands', 0.12)
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
    context.replace(at + 1, to, `(${textOf(file, at + 1, to)})`, 'operands', 0.15)
  }
  const close = tokens[at - 1]!
  if (close.text === ')' && close.match >= 0 && !endsOperand(tokens[close.match - 1])) {
    context.replace(close.match, at - 1, textOf(file, close.match + 1, at - 2), 'operands', 0.15)
  }
}
