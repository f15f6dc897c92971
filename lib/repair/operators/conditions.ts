import {
  conditionOf,
  isLogical,
  leftOperand,
  rightOperand,
  type Span,
  textOf,
} from '../expression.js'
import { conditionsAt, focusOf } from './conditions-pool.js'
import type { Operator, OperatorContext } from './patch.js'
import { replaceByAny, spread } from './spread.js'

const CONSTANTS: ReadonlySet<string> = new Set(['true', 'false', 'True', 'False'])
/** Tokens behind a condition that tell what it is about. */
const AHEAD = 28

/** Replaces a condition that is always true or false, which is hardly ever meant. */
export const constantCondition: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (token.kind !== 'keyword' || !CONSTANTS.has(token.text)) return
  const before = tokens[at - 1]
  const after = tokens[at + 1]
  const python = file.language === 'python'
  const isIf =
    (!python && before?.text === '(' && after?.text === ')' && before.match === at + 1) ||
    (python && before?.kind === 'keyword')
  const word = python ? before?.text : tokens[at - 2]?.text
  const isTest =
    (isIf && (word === 'if' || word === 'elif')) ||
    (isIf && word === 'while' && /^f/i.test(token.text)) ||
    (after?.text === '?' && after.kind === 'punctuator')
  const isLoop = before?.text === ';' && after?.text === ';' && isForHeader(context, at)
  if (isLoop) replaceByAny(context, at, at, loopTests(context, at), 'logic', 6, 16)
  if (!isTest) return
  const focus = focusOf(file, at, isIf ? at : at - 12, at + AHEAD)
  replaceByAny(context, at, at, conditionsAt(file, at, focus, token.text), 'logic', 10, 40)
}

function isForHeader({ file }: OperatorContext, at: number): boolean {
  for (let i = at - 1; i > Math.max(0, at - 40); i--) {
    const { text, match } = file.tokens[i]!
    if (match >= 0 && match < i) i = match
    else if (text === '(') return file.tokens[i - 1]?.text === 'for'
  }
  return false
}

/** Tests of a `for` loop over what it uses, by the variable that it declares or changes. */
function loopTests({ file }: OperatorContext, at: number): [string, number][] {
  const { tokens } = file
  let variable = ''
  let down = false
  for (let i = at + 2; i < Math.min(tokens.length, at + 8) && tokens[i]!.text !== ')'; i++) {
    if (tokens[i]!.kind === 'name' && variable === '') variable = tokens[i]!.text
    if (tokens[i]!.text === '--' || tokens[i]!.text === '-=') down = true
  }
  if (variable === '') return []
  const found: [string, number][] = down
    ? [
        [`${variable} >= 0`, 1],
        [`${variable} > 0`, 0.7],
        [`${variable}--`, 0.2],
      ]
    : []
  const focus = focusOf(file, at, at - 12, at + AHEAD)
  for (const [text, weight] of focus) {
    if (text === variable) continue
    const signs = down ? ['>=', '>'] : ['<', '<=']
    found.push([`${variable} ${signs[0]!} ${text}.length`, down ? 0.1 : weight])
    found.push([`${variable} ${signs[0]!} ${text}`, 0.8 * weight])
    found.push([`${variable} ${signs[1]!} ${text}`, 0.4 * weight])
  }
  return found
}

/** Adds an alternative or a further demand to a condition, from the conditions of the file. */
export const strengthenedCondition: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const condition = conditionOf(file, at) ?? returnedCondition(context, at)
  if (condition === null) return
  const { first, last } = condition
  const text = textOf(file, first, last)
  if (text.length > 200 || CONSTANTS.has(text)) return
  const python = file.language === 'python'
  const [and, or] = python ? ['and', 'or'] : ['&&', '||']
  const focus = focusOf(file, at, first, last + AHEAD)
  const others = [...conditionsAt(file, at, focus, text)].filter(([other]) => !text.includes(other))
  const plain = others.filter(([other]) => !/&&|\|\||\b(and|or)\b/.test(other))
  const isReturn = tokens[at]!.text === 'return'
  const isOr = / \|\| | or /.test(text)
  for (const [other, weight] of spread(plain, isReturn ? 0.6 : 2, 16)) {
    if (isOr) context.replace(first, last, `(${text}) ${and} ${other}`, 'logic', weight)
    else if (guards(other, text))
      context.replace(first, last, `${other} ${and} ${text}`, 'logic', weight)
    else context.replace(first, last, `${text} ${and} ${other}`, 'logic', weight)
  }
  for (const [other, weight] of spread(plain, isReturn ? 0.45 : 1.5, 14)) {
    if (guards(other, text)) context.replace(first, last, `${other} ${or} ${text}`, 'logic', weight)
    else context.replace(first, last, `${text} ${or} ${other}`, 'logic', weight)
  }
}

/** Whether a check of a value has to come before a condition that uses a field of it. */
function guards(check: string, condition: string): boolean {
  const operand = /^(?:!|not |typeof |isinstance\()?([\w$.]+)/.exec(check)?.[1]
  if (operand === undefined || operand === 'len') return false
  return condition.includes(`${operand}.`) || condition.includes(`${operand}[`)
}

/** A returned comparison or logical expression. */
function returnedCondition({ file }: OperatorContext, at: number): Span | null {
  const { tokens } = file
  const token = tokens[at]!
  if (token.text !== 'return' || token.kind !== 'keyword') return null
  const next = tokens[at + 1]
  if (next === undefined || next.first || next.text === ';' || next.text === '}') return null
  const last = rightOperand(file, at, true)
  for (let i = at + 1; i <= last; i++) {
    const { text, match, kind } = tokens[i]!
    if (match > i) i = match
    else if (kind !== 'string' && COMPARES.has(text)) return { first: at + 1, last }
  }
  return null
}

const COMPARES: ReadonlySet<string> = new Set(
  '=== !== == != < > <= >= && || and or not in is instanceof !'.split(' '),
)

/** Keeps one side alone of a condition that demands or allows too much. */
export const narrowedCondition: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (!isLogical(token) || tokens[at + 1] === undefined || at === 0) return
  const first = leftOperand(file, at, false)
  const last = rightOperand(file, at, false)
  if (first > at - 1 || last < at + 1) return
  const weight = token.text === '??' ? 0.2 : 0.6
  context.splice(tokens[at - 1]!.end, tokens[last]!.end, '', 'logic', weight, at)
  context.splice(tokens[first]!.start, tokens[at + 1]!.start, '', 'logic', 0.8 * weight, at)
  // `a && b || c` without its last part, or without its first ones.
  const [wideFirst, wideLast] = [leftOperand(file, at, true), rightOperand(file, at, true)]
  if (wideLast > last && wideLast - last < 60)
    context.splice(tokens[at - 1]!.end, tokens[wideLast]!.end, '', 'logic', 0.3, at)
  if (wideFirst < first) {
    context.splice(tokens[wideFirst]!.start, tokens[at + 1]!.start, '', 'logic', 0.25, at)
    if (tokens[wideFirst]!.text === '(' && tokens[wideFirst]!.match === at - 1) return
  }
  // `(a || b) && c` from which only `a || b` is kept, without its parentheses.
  const open = tokens[first]!
  if (open.text === '(' && open.match === at - 1 && first === wideFirst && last === wideLast)
    context.replace(first, last, textOf(file, first + 1, at - 2), 'logic', weight)
}

/** Returns or stores a condition in place of `true` or `false`. */
export const booleanResult: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (token.kind !== 'keyword' || !CONSTANTS.has(token.text)) return
  const before = tokens[at - 1]?.text
  const next = tokens[at + 1]
  const isLast = next === undefined || next.first || [';', '}', ')', ','].includes(next.text)
  if (!isLast || (before !== 'return' && before !== '=' && before !== '=>')) return
  const focus = focusOf(file, at, at - 40, at)
  const others = [...conditionsAt(file, at, focus, token.text)]
  replaceByAny(context, at, at, others, 'logic', before === 'return' ? 1.6 : 0.4, 24)
}
