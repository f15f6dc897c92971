import { isCall, isComprehension, operandStart, partsOf, textOf } from '../expression.js'
import type { Operator } from './patch.js'
import { functionAt } from './scope.js'

/** Swaps two arguments of a call, or two elements of a list. */
export const swappedArguments: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (token.match <= at) return
  const call = token.text === '(' && isCall(file, at)
  const literal = token.text === '[' || (token.text === '{' && file.language !== 'python')
  if ((!call && !literal) || isComprehension(file, at)) return
  const parts = partsOf(tokens, at)
  if (parts.length < 2 || parts.length > 6) return
  const spread = parts.some(({ first }) => ['...', '*', '**'].includes(tokens[first]!.text))
  if (token.text === '{' && !spread) return
  // In any order, they are the same.
  const isNamed = parts.map(({ first }) => call && tokens[first + 1]?.text === '=')
  for (let i = 0; i < parts.length; i++) {
    for (let j = i + 1; j < parts.length; j++) {
      if (isNamed[i] === true || isNamed[j] === true) continue
      const left = textOf(file, parts[i]!.first, parts[i]!.last)
      const right = textOf(file, parts[j]!.first, parts[j]!.last)
      if (left === right || left.length + right.length > 300) continue
      const between = file.text.slice(tokens[parts[i]!.last]!.end, tokens[parts[j]!.first]!.start)
      const weight = (call ? 0.65 : spread ? 0.6 : 0.25) * (j === i + 1 ? 1 : 0.7)
      context.replace(parts[i]!.first, parts[j]!.last, right + between + left, 'arguments', weight)
    }
  }
}

/** Swaps the branches of a conditional expression. */
export const swappedBranches: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (file.language === 'python') {
    if (token.text !== 'else' || token.first) return
    let from = at - 1
    while (from > 0 && tokens[from]!.text !== 'if' && !tokens[from]!.first) from--
    if (tokens[from]!.text !== 'if' || from === 0 || tokens[from]!.first) return
    const first = operandStart(tokens, from - 1)
    let last = at + 1
    while (
      last + 1 < tokens.length &&
      !tokens[last + 1]!.first &&
      ![')', ']', '}', ','].includes(tokens[last + 1]!.text)
    ) {
      last = tokens[last + 1]!.match > last ? tokens[last + 1]!.match : last + 1
    }
    const middle = file.text.slice(tokens[from]!.start, tokens[at]!.end)
    context.replace(
      first,
      last,
      `${textOf(file, at + 1, last)} ${middle} ${textOf(file, first, from - 1)}`,
      'operands',
      0.5,
    )
    return
  }
  if (token.text !== '?' || token.kind !== 'punctuator') return
  let colon = -1
  let depth = 0
  let last = at
  for (let i = at + 1; i < tokens.length; i++) {
    const { text, match, first, kind } = tokens[i]!
    if (match > i) {
      i = match
      last = i
      continue
    }
    if (text === '?' && kind === 'punctuator') depth++
    if (text === ':' && colon < 0 && depth === 0) colon = i
    else if (text === ':' && depth > 0) depth--
    else if (
      [',', ';', ')', ']', '}'].includes(text) ||
      (kind === 'template' && text.startsWith('}'))
    )
      break
    else if (colon > 0 && i > colon + 1 && first && !['?', ':', '.', '?.'].includes(text)) break
    last = i
  }
  if (colon < 0 || last <= colon || colon === at + 1) return
  const between = file.text.slice(tokens[colon - 1]!.end, tokens[colon + 1]!.start)
  context.replace(
    at + 1,
    last,
    textOf(file, colon + 1, last) + between + textOf(file, at + 1, colon - 1),
    'operands',
    0.5,
  )
}

/** Adds a missing `await` before a call, or removes one. */
export const missingAwait: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (token.text === 'await' && tokens[at + 1] !== undefined) {
    context.splice(token.start, tokens[at + 1]!.start, '', 'await', 0.15, at)
    return
  }
  if (token.text !== '(' || !isCall(file, at)) return
  const region = file.regions[functionAt(file, at)]
  if (region === undefined || !region.isAsync) return
  const first = operandStart(tokens, at - 1)
  const before = tokens[first - 1]?.text
  if (before === 'await' || before === 'new' || before === 'for') return
  const { match } = tokens[at]!
  const chained = tokens[match + 1]?.text === '.'
  const start = tokens[first]!.start
  if (!chained) context.splice(start, start, 'await ', 'await', 0.6, at)
  else
    context.splice(
      start,
      tokens[match]!.end,
      `(await ${file.text.slice(start, tokens[match]!.end)})`,
      'await',
      0.3,
      at,
    )
}
