/**
 * The keywords of JSON Schema: what each has as its value, which providers accept it, and how it is
 * checked. Whoever reads, changes or checks schemas goes by this table.
 *
 * @module
 */
import { type JsonObject, type JsonValue } from '../../internal/json.js'
import { describeValue } from '../../internal/options.js'
import type { JsonSchema } from '../schema.js'
import type { Check, Rule, SchemaNode, Stage } from './check.js'
import type { Matcher } from './linear-pattern.js'
import * as rules from './rules.js'
import {
  fitsLength as hasLength, isMultiple, isObject, MAX_VALUE_DEPTH, sameJson, sizeOf, typeOf, TYPES,
  type Values,
} from './values.js'

/** Levels of schemas in schemas. */
const MAX_SCHEMA_DEPTH = 64

/** Why a schema is refused. A `TypeError`, as the schema is the mistake of its author. */
export class SchemaProblem extends TypeError {}

/** @throws SchemaProblem for a schema that is nested too deeply. */
export function checkDepth(depth: number, name = ''): void {
  if (depth <= MAX_SCHEMA_DEPTH) return
  throw new SchemaProblem(`${name} is nested more than ${MAX_SCHEMA_DEPTH} levels deep`)
}

/** What a rule is made of, by the kind of its keyword. */
interface Given {
  readonly text: string
  readonly any: JsonValue
  readonly boolean: boolean
  readonly number: number
  readonly step: number
  readonly count: number
  readonly pattern: string
  readonly types: never
  readonly list: readonly JsonValue[]
  readonly names: readonly string[]
  readonly lists: Readonly<Record<string, readonly string[]>>
  readonly schema: SchemaNode
  readonly schemas: readonly SchemaNode[]
  readonly map: ReadonlyMap<string, SchemaNode>
}

interface Kind {
  /** What `defineTool()` takes as the value of such a keyword. */
  readonly option: 'string' | 'any' | 'boolean' | 'number' | 'array' | 'object'
  readonly fits: (value: unknown) => boolean
  /** What the value must be. */
  readonly wanted: string
  /** What is wrong with a rule of an MCP server that is left out. */
  readonly flaw?: string
}

const isAny = (): boolean => true
const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value)
const isNames = (value: unknown): boolean =>
  isList(value) && value.every((name) => typeof name === 'string')

export const KINDS: Readonly<Record<keyof Given, Kind>> = {
  text: { option: 'string', fits: isAny, wanted: '' },
  any: { option: 'any', fits: isAny, wanted: '' },
  boolean: {
    option: 'boolean', fits: (value) => typeof value === 'boolean',
    wanted: 'true or false', flaw: 'is neither true nor false',
  },
  number: { option: 'number', fits: Number.isFinite, wanted: 'a number', flaw: 'is no number' },
  step: {
    option: 'number', fits: (value) => Number.isFinite(value) && (value as number) > 0,
    wanted: 'more than 0', flaw: 'is no positive number',
  },
  count: {
    option: 'number', fits: (value) => Number.isInteger(value) && (value as number) >= 0,
    wanted: 'a whole number of at least 0', flaw: 'is no count',
  },
  pattern: {
    option: 'string', fits: (value) => typeof value === 'string',
    wanted: 'a string', flaw: 'is no text',
  },
  types: {
    option: 'any',
    fits: (value) => {
      const names: readonly unknown[] = isList(value) ? value : [value]
      return names.length > 0 && names.every((name) => TYPES.includes(name as string))
    },
    wanted: `one of ${TYPES.join(', ')}`, flaw: 'names a type that JSON does not have',
  },
  list: { option: 'array', fits: isList, wanted: 'an array', flaw: 'is no list' },
  names: { option: 'array', fits: isNames, wanted: 'a list of names', flaw: 'is no list of names' },
  lists: {
    option: 'object', fits: (value) => isObject(value) && Object.values(value).every(isNames),
    wanted: 'an object of lists', flaw: 'has no lists',
  },
  schema: {
    option: 'any', fits: (value) => !isList(value),
    wanted: 'one schema; use prefixItems for a list',
  },
  schemas: {
    option: 'array', fits: (value) => isList(value) && value.length > 0,
    wanted: 'a list of schemas',
  },
  map: { option: 'object', fits: isObject, wanted: 'an object of schemas' },
}

type Matchers = (source: string, keyword: string) => Matcher

export type Provider = 'openai' | 'gemini' | 'anthropic'

export interface Keyword {
  readonly takes: keyof Given
  /** Where it is accepted: by OpenAI's strict mode, Gemini, and Anthropic's results. */
  readonly sent?: string
  readonly stage?: Stage | undefined
  readonly rule?: (given: never, node: SchemaNode, matcher: Matchers) => Rule
  /** Says nothing about values; its own value is not checked. */
  readonly isNote?: boolean
  /** Why a schema with it is refused. */
  readonly refusal?: string
}

/** A keyword with a rule. */
function rule<K extends keyof Given>(
  takes: K,
  sent: string,
  stage: Stage,
  rule: (given: Given[K], node: SchemaNode, matcher: Matchers) => Rule,
): Keyword {
  return { takes, sent, stage, rule }
}

/** A keyword that limits values of one type. */
function limit<T extends keyof Values>(
  takes: 'number' | 'step' | 'count',
  sent: string,
  type: T,
  fits: (value: Values[T], given: number, check: Check) => boolean,
): Keyword {
  return rule(takes, sent, 'limits', (given) => (value, check) => {
    return typeOf(value) !== type || fits(value as Values[T], given, check)
  })
}

function note(takes: keyof Given, sent = ''): Keyword {
  return { takes, sent, isNote: true }
}

function refused(refusal: string): Keyword {
  return { takes: 'any', refusal }
}

/** Why the value of a keyword is refused, as a predicate; null if it is not. */
export function problemOf({ takes, isNote, refusal }: Keyword, value: unknown): string | null {
  const { fits, wanted } = KINDS[takes]
  if (isNote) return null
  if ((takes === 'any' || takes === 'list') && sizeOf(value) === Infinity) {
    return `has a value that is nested more than ${MAX_VALUE_DEPTH} levels deep`
  }
  return refusal ?? (fits(value) ? null : `must be ${wanted}, got ${describeValue(value)}`)
}

const ALL = 'openai gemini anthropic'

/** Whether it is one of these values. */
function isOneOf(values: readonly JsonValue[]): Rule {
  const simple = new Set<unknown>(values.filter((one) => one === null || typeof one !== 'object'))
  const others = values.filter((one) => !simple.has(one))
  const cost = sizeOf(others)
  return (value, check) => {
    if (typeof value !== 'object' || value === null) return simple.has(value)
    return check.spend(cost) && others.some((one) => sameJson(one, value))
  }
}

function fitsLength(value: string, least: number, most: number, check: Check): boolean {
  return check.spend(value.length >> 10) && hasLength(value, least, most)
}

/** Keywords in the order in which their rules are checked. */
const KEYWORDS: Readonly<Record<keyof JsonSchema | Foreign, Keyword>> = {
  $schema: note('text'),
  $id: { takes: 'text' },
  $anchor: { takes: 'text' },
  $ref: rule('pattern', ALL, 'inPlace', (_, node) => (value, check) =>
    check.apply(node.link('$ref')!, value)),
  $defs: { takes: 'map', sent: ALL },
  definitions: { takes: 'map' },
  $comment: note('text'),

  type: { takes: 'types', sent: ALL },
  title: note('text', ALL),
  description: note('text', ALL),
  default: note('any'),
  examples: note('list'),
  deprecated: note('boolean'),
  readOnly: note('boolean'),
  writeOnly: note('boolean'),
  format: note('text', 'openai'),
  contentEncoding: note('text'),
  contentMediaType: note('text'),
  contentSchema: note('schema'),
  enum: rule('list', 'openai gemini', 'limits', isOneOf),
  const: rule('any', 'openai', 'limits', (value) => isOneOf([value])),

  minimum: limit('number', 'openai gemini', 'number', (value, least) => value >= least),
  maximum: limit('number', 'openai gemini', 'number', (value, most) => value <= most),
  exclusiveMinimum: limit('number', 'openai', 'number', (value, bound) => value > bound),
  exclusiveMaximum: limit('number', 'openai', 'number', (value, bound) => value < bound),
  multipleOf: limit('step', 'openai', 'number', isMultiple),
  minLength: limit('count', '', 'string', (value, least, check) =>
    fitsLength(value, least, Infinity, check)),
  maxLength: limit('count', '', 'string', (value, most, check) =>
    fitsLength(value, 0, most, check)),
  pattern: rule('pattern', 'openai', 'limits', (source, _, matcher) => {
    const pattern = matcher(source, 'pattern')
    return (value, check) => typeof value !== 'string' || rules.hasMatch(pattern, value, check)
  }),
  minItems: limit('count', 'openai gemini', 'array', (value, least) => value.length >= least),
  maxItems: limit('count', 'openai gemini', 'array', (value, most) => value.length <= most),
  minProperties: limit('count', '', 'object', (value, least, check) =>
    rules.countFields(value, check) >= least),
  maxProperties: limit('count', '', 'object', (value, most, check) =>
    rules.countFields(value, check) <= most),

  allOf: rule('schemas', '', 'inPlace', rules.allOf),
  anyOf: rule('schemas', ALL, 'inPlace', rules.anyOf),
  oneOf: rule('schemas', '', 'inPlace', rules.oneOf),
  not: rule('schema', '', 'inPlace', rules.not),
  if: rule('schema', '', 'inPlace', rules.conditional),
  then: { takes: 'schema', stage: 'inPlace' },
  else: { takes: 'schema', stage: 'inPlace' },
  dependentSchemas: rule('map', '', 'inPlace', rules.dependentSchemas),

  prefixItems: rule('schemas', 'gemini', 'parts', rules.items),
  items: rule('schema', ALL, 'parts', rules.items),
  contains: rule('schema', '', 'parts', rules.contains),
  minContains: { takes: 'count' },
  maxContains: { takes: 'count' },
  uniqueItems: rule('boolean', '', 'whole', (isUnique) =>
    isUnique ? rules.uniqueItems : () => true),
  unevaluatedItems: rule('schema', '', 'rest', rules.unevaluated(isList)),

  required: rule('names', ALL, 'parts', rules.required),
  dependentRequired: rule('lists', '', 'parts', rules.dependentRequired),
  properties: rule('map', ALL, 'parts', rules.fields),
  patternProperties: rule('map', '', 'parts', rules.fields),
  additionalProperties: rule('schema', ALL, 'parts', rules.fields),
  propertyNames: rule('schema', '', 'parts', rules.fields),
  unevaluatedProperties: rule('schema', '', 'rest', rules.unevaluated(isObject)),

  $dynamicRef: refused('is not supported; use $ref'),
  $dynamicAnchor: refused('is not supported; use $anchor'),
  $recursiveRef: refused('is not supported; use $ref'),
  $recursiveAnchor: refused('is not supported; use $anchor'),
  $vocabulary: refused('is not supported: only the vocabularies of draft 2020-12 are'),
  additionalItems: refused('is of an older draft; use items beside prefixItems'),
  dependencies: refused('is of an older draft; use dependentRequired or dependentSchemas'),
}

/** Keywords of the specification that a {@link JsonSchema} does not have. */
type Foreign =
  | '$schema' | 'definitions' | '$dynamicRef' | '$dynamicAnchor' | '$recursiveRef'
  | '$recursiveAnchor' | '$vocabulary' | 'additionalItems' | 'dependencies'

/** A keyword with its name, and its place in the table. */
export interface NamedKeyword extends Keyword {
  readonly name: string
  readonly order: number
}

const TABLE: ReadonlyMap<string, NamedKeyword> = new Map(
  Object.entries<Keyword>(KEYWORDS).map(([name, one], order) => [name, { ...one, name, order }]),
)

/** What `defineTool()` takes as a schema. */
export const SCHEMA_OPTIONS: Readonly<Record<string, Kind['option']>> = Object.fromEntries(
  [...TABLE.values()]
    .filter(({ refusal }) => refusal === undefined)
    .map(({ name, takes }) => [name, KINDS[takes].option]),
)

/** What the specification says of a keyword. */
export function keywordOf(name: string): NamedKeyword | undefined {
  return TABLE.get(name)
}

/** The keywords of a schema, in the order of the table. */
export function keywordsIn(schema: Readonly<Record<string, unknown>>): readonly NamedKeyword[] {
  const used: NamedKeyword[] = []
  for (const name of Object.keys(schema)) {
    const keyword = schema[name] === undefined ? undefined : TABLE.get(name)
    if (keyword !== undefined) used.push(keyword)
  }
  return used.sort((one, other) => one.order - other.order)
}

/** Whether a provider accepts a keyword. */
export function isSent(name: string, provider: Provider): boolean {
  return keywordOf(name)?.sent?.includes(provider) ?? false
}

/**
 * What `convert` makes of the schemas in the value of a keyword, by their name in it: a field or an
 * index, or nothing for the only one. Null for keywords and values that hold no schemas.
 *
 * @param convert - also gets the step that leads to the schema: `.name`, `[0]`, or nothing.
 */
export function convertSchemas<T>(
  keyword: string,
  value: unknown,
  convert: (schema: unknown, step: string) => T,
): Map<string, T> | null {
  switch (keywordOf(keyword)?.takes) {
    case 'schema':
      return new Map([['', convert(value, '')]])
    case 'schemas': {
      if (!Array.isArray(value)) return null
      return new Map(value.map((part: unknown, i) => [String(i), convert(part, `[${i}]`)]))
    }
    case 'map': {
      if (!isObject(value)) return null
      const parts = Object.entries(value)
      return new Map(parts.map(([name, part]) => [name, convert(part, `.${name}`)]))
    }
    default:
      return null
  }
}

/** A keyword's value with the schemas in it changed; any other value as it is. */
export function mapSchemas(
  keyword: string,
  value: JsonValue,
  change: (schema: JsonValue, step: string) => JsonValue,
): JsonValue {
  const parts = convertSchemas(keyword, value, (part, step) => change(part as JsonValue, step))
  if (parts === null) return value
  if (Array.isArray(value)) return [...parts.values()]
  return keywordOf(keyword)?.takes === 'map' ? Object.fromEntries(parts) : parts.get('')!
}

/** A schema with the schemas in its keywords changed; those in `only`, if it is given. */
export function changeParts(
  schema: JsonObject,
  change: (schema: JsonValue) => JsonValue,
  only?: readonly string[],
): JsonObject {
  const entries = Object.entries(schema).map(([name, value]): [string, JsonValue] => {
    const isKept = only !== undefined && !only.includes(name)
    return [name, isKept ? value : mapSchemas(name, value, change)]
  })
  return Object.fromEntries(entries)
}

/** Whether the schemas in some keywords of a schema all fit. */
export function everyPart(
  schema: JsonObject,
  keywords: readonly string[],
  fits: (schema: JsonValue) => boolean,
): boolean {
  return keywords.every((name) => {
    if (schema[name] === undefined) return true
    const parts = convertSchemas(name, schema[name], (part) => fits(part as JsonValue))
    return parts === null || ![...parts.values()].includes(false)
  })
}
