import { isStorable } from './storable-text.js'

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
