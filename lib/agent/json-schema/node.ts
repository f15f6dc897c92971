/**
 * A schema made ready for checks: what its keywords say, with defaults for those that are absent,
 * and its parts and references as links to other nodes.
 *
 * @module
 */
import type { JsonValue } from '../../internal/json.js'
import type { JsonSchema } from '../schema.js'
import type { Matcher } from './linear-pattern.js'
import { isMultiple, sameJson } from './values.js'

/** Bits of {@link SchemaNode.types}. */
export const TYPE_BITS: Readonly<Record<string, number>> = {
  null: 1, boolean: 2, string: 4, array: 8, object: 16, number: 32, integer: 64,
}

/** Any type; values that JSON does not know have none of the others. */
export const ANY_TYPE = -1

/** The values that `enum` or `const` allows. */
export class Choice {
  readonly #simple: ReadonlySet<unknown>
  readonly #others: readonly JsonValue[]
  /** How many values may be looked at for one answer. */
  readonly cost: number

  constructor(values: readonly JsonValue[], cost: number) {
    this.#simple = new Set(values.filter((one) => one === null || typeof one !== 'object'))
    this.#others = values.filter((one) => one !== null && typeof one === 'object')
    this.cost = this.#others.length === 0 ? 0 : cost
  }

  has(value: unknown): boolean {
    if (typeof value !== 'object' || value === null) return this.#simple.has(value)
    return this.#others.some((one) => sameJson(one, value))
  }
}

/** The class keeps the layout of all nodes the same, which makes checks fast. */
export class SchemaNode {
  /** What messages describe. */
  readonly schema: JsonSchema
  /** From the root, `.properties.a`, for messages about the schema itself. */
  readonly path: string
  /** The schema `false`. */
  isFalse = false
  types: number = ANY_TYPE
  const: Choice | null = null
  enum: Choice | null = null
  hasNumberRules = false
  minimum: number = -Infinity
  maximum: number = Infinity
  exclusiveMinimum: number = -Infinity
  exclusiveMaximum: number = Infinity
  multipleOf = 0
  minLength = 0
  maxLength: number = Infinity
  pattern: Matcher | null = null
  minItems = 0
  maxItems: number = Infinity
  minProperties = 0
  maxProperties: number = Infinity

  uniqueItems = false
  prefixItems: readonly SchemaNode[] = NONE
  items: SchemaNode | null = null
  contains: SchemaNode | null = null
  minContains = 1
  maxContains: number = Infinity
  unevaluatedItems: SchemaNode | null = null
  /** Whether a keyword looks at the items of a list. */
  hasItemRules = false

  properties: ReadonlyMap<string, SchemaNode> | null = null
  patternProperties: readonly (readonly [Matcher, SchemaNode])[] = NONE
  additionalProperties: SchemaNode | null = null
  propertyNames: SchemaNode | null = null
  required: readonly string[] = NONE
  dependentRequired: readonly (readonly [string, readonly string[]])[] = NONE
  dependentSchemas: readonly (readonly [string, SchemaNode])[] = NONE
  unevaluatedProperties: SchemaNode | null = null
  /** Whether a keyword looks at the fields of an object. */
  hasFieldRules = false

  ref: SchemaNode | null = null
  allOf: readonly SchemaNode[] = NONE
  anyOf: readonly SchemaNode[] = NONE
  oneOf: readonly SchemaNode[] = NONE
  not: SchemaNode | null = null
  if: SchemaNode | null = null
  then: SchemaNode | null = null
  else: SchemaNode | null = null
  /** Whether a keyword applies another schema to the same value. */
  hasInPlace = false

  constructor(schema: JsonSchema, path: string) {
    this.schema = schema
    this.path = path
  }

  /** The nodes that are applied to the same value as this one. */
  inPlace(): readonly SchemaNode[] {
    const single = [this.ref, this.not, this.if, this.then, this.else]
    return [
      ...single.filter((node) => node !== null),
      ...this.allOf,
      ...this.anyOf,
      ...this.oneOf,
      ...this.dependentSchemas.map(([, node]) => node),
    ]
  }
}

const NONE: readonly never[] = Object.freeze([])

/** Whether a value has one of the types; `types` are bits. */
export function hasType(types: number, value: unknown): boolean {
  switch (typeof value) {
    case 'string':
      return (types & 4) !== 0
    case 'number':
      if ((types & 32) !== 0) return Number.isFinite(value)
      return (types & 64) !== 0 && Number.isInteger(value)
    case 'boolean':
      return (types & 2) !== 0
    case 'object':
      if (value === null) return (types & 1) !== 0
      return (types & (Array.isArray(value) ? 8 : 16)) !== 0
    default:
      return false
  }
}

/** All keywords about numbers. */
export function fitsNumber(node: SchemaNode, value: number): boolean {
  return (
    value >= node.minimum &&
    value <= node.maximum &&
    (node.exclusiveMinimum === -Infinity || value > node.exclusiveMinimum) &&
    (node.exclusiveMaximum === Infinity || value < node.exclusiveMaximum) &&
    (node.multipleOf === 0 || isMultiple(value, node.multipleOf))
  )
}
