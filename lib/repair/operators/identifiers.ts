import { headsOf } from '../expression.js'
import { similarity } from '../similarity.js'
import { nameFacts, type SourceFile } from '../source.js'
import { partnersOf } from './families.js'
import type { Operator, OperatorContext } from './patch.js'
import { positionsOf, type ScopeName, scopeAt } from './scope.js'
import { type Alternative, replaceByAny } from './spread.js'

const TYPE_WORDS: ReadonlySet<string> = new Set(
  (
    'number string boolean unknown never any object readonly keyof of from as get set type print ' +
    'console arguments Math Object'
  ).split(' '),
)

/** Names of the file's top level that are considered in place of a name. */
const TOP_NAMES = 12
const MOST = 14

/** Replaces a variable by another one that is in scope. */
export const identifier: Operator = (context, at) => {
  const { file, clues } = context
  const { tokens } = file
  const token = tokens[at]!
  if (token.kind !== 'name' || TYPE_WORDS.has(token.text)) return
  const before = tokens[at - 1]?.text ?? ''
  if (['.', '?.', 'def', 'class', 'function', 'import'].includes(before)) return
  if (token.text.startsWith('#')) return
  if (isDeclaredAt(file, at) || isKeyOrType(file, at)) return
  const called = tokens[at + 1]?.text === '('
  const isMissing = clues.missing.has(token.text)
  const found: Alternative[] = []
  for (const known of candidates(file, at, called)) {
    if (known.name === token.text) continue
    if (called !== known.isFunction && !isMissing && (called || known.depth === 9)) continue
    found.push([known.name, strength(context, at, known)])
  }
  const field = tokens[at + 2]?.text ?? ''
  if (tokens[at + 1]?.text === '.' && nameFacts(file).fields.has(field)) {
    const self = file.language === 'python' ? 'self' : 'this'
    if (file.language !== 'python' || scopeAt(file, at).byName.has(self)) found.push([self, 1])
  }
  const usual = called ? 0.6 : isBeside(file, at, token.text) ? 3 : 1.5
  const weight = isMissing ? 3 : usual
  replaceByAny(context, at, at, found, 'identifier', weight, MOST)
  if (!isMissing) return
  const self = file.language === 'python' ? 'self.' : 'this.'
  context.replace(at, at, self + token.text, 'identifier', 1.5)
  for (const other of clues.methods.keys()) {
    if (called && similarity(token.text, other) > 0.6)
      context.replace(at, at, other, 'identifier', 0.5)
  }
}

/** Names of the functions around, and the nearest and most used ones of the top level. */
function candidates(file: SourceFile, at: number, called: boolean): ScopeName[] {
  const near: ScopeName[] = []
  const top: ScopeName[] = []
  for (const known of scopeAt(file, at).names) {
    if (known.depth < 9) near.push(known)
    else if (called === known.isFunction && known.kind !== 'class') top.push(known)
  }
  if (top.length <= TOP_NAMES) return [...near, ...top]
  const from = top.findIndex(({ token }) => token >= at)
  const middle = Math.min(from < 0 ? top.length : from, top.length - TOP_NAMES / 2)
  return [...near, ...top.slice(Math.max(0, middle - TOP_NAMES / 2)).slice(0, TOP_NAMES)]
}

function strength({ file }: OperatorContext, at: number, known: ScopeName): number {
  const { tokens } = file
  const { text } = tokens[at]!
  const { name, depth, kind, isUnused } = known
  if (isUnused && depth < 9) return depth === 0 ? 9 : 4
  const scope = scopeAt(file, at).byName
  const own = scope.get(text)
  const likeness = similarity(text, name)
  let result = 0.35 + 1.3 * likeness * likeness
  result *= depth === 0 ? 1 : depth < 9 ? 0.7 : 0.22
  if (own !== undefined && own.kind === kind && own.depth === depth) result *= 1.25
  if (partnersOf(text, file.language).has(name)) result *= 1.5
  // Used in the same way elsewhere: indexed, with the same field, or compared.
  if (isUsedLike(file, name, tokens[at + 1]?.text, tokens[at + 2]?.text)) result *= 1.9
  // A variable of a loop or block is not declared before that.
  if (kind === 'variable' && known.token > at) result *= 0.25
  else if (isRecent(file, name, at)) result *= 1.4
  if (isBeside(file, at, name)) result *= 0.4
  return result
}

function isUsedLike(
  file: SourceFile,
  name: string,
  next: string | undefined,
  afterNext: string | undefined,
): boolean {
  if (next !== '.' && next !== '[' && next !== '(' && next !== '++' && next !== '+=') return false
  const positions = positionsOf(file, name)
  for (let i = 0; i < Math.min(positions.length, 12); i++) {
    const at = positions[i]!
    if (file.tokens[at + 1]?.text !== next) continue
    if (next !== '.' || file.tokens[at + 2]?.text === afterNext) return true
  }
  return false
}

/** Whether the name is used within a few tokens before this one. */
function isRecent(file: SourceFile, name: string, at: number): boolean {
  for (let i = Math.max(0, at - 24); i < at; i++) if (file.tokens[i]!.text === name) return true
  return false
}

/** Whether the name is the other operand or argument here, so that it would come twice. */
function isBeside({ tokens }: SourceFile, at: number, name: string): boolean {
  return tokens[at - 2]?.text === name || tokens[at + 2]?.text === name
}

/** Replaces a variable by the object's field of the same name, or the reverse. */
export const receiver: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  const self = file.language === 'python' ? 'self' : 'this'
  if (token.text === self && tokens[at + 1]?.text === '.' && tokens[at + 2]?.kind === 'name') {
    const name = tokens[at + 2]!.text
    const known = scopeAt(file, at).byName.get(name)
    if (known !== undefined) context.replace(at, at + 2, name, 'identifier', 0.35)
    return
  }
  if (
    token.kind !== 'name' ||
    tokens[at - 1]?.text === '.' ||
    // Where it is declared, or `#name in value`.
    token.text.startsWith('#') ||
    isDeclaredAt(file, at) ||
    isKeyOrType(file, at)
  )
    return
  if (!nameFacts(file).fields.has(token.text)) return
  const isKnown = scopeAt(file, at).byName.has(token.text)
  context.replace(at, at, `${self}.${token.text}`, 'identifier', isKnown ? 0.3 : 1.2)
}

/** Whether this token declares the name. */
export function isDeclaredAt(file: SourceFile, at: number): boolean {
  return (
    nameFacts(file).declaredAt.has(at) &&
    !(file.language === 'python' && file.tokens[at + 1]?.text === '=' && file.tokens[at]!.first)
  )
}

/** Whether the name is an object literal's key, a keyword argument's name, or part of a type. */
export function isKeyOrType(file: SourceFile, at: number): boolean {
  const { tokens } = file
  const token = tokens[at]!
  const before = tokens[at - 1]?.text ?? ''
  const next = tokens[at + 1]?.text
  if (file.language === 'python') return next === '=' && !token.first
  if (next === ':' && (before === '{' || before === ',')) return true
  if (headsOf(file).has(at)) return true
  return (
    file.language === 'typescript' &&
    /^[A-Z]/.test(token.text) &&
    [':', '<', '|', '&', 'as', 'extends', 'implements'].includes(before)
  )
}
