/**
 * What providers are sent of a tool's schema. Each accepts a subset of JSON Schema and refuses the
 * whole request for some other keywords. A provider gets an equivalent schema, or one that accepts
 * more and says the rules that are missing in its description; never one that accepts less. The
 * engine checks arguments against the whole schema in any case.
 *
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../internal/json.js'
import { changeParts, everyPart, isSent, mapSchemas } from '../json-schema/keywords.js'
import { clip } from '../output.js'
import { listOf, objectOf, textOf } from './json-reader.js'

/** Characters of the rules that a description adds. */
const MAX_RULES = 1_500

/** A description and a schema as one provider accepts them. */
export interface WireSchema {
  readonly description: string
  readonly parameters: JsonObject
}

/** Formats that strict mode accepts; it refuses a schema with another one. */
const STRICT_FORMATS = new Set(
  'date-time time date duration email hostname ipv4 ipv6 uuid'.split(' '),
)

/**
 * Whether a schema can be sent with `strict: true` unchanged: each object lists its properties,
 * requires all of them and allows no others, and only accepted keywords are used. A schema is never
 * rewritten to be strict, because that would make optional arguments required.
 */
export function isStrictSchema(schema: unknown): boolean {
  const { type, properties, anyOf } = objectOf(schema)
  return (
    type === 'object' &&
    anyOf === undefined &&
    Object.keys(objectOf(properties)).length > 0 &&
    isStrictPart(schema as JsonObject)
  )
}

function isStrictPart(value: JsonValue): boolean {
  if (!isJsonObject(value) || !Object.keys(value).every((name) => isSent(name, 'openai'))) {
    return false
  }
  const { properties, required, additionalProperties, format } = value
  if (format !== undefined && !STRICT_FORMATS.has(format as string)) return false
  if (isObjectSchema(value)) {
    const needed = new Set(listOf(required))
    const isComplete = Object.keys(objectOf(properties)).every((name) => needed.has(name))
    if (additionalProperties !== false || !isComplete) return false
  }
  return everyPart(value, PLAIN_PARTS, isStrictPart)
}

/** Keywords with schemas that results of all providers may have. */
export const PLAIN_PARTS: readonly string[] = ['properties', '$defs', 'anyOf', 'oneOf', 'items']

/** Whether a schema says something about the fields of objects. */
export function isObjectSchema({ type, properties }: JsonObject): boolean {
  return hasType(type, 'object') || properties !== undefined
}

function hasType(type: JsonValue | undefined, name: string): boolean {
  return type === name || listOf(type).includes(name)
}

/** OpenAI refuses these at the top of a schema, strict or not, and lists without `items`. */
const OPENAI_ROOT = ['anyOf', 'oneOf', 'allOf', 'enum', 'const', 'not'] as const

export function openAiSchema(description: string, schema: unknown): WireSchema {
  const { description: text, parameters } = plainRoot(description, schema, OPENAI_ROOT)
  return { description: text, parameters: withItems(parameters) as JsonObject }
}

/** Anthropic refuses these at the top of a schema, and properties with names of its own taste. */
const ANTHROPIC_ROOT = ['anyOf', 'oneOf', 'allOf'] as const

export function anthropicSchema(description: string, schema: unknown): WireSchema {
  const plain = plainRoot(description, schema, ANTHROPIC_ROOT)
  const properties = objectOf(plain.parameters['properties'])
  const names = Object.keys(properties).filter((name) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(name))
  if (names.length === 0) return plain
  const taken = new Set(names)
  const { additionalProperties: _, unevaluatedProperties: __, ...open } = plain.parameters
  const required = listOf(open['required'])
  const lost = {
    properties: Object.fromEntries(names.map((name) => [name, properties[name]!])),
    ...(required.length > 0 && { required }),
  }
  return {
    description: withRules(plain.description, lost),
    parameters: {
      ...open,
      properties: without(properties, names),
      required: required.filter((name) => !taken.has(name as string)),
    },
  }
}

/** Takes keywords from the top of a schema; the fields that they name stay, and may be anything. */
function plainRoot(
  description: string,
  schema: unknown,
  keywords: readonly string[],
): WireSchema {
  const root = objectOf(schema)
  const used = keywords.filter((keyword) => root[keyword] !== undefined)
  if (used.length === 0) return { description, parameters: root }
  const lost: Record<string, JsonValue> = {}
  for (const keyword of used) lost[keyword] = root[keyword]!
  const branches = ['anyOf', 'oneOf', 'allOf'].flatMap((keyword) => listOf(lost[keyword]))
  const parameters: Record<string, JsonValue> = { ...without(root, used) }
  const own = objectOf(root['properties'])
  const theirs = branches.flatMap((branch) => Object.entries(fieldsOf(branch, root)))
  if (theirs.length > 0) parameters['properties'] = { ...mergedFields(theirs), ...own }
  // What the branches had looked at is unknown now; whatever they allow must stay allowed.
  const rest = root['unevaluatedProperties']
  if (rest !== undefined) {
    lost['unevaluatedProperties'] = rest
    delete parameters['unevaluatedProperties']
  }
  return { description: withRules(description, lost), parameters }
}

/** The fields that a branch names, also by a reference. */
function fieldsOf(branch: JsonValue, root: JsonObject): JsonObject {
  const { properties, $ref } = objectOf(branch)
  const referred = objectOf(objectOf(root['$defs'])[definitionName($ref) ?? ''])
  return { ...objectOf(referred['properties']), ...objectOf(properties) }
}

/** The name of the definition that a reference leads to, if it leads to one. */
export function definitionName(reference: unknown): string | undefined {
  return /^#\/\$defs\/([^/~%]+)$/.exec(textOf(reference))?.[1]
}

/** A field that several branches name may be what any of them says. */
function mergedFields(fields: readonly (readonly [string, JsonValue])[]): JsonObject {
  /** What is said of each field, by its JSON. */
  const all = new Map<string, Map<string, JsonValue>>()
  for (const [name, part] of fields) {
    const parts = all.get(name) ?? new Map<string, JsonValue>()
    parts.set(JSON.stringify(part), part)
    all.set(name, parts)
  }
  const merged = [...all].map(([name, byText]): [string, JsonValue] => {
    const parts = [...byText.values()]
    return [name, parts.length === 1 ? parts[0]! : { anyOf: parts }]
  })
  return Object.fromEntries(merged)
}

/** Adds `items: {}` to lists without, which means the same. */
function withItems(schema: JsonValue): JsonValue {
  if (!isJsonObject(schema)) return schema
  const copy = changeParts(schema, withItems)
  const lacksItems = hasType(copy['type'], 'array') && copy['items'] === undefined
  return lacksItems ? { ...copy, items: {} } : copy
}

/** What says nothing about values, and is left out without a word. */
const ANNOTATIONS = new Set(
  (
    '$schema $comment default examples deprecated readOnly writeOnly format contentEncoding ' +
    'contentMediaType contentSchema'
  ).split(' '),
)

/** The schema as Gemini accepts it. */
export function geminiSchema(schema: unknown): JsonObject {
  return geminiPart(objectOf(schema)) as JsonObject
}

function geminiPart(value: JsonValue): JsonValue {
  if (value === true) return {}
  // Nothing matches `false`; words are all that is left.
  if (value === false) return { description: 'Not allowed: leave it out.' }
  const schema = objectOf(value)
  const kept: Record<string, JsonValue> = {}
  const lost: Record<string, JsonValue> = {}
  for (const [key, given] of Object.entries(schema)) addGemini(kept, lost, key, given, schema)
  const { $ref, $defs, ...beside } = kept
  const rules = withRules(textOf(kept['description']), lost)
  // Beside a reference Gemini allows nothing, but an alternative of one may stand beside anything.
  if ($ref === undefined || (Object.keys(beside).length === 0 && rules === '')) {
    return rules === '' ? kept : { ...kept, description: rules }
  }
  const plain = { ...beside, anyOf: [{ $ref }], ...($defs !== undefined && { $defs }) }
  if (beside['anyOf'] !== undefined) lost['anyOf'] = schema['anyOf'] ?? []
  const description = withRules(textOf(kept['description']), lost)
  return description === '' ? plain : { ...plain, description }
}

function addGemini(
  kept: Record<string, JsonValue>,
  lost: Record<string, JsonValue>,
  key: string,
  value: JsonValue,
  schema: JsonObject,
): void {
  switch (key) {
    case 'const':
      addChoice(kept, lost, key, [value])
      return
    case 'enum':
      addChoice(kept, lost, key, listOf(value))
      return
    case 'oneOf':
      if (schema['anyOf'] !== undefined) lost[key] = value
      else {
        kept['anyOf'] = mapSchemas(key, value, geminiPart)
        lost['exactly one of anyOf'] = true
      }
      return
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
      addBound(kept, lost, key, value, schema)
      return
    default: {
      // Fields whose names match a pattern would be refused.
      const isUnfit =
        (key === 'items' && typeof value === 'boolean') ||
        (key === 'additionalProperties' && schema['patternProperties'] !== undefined)
      const isFormat = key === 'format' && value === 'date-time'
      if (isFormat || (isSent(key, 'gemini') && !isUnfit)) {
        kept[key] = typeof value === 'boolean' ? value : mapSchemas(key, value, geminiPart)
      } else if (!ANNOTATIONS.has(key)) lost[key] = value
    }
  }
}

/** Gemini takes texts and numbers only. */
function addChoice(
  kept: Record<string, JsonValue>,
  lost: Record<string, JsonValue>,
  key: string,
  values: readonly JsonValue[],
): void {
  const isSimple = values.every((one) => typeof one === 'string' || typeof one === 'number')
  if (isSimple && kept['enum'] === undefined && values.length > 0) kept['enum'] = [...values]
  else lost[key] = key === 'const' ? values[0]! : [...values]
}

/** An exclusive bound of whole numbers is the next one; of others it stays in words. */
function addBound(
  kept: Record<string, JsonValue>,
  lost: Record<string, JsonValue>,
  key: 'exclusiveMinimum' | 'exclusiveMaximum',
  value: JsonValue,
  schema: JsonObject,
): void {
  const inclusive = key === 'exclusiveMinimum' ? 'minimum' : 'maximum'
  if (typeof value !== 'number' || schema[inclusive] !== undefined) {
    lost[key] = value
    return
  }
  const isWhole = schema['type'] === 'integer' && Number.isSafeInteger(value)
  kept[inclusive] = isWhole ? value + (inclusive === 'minimum' ? 1 : -1) : value
  if (!isWhole) lost[key] = value
}

/** A description with the rules that a schema lacks, as JSON Schema says them. */
export function withRules(description: string, lost: JsonObject): string {
  const rules = Object.entries(lost).map(([key, value]) => {
    return value === true && key.includes(' ') ? key : `${key} ${JSON.stringify(value)}`
  })
  if (rules.length === 0) return description
  const text = clip(`Must also satisfy: ${rules.join('; ')}`, MAX_RULES)
  return description === '' ? text : `${description} (${text})`
}

function without(object: JsonObject, names: readonly string[]): JsonObject {
  const taken = new Set(names)
  return Object.fromEntries(Object.entries(object).filter(([name]) => !taken.has(name)))
}
