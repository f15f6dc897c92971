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
import { changeParts, everyPart, isSent } from '../json-schema/keywords.js'
import type { ModelRequest } from '../model.js'
import type { WireRequest } from './adapter.js'
import { listOf, objectOf, textOf } from './json-reader.js'
import { bareName } from './known-models.js'
import {
  definitionName, geminiSchema, isObjectSchema, isStrictSchema, openAiSchema, PLAIN_PARTS,
  withRules,
} from './tool-schemas.js'

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
  const held = isClosable(schema) ? closed(schema) : schema
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
  if (!takesAnthropicFormat(model) || !isClosable(schema) || isRecursive(schema)) return null
  const counts = { optional: 0, unions: 0, unfit: 0 }
  const sent = anthropicPart(closed(schema), counts)
  const { optional, unions, unfit } = counts
  if (optional > MAX_OPTIONAL || unions > MAX_UNIONS || unfit > 0) return null
  return { type: 'json_schema', schema: sent }
}

/** Fields that may be missing, and values of several types, that Anthropic takes in one schema. */
const MAX_OPTIONAL = 24
const MAX_UNIONS = 16

/** Keywords with which closing a part could make the whole impossible, or that need open parts. */
const OPEN = (
  'allOf not if then else dependentSchemas patternProperties propertyNames ' +
  'unevaluatedProperties unevaluatedItems prefixItems contains'
).split(' ')

/** Whether each object can be {@link closed} without leaving out what a result must have. */
function isClosable(value: JsonValue): boolean {
  if (!isJsonObject(value) || OPEN.some((key) => value[key] !== undefined)) return false
  if (isObjectSchema(value)) {
    const { properties, anyOf, oneOf, $ref, additionalProperties: rest = true } = value
    const hasNames = Object.keys(objectOf(properties)).length > 0
    if (typeof rest !== 'boolean' || (!hasNames && rest)) return false
    if ((anyOf ?? oneOf ?? $ref) !== undefined) return false
  }
  return everyPart(value, PLAIN_PARTS, isClosable)
}

/** The schema with each object closed: it has the fields that are named and no others. */
function closed(value: JsonValue): JsonObject {
  const schema = changeParts(objectOf(value), closed, PLAIN_PARTS)
  return isObjectSchema(schema) ? { ...schema, additionalProperties: false } : schema
}

/** Does a part of the schema lead back to itself, or elsewhere than to `$defs`? */
function isRecursive(schema: JsonObject): boolean {
  const defs = objectOf(schema['$defs'])
  const done = new Set<string>()
  const visit = (part: JsonValue, open: readonly string[]): boolean => {
    if (typeof part !== 'object' || part === null) return false
    const reference = objectOf(part)['$ref']
    if (typeof reference === 'string') {
      const name = definitionName(reference)
      if (name === undefined || !Object.hasOwn(defs, name) || open.includes(name)) return true
      if (!done.has(name) && visit(defs[name]!, [...open, name])) return true
      done.add(name)
    }
    return Object.entries(part).some(([key, one]) => key !== '$defs' && visit(one, open))
  }
  return visit(schema, []) || Object.keys(defs).some((name) => visit(defs[name]!, [name]))
}

const ANTHROPIC_FORMATS = new Set(
  'date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' '),
)
/** What says nothing about values. */
const SILENT = new Set('$schema $comment $id default examples deprecated'.split(' '))

/** Rules that Anthropic refuses are said in the description; what it cannot be told is counted. */
function anthropicPart(
  schema: JsonObject,
  counts: { optional: number; unions: number; unfit: number },
): JsonObject {
  const kept: Record<string, JsonValue> = {}
  const lost: Record<string, JsonValue> = {}
  for (const [key, value] of Object.entries(schema)) {
    const isLiteral = key === 'const' || key === 'enum'
    if (isLiteral && [...listOf(value), value].some(isJsonObject)) counts.unfit += 1
    if (isLiteral || isSent(key, 'anthropic')) kept[key] = value
    else if (key === 'oneOf') kept['anyOf'] = value
    else if (key === 'format' && ANTHROPIC_FORMATS.has(textOf(value))) kept[key] = value
    else if (key === 'minItems' && (value === 0 || value === 1)) kept[key] = value
    else if (!SILENT.has(key)) lost[key] = value
  }
  const { anyOf, properties, type } = kept
  const says = type ?? anyOf ?? kept['$ref'] ?? kept['enum'] ?? kept['const']
  if (says === undefined) counts.unfit += 1
  if (anyOf !== undefined || Array.isArray(type)) counts.unions += 1
  const required = listOf(kept['required'])
  const names = Object.keys(objectOf(properties))
  counts.optional += names.filter((name) => !required.includes(name)).length
  const description = withRules(textOf(kept['description']), lost)
  if (description !== '') kept['description'] = description
  return changeParts(kept, (part) => anthropicPart(objectOf(part), counts), PLAIN_PARTS)
}
