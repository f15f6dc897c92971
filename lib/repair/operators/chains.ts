import { lowerBound } from '../../internal/queues.js'
import { isCall, operandEnd, operandStart, textOf } from '../expression.js'
import type { SourceFile } from '../source.js'
import { nameFacts } from '../source.js'
import { isKeyOrType } from './identifiers.js'
import type { Operator } from './patch.js'
import { isUsable, namesWithin } from './scope.js'
import { type Alternative, spread } from './spread.js'

interface Call {
  readonly at: number
  /** Such as `.slice(1)`. */
  readonly text: string
  readonly names: readonly string[]
}

const MAX_LENGTH = 36
const REACH = 8

const pools = new WeakMap<SourceFile, readonly Call[]>()

/** Short method calls of a file, in order. */
function callsOf(file: SourceFile): readonly Call[] {
  const before = pools.get(file)
  if (before !== undefined) return before
  const found: Call[] = []
  file.tokens.forEach((token, at) => {
    const open = file.tokens[at + 1]
    if (token.kind !== 'name' || open?.text !== '(' || open.match < 0) return
    if (file.tokens[at - 1]?.text !== '.') return
    const close = file.tokens[open.match]!
    if (close.end - token.start > MAX_LENGTH || close.line !== token.line) return
    found.push({
      at,
      text: `.${file.text.slice(token.start, close.end)}`,
      names: namesWithin(file, at + 1, open.match),
    })
  })
  pools.set(file, found)
  return found
}

const USUAL: Readonly<Record<'javascript' | 'python', readonly Alternative[]>> = {
  javascript: [
    ['.trim()', 1],
    ['.slice(1)', 0.6],
    ['.slice(0, -1)', 0.4],
    ['.slice()', 0.5],
    ['.toLowerCase()', 0.7],
    ['.toUpperCase()', 0.4],
    ['.charAt(0)', 0.3],
    ['.sort()', 0.4],
    ['.reverse()', 0.4],
    ['.filter(Boolean)', 0.3],
    ['.toString()', 0.3],
    ['.length', 0.5],
  ],
  python: [
    ['.strip()', 1],
    ['.lower()', 0.7],
    ['.upper()', 0.3],
    ['.copy()', 0.4],
    ['.rstrip()', 0.5],
    ['.lstrip()', 0.3],
    ['.items()', 0.4],
    ['.split()', 0.3],
    ['.keys()', 0.1],
    ['.values()', 0.3],
    ['.decode()', 0.1],
    ['.encode()', 0.1],
  ],
}

/** Names of whole Python functions that wrap a value. */
const WRAPPERS: readonly string[] = ['list', 'str', 'int', 'len', 'sorted', 'abs', 'set', 'tuple']

/** Whether values are assigned to what begins a line, as in `self.a, self.b = b, a`. */
function isTarget({ tokens }: SourceFile, first: number, last: number): boolean {
  if (!tokens[first]!.first) return false
  for (let at = last + 1; at < tokens.length && !tokens[at]!.first; at++) {
    if (tokens[at]!.text === '=') return true
    if (tokens[at]!.match > at) at = tokens[at]!.match
  }
  return false
}

/** Appends a method call to a value: a usual one, or one that nearby code makes. */
export const missingCall: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (token.kind !== 'name' && token.text !== ')' && token.text !== ']') return
  const next = tokens[at + 1]
  if (token.text === ')' && (token.match < 0 || !isCall(file, token.match))) return
  const isInner = next?.text === '.' || next?.text === '['
  const ends =
    next === undefined ||
    next.first ||
    [')', ',', ';', '===', '!==', '==', '!=', ']', '}', ':', '+', '&&', '||'].includes(next.text) ||
    (isInner && token.kind !== 'name') ||
    (next.text === '.' && tokens[at - 1]?.text === '.')
  if (!ends || nameFacts(file).declaredAt.has(at) || isKeyOrType(file, at)) return
  const first = operandStart(tokens, at)
  const before = tokens[first - 1]?.text ?? ''
  if (/^(function|class|def|import|from|as|new|\.\.\.)$/.test(before)) return
  const python = file.language === 'python'
  if (python && next?.text === ',' && isTarget(file, first, at)) return
  const found: Alternative[] = [...USUAL[python ? 'python' : 'javascript']]
  const all = callsOf(file)
  const from = lowerBound(all.length, (i) => all[i]!.at < at)
  for (let i = Math.max(0, from - REACH); i < Math.min(all.length, from + REACH); i++) {
    const { text, names } = all[i]!
    if (names.every((name) => isUsable(file, at, name))) found.push([text, 1.1])
  }
  const isResult = ['return', '=', '=>'].includes(before)
  const mass = token.kind === 'name' ? (isResult ? 0.4 : 0.25) : 0.5
  for (const [text, weight] of spread(found, mass, 10))
    context.splice(token.end, token.end, text, 'call', weight, at)
  if (!python || (!isResult && before !== '(' && before !== ',')) return
  const value = textOf(file, first, at)
  if (value.length > 60 || next?.text === '.') return
  for (const name of WRAPPERS) context.replace(first, at, `${name}(${value})`, 'call', 0.02)
}

/** Removes a method call of a chain, copies what is changed in place, or adds a comparator. */
export const chainedCall: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  const python = file.language === 'python'
  const open = tokens[at + 1]
  if (token.kind !== 'name') return copied(context, at)
  if (open?.text !== '(' || open.match <= at) return
  const isMember = tokens[at - 1]?.text === '.'
  const isEmpty = open.match === at + 2
  if (isMember) context.splice(tokens[at - 1]!.start, tokens[open.match]!.end, '', 'call', 0.15, at)
  else if (!/^(def|function|class|new|if|while)$/.test(tokens[at - 1]?.text ?? '')) {
    // A function of one argument that should not be applied.
    if (!isEmpty && operandEnd(tokens, at + 2) === open.match - 1 && isCall(file, at + 1))
      context.replace(at, open.match, textOf(file, at + 2, open.match - 1), 'call', 0.12)
  }
  if (python) {
    if (token.text === 'sorted' && !isMember)
      context.splice(
        tokens[open.match]!.start,
        tokens[open.match]!.start,
        ', reverse=True',
        'call',
        0.35,
        at,
      )
    if (token.text === 'sort' && isMember && isEmpty)
      context.replace(at + 1, at + 2, '(reverse=True)', 'call', 0.35)
    return
  }
  if (!isMember) return
  // A comparator, since the default order of numbers is that of their text.
  if (token.text === 'sort' && isEmpty) {
    context.replace(at + 1, at + 2, '((a, b) => a - b)', 'call', 0.9)
    context.replace(at + 1, at + 2, '((a, b) => b - a)', 'call', 0.5)
  }
  // Sorting and reversing happen in place, so use a copy.
  if (['sort', 'reverse', 'splice', 'fill'].includes(token.text)) {
    const first = operandStart(tokens, at - 2)
    context.replace(first, at - 2, `[...${textOf(file, first, at - 2)}]`, 'call', 0.5)
  }
}

/** Copies a returned or assigned list or object. */
const copied: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const { text } = tokens[at]!
  if (text !== 'return' && text !== '=') return
  const first = at + 1
  if (tokens[first] === undefined || tokens[first].first) return
  let last = first
  while (tokens[last + 1]?.text === '.' && tokens[last + 2]?.kind === 'name') last += 2
  const after = tokens[last + 1]
  const plain = tokens[first].kind === 'name' || tokens[first].text === 'this'
  if (!plain || (after !== undefined && !after.first && after.text !== ';')) return
  const value = textOf(file, first, last)
  const [list, dict] =
    file.language === 'python'
      ? [`list(${value})`, `dict(${value})`]
      : [`[...${value}]`, `{ ...${value} }`]
  context.replace(first, last, list, 'call', 0.12)
  context.replace(first, last, dict, 'call', 0.07)
}
