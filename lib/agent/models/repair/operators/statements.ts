import { expressionEnd } from '../outline-javascript.js'
import { statementEnd } from '../outline-python.js'
import { isCall, operandEnd, partsOf, textOf } from '../expression.js'
import { regionAt } from '../outline.js'
import { nameFacts } from '../source.js'
import type { Operator, OperatorContext } from './patch.js'

/** The last token of the statement at `at`, without its semicolon. */
function endOf({ file }: OperatorContext, at: number): number {
  return file.language === 'python' ? statementEnd(file.tokens, at) : expressionEnd(file.tokens, at)
}

function isStatement(context: OperatorContext, at: number): boolean {
  return nameFacts(context.file).statements.has(at)
}

/** Whether an expression starts here, and not a declaration, branch or label. */
function isExpression({ file }: OperatorContext, at: number): boolean {
  const token = file.tokens[at]!
  if (token.kind === 'keyword')
    return [
      'this',
      'await',
      'new',
      'null',
      'true',
      'false',
      'not',
      'None',
      'True',
      'False',
    ].includes(token.text)
  return token.kind !== 'punctuator' || ['(', '[', '!', '-'].includes(token.text)
}

/** Adds a `return` before the last expression of a block. */
export const missingReturn: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  if (!isStatement(context, at) || !isExpression(context, at)) return
  const region = regionAt(file.regions, at)
  if (region < 0 || tokens[at]!.text.startsWith('"""')) return
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
  if (!assigns) context.splice(start, start, 'return ', 'return', ends ? 0.6 : 0.25, at)
  else if (ends && tokens[at]!.kind === 'name') {
    context.splice(
      tokens[last]!.end,
      tokens[last]!.end,
      `${lineBreak(context, at)}return ${textOf(file, at, operandEnd(tokens, at))}`,
      'return',
      0.3,
      at,
    )
  }
}

/** Returns a variable at the end of a function that returns nothing. */
export const missingResult: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  for (const region of file.regions) {
    if (region.kind !== 'function' || region.bodyLast !== at || region.bodyFirst >= region.bodyLast)
      continue
    const body = tokens.slice(region.bodyFirst, region.bodyLast + 1)
    const lastStatement = file.statements.findLast(
      (start) => start >= region.bodyFirst && start <= at,
    )
    if (
      lastStatement === undefined ||
      tokens[lastStatement]!.text === 'return' ||
      tokens[lastStatement]!.text === 'throw'
    )
      continue
    if (body.length < 4 || (tokens[region.last]!.text !== '}' && file.language !== 'python'))
      continue
    const index = file.regions.indexOf(region)
    const names = file.declarations.filter(
      (declaration) => declaration.region === index && declaration.name !== 'self',
    )
    const anchor =
      file.tokens[file.statements.find((start) => start >= region.bodyFirst) ?? region.bodyFirst]!
    const indent = anchor.first ? ' '.repeat(anchor.indent) : ' '
    const end = tokens[at]!.end
    for (const { name, kind } of names) {
      context.splice(
        end,
        end,
        `${anchor.first ? '\n' : ';'}${indent}return ${name}`,
        'return',
        kind === 'variable' ? 0.5 : 0.25,
        at,
      )
    }
    if (region.owner !== '') {
      const self = file.language === 'python' ? 'self' : 'this'
      context.splice(
        end,
        end,
        `${anchor.first ? '\n' : ';'}${indent}return ${self}`,
        'return',
        0.3,
        at,
      )
    }
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

/** Removes an expression statement or a jump. */
export const removedStatement: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  if (!isStatement(context, at)) return
  const token = tokens[at]!
  const python = file.language === 'python'
  const jump = ['break', 'continue', 'return'].includes(token.text)
  if (isExpression(context, at) || jump) {
    const last = endOf(context, at)
    const isOnlyName = last === at && !jump
    if (isOnlyName || regionAt(file.regions, at) < 0) return
    if (!python || !jump)
      context.replace(at, last, python ? 'pass' : '', 'statement', jump ? 0.15 : 0.2)
  }
}

const KEYWORD_SWAPS: ReadonlyMap<string, readonly (readonly [string, number])[]> = new Map([
  [
    'break',
    [
      ['continue', 0.6],
      ['return', 0.1],
    ],
  ],
  ['continue', [['break', 0.6]]],
  ['while', [['if', 0.25]]],
  ['elif', [['if', 0.4]]],
  [
    'yield',
    [
      ['return', 0.2],
      ['yield from', 0.2],
    ],
  ],
])

/** Replaces a jump by another one, `in` by `of`, or `while` by `if`, and vice versa. */
export const otherKeyword: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  const isWord = token.kind === 'keyword' || token.text === 'of'
  if (!isWord) return
  for (const [other, weight] of (token.kind === 'keyword'
    ? KEYWORD_SWAPS.get(token.text)
    : undefined) ?? [])
    context.replace(at, at, other, 'keyword', weight)
  if (file.language === 'python') {
    if (token.text === 'if' && token.first && followsIf(context, at))
      context.replace(at, at, 'elif', 'keyword', 0.4)
    return
  }
  if (token.text === 'if' && token.first) context.replace(at, at, 'while', 'keyword', 0.15)
  if (token.text === 'else' && tokens[at + 1]?.text === 'if')
    context.splice(token.start, tokens[at + 1]!.start, '', 'keyword', 0.2, at)
  if ((token.text === 'of' || token.text === 'in') && inLoopHeader(context, at)) {
    context.replace(at, at, token.text === 'of' ? 'in' : 'of', 'keyword', 0.8)
  }
  if (token.text === 'case' && at > 2 && token.first) {
    // Stop a case from falling through into this one.
    const before = tokens[at - 1]!
    if (before.text !== ':' && before.text !== '{' && before.text !== '}') {
      context.splice(before.end, before.end, '; break', 'keyword', 0.5, at - 1)
    }
  }
  if (
    token.text === 'default' &&
    tokens[at + 1]?.text === ':' &&
    token.first &&
    ![':', '{'].includes(tokens[at - 1]?.text ?? '')
  ) {
    context.splice(tokens[at - 1]!.end, tokens[at - 1]!.end, '; break', 'keyword', 0.5, at - 1)
  }
}

function followsIf({ file }: OperatorContext, at: number): boolean {
  const { indent } = file.tokens[at]!
  for (let i = at - 1; i >= 0; i--) {
    const token = file.tokens[i]!
    if (!token.first || token.indent > indent) continue
    return token.indent === indent && (token.text === 'if' || token.text === 'elif')
  }
  return false
}

function inLoopHeader({ file }: OperatorContext, at: number): boolean {
  for (let i = at - 1; i > Math.max(0, at - 14); i--) {
    if (file.tokens[i]!.text === 'for') return true
    if (file.tokens[i]!.text === ';') return false
  }
  return false
}

/** Removes one side of `&&` or `||`, for a condition that is too strict. */
export const narrowedCondition: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (!['&&', '||', 'and', 'or'].includes(token.text) || token.kind === 'string') return
  let first = at - 1
  for (; first > 0; first--) {
    const { text, match, first: fresh } = tokens[first]!
    if (match >= 0 && match < first) {
      first = match
      continue
    }
    if (
      [
        '(',
        '{',
        '[',
        ',',
        ';',
        '=',
        '=>',
        '?',
        'return',
        'if',
        'elif',
        'while',
        ':',
        '||',
        'or',
        '&&',
        'and',
      ].includes(text)
    )
      break
    if (fresh && file.language === 'python') break
  }
  first++
  let last = at + 1
  for (; last < tokens.length; last++) {
    const { text, match, first: fresh } = tokens[last]!
    if (match > last) {
      last = match
      continue
    }
    if ([')', ']', '}', ',', ';', '?', ':', '&&', '||', 'and', 'or'].includes(text)) break
    if (fresh && last > at + 1 && file.language === 'python') break
    if (fresh && last > at + 1 && ['keyword', 'name'].includes(tokens[last]!.kind)) break
  }
  last--
  if (first > at - 1 || last < at + 1) return
  context.splice(tokens[at - 1]!.end, tokens[last]!.end, '', 'logic', 0.3, at)
  context.splice(tokens[first]!.start, tokens[at + 1]!.start, '', 'logic', 0.3, at)
}

/** Guards a value that may be missing: by `?.`, `?? 0`, or a default for a parameter. */
export const guarded: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (file.language === 'python') {
    if (
      token.text === '[' &&
      token.match > at &&
      ['name', 'punctuator'].includes(tokens[at - 1]?.kind ?? '') &&
      !token.first &&
      /[\w)\]]/.test(file.text[token.start - 1] ?? '') &&
      !tokens.slice(at, token.match).some(({ text }) => text === ':') &&
      !['=', '+=', '-='].includes(tokens[token.match + 1]?.text ?? '')
    ) {
      const key = textOf(file, at + 1, token.match - 1)
      for (const fallback of ['', ', 0', ', []'])
        context.replace(
          at,
          token.match,
          `.get(${key}${fallback})`,
          'guard',
          fallback === '' ? 0.3 : 0.25,
        )
    }
    if (
      token.text === '.' &&
      tokens[at + 1]?.text === 'get' &&
      tokens[at + 2]?.text === '(' &&
      partsOf(tokens, at + 2).length === 1
    ) {
      const close = tokens[at + 2]!.match
      for (const fallback of [', 0', ', []', ", ''"])
        context.splice(tokens[close]!.start, tokens[close]!.start, fallback, 'guard', 0.3, at)
    }
    return
  }
  if (token.text === '.' && token.kind === 'punctuator')
    context.replace(at, at, '?.', 'guard', 0.15)
  const isElement =
    token.text === ']' &&
    token.match > 0 &&
    /[\w)\]]/.test(file.text[tokens[token.match]!.start - 1] ?? '')
  const isGet = token.text === ')' && token.match > 1 && tokens[token.match - 1]!.text === 'get'
  const isField = token.kind === 'name' && tokens[at - 1]?.text === '.'
  if (isElement || isGet || isField) {
    const next = tokens[at + 1]?.text ?? ''
    if (/^([+\-*/%&|]?=|\(|\[|\.|\?\.|\+\+|--|=>|\?\?)$/.test(next)) return
    let first = at
    first = operandStartOf(context, at)
    const value = textOf(file, first, at)
    for (const fallback of ['0', '[]', "''"])
      context.replace(
        first,
        at,
        `(${value} ?? ${fallback})`,
        'guard',
        fallback === '0' ? 0.2 : 0.12,
      )
  }
  const region = file.regions.find(
    ({ kind, first }) => kind === 'function' && first <= at && first + 40 > at,
  )
  if (
    token.kind === 'name' &&
    region !== undefined &&
    ['(', ','].includes(tokens[at - 1]?.text ?? '') &&
    [')', ','].includes(tokens[at + 1]?.text ?? '') &&
    file.declarations.some(
      (declaration) => declaration.kind === 'parameter' && declaration.token === at,
    )
  ) {
    for (const fallback of ['0', '{}', '[]', "''", '1', 'true', 'false']) {
      context.splice(token.end, token.end, ` = ${fallback}`, 'default', 0.15, at)
    }
  }
}

function operandStartOf({ file }: OperatorContext, last: number): number {
  let at = last
  for (;;) {
    const { match } = file.tokens[at]!
    if (match >= 0 && match < at) {
      at = match - 1
      continue
    }
    const before = file.tokens[at - 1]?.text
    if (before === '.' || before === '?.') at -= 2
    else return at
  }
}

/** Adds `new` before a class, and removes a superfluous argument. */
export const constructed: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  if (token.text !== '(' || !isCall(file, at)) return
  const name = tokens[at - 1]!
  if (
    file.language !== 'python' &&
    /^[A-Z]/.test(name.text) &&
    tokens[at - 2]?.text !== 'new' &&
    tokens[at - 2]?.text !== '.'
  ) {
    context.splice(name.start, name.start, 'new ', 'call', 0.4, at - 1)
  }
  const parts = partsOf(tokens, at)
  const lastPart = parts.at(-1)
  if (parts.length > 1 && lastPart !== undefined) {
    context.splice(
      tokens[parts.at(-2)!.last]!.end,
      tokens[lastPart.last]!.end,
      '',
      'arguments',
      0.2,
      at,
    )
  }
}
