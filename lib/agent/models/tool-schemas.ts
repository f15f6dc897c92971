/**
 * What providers understand of JSON Schema.
 *
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../internal/json.js'
import { listOf, objectOf } from './json-reader.js'

/** Keywords that OpenAI's strict mode knows. */
const STRICT_KEYWORDS = new Set(
  (
    'type title description properties required additionalProperties items enum const anyOf ' +
    'pattern format minimum maximum minItems maxItems $ref $defs'
  ).split(' '),
)

/**
 * Whether a schema can be sent with `strict: true` as it is: each object names its properties,
 * requires all of them and allows no others, and only known keywords are used. A schema is never
 * rewritten to be strict: that would make optional arguments required, and the tool would get
 * values it never asked for.
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
    const demanded = listOf(required)
    if (additionalProperties !== false || !names.every((name) => demanded.includes(name)))
      return false
  }
  return (
    Object.values(objectOf(properties)).every(isStrictPart) &&
    Object.values(objectOf($defs)).every(isStrictPart) &&
    listOf(anyOf).every(isStrictPart) &&
    (items === undefined || isStrictPart(items))
  )
}

/** Keywords that Gemini knows; others make it refuse the request, or are ignored. */
const GEMINI_KEYWORDS = new Set(
  (
    'type title description properties required additionalProperties items enum anyOf minimum ' +
    'maximum minItems maxItems $ref $defs'
  ).split(' '),
)

/** A schema with the keywords that Gemini knows; the engine checks arguments by the whole one. */
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
