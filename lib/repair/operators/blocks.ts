import { lowerBound } from '../../internal/queues.js'
import { conditionOf, textOf } from '../expression.js'
import { expressionEnd } from '../outline-javascript.js'
import { statementEnd } from '../outline-python.js'
import { nameFacts, type SourceFile } from '../source.js'
import { focusOf } from './conditions-pool.js'
import type { Operator } from './patch.js'
import { isAllowedAt } from './loops.js'
import { functionAt, isUsable, namesWithin, scopeAt } from './scope.js'
import { type Alternative, spread } from './spread.js'
import { isLabel } from './statement-parts.js'

/** A short statement of the file, which may be missing elsewhere. */
interface Statement {
  readonly at: number
  readonly text: string
  readonly names: readonly string[]
  /** The text of its first two tokens, for likeness. */
  readonly head: string
}

const MAX_LENGTH = 80
const REACH = 10
const JUMPS: ReadonlySet<string> = new Set(['return', 'throw', 'raise', 'continue', 'break'])
const OTHER_WORDS = /^(this|super|await|return|throw|raise|continue|break|yield|self|del|delete)$/

const pools = new WeakMap<SourceFile, readonly Statement[]>()

function statementsOf(file: SourceFile): readonly Statement[] {
  const before = pools.get(file)
  if (before !== undefined) return before
  const { tokens } = file
  const python = file.language === 'python'
  const found: Statement[] = []
  for (const at of file.statements) {
    const token = tokens[at]!
    if (token.kind !== 'name' && !OTHER_WORDS.test(token.text) && !/^[+-]{2}$/.test(token.text))
      continue
    if (functionAt(file, at) < 0) continue
    const isBare = tokens[at + 1]?.text === ';' || tokens[at + 1]?.first === true
    const last = python
      ? statementEnd(tokens, at)
      : isBare
        ? at
        : expressionEnd(tokens, JUMPS.has(token.text) ? at + 1 : at)
    const length = (tokens[last]?.end ?? 0) - token.start
    if (length > MAX_LENGTH || (last === at && !JUMPS.has(token.text))) continue
    const text = textOf(file, at, last)
    if (/[\n{]/.test(text)) continue
    found.push({ at, text, names: namesWithin(file, at, last), head: headOf(file, at) })
  }
  pools.set(file, found)
  return found
}

function headOf({ tokens }: SourceFile, at: number): string {
  return `${tokens[at]?.text ?? ''} ${tokens[at + 1]?.text ?? ''}`
}

/** Fills an empty block, or a Python block of `pass`, with a statement like those nearby. */
export const emptyBlock: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  const python = file.language === 'python'
  const isEmpty = python ? token.text === 'pass' : token.text === '{' && token.match === at + 1
  if (!isEmpty || at === 0) return
  const before = tokens[at - 1]!.text
  const isElse = before === 'else'
  const isBlock = python
    ? before === ':'
    : before === ')' || isElse || before === '=>' || before === 'finally'
  if (!isBlock) return
  const region = functionAt(file, python ? at : at + 1)
  const { bodyFirst, params } = file.regions[region] ?? { bodyFirst: -1, params: [] }
  const isBody = python ? bodyFirst === at : bodyFirst === at + 1
  const focus = focusOf(
    file,
    python ? at : at + 1,
    isBody ? at - 12 : at - 20,
    at + (isBody ? 0 : 16),
  )
  const total = [...focus.values()].reduce((sum, weight) => sum + weight, 0.01)
  const found: Alternative[] = []
  const pool = statementsOf(file)
  const middle = lowerBound(pool.length, (i) => pool[i]!.at < at)
  for (
    let i = Math.max(0, middle - 2 * REACH);
    i < Math.min(pool.length, middle + 2 * REACH);
    i++
  ) {
    const { text, names } = pool[i]!
    if (!names.every((name) => isUsable(file, at, name))) continue
    const about = names.reduce((sum, name) => sum + (focus.get(name) ?? 0), 0) / total
    found.push([text, (0.4 + Math.min(1, about)) / (1 + 0.05 * Math.abs(i - middle))])
  }
  if (isBody) {
    for (const name of params) found.push([`return ${name}`, 0.6])
    for (const name of nameFacts(file).fields)
      if (found.length < 60) found.push([`return ${python ? 'self' : 'this'}.${name}`, 0.4])
    for (const value of python
      ? ['True', 'False', 'None', 'self']
      : ['true', 'false', 'null', 'this'])
      found.push([`return ${value}`, 0.3])
  } else {
    for (const [name] of focus) found.push([`return ${name}`, 0.3])
    const jumps = python
      ? ['return', 'continue', 'break', 'return None']
      : ['return', 'continue', 'break']
    for (const jump of jumps) found.push([jump, 0.5])
  }
  const fitting = found.filter(([text]) => isAllowedAt(file, python ? at : at + 1, text))
  for (const [text, weight] of spread(fitting, 6, 30)) {
    if (python) context.replace(at, at, text, 'statement', weight)
    else context.replace(at, at + 1, `{ ${text} }`, 'statement', weight)
  }
}

/** Adds a statement like those nearby, when what is around it is alike. */
export const missingStatement: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (!token.first || at === 0 || !nameFacts(file).statements.has(at)) return
  const region = file.regions[functionAt(file, at)]
  const before = tokens[at - 1]!
  if (region === undefined || at < region.bodyFirst || before.kind === 'keyword') return
  const python = file.language === 'python'
  if (python ? /^(else|elif|except|finally)$/.test(token.text) : before.text === ')') return
  if (isLabel(token)) return
  const pool = statementsOf(file)
  const middle = lowerBound(pool.length, (i) => pool[i]!.at < at)
  const head = headOf(file, at)
  const previous = pool[middle - 1]?.head ?? ''
  const found: Alternative[] = []
  const scope = scopeAt(file, at).byName
  const isKnown = (name: string): boolean =>
    (scope.get(name)?.token ?? -1) <= at && isUsable(file, at, name)
  for (let i = Math.max(1, middle - REACH); i < Math.min(pool.length - 1, middle + REACH); i++) {
    const { text, names, at: place } = pool[i]!
    if (place === at || JUMPS.has(tokens[place]!.text) || !names.every(isKnown)) continue
    const likeness =
      (pool[i + 1]!.head === head ? 1 : 0) + (pool[i - 1]!.head === previous ? 0.7 : 0)
    found.push([text, (0.3 + likeness) / (1 + 0.1 * Math.abs(i - middle))])
  }
  const line = `${before.text === ';' ? ';' : ''}\n${' '.repeat(token.indent)}`
  for (const [text, weight] of spread(found, 0.2, 6))
    context.splice(token.start, token.start, text + line, 'statement', weight, at)
}

/** Runs one branch of an `if` always, when its condition should not be there. */
export const superfluousCondition: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const condition = conditionOf(file, at)
  if (condition === null || tokens[at]!.text !== 'if' || file.language === 'python') return
  const open = condition.last + 2
  const close = tokens[open]?.match ?? -1
  if (tokens[open]?.text !== '{' || close < open + 2 || tokens[close + 1]?.text === 'else') return
  const body = tokens.slice(open, close + 1)
  if (body.length > 60 || tokens[at - 1]?.text === 'else') return
  context.replace(at, close, textOf(file, open + 1, close - 1), 'statement', 0.12)
}
