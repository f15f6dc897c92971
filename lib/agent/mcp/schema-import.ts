/**
 * Takes over the schemas of MCP tools: whole, so that all they say is checked here as well, but
 * bounded, and in the draft that is checked.
 *
 * 1. What a schema says is checked, or a warning says what is not, or there is no schema.
 * 2. Only single rules are ever left out, and only where that accepts more: never a part of the
 *    structure, and nothing if the schema has parts that turn "more" into "less", such as `not`.
 * 3. Patterns are matched in linear time ({@link linearPattern}); `RegExp` never runs them.
 *
 * @module
 */
import { escapeInvisible } from '../../internal/text.js'
import { isJsonObject, type JsonObject, type JsonValue } from '../../internal/json.js'
import { prepareSchema } from '../check-schema.js'
import { isKnownDraft, SchemaProblem } from '../json-schema/compile.js'
import { linearPattern } from '../json-schema/linear-pattern.js'
import { clip, redacted } from '../output.js'
import type { JsonSchema } from '../schema.js'

/** Schemas nested deeper are rejected. */
const MAX_DEPTH = 64
/** Schemas with more parts are rejected. */
const MAX_PARTS = 1_000
/** Characters of the imported schema as JSON, since it is sent with every model call. */
const MAX_CHARACTERS = 24_000
/** Characters of a description inside a schema. */
const MAX_DESCRIPTION = 500
/** Characters of what a warning says about a schema. */
const MAX_PROBLEM = 300

/** A schema that can be checked, or why there is none. */
export type ImportedSchema =
  | {
      readonly schema: JsonSchema
      readonly problem: null
      /** The rules that are not checked here, and why: `.properties.a.pattern has a lookaround`. */
      readonly unchecked: readonly string[]
    }
  | { readonly schema: null; readonly problem: string }

/**
 * Imports a schema of a stranger and prepares it for checks. Never throws.
 *
 * @param isArguments - make it a schema of objects, whatever it says about `type`.
 */
export function importSchema(schema: JsonValue | undefined, isArguments: boolean): ImportedSchema {
  if (!isJsonObject(schema)) return { schema: null, problem: 'is no schema object' }
  try {
    const importer = new Importer()
    const imported = importer.import(isArguments ? { ...schema, type: 'object' } : schema)
    if (JSON.stringify(imported).length > MAX_CHARACTERS) {
      return { schema: null, problem: `has more than ${MAX_CHARACTERS} characters` }
    }
    prepareSchema(imported, '', true)
    return { schema: imported, problem: null, unchecked: importer.unchecked.map(shown) }
  } catch (error) {
    if (error instanceof SchemaProblem) return { schema: null, problem: shown(error.message) }
    throw error
  }
}

/** What a stranger wrote may be long and have control characters. */
function shown(problem: string): string {
  return clip(escapeInvisible(redacted(problem.trim())), MAX_PROBLEM)
}

type Draft = Record<string, JsonValue>

/** What the values of keywords are. `text` is for readers only; the others are checked. */
const KINDS: Readonly<Record<string, Kind>> = {
  $ref: 'structure', $id: 'structure', $anchor: 'structure', $dynamicRef: 'structure',
  $dynamicAnchor: 'structure', $recursiveRef: 'structure', $recursiveAnchor: 'structure',
  $vocabulary: 'structure',
  title: 'text', description: 'text', format: 'text', default: 'value',
  type: 'types', enum: 'list', const: 'value', minimum: 'number', maximum: 'number',
  exclusiveMinimum: 'number', exclusiveMaximum: 'number', multipleOf: 'step',
  minLength: 'count', maxLength: 'count', pattern: 'pattern', minItems: 'count',
  maxItems: 'count', uniqueItems: 'boolean', minContains: 'count', maxContains: 'count',
  required: 'names', minProperties: 'count', maxProperties: 'count', dependentRequired: 'lists',
  items: 'schema', contains: 'schema', unevaluatedItems: 'schema', additionalProperties: 'schema',
  propertyNames: 'schema', unevaluatedProperties: 'schema', not: 'schema', if: 'schema',
  then: 'schema', else: 'schema', prefixItems: 'schemas', allOf: 'schemas', anyOf: 'schemas',
  oneOf: 'schemas', $defs: 'map', definitions: 'map', properties: 'map', patternProperties: 'map',
  dependentSchemas: 'map',
}

type Kind =
  | 'structure' | 'text' | 'value' | 'types' | 'list' | 'number' | 'step' | 'count' | 'pattern'
  | 'boolean' | 'names' | 'lists' | 'schema' | 'schemas' | 'map'

/** Keywords by which a schema may accept less when a part of it accepts more. */
const TURNING: ReadonlySet<string> = new Set(['not', 'if', 'oneOf', 'maxContains'])

const TYPES = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']

class Importer {
  readonly unchecked: string[] = []
  #turns: string | null = null
  #parts = 0
  /** First steps of references that lead to parts which are no schemas by their place. */
  readonly #places = new Set<string>()

  import(schema: JsonObject): JsonSchema {
    const draft = this.#convert(schema, '', 0) as Draft
    for (const name of this.#places) {
      const isPart = Object.hasOwn(schema, name) && !Object.hasOwn(KINDS, name)
      if (isPart && name !== '__proto__') draft[name] = bounded(schema[name]!)
    }
    if (this.unchecked.length > 0 && this.#turns !== null) {
      throw new SchemaProblem(`${this.unchecked[0]}, and ${this.#turns} needs all rules`)
    }
    return draft
  }

  #convert(value: JsonValue | undefined, path: string, depth: number): JsonValue {
    this.#parts += 1
    if (this.#parts > MAX_PARTS) throw new SchemaProblem(`has more than ${MAX_PARTS} parts`)
    if (depth > MAX_DEPTH) throw new SchemaProblem(`is nested more than ${MAX_DEPTH} levels deep`)
    if (typeof value === 'boolean') return value
    if (!isJsonObject(value)) throw new SchemaProblem(`${path} is no schema`)
    const schema = modern(value)
    const draft: Draft = {}
    for (const [keyword, given] of Object.entries(schema)) {
      const kind = Object.hasOwn(KINDS, keyword) ? KINDS[keyword]! : null
      if (TURNING.has(keyword)) this.#turns ??= keyword
      if (keyword === '$schema' && !isKnownDraft(given)) draft[keyword] = given
      if (kind !== null) this.#add(draft, keyword, kind, given, `${path}.${keyword}`, depth)
    }
    return draft
  }

  #add(
    draft: Draft,
    keyword: string,
    kind: Kind,
    value: JsonValue,
    path: string,
    depth: number,
  ): void {
    switch (kind) {
      case 'text':
        addText(draft, keyword, value)
        return
      case 'structure':
        if (keyword === '$ref' && typeof value === 'string') {
          const place = /^#\/([^/]+)/.exec(value)?.[1]
          if (place !== undefined) this.#places.add(place)
        }
        draft[keyword] = value
        return
      case 'schema':
        draft[keyword] = this.#convert(value, path, depth + 1)
        return
      case 'schemas':
        if (!Array.isArray(value)) throw new SchemaProblem(`${path} must be a list of schemas`)
        draft[keyword] = value.map((part: JsonValue, i) =>
          this.#convert(part, `${path}[${i}]`, depth + 1),
        )
        return
      case 'map':
        if (!isJsonObject(value)) throw new SchemaProblem(`${path} must be an object of schemas`)
        draft[keyword] = Object.fromEntries(
          Object.entries(value).map(([name, part]) => [
            name,
            this.#convert(part, `${path}.${name}`, depth + 1),
          ]),
        )
        return
      default:
        this.#addRule(draft, keyword, kind, value, path)
    }
  }

  /** A rule that cannot be checked is left out, and named; the model reads it as a text. */
  #addRule(draft: Draft, keyword: string, kind: Kind, value: JsonValue, path: string): void {
    const problem = problemOf(kind, value)
    if (problem === null) {
      draft[keyword] = kind === 'value' || kind === 'list' ? bounded(value) : value
      return
    }
    this.unchecked.push(`${path} ${problem}`)
    if (kind === 'pattern' && typeof value === 'string') {
      mention(draft, `Matches ${value}`)
    }
  }
}

/** Adds to the description what the model has to know. */
function mention(draft: Draft, rule: string): void {
  const before = draft['description'] === undefined ? '' : `${draft['description'] as string} `
  draft['description'] = clip(before + rule, MAX_DESCRIPTION)
}

/** Why a rule cannot be checked, as a predicate; null if it can. */
function problemOf(kind: Kind, value: JsonValue): string | null {
  switch (kind) {
    case 'types': {
      const names: readonly JsonValue[] = Array.isArray(value) ? value : [value]
      const isKnown = names.length > 0 && names.every((name) => TYPES.includes(name as string))
      return isKnown ? null : 'names a type that JSON does not have'
    }
    case 'number':
      return typeof value === 'number' ? null : 'is no number'
    case 'step':
      return typeof value === 'number' && value > 0 ? null : 'is no positive number'
    case 'count':
      return Number.isInteger(value) && (value as number) >= 0 ? null : 'is no count'
    case 'boolean':
      return typeof value === 'boolean' ? null : 'is neither true nor false'
    case 'list':
      return Array.isArray(value) ? null : 'is no list'
    case 'names':
      return isNames(value) ? null : 'is no list of names'
    case 'lists':
      return isJsonObject(value) && Object.values(value).every(isNames) ? null : 'has no lists'
    case 'pattern':
      return typeof value === 'string' ? linearPattern(value).problem : 'is no text'
    default:
      return null
  }
}

function isNames(value: JsonValue): boolean {
  return Array.isArray(value) && value.every((name: JsonValue) => typeof name === 'string')
}

/** @throws SchemaProblem for a value that is nested too deeply to be copied, or compared. */
function bounded(value: JsonValue, depth = 0): JsonValue {
  if (depth > MAX_DEPTH) throw new SchemaProblem(`has values nested beyond ${MAX_DEPTH} levels`)
  if (Array.isArray(value)) return value.map((part: JsonValue) => bounded(part, depth + 1))
  if (!isJsonObject(value)) return value
  const parts = Object.entries(value)
  return Object.fromEntries(parts.map(([name, part]) => [name, bounded(part, depth + 1)]))
}

function addText(draft: Draft, keyword: string, value: JsonValue): void {
  if (typeof value !== 'string') return
  // A description may come after the rule that it has to mention.
  const before = draft[keyword] === undefined ? '' : ` ${draft[keyword] as string}`
  const text = clip(value + before, keyword === 'format' ? 60 : MAX_DESCRIPTION)
  if (text !== '') draft[keyword] = text
}

/** Keywords of older drafts, said as draft 2020-12 says it. */
function modern(schema: JsonObject): JsonObject {
  const { items, additionalItems, dependencies, exclusiveMinimum, exclusiveMaximum } = schema
  const draft: Draft = { ...schema }
  if (Array.isArray(items)) {
    delete draft['items']
    if (items.length > 0) draft['prefixItems'] = items
    if (additionalItems !== undefined) draft['items'] = additionalItems
  }
  if (isJsonObject(dependencies)) {
    const all = Object.entries(dependencies)
    const names = Object.fromEntries(all.filter(([, needed]) => Array.isArray(needed)))
    const schemas = Object.fromEntries(all.filter(([, needed]) => !Array.isArray(needed)))
    if (Object.keys(names).length > 0) draft['dependentRequired'] ??= names
    if (Object.keys(schemas).length > 0) draft['dependentSchemas'] ??= schemas
  }
  addBound(draft, 'minimum', 'exclusiveMinimum', exclusiveMinimum)
  addBound(draft, 'maximum', 'exclusiveMaximum', exclusiveMaximum)
  return draft
}

/** Draft 4 has `exclusiveMinimum: true` beside `minimum`. */
function addBound(
  draft: Draft,
  bound: string,
  keyword: string,
  value: JsonValue | undefined,
): void {
  if (typeof value !== 'boolean') return
  const limit = draft[bound]
  delete draft[keyword]
  if (value && limit !== undefined) {
    draft[keyword] = limit
    delete draft[bound]
  }
}
