import { endsOperand, isCall, operandStart, partsOf, textOf } from '../expression.js'
import type { SourceFile } from '../source.js'
import type { Operator } from './patch.js'

/** Guards a value that may be missing: by `?.`, `?? 0` or `.get()`. */
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
          fallback === '' ? 0.12 : 0.08,
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
        context.splice(tokens[close]!.start, tokens[close]!.start, fallback, 'guard', 0.15, at)
    }
    return
  }
  // Of those that a file has, one may have been forgotten.
  const habit = hasOptional(file) ? 0.3 : 0.1
  const isDot = token.text === '.' && token.kind === 'punctuator'
  const opens = (token.text === '[' || token.text === '(') && token.match > at
  // `new` takes no optional chain.
  const isNew =
    at > 0 && (isDot || opens) && tokens[operandStart(tokens, at - 1) - 1]?.text === 'new'
  if (isDot && !isNew && tokens[at - 1]?.text !== 'this')
    context.replace(at, at, '?.', 'guard', habit)
  if (token.text === '?.') {
    const isField = tokens[at + 1]?.kind === 'name'
    context.replace(at, at, isField ? '.' : '', 'guard', 0.1)
  }
  const isAfterValue = endsOperand(tokens[at - 1]) && tokens[at - 1]!.kind !== 'keyword'
  const isDeclared = token.text === '(' && !isCall(file, at)
  if (opens && !token.first && !isNew && isAfterValue && !isDeclared)
    context.splice(
      token.start, token.start, '?.', 'guard', (token.text === '[' ? 0.8 : 0.3) * habit, at,
    )
  const isElement =
    token.text === ']' &&
    token.match > 0 &&
    /[\w)\]]/.test(file.text[tokens[token.match]!.start - 1] ?? '')
  const isGet =
    token.text === ')' &&
    token.match > 1 &&
    tokens[token.match - 1]!.text === 'get' &&
    isCall(file, token.match)
  const isField = token.kind === 'name' && tokens[at - 1]?.text === '.'
  if (!isElement && !isGet && !isField) return
  const next = tokens[at + 1]?.text ?? ''
  if (/^([+\-*/%&|]?=|\(|\[|\.|\?\.|\+\+|--|=>|\?\?)$/.test(next)) return
  const first = operandStart(tokens, at)
  const value = textOf(file, first, at)
  for (const [fallback, weight] of FALLBACKS)
    context.replace(first, at, `(${value} ?? ${fallback})`, 'guard', weight)
}

const optional = new WeakMap<SourceFile, boolean>()

function hasOptional(file: SourceFile): boolean {
  let has = optional.get(file)
  if (has === undefined) {
    has = file.tokens.some(({ text, kind }) => text === '?.' && kind === 'punctuator')
    optional.set(file, has)
  }
  return has
}

const FALLBACKS: readonly (readonly [string, number])[] = [
  ['0', 0.06],
  ['[]', 0.03],
  ["''", 0.03],
]
