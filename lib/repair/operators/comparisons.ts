import { endsOperand, operandEnd, textOf } from '../expression.js'
import { nameFacts } from '../source.js'
import type { Operator, OperatorContext } from './patch.js'

const BOUNDARY: ReadonlyMap<string, string> = new Map(
  Object.entries<string>({ '<': '<=', '<=': '<', '>': '>=', '>=': '>' }),
)
const MIRROR: ReadonlyMap<string, string> = new Map(
  Object.entries<string>({ '<': '>', '<=': '>=', '>': '<', '>=': '<=' }),
)
const OPPOSITE: ReadonlyMap<string, string> = new Map(
  Object.entries<string>({ '<': '>=', '<=': '>', '>': '<=', '>=': '<' }),
)
const EQUAL: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries<readonly string[]>({
    '===': ['!=='],
    '!==': ['==='],
    '==': ['!=', '==='],
    '!=': ['==', '!=='],
  }),
)

/** Whether `<` opens type arguments, which only TypeScript has. */
function isTypeBracket({ file }: OperatorContext, at: number): boolean {
  if (file.language !== 'typescript') return false
  const { start, end } = file.tokens[at]!
  return !/\s/.test(file.text[start - 1] ?? '') || !/\s/.test(file.text[end] ?? '')
}

/** Replaces `<` by `<=`, `>` or `>=`, and likewise for the others. */
export const comparison: Operator = (context, at) => {
  const token = context.file.tokens[at]!
  const boundary = BOUNDARY.get(token.text)
  if (token.kind !== 'punctuator' || boundary === undefined || isTypeBracket(context, at)) return
  context.replace(at, at, boundary, 'comparison', 1)
  context.replace(at, at, OPPOSITE.get(token.text)!, 'comparison', 0.6)
  context.replace(at, at, MIRROR.get(token.text)!, 'comparison', 0.6)
}

/** Replaces `===` by `!==` and vice versa; `==` and `is` in Python. */
export const equality: Operator = (context, at) => {
  const { file } = context
  const token = file.tokens[at]!
  const python = file.language === 'python'
  for (const other of EQUAL.get(token.text) ?? []) {
    if (python && other.length > 2) continue
    context.replace(at, at, other, 'equality', other.length === token.text.length ? 0.85 : 0.1)
  }
  if (token.kind === 'punctuator' && EQUAL.get(token.text) !== undefined) {
    for (const sign of ['>=', '<=', '>', '<']) context.replace(at, at, sign, 'equality', 0.08)
  }
  if (
    BOUNDARY.get(token.text) !== undefined &&
    token.kind === 'punctuator' &&
    !isTypeBracket(context, at)
  ) {
    context.replace(at, at, python ? '==' : '===', 'equality', 0.1)
    context.replace(at, at, python ? '!=' : '!==', 'equality', 0.06)
  }
  if (!python) return
  const next = file.tokens[at + 1]
  if (token.text === 'is' && next?.text === 'not') {
    context.replace(at, at + 1, 'is', 'equality', 0.85)
    context.replace(at, at + 1, '!=', 'equality', 0.4)
  } else if (token.text === 'is') {
    context.replace(at, at, 'is not', 'equality', 0.85)
    context.replace(at, at, '==', 'equality', 0.6)
  } else if (token.text === 'not' && next?.text === 'in') {
    context.replace(at, at + 1, 'in', 'equality', 0.85)
  } else if (token.text === 'in' && isMembership(context, at)) {
    context.replace(at, at, 'not in', 'equality', 0.8)
  }
}

/** Whether `in` tests membership and is not part of a loop. */
export function isMembership({ file }: OperatorContext, at: number): boolean {
  if (file.tokens[at - 1]?.text === 'not') return false
  for (let i = at - 1; i >= 0 && !file.tokens[i]!.first; i--) {
    const { text, match } = file.tokens[i]!
    if (text === 'for') return false
    if (['if', 'and', 'or', 'return', '='].includes(text) || match > at) return true
  }
  return file.tokens[at]!.first || !['for'].includes(lineWord(file, at))
}

function lineWord(file: OperatorContext['file'], at: number): string {
  let i = at
  while (i > 0 && !file.tokens[i]!.first) i--
  return file.tokens[i]!.text
}

const LOGIC: ReadonlyMap<string, readonly (readonly [string, number])[]> = new Map(
  Object.entries<readonly (readonly [string, number])[]>({
    '&&': [
      ['||', 0.9],
      ['??', 0.4],
    ],
    '||': [
      ['&&', 0.9],
      ['??', 0.2],
    ],
    '??': [
      ['||', 0.5],
      ['&&', 0.4],
    ],
    and: [['or', 0.9]],
    or: [['and', 0.9]],
  }),
)

/** Replaces `&&` by `||` and `and` by `or`, or the reverse; or keeps one side alone. */
export const logic: Operator = (context, at) => {
  const { file } = context
  const token = file.tokens[at]!
  if (token.kind === 'string' || token.kind === 'name') return
  for (const [other, weight] of LOGIC.get(token.text) ?? [])
    context.replace(at, at, other, 'logic', weight)
}

/** Adds or removes the negation of a condition or of its operand. */
export const negation: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  const python = file.language === 'python'
  const not = python ? 'not ' : '!'
  if (
    python
      ? token.text === 'not' && tokens[at + 1]?.text !== 'in' && tokens[at - 1]?.text !== 'is'
      : token.text === '!'
  ) {
    const next = tokens[at + 1]
    if (next !== undefined) context.splice(token.start, next.start, '', 'negation', 0.8, at)
    return
  }
  const condition = python ? ['if', 'elif', 'while'] : ['if', 'while']
  if (token.kind === 'keyword' && condition.includes(token.text)) {
    const open = at + 1
    const close = tokens[open]?.match ?? -1
    if (!python && close > open) {
      const simple = operandEnd(tokens, open + 1) === close - 1
      const inner = textOf(file, open + 1, close - 1)
      if (isOneComparison(context, open + 1, close - 1)) return
      context.replace(open + 1, close - 1, simple ? `!${inner}` : `!(${inner})`, 'negation', 0.6)
    } else if (python && tokens[open] !== undefined) {
      const last = conditionEnd(context, open)
      if (last < open) return
      const simple = operandEnd(tokens, open) === last
      const inner = textOf(file, open, last)
      if (isOneComparison(context, open, last)) return
      context.replace(open, last, simple ? `not ${inner}` : `not (${inner})`, 'negation', 0.6)
    }
    return
  }
  // A value of its own: an operand, argument, assigned or returned value, or a ternary's condition.
  const chance = BEFORE_OPERAND.get(token.text)
  const next = tokens[at + 1]
  if (chance === undefined || token.kind === 'string' || next === undefined) return
  const isName = next.kind === 'name' || next.text === 'this' || next.text === '('
  const isPattern = next.kind === 'regex'
  if (!isName && !isPattern) return
  const last = operandEnd(tokens, at + 1)
  const after = tokens[last + 1]
  const alone =
    after === undefined ||
    after.first ||
    ['&&', '||', 'and', 'or', ')', ';', '?', '}', ',', 'if', ']', 'else'].includes(after.text) ||
    (python && after.text === ':')
  if (!alone || !endsOperand(tokens[last]) || nameFacts(file).declaredAt.has(at + 1)) return
  const isCondition = ['&&', '||', 'and', 'or', '?'].includes(after?.text ?? '')
  const weight = isCondition ? Math.max(chance, 0.35) : chance
  context.splice(next.start, next.start, not, 'negation', weight, at + 1)
}

/** How likely a negation is missing after a token. */
const BEFORE_OPERAND: ReadonlyMap<string, number> = new Map(
  Object.entries<number>({
    '&&': 0.5,
    '||': 0.5,
    and: 0.5,
    or: 0.5,
    return: 0.3,
    '=>': 0.3,
    '=': 0.06,
    '(': 0.05,
    ',': 0.03,
    '?': 0.04,
    ':': 0.03,
    '===': 0.05,
    '!==': 0.05,
    '!': 0.1,
    not: 0.05,
  }),
)

/** Whether this is a single comparison, whose opposites are separate patches. */
function isOneComparison({ file }: OperatorContext, first: number, last: number): boolean {
  const signs = file.tokens
    .slice(first, last + 1)
    .filter(
      ({ text, kind }) =>
        kind !== 'string' &&
        [
          '<',
          '<=',
          '>',
          '>=',
          '==',
          '!=',
          '===',
          '!==',
          'and',
          'or',
          '&&',
          '||',
          'in',
          'is',
        ].includes(text),
    )
  return signs.length === 1 && !['and', 'or', '&&', '||'].includes(signs[0]!.text)
}

/** The last token, before the colon or `else`, of the Python condition that starts at `first`. */
function conditionEnd({ file }: OperatorContext, first: number): number {
  for (let at = first; at < file.tokens.length; at++) {
    const { text, match, first: fresh } = file.tokens[at]!
    if ((fresh && at > first) || text === ':' || text === 'else' || text === ')' || text === ']')
      return at - 1
    if (match > at) at = match
  }
  return -1
}
