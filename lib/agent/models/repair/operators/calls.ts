import { isCall, operandStart, partsOf, textOf } from '../expression.js'
import { regionAt } from '../outline.js'
import type { Operator } from './patch.js'

/** Swaps two arguments of a call, or two elements of a list. */
export const swappedArguments: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (token.match <= at) return
  const call = token.text === '(' && isCall(file, at)
  const literal = token.text === '[' || (token.text === '{' && file.language !== 'python')
  if (!call && !literal) return
  const parts = partsOf(tokens, at)
  if (parts.length < 2 || parts.length > 6) return
  const spread = parts.some(({ first }) => ['...', '*', '**'].includes(tokens[first]!.text))
  if (token.text === '{' && !spread) return
  for (let i = 0; i < parts.length; i++) {
    for (let j = i + 1; j < parts.length; j++) {
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

const CHAIN: Readonly<Record<'javascript' | 'python', readonly string[]>> = {
  javascript: [
    'trim',
    'toLowerCase',
    'toUpperCase',
    'reverse',
    'sort',
    'flat',
    'slice',
    'toString',
    'toFixed',
    'join',
    'filter',
    'map',
    'concat',
  ],
  python: [
    'strip',
    'lower',
    'upper',
    'copy',
    'items',
    'keys',
    'values',
    'sort',
    'reverse',
    'split',
  ],
}

/** Removes or appends a method call at the end of a chain. */
export const chainedCall: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  const python = file.language === 'python'
  const names = CHAIN[python ? 'python' : 'javascript']
  if (
    token.kind === 'name' &&
    tokens[at - 1]?.text === '.' &&
    tokens[at + 1]?.text === '(' &&
    tokens[at + 1]!.match > 0
  ) {
    const close = tokens[at + 1]!.match
    context.splice(
      tokens[at - 1]!.start,
      tokens[close]!.end,
      '',
      'call',
      names.includes(token.text) ? 0.35 : 0.15,
      at,
    )
  }
  // A comparator, since the default order of numbers is that of their text.
  if (
    !python &&
    token.text === 'sort' &&
    tokens[at + 1]?.text === '(' &&
    tokens[at + 2]?.text === ')'
  ) {
    context.replace(at + 1, at + 2, '((a, b) => a - b)', 'call', 0.9)
    context.replace(at + 1, at + 2, '((a, b) => b - a)', 'call', 0.5)
  }
  // Sorting and reversing happen in place, so use a copy.
  if (
    !python &&
    ['sort', 'reverse', 'splice', 'fill'].includes(token.text) &&
    tokens[at - 1]?.text === '.' &&
    tokens[at + 1]?.text === '('
  ) {
    const first = operandStart(tokens, at - 2)
    context.replace(first, at - 2, `[...${textOf(file, first, at - 2)}]`, 'call', 0.6)
  }
  if (
    python &&
    token.text === 'sorted' &&
    tokens[at + 1]?.text === '(' &&
    tokens[at + 1]!.match > 0
  ) {
    const close = tokens[at + 1]!.match
    context.splice(tokens[close]!.start, tokens[close]!.start, ', reverse=True', 'call', 0.4, at)
  }
  if (
    python &&
    token.text === 'sort' &&
    tokens[at + 1]?.text === '(' &&
    tokens[at + 2]?.text === ')'
  ) {
    context.replace(at + 1, at + 2, '(reverse=True)', 'call', 0.4)
  }
  // Copy a returned or assigned list.
  const starts = token.text === 'return' || token.text === '='
  if (starts && tokens[at + 1] !== undefined && !tokens[at + 1]!.first) {
    const first = at + 1
    let last = first
    while (tokens[last + 1]?.text === '.' && tokens[last + 2]?.kind === 'name') last += 2
    const after = tokens[last + 1]
    const plain = tokens[first]!.kind === 'name' || tokens[first]!.text === 'this'
    if (plain && (after === undefined || after.first || after.text === ';')) {
      const value = textOf(file, first, last)
      context.replace(first, last, python ? `list(${value})` : `[...${value}]`, 'call', 0.2)
      context.replace(first, last, python ? `dict(${value})` : `{ ...${value} }`, 'call', 0.12)
      for (const name of names.slice(0, 4))
        context.replace(first, last, `${value}.${name}()`, 'call', 0.12)
    }
  }
}

/** Appends a method call, such as `.trim()`, to a name or call. */
export const missingCall: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (token.kind !== 'name' && token.text !== ')') return
  const next = tokens[at + 1]
  if (token.text === ')' && (token.match < 0 || !isCall(file, token.match))) return
  const ends =
    next === undefined ||
    next.first ||
    [')', ',', ';', '===', '!==', '==', '!=', ']', '}', ':'].includes(next.text) ||
    (next.text === '.' && token.text === ')')
  if (!ends || file.declarations.some((declaration) => declaration.token === at)) return
  const python = file.language === 'python'
  for (const name of CHAIN[python ? 'python' : 'javascript'].slice(0, 3)) {
    context.splice(token.end, token.end, `.${name}()`, 'call', 0.07, at)
  }
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
  const region = file.regions[regionAt(file.regions, at)]
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
