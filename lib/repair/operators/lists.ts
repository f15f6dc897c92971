import { lowerBound } from '../../internal/queues.js'
import { endsOperand, isCall, isComprehension, partsOf, textOf } from '../expression.js'
import { nameFacts, type SourceFile } from '../source.js'
import type { Token } from '../token.js'
import type { Operator } from './patch.js'
import { isUsable, namesWithin, scopeAt } from './scope.js'
import { type Alternative, spread } from './spread.js'

interface Literal {
  readonly at: number
  readonly text: string
  readonly names: readonly string[]
  readonly parts: readonly string[]
}

const MAX_LENGTH = 80
const MAX_PART = 40
const REACH = 8

const pools = new WeakMap<SourceFile, ReadonlyMap<string, readonly Literal[]>>()

/** Whether the bracket at `at` opens a list, tuple or object and not a block or index. */
function isLiteral(file: SourceFile, at: number): boolean {
  const { tokens, language } = file
  const { text, match } = tokens[at]!
  if (match <= at || (text !== '[' && text !== '{' && text !== '(')) return false
  const before = tokens[at - 1]
  if (text === '[') return !endsOperand(before) || tokens[at]!.first
  if (text === '(') return language === 'python' && !endsOperand(before) && before?.text !== 'def'
  if (before === undefined || before.text === '${') return false
  if (before.text === ':' && isCaseLabel(tokens, at - 1)) return false
  // A destructuring declares names.
  if (nameFacts(file).declaredAt.has(at + 1) && tokens[at + 2]?.text !== '(') return false
  if (['=', '(', ',', '[', ':', '?', 'return', '||', '??', '&&'].includes(before.text)) return true
  return language === 'python' && before.text !== ':'
}

/** Whether this colon ends a label of a `switch`, which is short. */
function isCaseLabel(tokens: readonly Token[], colon: number): boolean {
  for (let i = colon - 1; i >= Math.max(0, colon - 12); i--) {
    const { text, kind } = tokens[i]!
    if (kind === 'keyword' && (text === 'case' || text === 'default')) return true
    if (['?', '{', '}', '(', ',', ';'].includes(text)) return false
  }
  return false
}

function literalsOf(file: SourceFile, bracket: string): readonly Literal[] {
  const before = pools.get(file)
  if (before !== undefined) return before.get(bracket) ?? []
  const found = new Map<string, Literal[]>()
  file.tokens.forEach((token, at) => {
    if (token.kind !== 'punctuator' || !isLiteral(file, at) || token.match === at + 1) return
    if (file.tokens[token.match]!.end - token.start > 400) return
    const list = found.get(token.text) ?? []
    list.push({
      at,
      text: textOf(file, at, token.match),
      names: namesWithin(file, at, token.match),
      parts: partsOf(file.tokens, at).map(({ first, last }) => textOf(file, first, last)),
    })
    found.set(token.text, list)
  })
  pools.set(file, found)
  return found.get(bracket) ?? []
}

function nearby(file: SourceFile, at: number): readonly Literal[] {
  const all = literalsOf(file, file.tokens[at]!.text)
  const own = lowerBound(all.length, (i) => all[i]!.at < at)
  return all.slice(Math.max(0, own - REACH), own + REACH)
}

/** Fills an empty list or object like others nearby, or with a name in scope. */
export const emptyLiteral: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if ((token.text !== '[' && token.text !== '{') || token.match !== at + 1) return
  if (token.kind !== 'punctuator' || !isLiteral(file, at)) return
  const found: Alternative[] = []
  for (const { text, names } of nearby(file, at)) {
    if (text.length > MAX_LENGTH || text.includes('\n')) continue
    if (names.every((name) => isUsable(file, at, name))) found.push([text, 0.7])
  }
  if (token.text === '[') {
    for (const { name, depth, isFunction } of scopeAt(file, at).names)
      if (depth < 2 && !isFunction && found.length < 30) found.push([`[${name}]`, 0.4])
  }
  for (const [text, weight] of spread(found, 0.5, 14))
    context.replace(at, at + 1, text, 'literal', weight)
}

/** Adds an element that similar lists have, and removes one. */
export const listElement: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (token.kind !== 'punctuator' || token.match <= at + 1 || !isLiteral(file, at)) return
  const parts = partsOf(tokens, at)
  const isList = (token.text !== '(' || parts.length > 1) && !isComprehension(file, at)
  if (!isList || parts.length > 40) return
  const texts = parts.map(({ first, last }) => textOf(file, first, last))
  const removal = Math.min(0.12, 0.3 / parts.length)
  parts.forEach(({ first, last }, i) => {
    const next = parts[i + 1]
    const from =
      i > 0 && next === undefined ? tokens[parts[i - 1]!.last]!.end : tokens[first]!.start
    const to = next === undefined ? tokens[last]!.end : tokens[next.first]!.start
    if (token.text !== '(' || parts.length > 2)
      context.splice(from, to, '', 'literal', removal, first)
  })
  const found: Alternative[] = []
  for (const other of nearby(file, at)) {
    const shared = other.parts.filter((part) => texts.includes(part)).length
    for (const [i, part] of other.parts.entries()) {
      if (part.length > MAX_PART || texts.includes(part)) continue
      const after = i > 0 ? other.parts[i - 1]! : ''
      found.push([part, 0.2 + shared / other.parts.length + (texts.includes(after) ? 0.3 : 0)])
    }
  }
  if (token.text === '[' || token.text === '(') {
    for (const { name, depth, isFunction, isUnused } of scopeAt(file, at).names)
      if (depth === 0 && !isFunction && !texts.includes(name))
        found.push([name, isUnused ? 2 : 0.2])
  }
  const usable = found.filter(([part]) =>
    (part.match(/[A-Za-z_$][\w$]*/g) ?? []).every((name) => isUsable(file, at, name)),
  )
  const places = parts.length <= 6 ? parts.length : 1
  for (const [text, weight] of spread(usable, 0.3, 5)) {
    for (let i = parts.length - places; i < parts.length; i++) {
      const { last } = parts[i]!
      const share = i === parts.length - 1 ? 0.6 : 0.4 / places
      context.splice(
        tokens[last]!.end,
        tokens[last]!.end,
        `, ${text}`,
        'literal',
        weight * share,
        last,
      )
    }
  }
}

function isNamed(tokens: readonly Token[], first: number): boolean {
  return tokens[first + 1]?.text === '=' || tokens[first]!.text === '**'
}

/** Passes a further argument, such as a parameter that is used nowhere else, or a known option. */
export const missingArgument: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  if (tokens[at]!.text !== '(' || !isCall(file, at) || isComprehension(file, at)) return
  const parts = partsOf(tokens, at)
  const texts = parts.map(({ first, last }) => textOf(file, first, last))
  const found: Alternative[] = []
  for (const { name, depth, isUnused, isFunction } of scopeAt(file, at).names)
    if (depth < 9 && !texts.includes(name) && !isFunction)
      found.push([name, isUnused ? 3 : depth === 0 ? 0.3 : 0.1])
  const last = parts.at(-1)
  // In Python, named arguments come last.
  if (file.language === 'python' && last !== undefined && isNamed(tokens, last.first)) return
  const end = last === undefined ? tokens[at]!.end : tokens[last.last]!.end
  const comma = last === undefined ? '' : ', '
  for (const [text, weight] of spread(found, 0.15, 6))
    context.splice(end, end, comma + text, 'arguments', weight, at)
}
