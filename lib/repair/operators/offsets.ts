import { endsOperand, isCall, operandEnd, operandStart, partsOf, textOf } from '../expression.js'
import type { Operator } from './patch.js'

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
    context.splice(tokens[at - 1]!.end, tokens[last]!.end, '', 'offset', isOne ? 0.6 : 0.15, at)
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
  if (bounds && endsOperand(tokens[at - 1]) && tokens[at + 1] !== undefined) around(at + 1, 0.3)
  if (token.text === '[' && token.match > at + 1 && endsOperand(tokens[at - 1])) {
    if (operandEnd(tokens, at + 1) === token.match - 1) around(at + 1, 0.4)
  }
  if (token.text === '(' && isCall(file, at)) {
    for (const { first, last } of partsOf(tokens, at)) {
      const plain =
        (tokens[first]!.kind === 'name' || tokens[first]!.text === 'this') &&
        operandEnd(tokens, first) === last
      if (plain) around(first, sliceLike.has(tokens[at - 1]!.text) ? 0.5 : 0.08)
    }
  }
  if (token.text === 'return' && tokens[at + 1] !== undefined && !tokens[at + 1]!.first) {
    const last = operandEnd(tokens, at + 1)
    const after = tokens[last + 1]
    if (after === undefined || after.first || after.text === ';' || after.text === '}')
      around(at + 1, 0.15)
  }

  /** Plus or minus one around a factor, which needs parentheses. */
  function within(first: number, last: number): void {
    const { kind, text } = tokens[first]!
    if (kind !== 'name' && text !== 'this') return
    for (const sign of ['-', '+'])
      context.replace(first, last, `(${textOf(file, first, last)} ${sign} 1)`, 'offset', 0.12)
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

/** Functions whose arguments are positions or bounds. */
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
