import { endsOperand, isCall, isLogical, operandStart, textOf } from '../expression.js'
import { nameFacts, type SourceFile } from '../source.js'
import type { Operator } from './patch.js'
import { functionAt, scopeAt } from './scope.js'
import { type Alternative, spread } from './spread.js'

interface Defaults {
  readonly parameters: ReadonlySet<number>
  /** Values after `=` of parameters and after `||`, `??` and `or`, with their counts. */
  readonly ofParameters: ReadonlyMap<string, number>
  readonly ofValues: ReadonlyMap<string, number>
}

const pools = new WeakMap<SourceFile, Defaults>()

function defaultsOf(file: SourceFile): Defaults {
  const before = pools.get(file)
  if (before !== undefined) return before
  const parameters = new Set<number>()
  const ofParameters = new Map<string, number>()
  const ofValues = new Map<string, number>()
  const count = (counts: Map<string, number>, text: string | null): void => {
    if (text !== null) counts.set(text, (counts.get(text) ?? 0) + 1)
  }
  for (const { kind, token } of file.declarations) {
    if (kind !== 'parameter') continue
    parameters.add(token)
    if (file.tokens[token + 1]?.text === '=') count(ofParameters, simpleValue(file, token + 2))
  }
  file.tokens.forEach((token, at) => {
    if (isLogical(token) && ['||', '??', 'or'].includes(token.text))
      count(ofValues, simpleValue(file, at + 1))
  })
  const defaults = { parameters, ofParameters, ofValues }
  pools.set(file, defaults)
  return defaults
}

/** A literal of one token, an empty list or an empty object; else null. */
function simpleValue({ tokens }: SourceFile, at: number): string | null {
  const token = tokens[at]
  if (token === undefined) return null
  if (token.match === at + 1) return `${token.text}${tokens[at + 1]!.text}`
  const next = tokens[at + 1]
  const ends = next === undefined || next.first || /^[),;:}\]]$/.test(next.text)
  const isValue = token.kind === 'keyword' || token.kind === 'number' || token.kind === 'string'
  return ends && isValue && token.text.length < 20 ? token.text : null
}

const USUAL: Readonly<Record<'javascript' | 'python', readonly Alternative[]>> = {
  javascript: [
    ['{}', 1],
    ['[]', 0.6],
    ["''", 0.6],
    ['0', 0.7],
    ['1', 0.3],
    ['false', 0.4],
    ['true', 0.3],
    ['null', 0.25],
  ],
  python: [
    ['None', 1.6],
    ['False', 0.7],
    ['True', 0.4],
    ['0', 0.4],
    ["''", 0.4],
    ['()', 0.3],
    ['1', 0.3],
    ['[]', 0.15],
  ],
}

/** Gives a default to a parameter, or to a value that may be missing. */
export const missingDefault: Operator = (context, at) => {
  const { file } = context
  const { tokens } = file
  const token = tokens[at]!
  const python = file.language === 'python'
  const usual = USUAL[python ? 'python' : 'javascript']
  const next = tokens[at + 1]
  const { parameters, ofParameters, ofValues } = defaultsOf(file)
  if (parameters.has(at)) {
    if (next?.text !== ')' && next?.text !== ',') return
    if (['*', '**', '...'].includes(tokens[at - 1]?.text ?? '')) return
    const found = new Map<string, number>(usual)
    for (const [text, count] of ofParameters)
      found.set(text, (found.get(text) ?? 0.2) + 0.4 * count)
    const sign = python ? '=' : ' = '
    // In Python only a parameter before those with defaults can have one.
    const isLast = next.text === ')' || tokens[at + 3]?.text === '='
    for (const [text, weight] of spread(found, isLast ? 0.8 : python ? 0 : 0.3, 10))
      context.splice(token.end, token.end, sign + text, 'default', weight, at)
    return
  }
  if (token.text === '}' && token.match >= 0 && parameters.has(token.match + 1)) {
    if (next?.text === ')' || next?.text === ',')
      context.splice(token.end, token.end, ' = {}', 'default', 0.4, at)
    return
  }
  // A value without a fallback.
  const isEnd = next === undefined || next.first || next.text === ';' || next.text === ','
  const isGrouped = next?.text === ')' && next.match >= 0 && !isCall(file, next.match)
  if (
    (!isEnd && !isGrouped) ||
    !endsOperand(token) ||
    token.kind === 'number' ||
    token.kind === 'string'
  )
    return
  if (token.kind === 'keyword' || token.text === '}') return
  const first = operandStart(tokens, at)
  const before = tokens[first - 1]?.text
  if (isGrouped ? first !== next.match + 1 : !/^(=|return|:)$/.test(before ?? '')) return
  if (isGrouped && tokens[next.match - 1]?.kind === 'keyword') return
  if (before === ':' && !(next?.text === ',' && !python)) return
  // Of a destructuring, this is a name.
  if (before === ':' && nameFacts(file).declaredAt.has(at)) return
  const value = textOf(file, first, at)
  if (value.length > 60) return
  const found = new Map<string, number>(
    usual.filter(([text]) => text !== 'null' && text !== 'None'),
  )
  for (const [text, count] of ofValues) found.set(text, (found.get(text) ?? 0.1) + 0.4 * count)
  for (const { name, depth, kind } of scopeAt(file, at).names)
    if (depth === 0 && kind === 'parameter' && name !== value) found.set(name, 0.3)
  const isField = /[.[(]/.test(value)
  const signs: Alternative[] = python
    ? [['or', 1]]
    : [
        ['||', ofValues.size > 0 && usesNullish(file) ? 0.4 : 1],
        ['??', usesNullish(file) ? 1 : 0.25],
      ]
  for (const [text, count] of peersOf(file, first, at)) found.set(text, count)
  for (const [text, weight] of spread(found, isField || before === '=' ? 0.35 : 0.2, 10))
    for (const [sign, share] of signs)
      context.splice(token.end, token.end, ` ${sign} ${text}`, 'default', weight * share, at)
}

/** Fields of the same name of what else the function around uses, as in `options.a || usual.a`. */
function peersOf(file: SourceFile, first: number, at: number): readonly Alternative[] {
  const { tokens } = file
  const field = tokens[at]!
  if (at !== first + 2 || tokens[first + 1]!.text !== '.' || field.kind !== 'name') return []
  const region = file.regions[functionAt(file, at)]
  if (region === undefined) return []
  const found = new Map<string, number>()
  const from = Math.max(region.first, at - PEER_REACH)
  for (let i = from; i < Math.min(region.last, at + PEER_REACH); i++) {
    const { text, kind } = tokens[i]!
    const isObject = (kind === 'name' || /^(this|self)$/.test(text)) && tokens[i + 1]?.text === '.'
    if (!isObject || tokens[i - 1]?.text === '.' || text === tokens[first]!.text) continue
    if (kind === 'name' && !scopeAt(file, at).byName.has(text)) continue
    // What is the usual one for other fields is it for this one as well.
    const isUsual = /^(\|\||\?\?|or)$/.test(tokens[i - 1]?.text ?? '')
    const strength = isUsual ? 6 : tokens[i + 2]?.text === field.text ? 2 : 0.4
    const peer = `${text}.${field.text}`
    found.set(peer, Math.max(found.get(peer) ?? 0, strength))
  }
  return [...found].sort((a, b) => b[1] - a[1]).slice(0, 6)
}

const PEER_REACH = 120

const nullish = new WeakMap<SourceFile, boolean>()

function usesNullish(file: SourceFile): boolean {
  const before = nullish.get(file)
  if (before !== undefined) return before
  const uses = file.tokens.some(({ text, kind }) => text === '??' && kind === 'punctuator')
  nullish.set(file, uses)
  return uses
}
