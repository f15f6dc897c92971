/**
 * JSON: its types, parsed and canonical form, and its texts.
 *
 * @module
 */
import { isStorable } from './text.js'

/** A value that JSON can represent. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue }

/** A JSON object, such as the arguments of a tool call. */
export type JsonObject = { readonly [name: string]: JsonValue }

/** Whether `value` is a JSON object: neither an array nor null. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value that `text` encodes, or undefined when it is not JSON. */
export function parseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return undefined
  }
}

/** Nesting beyond which a value from outside is refused: what walks values is recursive. */
export const MAX_JSON_DEPTH = 64

/** Values in a value from outside, however short: each is looked at by all that reads it. */
const MAX_JSON_VALUES = 20_000

/** A plain copy of a value, or why there is none, as a predicate: `is nested …`. */
export type PlainCopy =
  { readonly value: JsonValue; readonly problem: null } | { readonly problem: string }

/**
 * Copies a value of unknown origin, if JSON text can stand for it: objects and lists of bounded
 * depth and size, texts, finite numbers. The copy has no getters, prototypes or cycles. Fields that
 * are undefined are left out, as JSON leaves them out. Never throws.
 *
 * @param maxCharacters - of the JSON text, approximately.
 * @param wholeText - refuse texts that are not storable (see `storable-text.ts`).
 */
export function plainCopy(value: unknown, maxCharacters: number, wholeText: boolean): PlainCopy {
  let left = maxCharacters
  let values = 0
  const spend = (characters: number): void => {
    left -= characters
    if (left < 0) throw new NotPlain(`has more than ${maxCharacters} characters`)
  }
  const text = (part: string): string => {
    spend(part.length + 3)
    if (wholeText && !isStorable(part)) throw new NotPlain('has NUL or half of a character')
    return part
  }
  const copy = (part: unknown, depth: number): JsonValue => {
    values += 1
    if (values > MAX_JSON_VALUES) throw new NotPlain(`has more than ${MAX_JSON_VALUES} values`)
    if (typeof part === 'string') return text(part)
    spend(2)
    if (part === null || typeof part === 'boolean') return part
    if (typeof part === 'number') {
      if (Number.isFinite(part)) return part
      throw new NotPlain(`has a number that JSON cannot represent (${part})`)
    }
    if (typeof part !== 'object') throw new NotPlain(`has a value that is ${typeof part}`)
    if (depth > MAX_JSON_DEPTH)
      throw new NotPlain(`is nested more than ${MAX_JSON_DEPTH} levels deep`)
    if (Array.isArray(part)) return Array.from(part, (one) => copy(one, depth + 1))
    const prototype: unknown = Object.getPrototypeOf(part)
    if (prototype !== null && prototype !== Object.prototype)
      throw new NotPlain('has an object that is no plain object')
    const object: Record<string, JsonValue> = {}
    for (const name of Object.keys(part)) {
      // As a field of its own it would replace the prototype of whatever it is copied to.
      if (name === '__proto__') throw new NotPlain('has a field named __proto__')
      const field = (part as Readonly<Record<string, unknown>>)[name]
      if (field !== undefined) object[text(name)] = copy(field, depth + 1)
    }
    return object
  }
  try {
    return { value: copy(value, 1), problem: null }
  } catch (error) {
    // Getters and proxies may throw anything.
    return { problem: error instanceof NotPlain ? error.message : 'cannot be read' }
  }
}

class NotPlain extends Error {
  override name = 'NotPlain'
}

/** JSON that is equal for equal values, in whatever order their fields are. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
}

/** Levels of a record that are looked at: those of a value from outside, and its record's own. */
export const MAX_RECORD_DEPTH: number = 2 * MAX_JSON_DEPTH

type Form = (text: string) => string

/**
 * A value with `form` of each text in it, names of fields included; the same object if that changes
 * nothing, since most values need no copy. `tooDeep` stands for what is nested too deep to be
 * looked at.
 */
export function mapTexts<T>(value: T, form: Form, tooDeep: string): T {
  return mapPart(value, form, tooDeep, 0) as T
}

function mapPart(part: unknown, form: Form, tooDeep: string, depth: number): unknown {
  if (typeof part === 'string') return form(part)
  if (typeof part !== 'object' || part === null) return part
  if (depth > MAX_RECORD_DEPTH) return tooDeep
  if (Array.isArray(part)) return mapItems(part, form, tooDeep, depth + 1)
  return mapFields(part as Fields, form, tooDeep, depth + 1)
}

function mapItems(
  items: readonly unknown[],
  form: Form,
  tooDeep: string,
  depth: number,
): readonly unknown[] {
  let mapped: unknown[] | undefined
  for (let i = 0; i < items.length; i++) {
    const item = mapPart(items[i], form, tooDeep, depth)
    if (item !== items[i]) (mapped ??= [...items])[i] = item
  }
  return mapped ?? items
}

interface Fields {
  readonly [name: string]: unknown
}

function mapFields(fields: Fields, form: Form, tooDeep: string, depth: number): Fields {
  const names = Object.keys(fields)
  let mapped: [name: string, field: unknown][] | undefined
  for (let i = 0; i < names.length; i++) {
    const name = names[i]!
    const [newName, field] = [form(name), mapPart(fields[name], form, tooDeep, depth)]
    if (mapped === undefined && newName === name && field === fields[name]) continue
    mapped ??= names.slice(0, i).map((same) => [same, fields[same]])
    mapped.push([newName, field])
  }
  return mapped === undefined ? fields : Object.fromEntries(mapped)
}
