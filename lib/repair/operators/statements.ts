import { isCall, isComprehension, partsOf } from '../expression.js'
import type { Token } from '../token.js'
import type { Operator, OperatorContext } from './patch.js'
import { isAllowedAt } from './loops.js'
import { functionAt } from './scope.js'
import { endOf, isExpression, isStatement } from './statement-parts.js'

/** Removes an expression statement or a jump. */
export const removedStatement: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  if (!isStatement(context, at)) return
  const token = tokens[at]!
  const python = file.language === 'python'
  const jump = ['break', 'continue', 'return'].includes(token.text)
  if (isExpression(context, at) || jump) {
    const last = endOf(context, at)
    const isOnlyName = last === at && !jump
    if (isOnlyName || functionAt(file, at) < 0) return
    // All that is left of a branch without braces is its semicolon.
    const isBranch = /^(\)|else)$/.test(tokens[at - 1]?.text ?? '')
    const rest = isBranch && tokens[last + 1]?.text !== ';' ? ';' : ''
    if (!python || !jump) context.replace(at, last, python ? 'pass' : rest, 'statement', 0.12)
  }
}

const KEYWORD_SWAPS: ReadonlyMap<string, readonly (readonly [string, number])[]> = new Map([
  [
    'break',
    [
      ['continue', 0.6],
      ['return', 0.1],
    ],
  ],
  ['continue', [['break', 0.6]]],
  ['while', [['if', 0.12]]],
  ['elif', [['if', 0.4]]],
  [
    'yield',
    [
      ['return', 0.2],
      ['yield from', 0.2],
    ],
  ],
])

/** Replaces a jump by another one, `in` by `of`, or `while` by `if`, and vice versa. */
export const otherKeyword: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  const isWord = token.kind === 'keyword' || token.text === 'of'
  if (!isWord) return
  for (const [other, weight] of (token.kind === 'keyword'
    ? KEYWORD_SWAPS.get(token.text)
    : undefined) ?? [])
    if (isAllowedAt(file, at, other)) context.replace(at, at, other, 'keyword', weight)
  if (file.language === 'python') {
    if (token.text === 'if' && token.first && followsIf(context, at))
      context.replace(at, at, 'elif', 'keyword', 0.45)
    return
  }
  if (token.text === 'if' && token.first && !hasElse(tokens, at))
    context.replace(at, at, 'while', 'keyword', 0.05)
  if (token.text === 'else' && tokens[at + 1]?.text === 'if')
    context.splice(token.start, tokens[at + 1]!.start, '', 'keyword', 0.2, at)
  if ((token.text === 'of' || token.text === 'in') && inLoopHeader(context, at)) {
    context.replace(at, at, token.text === 'of' ? 'in' : 'of', 'keyword', 0.8)
  }
  if (token.text === 'case' && at > 2 && token.first) {
    // Stop a case from falling through into this one.
    const before = tokens[at - 1]!
    if (before.text !== ':' && before.text !== '{' && before.text !== '}') {
      context.splice(before.end, before.end, '; break', 'keyword', 0.5, at - 1)
    }
  }
  if (
    token.text === 'default' &&
    tokens[at + 1]?.text === ':' &&
    token.first &&
    ![':', '{'].includes(tokens[at - 1]?.text ?? '')
  ) {
    context.splice(tokens[at - 1]!.end, tokens[at - 1]!.end, '; break', 'keyword', 0.5, at - 1)
  }
}

function followsIf({ file }: OperatorContext, at: number): boolean {
  const { indent } = file.tokens[at]!
  for (let i = at - 1; i >= 0; i--) {
    const token = file.tokens[i]!
    if (!token.first || token.indent > indent) continue
    return token.indent === indent && (token.text === 'if' || token.text === 'elif')
  }
  return false
}

/** Whether the block of the `if` at `at` is followed by another branch. */
function hasElse(tokens: readonly Token[], at: number): boolean {
  const block = tokens[(tokens[at + 1]?.match ?? -1) + 1]
  return block?.text === '{' && tokens[block.match + 1]?.text === 'else'
}

function inLoopHeader({ file }: OperatorContext, at: number): boolean {
  for (let i = at - 1; i > Math.max(0, at - 14); i--) {
    if (file.tokens[i]!.text === 'for') return true
    if (file.tokens[i]!.text === ';') return false
  }
  return false
}

/** Adds `new` before a class, and removes a superfluous argument. */
export const constructed: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (token.text !== '(' || !isCall(file, at)) return
  const name = tokens[at - 1]!
  if (
    file.language !== 'python' &&
    /^[A-Z]/.test(name.text) &&
    tokens[at - 2]?.text !== 'new' &&
    tokens[at - 2]?.text !== '.'
  ) {
    context.splice(name.start, name.start, 'new ', 'call', 0.25, at - 1)
  }
  const parts = partsOf(tokens, at)
  const lastPart = parts.at(-1)
  if (parts.length > 1 && lastPart !== undefined && !isComprehension(file, at)) {
    context.splice(
      tokens[parts.at(-2)!.last]!.end,
      tokens[lastPart.last]!.end,
      '',
      'arguments',
      0.12,
      at,
    )
  }
}
