/**
 * How providers are asked for a result that matches a schema: those whose models can be held to one
 * get it as the format of the answer, all others as a tool that must be called. Pure.
 *
 * Providers take different parts of JSON Schema. What they get of a result's schema may accept
 * more, as the engine checks the result in any case. It may also leave out fields that a result
 * need not have; for the arguments of tools, that would be wrong.
 *
 * @module
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../../internal/json.js'
import type { ModelRequest } from '../model.js'
import type { WireRequest } from './adapter.js'
import { listOf, objectOf, textOf } from './json-reader.js'
import { bareName } from './known-models.js'
import { geminiSchema, isStrictSchema, openAiSchema, withRules } from './tool-schemas.js'

/** The name under which a provider knows the format. */
const NAME = 'result'

/** The request for a model that is held to a schema, which needs no tool that takes the result. */
export function withoutResultTool(request: ModelRequest): ModelRequest {
  const { messages, result, tools: all } = request
  // Some providers refuse a conversation with calls and no tools.
  const hasCalls = messages.some(({ role }) => role === 'tool')
  const tools = hasCalls ? all : all.filter(({ name }) => name !== result?.tool)
  return { ...request, tools, toolChoice: 'none' }
}

/** A request with the format of the answer in a field, beside what the host has set in it. */
export function withFormat(wire: WireRequest, field: string, format: JsonObject): WireRequest {
  const value = { ...objectOf(wire.body[field]), ...format }
  return { ...wire, isHeld: true, body: { ...wire.body, [field]: value } }
}

/** Whether models of OpenAI can be held to a schema, by name. Other servers know other names. */
export function takesOpenAiFormat(model: string): boolean {
  const name = bareName(model)
  if (/^(?:o1-mini|o1-preview|gpt-4o-(?:2024-05-13|audio|realtime))/.test(name)) return false
  return /^(?:o[134]|gpt-4o|gpt-4\.[15]|gpt-[5-9]|codex)/.test(name)
}

/** The format as both of OpenAI's interfaces have it, but for what is around it. */
export function openAiFormat(schema: JsonObject): JsonObject {
  const held = closed(schema) ?? schema
  const { description, parameters } = openAiSchema('', held)
  return {
    name: NAME,
    ...(description !== '' && { description }),
    schema: parameters,
    strict: isStrictSchema(parameters),
  }
}

/** Whether a Gemini model can be held to a schema. It cannot call tools in the same request. */
export function takesGeminiFormat(model: string): boolean {
  return /^gemini-(?!1)/.test(bareName(model))
}

export function geminiFormat(schema: JsonObject): JsonObject {
  return { responseMimeType: 'application/json', responseJsonSchema: geminiSchema(schema) }
}

/** Whether an Anthropic model can be held to a schema. */
function takesAnthropicFormat(model: string): boolean {
  const known =
    /^claude-(?:opus-4-[1-9](?!\d)|(?:sonnet|haiku)-4-[5-9](?!\d)|[a-z]+-[5-9](?!\d)|mythos-)/
  return known.test(bareName(model))
}

/** The format for an Anthropic model; null when model or schema need a tool in its place. */
export function anthropicFormat(schema: JsonObject, model: string): JsonObject | null {
  if (!takesAnthropicFormat(model)) return null
  const held = closed(schema)
  if (held === null || isRecursive(held)) return null
  const counts = { optional: 0, unions: 0 }
  const sent = anthropicPart(held, counts)
  const fits = counts.optional <= MAX_OPTIONAL && counts.unions <= MAX_UNIONS
  return sent !== null && fits ? { type: 'json_schema', schema: sent } : null
}

/** Fields that may be missing, and values of several types, that Anthropic takes in one schema. */
const MAX_OPTIONAL = 24
const MAX_UNIONS = 16

/** Keywords with which closing a part could make the whole impossible, or that need open parts. */
const OPEN = (
  'allOf not if then else dependentSchemas patternProperties propertyNames ' +
  'unevaluatedProperties unevaluatedItems prefixItems contains'
).split(' ')

/**
 * The schema with each object closed: it has the fields that are named and no others. Null where
 * that is not possible without leaving out what a result must have.
 */
function closed(value: JsonValue): JsonObject | null {
  if (!isJsonObject(value) || OPEN.some((key) => value[key] !== undefined)) return null
  const { properties, items, $defs, anyOf, oneOf, $ref, additionalProperties } = value
  const copy: Record<string, JsonValue> = { ...value }
  const isObject = value['type'] === 'object' || listOf(value['type']).includes('object')
  if (isObject || properties !== undefined) {
    const isOpen = additionalProperties !== undefined && typeof additionalProperties !== 'boolean'
    const names = Object.keys(objectOf(properties))
    if (isOpen || (names.length === 0 && additionalProperties !== false)) return null
    if ((anyOf ?? oneOf ?? $ref) !== undefined) return null
    copy['additionalProperties'] = false
  }
  for (const [key, parts] of [['properties', properties], ['$defs', $defs]] as const) {
    if (parts === undefined) continue
    const entries = Object.entries(objectOf(parts)).map(([name, part]) => [name, closed(part)])
    if (entries.some(([, part]) => part === null)) return null
    copy[key] = Object.fromEntries(entries) as JsonObject
  }
  for (const [key, parts] of [['anyOf', anyOf], ['oneOf', oneOf]] as const) {
    if (parts === undefined) continue
    const list = listOf(parts).map(closed)
    if (list.includes(null)) return null
    copy[key] = list as JsonObject[]
  }
  if (items !== undefined) {
    const part = closed(items)
    if (part === null) return null
    copy['items'] = part
  }
  return copy
}

/** Does a part of the schema lead back to itself, or elsewhere than to `$defs`? */
function isRecursive(schema: JsonObject): boolean {
  const defs = objectOf(schema['$defs'])
  const done = new Set<string>()
  const visit = (part: JsonValue, open: readonly string[]): boolean => {
    if (Array.isArray(part)) return part.some((one: JsonValue) => visit(one, open))
    if (!isJsonObject(part)) return false
    const reference = part['$ref']
    if (typeof reference === 'string') {
      const name = /^#\/\$defs\/([^/~%]+)$/.exec(reference)?.[1]
      if (name === undefined || !Object.hasOwn(defs, name) || open.includes(name)) return true
      if (!done.has(name) && visit(defs[name]!, [...open, name])) return true
      done.add(name)
    }
    return Object.entries(part).some(([key, one]) => key !== '$defs' && visit(one, open))
  }
  return visit(schema, []) || Object.keys(defs).some((name) => visit(defs[name]!, [name]))
}

const ANTHROPIC_KEYWORDS = new Set(
  'type title description properties required additionalProperties items anyOf $ref $defs'
    .split(' '),
)
const ANTHROPIC_FORMATS = new Set(
  'date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' '),
)
/** What says nothing about values. */
const SILENT = new Set('$schema $comment $id default examples deprecated'.split(' '))

/** Rules that Anthropic refuses are said in the description; null for what it cannot be told. */
function anthropicPart(
  schema: JsonObject,
  counts: { optional: number; unions: number },
): JsonObject | null {
  const kept: Record<string, JsonValue> = {}
  const lost: Record<string, JsonValue> = {}
  for (const [key, value] of Object.entries(schema)) {
    const isLiteral = key === 'const' || key === 'enum'
    if (isLiteral && [...listOf(value), value].some((one) => isJsonObject(one))) return null
    if (isLiteral || ANTHROPIC_KEYWORDS.has(key)) kept[key] = value
    else if (key === 'oneOf') kept['anyOf'] = value
    else if (key === 'format' && ANTHROPIC_FORMATS.has(textOf(value))) kept[key] = value
    else if (key === 'minItems' && (value === 0 || value === 1)) kept[key] = value
    else if (!SILENT.has(key)) lost[key] = value
  }
  const { anyOf, properties, $defs, items, type } = kept
  const says = type ?? anyOf ?? kept['$ref'] ?? kept['enum'] ?? kept['const']
  if (says === undefined) return null
  if (anyOf !== undefined || Array.isArray(type)) counts.unions += 1
  const required = listOf(kept['required'])
  const names = Object.keys(objectOf(properties))
  counts.optional += names.filter((name) => !required.includes(name)).length
  const parts = (value: JsonValue): JsonObject | null => anthropicPart(objectOf(value), counts)
  for (const [key, value] of [['properties', properties], ['$defs', $defs]] as const) {
    if (value === undefined) continue
    const entries = Object.entries(objectOf(value)).map(([name, part]) => [name, parts(part)])
    if (entries.some(([, part]) => part === null)) return null
    kept[key] = Object.fromEntries(entries) as JsonObject
  }
  const list = listOf(anyOf).map(parts)
  const item = items === undefined ? undefined : parts(items)
  if (list.includes(null) || item === null) return null
  if (anyOf !== undefined) kept['anyOf'] = list as JsonObject[]
  if (item !== undefined) kept['items'] = item
  const description = withRules(textOf(kept['description']), lost)
  return description === '' ? kept : { ...kept, description }
}
