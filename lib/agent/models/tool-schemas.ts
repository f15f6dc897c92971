/**
 * The subsets of JSON Schema that providers accept for tools.
 *
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../internal/json.js'
import { listOf, objectOf } from './json-reader.js'

/** Keywords that OpenAI's strict mode accepts. */
const STRICT_KEYWORDS = new Set(
  (
    'type title description properties required additionalProperties items enum const anyOf ' +
    'pattern format minimum maximum minItems maxItems $ref $defs'
  ).split(' '),
)

/**
 * Whether a schema can be sent with `strict: true` unchanged: each object lists its properties,
 * requires all of them and allows no others, and only accepted keywords are used. A schema is never
 * rewritten to be strict, because that would make optional arguments required.
 */
export function isStrictSchema(schema: unknown): boolean {
  const { type, properties } = objectOf(schema)
  return type === 'object' && Object.keys(objectOf(properties)).length > 0 && isStrictPart(schema)
}

function isStrictPart(value: unknown): boolean {
  if (!isJsonObject(value)) return false
  if (Object.keys(value).some((key) => !STRICT_KEYWORDS.has(key))) return false
  const { type, properties, required, additionalProperties, items, anyOf, $defs } = value
  if (type === 'object') {
    const names = Object.keys(objectOf(properties))
    const needed = listOf(required)
    if (additionalProperties !== false || !names.every((name) => needed.includes(name)))
      return false
  }
  return (
    Object.values(objectOf(properties)).every(isStrictPart) &&
    Object.values(objectOf($defs)).every(isStrictPart) &&
    listOf(anyOf).every(isStrictPart) &&
    (items === undefined || isStrictPart(items))
  )
}

/** Keywords that Gemini accepts; it refuses the request for some others. */
const GEMINI_KEYWORDS = new Set(
  (
    'type title description properties required additionalProperties items enum anyOf minimum ' +
    'maximum minItems maxItems $ref $defs'
  ).split(' '),
)

/** Reduces a schema to what Gemini accepts; the engine checks arguments by the full schema. */
export function geminiSchema(schema: unknown): JsonObject {
  const kept: Record<string, JsonValue> = {}
  for (const [key, value] of Object.entries(objectOf(schema))) {
    if (key === 'const') kept['enum'] = [value]
    else if (key === 'format' && value === 'date-time') kept[key] = value
    else if (GEMINI_KEYWORDS.has(key)) kept[key] = geminiPart(key, value)
  }
  return kept
}

function geminiPart(key: string, value: JsonValue): JsonValue {
  switch (key) {
    case 'properties':
    case '$defs':
      return Object.fromEntries(
        Object.entries(objectOf(value)).map(([name, part]) => [name, geminiSchema(part)]),
      )
    case 'anyOf':
      return listOf(value).map((part) => geminiSchema(part))
    case 'items':
      return geminiSchema(value)
    case 'additionalProperties':
      return isJsonObject(value) ? geminiSchema(value) : value
    default:
      return value
  }
}
