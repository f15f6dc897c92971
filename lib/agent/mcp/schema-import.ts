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
import { isKnownDraft } from '../json-schema/compile.js'
import {
  checkDepth, keywordOf, KINDS, mapSchemas, problemOf, SchemaProblem, type Keyword,
} from '../json-schema/keywords.js'
import { linearPattern } from '../json-schema/linear-pattern.js'
import { MAX_VALUE_DEPTH, sizeOf } from '../json-schema/values.js'
import { clip, redacted } from '../output.js'
import type { JsonSchema } from '../schema.js'

/** Characters of the imported schema as JSON, since it is sent with every model call. */
const MAX_CHARACTERS = 24_000
/** Characters of a title or description inside a schema. */
const MAX_TEXT = 500
const MAX_FORMAT = 60
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

/** Keywords by which a schema may accept less when a part of it accepts more. */
const TURNING = ['not', 'if', 'oneOf', 'maxContains']

type Draft = Record<string, JsonValue>

class Importer {
  readonly unchecked: string[] = []
  #turns: string | null = null
  /** First steps of references that lead to parts which are no schemas by their place. */
  readonly #places = new Set<string>()

  import(schema: JsonObject): JsonSchema {
    const draft = this.#convert(schema, '', 0) as Draft
    for (const name of this.#places) {
      const isPart = Object.hasOwn(schema, name) && keywordOf(name) === undefined
      if (isPart && name !== '__proto__') draft[name] = bounded(schema[name]!)
    }
    if (this.unchecked.length > 0 && this.#turns !== null) {
      throw new SchemaProblem(`${this.unchecked[0]}, and ${this.#turns} needs all rules`)
    }
    return draft
  }

  #convert(value: JsonValue, path: string, depth: number): JsonValue {
    checkDepth(depth)
    if (typeof value === 'boolean') return value
    if (!isJsonObject(value)) throw new SchemaProblem(`${path} is no schema`)
    const draft: Draft = {}
    for (const [name, given] of Object.entries(modern(value))) {
      const keyword = keywordOf(name)
      if (TURNING.includes(name)) this.#turns ??= name
      if (name === '$ref') this.#places.add(/^#\/([^/]+)/.exec(String(given))?.[1] ?? '')
      if (keyword?.isNote) addNote(draft, name, given)
      else if (keyword) this.#add(draft, name, keyword, given, `${path}.${name}`, depth)
    }
    return draft
  }

  /** A rule that cannot be checked is left out, and named; the model reads it as a text. */
  #add(
    draft: Draft,
    name: string,
    keyword: Keyword,
    value: JsonValue,
    path: string,
    depth: number,
  ): void {
    const converted = mapSchemas(name, value, (part, step) => {
      return this.#convert(part, path + step, depth + 1)
    })
    if (converted === value) bounded(value)
    const { flaw } = KINDS[keyword.takes]
    const refusal = problemOf(keyword, value)
    if (refusal !== null && flaw === undefined) throw new SchemaProblem(`${path} ${refusal}`)
    const isPattern = name === 'pattern' && refusal === null
    const problem = isPattern ? linearPattern(value as string).problem : refusal && flaw
    if (problem) this.unchecked.push(`${path} ${problem}`)
    else draft[name] = converted
    if (!isPattern || problem === null) return
    const before = draft['description'] === undefined ? '' : `${draft['description'] as string} `
    draft['description'] = clip(`${before}Matches ${value as string}`, MAX_TEXT)
  }
}

/** Adds what is for readers only, as far as models read it. */
function addNote(draft: Draft, name: string, value: JsonValue): void {
  if (name === 'default' || (name === '$schema' && !isKnownDraft(value))) {
    draft[name] = bounded(value)
  }
  if (typeof value !== 'string' || !['title', 'description', 'format'].includes(name)) return
  // A description may come after the rule that it has to mention.
  const before = draft[name] === undefined ? '' : ` ${draft[name] as string}`
  const text = clip(value + before, name === 'format' ? MAX_FORMAT : MAX_TEXT)
  if (text !== '') draft[name] = text
}

/** @throws SchemaProblem for a value that is nested too deeply to be copied, or compared. */
function bounded(value: JsonValue): JsonValue {
  if (sizeOf(value) < Infinity) return value
  throw new SchemaProblem(`has values nested beyond ${MAX_VALUE_DEPTH} levels`)
}

/** Keywords of older drafts, said as draft 2020-12 says it. */
function modern(schema: JsonObject): JsonObject {
  const { additionalItems, dependencies, ...rest } = schema
  const draft: Draft = rest
  const { items, exclusiveMinimum, exclusiveMaximum } = schema
  if (Array.isArray(items)) {
    delete draft['items']
    if (items.length > 0) draft['prefixItems'] = items
    if (additionalItems !== undefined) draft['items'] = additionalItems
  }
  if (isJsonObject(dependencies)) {
    const all = Object.entries(dependencies)
    const names = all.filter(([, needed]) => Array.isArray(needed))
    const schemas = all.filter(([, needed]) => !Array.isArray(needed))
    if (names.length > 0) draft['dependentRequired'] ??= Object.fromEntries(names)
    if (schemas.length > 0) draft['dependentSchemas'] ??= Object.fromEntries(schemas)
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
