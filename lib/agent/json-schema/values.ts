/**
 * Questions about JSON values that keywords ask. The work of each is bounded by what it says.
 *
 * @module
 */
import { canonicalJson, type JsonValue } from '../../internal/json.js'
import type { JsonSchema, JsonSchemaType } from '../schema.js'

/** Values nested deeper are refused. */
export const MAX_VALUE_DEPTH = 64

/** Values of one item that are compared with others, which are more than a check has steps. */
const MAX_COMPARED = 1_000_000

const TYPE_BITS: Readonly<Record<JsonSchemaType, number>> = {
  null: 1, boolean: 2, string: 4, array: 8, object: 16, number: 32, integer: 64,
}

export const TYPES: readonly string[] = Object.keys(TYPE_BITS)

/** What `type` allows, for {@link hasType}. */
export function typeBits(type: JsonSchema['type'] & {}): number {
  const names = typeof type === 'string' ? [type] : type
  return names.reduce((bits, name) => bits | TYPE_BITS[name], 0)
}

/** Whether a value has one of the types; values that JSON does not know have none. */
export function hasType(types: number, value: unknown): boolean {
  switch (typeof value) {
    case 'string':
      return (types & 4) !== 0
    case 'number':
      if ((types & 32) !== 0) return Number.isFinite(value)
      return (types & 64) !== 0 && Number.isInteger(value)
    case 'boolean':
      return (types & 2) !== 0
    case 'object':
      if (value === null) return (types & 1) !== 0
      return (types & (Array.isArray(value) ? 8 : 16)) !== 0
    default:
      return false
  }
}

/** Any type; values that JSON does not know have none of the others. */
export const ANY_TYPE = -1

/** The types of values that rules are about. */
export interface Values {
  readonly string: string
  readonly number: number
  readonly array: readonly unknown[]
  readonly object: Readonly<Record<string, unknown>>
}

/** The name of a value's type in JSON; for other values that of JavaScript. */
export function typeOf(value: unknown): string {
  if (typeof value !== 'object') return typeof value
  return value === null ? 'null' : Array.isArray(value) ? 'array' : 'object'
}

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

/**
 * How many values are in a value, itself and long texts included; infinite beyond
 * {@link MAX_VALUE_DEPTH}. Stops counting at `most`.
 */
export function sizeOf(value: unknown, most: number = Infinity, depth: number = 0): number {
  if (typeof value === 'string') return 1 + (value.length >> 10)
  if (typeof value !== 'object' || value === null) return 1
  if (depth > MAX_VALUE_DEPTH) return Infinity
  let size = 1
  for (const part of Object.values(value)) {
    if (size > most) break
    size += sizeOf(part, most - size, depth + 1)
  }
  return size
}

/**
 * The indexes of two equal items, or null. The work is that of writing the list as JSON.
 *
 * @param spend - called with the number of values that are compared; false ends the search.
 */
export function firstTwins(
  list: readonly unknown[],
  spend: (values: number) => boolean,
): readonly [number, number] | null {
  const seen = new Map<unknown, number>()
  for (const [i, item] of list.entries()) {
    if (!spend(sizeOf(item, MAX_COMPARED))) return null
    // A text is told from the JSON of another item by its first character.
    const isObject = typeof item === 'object' && item !== null
    const key = isObject ? canonicalJson(item) : typeof item === 'string' ? `"${item}` : item
    const twin = seen.get(key)
    if (twin !== undefined) return [twin, i]
    seen.set(key, i)
  }
  return null
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
