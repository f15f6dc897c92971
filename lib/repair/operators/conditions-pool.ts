import { lowerBound } from '../../internal/queues.js'
import {
  conditionOf,
  conjuncts,
  isLogical,
  leftOperand,
  rightOperand,
  type Span,
  textOf,
} from '../expression.js'
import type { SourceFile } from '../source.js'
import { functionAt, isDeclared, isUsable, namesWithin, scopeAt } from './scope.js'
import type { Alternative } from './spread.js'

/** A condition of the file, which may be the right one elsewhere as well. */
interface Known {
  readonly text: string
  readonly first: number
  readonly names: readonly string[]
  /** The text around the only local name, to be filled with another one. */
  readonly template: readonly string[] | null
}

const MAX_LENGTH = 90
/** Conditions on either side of a place that are considered there. */
const REACH = 30

const pools = new WeakMap<SourceFile, readonly Known[]>()

/** All conditions of a file, and the parts of each, in order. */
function poolOf(file: SourceFile): readonly Known[] {
  const before = pools.get(file)
  if (before !== undefined) return before
  const found: Known[] = []
  const add = ({ first, last }: Span): void => {
    const length = file.tokens[last]!.end - file.tokens[first]!.start
    if (length > MAX_LENGTH || last < first) return
    const text = textOf(file, first, last)
    if (/[\n\r]|\/[/*]|=>|#/.test(text) || /^(true|false|True|False)$/.test(text)) return
    const names = namesWithin(file, first, last)
    found.push({ text, first, names, template: templateOf(file, { first, last }, names) })
  }
  file.tokens.forEach((token, at) => {
    const condition = conditionOf(file, at)
    if (condition !== null) {
      add(condition)
      const parts = conjuncts(file, condition)
      if (parts.length > 1) parts.forEach(add)
    } else if (token.text === '?' && token.kind === 'punctuator') {
      const first = leftOperand(file, at, true)
      if (first < at) add({ first, last: at - 1 })
    } else if (isLogical(token)) {
      const [first, last] = [leftOperand(file, at, false), rightOperand(file, at, false)]
      if (first < at) add({ first, last: at - 1 })
      if (last > at) add({ first: at + 1, last })
    }
  })
  found.sort((a, b) => a.first - b.first)
  const distinct = found.filter(
    ({ first, text }, i) => i === 0 || found[i - 1]!.first !== first || found[i - 1]!.text !== text,
  )
  pools.set(file, distinct)
  return distinct
}

/** The text around the chain of the one local name, as in `typeof ‹a.b› === 'string'`. */
export function templateOf(
  file: SourceFile,
  { first, last }: Span,
  names: readonly string[],
): string[] | null {
  const local = names.filter((name) => (scopeAt(file, first).byName.get(name)?.depth ?? 9) < 9)
  const self = file.language === 'python' ? 'self' : 'this'
  let root: string | undefined = local.length === 1 ? local[0]! : undefined
  if (local.length === 0) root = self
  if (root === undefined) return null
  const parts: string[] = []
  let chain: string | null = null
  let from = file.tokens[first]!.start
  for (let at = first; at <= last; at++) {
    if (file.tokens[at]!.text !== root || file.tokens[at - 1]?.text === '.') continue
    const end = chainEnd(file, at)
    if (end > last) return null
    const text = textOf(file, at, end)
    if (chain !== null && chain !== text) return null
    chain = text
    parts.push(file.text.slice(from, file.tokens[at]!.start))
    from = file.tokens[end]!.end
    at = end
  }
  if (parts.length === 0) return null
  parts.push(file.text.slice(from, file.tokens[last]!.end))
  return parts
}

/** The last token of the fields that follow a name, without a method that is called or a length. */
export function chainEnd(file: SourceFile, at: number): number {
  const { tokens } = file
  let end = at
  while (
    tokens[end + 1]?.text === '.' &&
    tokens[end + 2]?.kind === 'name' &&
    tokens[end + 3]?.text !== '(' &&
    !['length', 'size'].includes(tokens[end + 2]!.text)
  )
    end += 2
  return end
}

/**
 * Names and fields in scope at `place` that the code from `first` to `last` works on, with how much
 * it does; unused parameters come first, since a condition on them may be what is missing.
 */
export function focusOf(
  file: SourceFile,
  place: number,
  first: number,
  last: number,
): Map<string, number> {
  const found = new Map<string, number>()
  const scope = scopeAt(file, place)
  const self = file.language === 'python' ? 'self' : 'this'
  for (const { name, isUnused, depth, kind } of scope.names)
    if (depth === 0 && kind === 'parameter' && name !== self) found.set(name, isUnused ? 4 : 0.4)
  for (let at = Math.max(0, first); at <= Math.min(last, file.tokens.length - 1); at++) {
    const { kind, text } = file.tokens[at]!
    const isSelf = text === self
    if ((kind !== 'name' && !isSelf) || /^\??\.$/.test(file.tokens[at - 1]?.text ?? '')) continue
    const declared = scope.byName.get(text)
    if (!isSelf && (declared === undefined || declared.depth === 9)) continue
    if (file.tokens[at + 1]?.text === '(') continue
    const end = chainEnd(file, at)
    const weight = declared?.kind === 'parameter' ? 1.3 : 1
    if (end > at) add(textOf(file, at, end), weight)
    if (!isSelf) add(text, end > at ? 0.5 * weight : weight)
  }
  return new Map([...found].sort((a, b) => b[1] - a[1]).slice(0, 6))

  function add(text: string, weight: number): void {
    found.set(text, (found.get(text) ?? 0) + weight)
  }
}

const USUAL: Readonly<Record<'javascript' | 'python', readonly Alternative[]>> = {
  javascript: [
    ['§', 1],
    ['!§', 1],
    ['§.length', 0.35],
    ['!§.length', 0.3],
    ['§.length === 0', 0.35],
    ['§ === undefined', 0.4],
    ['§ !== undefined', 0.35],
    ['§ === null', 0.3],
    ['§ !== null', 0.25],
    ['§ == null', 0.3],
    ['§ != null', 0.25],
    ['§ > 0', 0.3],
    ['§ < 0', 0.3],
    ['§ === 0', 0.3],
    ["typeof § === 'string'", 0.35],
    ["typeof § === 'function'", 0.25],
    ["typeof § === 'object'", 0.2],
    ['Array.isArray(§)', 0.25],
    ['§.length > 1', 0.2],
    ['§.length > 0', 0.25],
  ],
  python: [
    ['§', 1],
    ['not §', 1],
    ['§ is None', 0.9],
    ['§ is not None', 0.7],
    ['§ == 0', 0.3],
    ['§ > 0', 0.25],
    ['§ < 0', 0.3],
    ['len(§) == 0', 0.15],
    ['len(§) > 1', 0.15],
    ['isinstance(§, str)', 0.3],
    ['§ < 1', 0.15],
    ['§ == 1', 0.15],
  ],
}

/**
 * Conditions that may be meant at a place: those of the file near it whose names are in scope, the
 * same about what the code there works on, and usual ones about that.
 */
export function conditionsAt(
  file: SourceFile,
  at: number,
  focus: ReadonlyMap<string, number>,
  except: string,
): Map<string, number> {
  const found = new Map<string, number>()
  const add = (text: string, strength: number): void => {
    if (text !== except) found.set(text, (found.get(text) ?? 0) + strength)
  }
  const total = [...focus.values()].reduce((sum, weight) => sum + weight, 0.01)
  const pool = poolOf(file)
  const middle = lowerBound(pool.length, (i) => pool[i]!.first < at)
  const here = functionAt(file, at)
  for (let i = Math.max(0, middle - REACH); i < Math.min(pool.length, middle + REACH); i++) {
    const { text, first, names, template } = pool[i]!
    const distance = Math.abs(i - middle)
    const base = (functionAt(file, first) === here ? 1.2 : 0.8) / (1 + 0.08 * distance)
    if (names.every((name) => isUsable(file, at, name))) {
      const about = names.reduce((sum, name) => sum + (focus.get(name) ?? 0), 0) / total
      const local = names.filter((name) => isDeclared(file, name)).length
      add(text, base * (0.35 + 2 * Math.min(1, about)) * (local === 0 ? 0.5 : 1))
    }
    if (template === null) continue
    for (const [operand, weight] of focus)
      add(template.join(operand), (0.9 * base * weight) / total)
  }
  for (const [operand, weight] of focus) {
    for (const [text, strength] of USUAL[file.language === 'python' ? 'python' : 'javascript'])
      add(text.replace('§', operand), (1.1 * strength * weight) / total)
  }
  // Comparisons of what the code works on most.
  const [a, aWeight] = [...focus][0] ?? ['', 0]
  const [b, bWeight] = [...focus][1] ?? ['', 0]
  const share = (aWeight + bWeight) / total
  if (b !== '' && !a.startsWith(b) && !b.startsWith(a))
    for (const [sign, strength] of PAIRS) {
      const isPython = file.language === 'python'
      if (isPython && sign.length === 3) continue
      add(`${a} ${sign} ${b}`, strength * share)
    }
  return found
}

const PAIRS: readonly Alternative[] = [
  ['===', 0.35],
  ['!==', 0.3],
  ['==', 0.25],
  ['!=', 0.2],
  ['<', 0.3],
  ['>', 0.25],
  ['>=', 0.2],
  ['<=', 0.2],
]
