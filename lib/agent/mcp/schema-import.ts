/**
 * Reduces the schemas of MCP tools to the part of JSON Schema that the engine checks.
 *
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../internal/json.js'
import { clip } from '../output.js'
import type { JsonSchema } from '../schema.js'

/** Anything nested deeper is left unchecked. */
const MAX_DEPTH = 16
/** Schemas with more parts are rejected. */
const MAX_PARTS = 1_000
/** Characters of the imported schema as JSON, since it is sent with every model call. */
const MAX_CHARACTERS = 24_000
/** Characters of a description inside a schema. */
const MAX_DESCRIPTION = 500

const TYPES = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']
const COUNTS = [
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'maxProperties',
  'minimum',
  'maximum',
]

/**
 * The schema in the engine's subset, or null when it is too large or not a schema. References are
 * inlined, `oneOf` becomes `anyOf`, and unsupported keywords are dropped: the result accepts all
 * that the original accepts, and the server checks the rest. Patterns become part of the
 * description, because an untrusted pattern could block this process by backtracking.
 */
export function importSchema(schema: JsonValue | undefined): JsonSchema | null {
  if (!isJsonObject(schema)) return null
  try {
    const imported = new Importer(schema).convert(schema, 0)
    return JSON.stringify(imported).length > MAX_CHARACTERS ? null : imported
  } catch (error) {
    if (error instanceof TooLarge) return null
    throw error
  }
}

class TooLarge extends Error {}

type Draft = { -readonly [K in keyof JsonSchema]: JsonSchema[K] }

class Importer {
  readonly #root: JsonObject
  /** References that are being inlined; one that recurs is circular. */
  readonly #open: string[] = []
  #parts = 0

  constructor(root: JsonObject) {
    this.#root = root
  }

  convert(value: JsonValue | undefined, depth: number): JsonSchema {
    this.#parts += 1
    if (this.#parts > MAX_PARTS) throw new TooLarge()
    if (depth > MAX_DEPTH || !isJsonObject(value)) return {}
    const open = this.#open.length
    const draft = this.#convertTarget(this.#resolve(value), depth)
    this.#open.length = open
    return draft
  }

  #convertTarget(target: JsonObject, depth: number): Draft {
    const draft: Draft = {}
    addType(draft, target['type'])
    addTexts(draft, target)
    for (const name of COUNTS) {
      const count = target[name]
      if (typeof count === 'number') Object.assign(draft, { [name]: count })
    }
    if (Array.isArray(target['enum'])) draft.enum = target['enum']
    if (target['const'] !== undefined) draft.const = target['const']
    if (target['default'] !== undefined) draft.default = target['default']
    if (isJsonObject(target['items'])) draft.items = this.convert(target['items'], depth + 1)
    this.#addProperties(draft, target, depth)
    const any = target['anyOf'] ?? target['oneOf']
    if (Array.isArray(any) && any.length > 0) {
      draft.anyOf = any.map((part: JsonValue) => this.convert(part, depth + 1))
    }
    return draft
  }

  #addProperties(draft: Draft, target: JsonObject, depth: number): void {
    const { properties, required, additionalProperties: rest } = target
    if (isJsonObject(properties)) {
      const list = Object.entries(properties)
      draft.properties = Object.fromEntries(
        list.map(([name, part]) => [name, this.convert(part, depth + 1)]),
      )
    }
    if (Array.isArray(required)) {
      draft.required = required.filter((name): name is string => typeof name === 'string')
    }
    const all = Array.isArray(target['allOf']) ? target['allOf'] : []
    for (const part of all) {
      const { properties: more, required: needed } = this.convert(part as JsonValue, depth + 1)
      if (more !== undefined) draft.properties = { ...draft.properties, ...more }
      if (needed !== undefined) draft.required = [...(draft.required ?? []), ...needed]
    }
    // A closed part of a combined schema would refuse the fields of the other parts.
    const open = all.length > 0 || target['patternProperties'] !== undefined
    if (rest === false && !open) draft.additionalProperties = false
    else if (isJsonObject(rest) && !open) draft.additionalProperties = this.convert(rest, depth + 1)
  }

  /** Follows references within the document; an unresolved one is left unchecked. */
  #resolve(value: JsonObject): JsonObject {
    const reference = value['$ref']
    if (typeof reference !== 'string') return value
    if (this.#open.includes(reference)) return {}
    const found = reference.startsWith('#') ? this.#find(reference.slice(1)) : undefined
    if (!isJsonObject(found)) return {}
    this.#open.push(reference)
    return this.#resolve(found)
  }

  #find(pointer: string): JsonValue | undefined {
    let at: JsonValue | undefined = this.#root
    for (const step of pointer.split('/').slice(1)) {
      const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
      at = isJsonObject(at) && Object.hasOwn(at, name) ? at[name] : undefined
    }
    return at
  }
}

function addType(draft: Draft, type: JsonValue | undefined): void {
  const names = (Array.isArray(type) ? type : [type]).filter(
    (name): name is NonNullable<JsonSchema['type']> =>
      typeof name === 'string' && TYPES.includes(name),
  )
  if (names.length === 1 && names[0] !== undefined) draft.type = names[0]
  else if (names.length > 1) draft.anyOf = names.map((name) => ({ type: name }))
}

function addTexts(draft: Draft, { title, description, format, pattern }: JsonObject): void {
  if (typeof title === 'string') draft.title = clip(title, MAX_DESCRIPTION)
  if (typeof format === 'string') draft.format = clip(format, 60)
  const own = typeof description === 'string' ? description : ''
  const rule = typeof pattern === 'string' ? `Matches ${pattern}` : ''
  const text = clip([own, rule].filter((part) => part !== '').join(' '), MAX_DESCRIPTION)
  if (text !== '') draft.description = text
}
