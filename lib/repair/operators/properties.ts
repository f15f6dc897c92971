import { lowerBound } from '../../internal/queues.js'
import { operandStart, textOf } from '../expression.js'
import { similarity } from '../similarity.js'
import type { SourceFile } from '../source.js'
import { isBuiltIn, partnersOf } from './families.js'
import type { Operator, OperatorContext } from './patch.js'
import { type Alternative, replaceByAny, spread } from './spread.js'

interface Uses {
  /** Where each property follows a receiver of this name. */
  readonly byReceiver: ReadonlyMap<string, ReadonlyMap<string, number>>
  /** Tokens that are properties or keys of literals, ascending. */
  readonly positions: readonly number[]
}

const NEARBY = 14
const MOST = 16
const uses = new WeakMap<SourceFile, Uses>()

function usesOf(file: SourceFile): Uses {
  const before = uses.get(file)
  if (before !== undefined) return before
  const byReceiver = new Map<string, Map<string, number>>()
  const positions: number[] = []
  file.tokens.forEach((token, at) => {
    if (token.kind !== 'name') return
    const previous = file.tokens[at - 1]?.text
    const next = file.tokens[at + 1]?.text
    const isKey = next === ':' && (previous === '{' || previous === ',')
    if (previous !== '.' && previous !== '?.' && !isKey) return
    positions.push(at)
    if (isKey) return
    const receiver = file.tokens[at - 2]!.text
    const counts = byReceiver.get(receiver) ?? new Map<string, number>()
    const called = next === '(' ? `${token.text}(` : token.text
    counts.set(called, (counts.get(called) ?? 0) + 1)
    byReceiver.set(receiver, counts)
  })
  const found = { byReceiver, positions }
  uses.set(file, found)
  return found
}

/** Replaces a property or method name by a commonly confused, nearby or similar one. */
export const property: Operator = (context, at) => {
  const { file, clues } = context
  const { tokens } = file
  const token = tokens[at]!
  const before = tokens[at - 1]?.text
  if (token.kind !== 'name') return
  const python = file.language === 'python'
  const next = tokens[at + 1]?.text
  const isMember = before === '.' || before === '?.'
  const isFunction = next === '(' && before !== 'def' && before !== 'function' && !isMember
  const partners = partnersOf(token.text, file.language)
  const isMissing = clues.missing.has(token.text)
  if (partners.size > 0 && (isMember || isFunction)) {
    const isMath = tokens[at - 2]?.text === 'Math'
    const found: Alternative[] = []
    for (const other of partners) {
      if (isMath && !python && !(other in Math)) continue
      const isUsual =
        isMath ||
        clues.properties.has(other) ||
        clues.methods.has(other) ||
        (isBuiltIn(other, file.language) && isBuiltIn(token.text, file.language))
      // The families that come first are those of the closest names.
      const share = 1 / (1 + 0.35 * found.length)
      if (isUsual || isMissing) found.push([other, isUsual ? share : 0.6])
    }
    const called = next === '('
    for (const [other, weight] of spread(found, called ? 1.5 : 0.9, 10))
      context.replace(at, at, other, 'property', Math.min(weight, isMissing ? 1.2 : 0.8))
  }
  const isKey = next === ':' && ['{', ','].includes(before ?? '') && !python
  if (isMember || isKey) {
    const mass = isMissing ? 2.5 : next === '(' ? 0.35 : isKey ? 0.25 : 0.8
    replaceByAny(context, at, at, others(context, at), 'property', mass, MOST)
  }
}

/** Properties of the same receiver, nearby ones, and similar ones of the project. */
function others({ file, clues }: OperatorContext, at: number): Alternative[] {
  const { tokens } = file
  const { text } = tokens[at]!
  const called = tokens[at + 1]?.text === '('
  const isMissing = clues.missing.has(text)
  const found: Alternative[] = []
  const { byReceiver, positions } = usesOf(file)
  // Only the class that declares it knows it.
  const mayBePrivate = text.startsWith('#') || tokens[at - 2]?.text === 'this'
  const add = (name: string, strength: number): void => {
    if (name === text || (name.startsWith('#') && !mayBePrivate)) return
    const likeness = similarity(text, name)
    found.push([name, strength * (0.4 + likeness) * (isMissing ? 0.5 + likeness : 1)])
  }
  const receiver = tokens[at - 1]?.text === '.' ? tokens[at - 2]?.text : undefined
  for (const [name, count] of byReceiver.get(receiver ?? '') ?? []) {
    if (found.length >= 24) break
    if (name.endsWith('(') !== called) continue
    add(called ? name.slice(0, -1) : name, count > 1 ? 1.4 : 1.1)
  }
  const own = lowerBound(positions.length, (i) => positions[i]! < at)
  for (let i = Math.max(0, own - NEARBY); i < Math.min(positions.length, own + NEARBY); i++) {
    const place = positions[i]!
    if ((tokens[place + 1]?.text === '(') === called) add(tokens[place]!.text, 0.5)
  }
  if (!isMissing && found.length > 8) return twice(file, at, found)
  let read = 0
  for (const name of (called ? clues.methods : clues.properties).keys()) {
    if (!isMissing && read++ > 20) break
    add(name, 0.3)
  }
  return twice(file, at, found)
}

/** Raises all when the same chain is both operands of an operator, as in `a.b * a.b`. */
function twice(file: SourceFile, at: number, found: Alternative[]): Alternative[] {
  return isRepeatedOperand(file, at)
    ? found.map(([name, strength]) => [name, 3 * strength] as const)
    : found
}

const OPERATORS: ReadonlySet<string> = new Set('* / + - % === !== == != < > <= >='.split(' '))

function isRepeatedOperand(file: SourceFile, at: number): boolean {
  const { tokens } = file
  const isOperator = (index: number): boolean => OPERATORS.has(tokens[index]?.text ?? '')
  if (tokens[at - 1]?.text !== '.') return false
  const first = operandStart(tokens, at)
  if (!isOperator(at + 1) && !isOperator(first - 1)) return false
  const length = at - first + 1
  const text = textOf(file, first, at)
  const same = (from: number): boolean =>
    from >= 0 && from + length <= tokens.length && textOf(file, from, from + length - 1) === text
  return (isOperator(at + 1) && same(at + 2)) || (isOperator(first - 1) && same(first - 1 - length))
}
