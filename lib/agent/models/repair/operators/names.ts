import { operandStart, textOf } from '../expression.js'
import { similarity } from '../similarity.js'
import { nameFacts, type SourceFile } from '../source.js'
import type { Operator } from './patch.js'

/** Names that are easily confused in any program. */
const PAIRS: readonly (readonly string[])[] = [
  ['min', 'max'],
  ['floor', 'ceil', 'round', 'trunc'],
  ['push', 'unshift', 'concat'],
  ['pop', 'shift'],
  ['slice', 'splice'],
  ['substring', 'substr', 'slice'],
  ['startsWith', 'endsWith', 'includes'],
  ['toLowerCase', 'toUpperCase'],
  ['indexOf', 'lastIndexOf'],
  ['some', 'every'],
  ['map', 'flatMap', 'forEach', 'filter'],
  ['find', 'filter', 'findIndex', 'findLast'],
  ['keys', 'values', 'entries', 'items'],
  ['padStart', 'padEnd'],
  ['trim', 'trimStart', 'trimEnd'],
  ['add', 'delete', 'has'],
  ['set', 'get'],
  ['reduce', 'reduceRight'],
  ['replace', 'replaceAll'],
  ['all', 'allSettled', 'race', 'any'],
  ['isNaN', 'isFinite', 'isInteger'],
  ['length', 'size'],
  ['test', 'exec', 'match'],
  ['first', 'last'],
  ['left', 'right'],
  ['start', 'end'],
  ['before', 'after'],
  ['next', 'previous', 'prev'],
  ['width', 'height'],
  ['row', 'column', 'col'],
  ['x', 'y'],
  ['key', 'value'],
  ['parseInt', 'parseFloat', 'Number'],
  ['getDate', 'getDay'],
  ['getMonth', 'getUTCMonth'],
  ['getFullYear', 'getYear'],
  ['getHours', 'getUTCHours'],
  ['resolve', 'reject'],
  ['apply', 'call', 'bind'],
  ['any', 'all'],
  ['append', 'extend', 'add', 'insert'],
  ['lower', 'upper', 'title', 'capitalize'],
  ['startswith', 'endswith'],
  ['strip', 'lstrip', 'rstrip'],
  ['split', 'rsplit', 'splitlines'],
  ['find', 'rfind', 'index'],
  ['union', 'intersection', 'difference', 'symmetric_difference'],
  ['issubset', 'issuperset'],
  ['remove', 'discard'],
  ['popleft', 'pop'],
  ['appendleft', 'append'],
  ['ljust', 'rjust', 'center'],
  ['sorted', 'reversed', 'list'],
  ['update', 'setdefault'],
  ['heappush', 'heappop'],
  ['isdigit', 'isalpha', 'isalnum', 'isupper', 'islower'],
  ['int', 'float', 'str', 'round'],
  ['sum', 'len', 'max', 'min'],
  ['bisect_left', 'bisect_right', 'bisect'],
  ['isupper', 'islower'],
  ['list', 'tuple', 'set', 'dict'],
  ['abs', 'sqrt', 'sign'],
  ['sin', 'cos', 'tan'],
  ['ceil', 'floor'],
  ['log', 'log2', 'log10', 'exp'],
  ['permutations', 'combinations'],
  ['Map', 'Set'],
  ['zip', 'enumerate'],
  ['most_common', 'elements'],
  ['mean', 'median', 'mode'],
]

const PARTNERS: ReadonlyMap<string, ReadonlySet<string>> = (() => {
  const found = new Map<string, Set<string>>()
  for (const group of PAIRS) {
    for (const name of group) {
      const partners = found.get(name) ?? new Set<string>()
      for (const other of group) if (other !== name) partners.add(other)
      found.set(name, partners)
    }
  }
  return found
})()

/** Whether this is a method of a built-in type. */
function isBuiltIn(name: string): boolean {
  return [String, Array, Map, Set, Promise, Date, Number, RegExp].some(
    (type) => name in type.prototype || name in type,
  )
}

const TYPE_WORDS: ReadonlySet<string> = new Set([
  'number',
  'string',
  'boolean',
  'unknown',
  'never',
  'any',
  'object',
  'readonly',
  'keyof',
  'of',
  'from',
  'as',
  'get',
  'set',
  'type',
  'print',
  'console',
])

/** Replaces a property or method name by a commonly confused or similar one. */
export const property: Operator = (context, at) => {
  const { file, clues } = context
  const { tokens } = file
  const token = tokens[at]!
  const before = tokens[at - 1]?.text
  if (token.kind !== 'name') return
  const isMember = before === '.' || before === '?.'
  const partners = PARTNERS.get(token.text)
  const isFunction = file.language === 'python' && tokens[at + 1]?.text === '(' && before !== 'def'
  if (partners !== undefined && (isMember || isFunction)) {
    const isMath = tokens[at - 2]?.text === 'Math'
    for (const other of partners) {
      if (isMath && file.language !== 'python' && !(other in Math)) continue
      const isUsual =
        isMath ||
        isFunction ||
        clues.properties.has(other) ||
        clues.methods.has(other) ||
        (file.language !== 'python' && isBuiltIn(other))
      context.replace(
        at,
        at,
        other,
        'property',
        (isUsual ? 0.9 : clues.missing.has(token.text) ? 1.2 : 0.3) / Math.sqrt(partners.size),
      )
    }
  }
  const isKey =
    tokens[at + 1]?.text === ':' && ['{', ','].includes(before ?? '') && file.language !== 'python'
  if (!isMember && !isKey) return
  const called = tokens[at + 1]?.text === '('
  const twice = isMember && !called && isRepeatedOperand(file, at) ? 3 : 1
  for (const [other, count] of called ? clues.methods : clues.properties) {
    if (other === token.text || partners?.has(other) === true) continue
    const likeness = similarity(token.text, other)
    const isMissing = clues.missing.has(token.text)
    const weight =
      (isKey ? 0.2 : 0.3) *
      (0.25 + likeness) *
      (count > 1 ? 1.1 : 1) *
      (isMissing ? 2.5 : 1) *
      (called ? 0.8 : 1) *
      twice
    context.replace(at, at, other, 'property', weight)
  }
}

/** Whether the chain that ends at `at` is both operands of an operator, as in `a.b * a.b`. */
function isRepeatedOperand(file: SourceFile, at: number): boolean {
  const { tokens } = file
  const first = operandStart(tokens, at)
  const text = textOf(file, first, at)
  const isOperator = (index: number): boolean =>
    ['*', '/', '+', '-', '%', '===', '!==', '==', '!=', '<', '>', '<=', '>='].includes(
      tokens[index]?.text ?? '',
    )
  const length = at - first + 1
  const same = (from: number): boolean =>
    from >= 0 && from + length <= tokens.length && textOf(file, from, from + length - 1) === text
  return (isOperator(at + 1) && same(at + 2)) || (isOperator(first - 1) && same(first - 1 - length))
}

/** Replaces a variable by another one that is in scope. */
export const identifier: Operator = (context, at) => {
  const { file, clues } = context
  const { tokens } = file
  const token = tokens[at]!
  if (token.kind !== 'name' || TYPE_WORDS.has(token.text)) return
  const before = tokens[at - 1]?.text
  const next = tokens[at + 1]?.text
  if (
    before === '.' ||
    before === '?.' ||
    before === 'def' ||
    before === 'class' ||
    before === 'function'
  )
    return
  if (isDeclaredAt(file, at) || isKeyOrType(file, at)) return
  const called = next === '('
  const isMissing = clues.missing.has(token.text)
  for (const { name, near, isFunction } of visibleNames(file, at)) {
    if (name === token.text) continue
    if (called !== isFunction && !isMissing) continue
    const likeness = similarity(token.text, name)
    const weight = (near ? 0.42 : 0.2) * (0.5 + likeness * 0.7) * (isMissing ? 3 : 1)
    context.replace(at, at, name, 'identifier', weight)
  }
  if (isMissing) {
    const self = file.language === 'python' ? 'self.' : 'this.'
    context.replace(at, at, self + token.text, 'identifier', 1.5)
    for (const other of clues.methods.keys()) {
      if (similarity(token.text, other) > 0.6 && called)
        context.replace(at, at, other, 'identifier', 0.5)
    }
  }
}

/** Replaces a variable by the object's field of the same name, or the reverse. */
export const receiver: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  const self = file.language === 'python' ? 'self' : 'this'
  if (token.text === self && tokens[at + 1]?.text === '.' && tokens[at + 2]?.kind === 'name') {
    const name = tokens[at + 2]!.text
    if (visibleNames(file, at).some((visible) => visible.name === name)) {
      context.replace(at, at + 2, name, 'identifier', 0.4)
    }
    return
  }
  if (
    token.kind !== 'name' ||
    tokens[at - 1]?.text === '.' ||
    isDeclaredAt(file, at) ||
    isKeyOrType(file, at)
  )
    return
  if (nameFacts(file).fields.has(token.text))
    context.replace(at, at, `${self}.${token.text}`, 'identifier', 0.45)
}

/** Whether this token declares the name. */
function isDeclaredAt(file: SourceFile, at: number): boolean {
  return (
    nameFacts(file).declaredAt.has(at) &&
    !(file.language === 'python' && file.tokens[at + 1]?.text === '=' && file.tokens[at]!.first)
  )
}

/** Whether the name is an object literal's key, a keyword argument's name, or part of a type. */
function isKeyOrType(file: SourceFile, at: number): boolean {
  const { tokens } = file
  const token = tokens[at]!
  const before = tokens[at - 1]?.text ?? ''
  const next = tokens[at + 1]?.text
  if (file.language === 'python') return next === '=' && !token.first
  if (next === ':' && (before === '{' || before === ',')) return true
  if (file.regions.some(({ first, name }) => first === at && name === token.text)) return true
  return (
    file.language === 'typescript' &&
    /^[A-Z]/.test(token.text) &&
    [':', '<', '|', '&', 'as', 'extends', 'implements'].includes(before)
  )
}

interface VisibleName {
  readonly name: string
  /** Declared in an enclosing function; always true for a token at the top level. */
  readonly near: boolean
  readonly isFunction: boolean
}

/** Names in scope at a token: of its functions, innermost first, then of the file. */
function visibleNames(file: SourceFile, at: number): VisibleName[] {
  const found = new Map<string, VisibleName>()
  const { regions } = file
  const { called, functions } = nameFacts(file)
  const inside = new Set<number>([-1])
  let nearest = -1
  regions.forEach(({ kind, first, last }, index) => {
    if (kind !== 'function' || first > at || last < at) return
    inside.add(index)
    nearest = index
  })
  for (const { name, region, kind } of file.declarations) {
    if (!inside.has(region)) continue
    const isFunction =
      kind === 'function' || kind === 'class' || called.has(name) || functions.has(name)
    const before = found.get(name)
    found.set(name, {
      name,
      near: region === nearest || region >= 0 || before?.near === true,
      isFunction,
    })
  }
  return [...found.values()]
}
