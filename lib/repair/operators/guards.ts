import { conditionOf, type Span, textOf } from '../expression.js'
import { expressionEnd } from '../outline-javascript.js'
import { statementEnd } from '../outline-python.js'
import { nameFacts, type SourceFile } from '../source.js'
import { conditionsAt, focusOf, templateOf } from './conditions-pool.js'
import { isAllowedAt } from './loops.js'
import type { Operator } from './patch.js'
import { functionAt, isUsable, namesWithin } from './scope.js'
import { type Alternative, spread } from './spread.js'
import { isLabel } from './statement-parts.js'

/** `if (condition) jump`, without `else`. */
interface Guard {
  readonly at: number
  readonly condition: string
  readonly names: readonly string[]
  /** See `templateOf`. */
  readonly template: readonly string[] | null
  readonly jump: string
  readonly jumpNames: readonly string[]
  /** The tokens around it, see `around`. */
  readonly before: string
  readonly after: string
}

interface Jumps {
  readonly guards: readonly Guard[]
  /** Short returns, raises and the like by the function that they are in. */
  readonly byFunction: ReadonlyMap<number, ReadonlyMap<string, number>>
}

const JUMPS: ReadonlySet<string> = new Set(['return', 'throw', 'raise', 'continue', 'break'])
const MAX_LENGTH = 90
const REACH = 8

const pools = new WeakMap<SourceFile, Jumps>()

function jumpsOf(file: SourceFile): Jumps {
  const before = pools.get(file)
  if (before !== undefined) return before
  const guards: Guard[] = []
  const byFunction = new Map<number, Map<string, number>>()
  file.tokens.forEach((token, at) => {
    if (token.kind !== 'keyword') return
    const condition = token.text === 'if' ? conditionOf(file, at) : null
    const jump = condition === null ? null : guardedJump(file, condition.last)
    if (condition !== null && jump !== null) {
      const text = textOf(file, condition.first, condition.last)
      const names = namesWithin(file, condition.first, condition.last)
      if (text.length + jump.text.length <= MAX_LENGTH && !text.includes('\n'))
        guards.push({
          at,
          condition: text,
          names,
          template: templateOf(file, condition, names),
          jump: jump.text,
          jumpNames: namesWithin(file, jump.first, jump.last),
          before: around(file, at - 3),
          after: around(file, jump.after),
        })
    }
    if (!JUMPS.has(token.text)) return
    const text = textOf(file, at, endOfJump(file, at))
    if (text.length > 50 || text.includes('\n')) return
    const region = functionAt(file, at)
    const counts = byFunction.get(region) ?? new Map<string, number>()
    counts.set(text, (counts.get(text) ?? 0) + 1)
    byFunction.set(region, counts)
  })
  const jumps = { guards, byFunction }
  pools.set(file, jumps)
  return jumps
}

function endOfJump(file: SourceFile, at: number): number {
  const next = file.tokens[at + 1]
  const isBare = next === undefined || next.first || next.text === ';' || next.text === '}'
  if (isBare) return at
  return file.language === 'python'
    ? statementEnd(file.tokens, at)
    : expressionEnd(file.tokens, at + 1)
}

/** The jump that is all of the branch after a condition; null when there is more. */
function guardedJump(file: SourceFile, conditionLast: number): Jump | null {
  const { tokens } = file
  let at = conditionLast + 2
  const python = file.language === 'python'
  const braces = !python && tokens[at]?.text === '{'
  if (braces) at++
  const jump = tokens[at]
  if (jump === undefined || !JUMPS.has(jump.text)) return null
  const last = endOfJump(file, at)
  const after = tokens[last + 1]?.text === ';' ? last + 2 : last + 1
  if (braces && tokens[after]?.text !== '}') return null
  if (tokens[braces ? after + 1 : after]?.text === 'else') return null
  const text = textOf(file, at, last)
  if (text.includes('\n')) return null
  const next = tokens[last + 1]
  return python && next !== undefined && next.indent >= jump.indent
    ? null
    : { text, first: at, last, after: braces ? after + 1 : after }
}

interface Jump extends Span {
  readonly text: string
  /** The first token behind the guard. */
  readonly after: number
}

/** Three tokens, by which a place is known for one like another. */
function around({ tokens }: SourceFile, first: number): string {
  return tokens.slice(Math.max(0, first), first + 3).map(({ text }) => text).join(' ')
}

/** Whether this closes a block that is no literal. */
function endsBlock({ tokens }: SourceFile, at: number): boolean {
  const { text, first, match } = tokens[at]!
  const opener = tokens[match - 1]?.text ?? ''
  return text === '}' && first && match < at - 1 && /^(\)|else|=>|try|finally|do)$/.test(opener)
}

/** Adds an early exit: one like those nearby, about the values that the next statement uses. */
export const missingGuard: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  const isEnd = endsBlock(file, at)
  if (!isEnd && (!token.first || !nameFacts(file).statements.has(at))) return
  const here = functionAt(file, at)
  const region = file.regions[here]
  const before = tokens[at - 1]
  if (region === undefined || before === undefined) return
  const python = file.language === 'python'
  if (
    python ? ['else', 'elif', 'except', 'finally'].includes(token.text) : !/[;{}]/.test(before.text)
  )
    if (python || before.kind === 'keyword' || (before.text === ')' && !isEnd)) return
  if (at < region.bodyFirst || /^['"]/.test(token.text) || isLabel(token)) return
  const { guards, byFunction } = jumpsOf(file)
  const focus = focusOf(file, at, isEnd ? at - 12 : at, isEnd ? at : at + 24)
  const total = [...focus.values()].reduce((sum, weight) => sum + weight, 0.01)
  const last = isEnd ? tokens.slice(token.match, at).findLast(({ first }) => first) : undefined
  const inner = ' '.repeat(Math.max(0, (last?.indent ?? 0) - token.indent))
  const found: Alternative[] = []
  let likeness = 0
  const [textBefore, textAfter] = [around(file, at - 3), around(file, at)]
  let middle = 0
  for (let high = guards.length; middle < high;) {
    const half = (middle + high) >> 1
    if (guards[half]!.at < at) middle = half + 1
    else high = half
  }
  for (let i = Math.max(0, middle - REACH); i < Math.min(guards.length, middle + REACH); i++) {
    const { condition, names, template, jump, jumpNames, at: place, ...other } = guards[i]!
    if (!isAllowedAt(file, at, jump)) continue
    if (!jumpNames.every((name) => isUsable(file, at, name))) continue
    if (template !== null)
      for (const [operand, weight] of [...focus].slice(0, 3))
        found.push([written(template.join(operand), jump), (0.8 * weight) / total])
    if (!names.every((name) => isUsable(file, at, name))) continue
    const isHere = functionAt(file, place) === here
    const about = names.reduce((sum, name) => sum + (focus.get(name) ?? 0), 0) / total
    const alike = (other.before === textBefore ? 1 : 0) + (other.after === textAfter ? 1 : 0)
    likeness = Math.max(likeness, alike)
    const strength = (isHere && alike < 2 ? 0.5 : 1) * (0.3 + Math.min(1, about)) * (1 + 3 * alike)
    found.push([written(condition, jump), strength])
  }
  const isStart = at === region.bodyFirst || before.text === '{' || before.text === ':'
  const isBody = at === region.bodyFirst || (python && isAfterDocstring(file, at, region.bodyFirst))
  const jumps = [...(byFunction.get(here) ?? [])]
    .filter(([text]) => isAllowedAt(file, at, text))
    .sort((a, b) => b[1] - a[1])
    .slice(0, 3)
  if (!jumps.some(([text]) => text === 'return')) jumps.push(['return', 0.4])
  if (isStart && !isBody && isAllowedAt(file, at, 'continue')) jumps.push(['continue', 0.5])
  const conditions = isStart || isBody ? conditionsAt(file, at, focus, '') : []
  for (const [condition, strength] of spread(conditions, 3, 8)) {
    for (const [jump, count] of jumps)
      found.push([written(condition, jump), strength * Math.min(1, 0.4 * count)])
  }
  const mass = (isBody ? 1.2 : isStart ? 0.5 : 0.35) + 0.4 * likeness
  const { start } = token
  for (const [text, weight] of spread(found, mass, isBody ? 16 : 10))
    context.splice(start, start, text, 'guard', weight, at)

  function written(condition: string, jump: string): string {
    const indent = ' '.repeat(token.indent)
    return python
      ? `if ${condition}:\n${indent}    ${jump}\n${indent}`
      : `${inner}if (${condition}) ${jump}${before!.text === ';' ? ';' : ''}\n${indent}`
  }
}

function isAfterDocstring(file: SourceFile, at: number, bodyFirst: number): boolean {
  return at === bodyFirst + 1 && file.tokens[bodyFirst]!.kind === 'string'
}
