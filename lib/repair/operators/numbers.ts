import { lowerBound } from '../../internal/queues.js'
import { endsOperand } from '../expression.js'
import type { SourceFile } from '../source.js'
import type { Operator } from './patch.js'
import { type Alternative, spread } from './spread.js'

const COMMON: readonly number[] = [
  7, 8, 10, 12, 16, 24, 28, 30, 31, 32, 36, 60, 64, 100, 180, 255, 256, 360, 365, 366, 1000, 1024,
  3600, 65535, 65536,
]
const NEARBY = 10

const positions = new WeakMap<SourceFile, readonly number[]>()

function numbersOf(file: SourceFile): readonly number[] {
  const before = positions.get(file)
  if (before !== undefined) return before
  const found = file.tokens.flatMap(({ kind }, at) => (kind === 'number' ? [at] : []))
  positions.set(file, found)
  return found
}

/** Replaces a number: plus or minus one, another scale or sign, or one that is near or expected. */
export const number: Operator = (context, at) => {
  const { file, clues } = context
  const token = file.tokens[at]!
  if (token.kind !== 'number' || !/^[\d._]+$/.test(token.text)) return
  const value = Number(token.text.replace(/_/g, ''))
  if (!Number.isFinite(value)) return
  const before = file.tokens[at - 1]
  const put = (other: number, weight: number): void => {
    const text = Number(other.toFixed(10)).toString()
    const glued = text.startsWith('-') && before?.text === '-' && before.end === token.start
    const idle =
      text === '0' &&
      (before?.text === '+' || before?.text === '-') &&
      endsOperand(file.tokens[at - 2])
    if (text !== token.text && !glued && !idle && !text.includes('e'))
      context.replace(at, at, text, 'number', weight)
  }
  const isInteger = Number.isInteger(value)
  if (isInteger) {
    put(value + 1, value < 10 ? 0.55 : 0.4)
    if (value > 0) put(value - 1, value < 10 ? 0.55 : 0.4)
    if (value === 0) put(-1, 0.3)
    if (value === 1 || value === 2) put(-value, 0.2)
  }
  const found = new Map<string, number>()
  const add = (other: number, strength: number): void => {
    if (other === value || (isInteger && Math.abs(other - value) === 1)) return
    found.set(String(other), (found.get(String(other)) ?? 0) + strength)
  }
  if (value > 1) add(0, 0.8)
  if (value > 2) add(1, 0.7)
  if (isInteger && value < 10) {
    add(value + 2, 0.4)
    if (value > 1) add(value - 2, 0.3)
  }
  if (value !== 0) {
    for (const factor of [0.1, 10, 0.5, 2, 0.01, 100, 1000, 0.001]) {
      const scaled = Number((value * factor).toFixed(10))
      if (!isInteger || Number.isInteger(scaled)) add(scaled, factor < 1 ? 0.8 : 0.5)
    }
  }
  if (value >= 5) {
    for (const other of COMMON) if (other / value < 5 && value / other < 5) add(other, 0.1)
  }
  const all = numbersOf(file)
  const own = lowerBound(all.length, (i) => all[i]! < at)
  for (let i = Math.max(0, own - NEARBY); i < Math.min(all.length, own + NEARBY); i++) {
    const { text } = file.tokens[all[i]!]!
    const alike = file.tokens[all[i]! - 1]?.text === before?.text
    if (/^\d+(\.\d+)?$/.test(text)) add(Number(text), alike ? 0.35 : 0.15)
  }
  for (const expected of clues.numbers) add(Number(expected), 0.4)
  const alternatives: Alternative[] = [...found]
  for (const [text, weight] of spread(alternatives, value === 0 ? 0.5 : 1.4, 14))
    put(Number(text), weight)
}
