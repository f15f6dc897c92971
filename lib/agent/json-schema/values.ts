/**
 * Questions about JSON values that keywords ask. The work of each is bounded by what it says.
 *
 * @module
 */
import type { JsonValue } from '../../internal/json.js'

/** Values nested deeper are refused. */
export const MAX_VALUE_DEPTH = 64

/** A plain object; unlike `isJsonObject` for values of any origin. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Lengths count code points; counting is avoided where UTF-16 units decide. */
export function fitsLength(value: string, least: number, most: number): boolean {
  // A string has at least half as many code points as UTF-16 units, and at most as many.
  if (value.length < least || value.length > most * 2) return false
  if (value.length <= most && value.length >= least * 2) return true
  const length = codePoints(value)
  return length >= least && length <= most
}

export function codePoints(value: string): number {
  let length = 0
  for (const _ of value) length += 1
  return length
}

/** Equality of JSON values; the work is bounded by the size of `expected`. */
export function sameJson(expected: JsonValue, value: unknown): boolean {
  if (expected === null || typeof expected !== 'object') return expected === value
  if (isList(expected)) {
    if (!Array.isArray(value) || value.length !== expected.length) return false
    return expected.every((one, i) => sameJson(one, value[i]))
  }
  if (!isObject(value)) return false
  const names = Object.keys(expected)
  if (Object.keys(value).length !== names.length) return false
  return names.every((name) => {
    const one = expected[name]
    return one !== undefined && Object.hasOwn(value, name) && sameJson(one, value[name])
  })
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value)
}

/** How many values are in a value, itself included; infinite beyond {@link MAX_VALUE_DEPTH}. */
export function sizeOf(value: JsonValue, depth = 0): number {
  if (value === null || typeof value !== 'object') return 1
  if (depth > MAX_VALUE_DEPTH) return Infinity
  let size = 1
  for (const part of Object.values(value)) size += sizeOf(part as JsonValue, depth + 1)
  return size
}

/**
 * The indexes of two equal items, or null. The work is that of writing the list as JSON.
 *
 * @param spend - called with the number of values looked at; false ends the search.
 */
export function firstTwins(
  list: readonly unknown[],
  spend: (values: number) => boolean,
): readonly [number, number] | null {
  const simple = new Map<unknown, number>()
  const texts = new Map<string, number>()
  for (const [i, item] of list.entries()) {
    const isSimple = typeof item !== 'object' || item === null
    const text = isSimple ? '' : canonical(item, spend)
    if (text === null || !spend(1)) return null
    const seen = isSimple ? simple.get(item) : texts.get(text)
    if (seen !== undefined) return [seen, i]
    if (isSimple) simple.set(item, i)
    else texts.set(text, i)
  }
  return null
}

/** A text that equal values share, whatever the order of their fields; null if work ran out. */
function canonical(value: unknown, spend: (values: number) => boolean, depth = 0): string | null {
  if (!spend(depth > MAX_VALUE_DEPTH ? Infinity : 1)) return null
  if (typeof value === 'number') return String(value === 0 ? 0 : value)
  if (typeof value === 'string' && !spend(value.length >> 10)) return null
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? typeof value
  const parts: string[] = []
  if (Array.isArray(value)) {
    for (const part of value) {
      const text = canonical(part, spend, depth + 1)
      if (text === null) return null
      parts.push(text)
    }
    return `[${parts.join(',')}]`
  }
  for (const name of Object.keys(value).sort()) {
    const text = canonical((value as Readonly<Record<string, unknown>>)[name], spend, depth + 1)
    if (text === null) return null
    parts.push(`${JSON.stringify(name)}:${text}`)
  }
  return `{${parts.join(',')}}`
}

/**
 * Whether a number is a whole multiple of another, computed on their decimal digits: as doubles,
 * 0.0075 is no multiple of 0.0001. At most some 640 digits are divided.
 */
export function isMultiple(value: number, of: number): boolean {
  if (!Number.isFinite(value)) return false
  if (Number.isInteger(value) && Number.isInteger(of)) return value % of === 0
  const [digits, exponent] = decimal(value)
  const [divisor, scale] = decimal(of)
  const shift = exponent - scale
  if (shift >= 0) return (digits * 10n ** BigInt(shift)) % divisor === 0n
  return digits % (divisor * 10n ** BigInt(-shift)) === 0n
}

/** `digits * 10 ** exponent`, of the shortest decimal that stands for the number. */
function decimal(value: number): readonly [digits: bigint, exponent: number] {
  const [mantissa = '', power = '0'] = value.toExponential().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  return [BigInt(whole + fraction), Number(power) - fraction.length]
}
