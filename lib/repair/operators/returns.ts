import { headsOf, operandEnd, textOf } from '../expression.js'
import type { SourceFile } from '../source.js'
import type { Operator, OperatorContext } from './patch.js'
import { functionAt, scopeAt } from './scope.js'
import { endOf, isExpression, isStatement } from './statement-parts.js'

/** Adds a `return` before the last expression of a block. */
export const missingReturn: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  if (!isStatement(context, at) || !isExpression(context, at)) return
  const region = functionAt(file, at)
  if (region < 0 || tokens[at]!.text.startsWith('"""') || headsOf(file).has(at)) return
  const last = endOf(context, at)
  const assigns = tokens
    .slice(at, last + 1)
    .some(
      ({ text, match }, i) =>
        match < 0 &&
        ['=', '+=', '-=', '*=', '/=', '++', '--', '??=', '||='].includes(text) &&
        isTopLevel(context, at, at + i),
    )
  const after = tokens[last + 1]
  const ends =
    after === undefined ||
    last >= file.regions[region]!.bodyLast ||
    after.text === '}' ||
    (after.text === ';' && tokens[last + 2]?.text === '}') ||
    (file.language === 'python' && after.indent < tokens[at]!.indent)
  const start = tokens[at]!.start
  if (!assigns) context.splice(start, start, 'return ', 'return', ends ? 0.5 : 0.06, at)
  else if (ends && tokens[at]!.kind === 'name') {
    context.splice(
      tokens[last]!.end,
      tokens[last]!.end,
      `${lineBreak(context, at)}return ${textOf(file, at, operandEnd(tokens, at))}`,
      'return',
      0.25,
      at,
    )
  }
}

const bodyEnds = new WeakMap<SourceFile, ReadonlyMap<number, readonly number[]>>()

/** The functions whose body ends at each token, as indices of regions. */
function bodyEndsOf(file: SourceFile): ReadonlyMap<number, readonly number[]> {
  const before = bodyEnds.get(file)
  if (before !== undefined) return before
  const found = new Map<number, number[]>()
  file.regions.forEach(({ kind, bodyFirst, bodyLast }, index) => {
    if (kind !== 'function' || bodyFirst >= bodyLast) return
    found.set(bodyLast, [...(found.get(bodyLast) ?? []), index])
  })
  bodyEnds.set(file, found)
  return found
}

/** Returns a variable at the end of a function that returns nothing. */
export const missingResult: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  for (const index of bodyEndsOf(file).get(at) ?? []) {
    const region = file.regions[index]!
    let lastStatement = at
    while (lastStatement > region.bodyFirst && !isStatement(context, lastStatement)) lastStatement--
    if (!isStatement(context, lastStatement)) continue
    if (/^(return|throw|raise)$/.test(tokens[lastStatement]!.text)) continue
    if (at - region.bodyFirst < 3) continue
    if (tokens[region.last]!.text !== '}' && file.language !== 'python') continue
    const anchor = tokens[region.bodyFirst]!
    const start = anchor.first ? `\n${' '.repeat(anchor.indent)}` : '; '
    const { end } = tokens[at]!
    const put = (name: string, weight: number): void =>
      context.splice(end, end, `${start}return ${name}`, 'return', weight, at)
    let count = 0
    for (const { name, kind, depth } of scopeAt(file, at).names) {
      if (depth > 0 || name === 'self' || count++ > 12) continue
      put(name, kind === 'variable' ? 0.4 : 0.15)
    }
    if (region.owner !== '') put(file.language === 'python' ? 'self' : 'this', 0.3)
  }
}

function isTopLevel({ file }: OperatorContext, from: number, at: number): boolean {
  for (let i = from; i < at; i++) {
    const { match } = file.tokens[i]!
    if (match > i) {
      if (match > at) return false
      i = match
    }
  }
  return true
}

function lineBreak({ file }: OperatorContext, at: number): string {
  const token = file.tokens[at]!
  return token.first ? `\n${' '.repeat(token.indent)}` : '; '
}
