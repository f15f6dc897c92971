/**
 * Makes a schema ready for checks, and refuses what could not be checked as it is meant.
 *
 * 1. What a schema says is checked or refused by name: a keyword of the vocabularies that are
 *    implemented is never skipped. Keywords that the specification does not know mean nothing.
 * 2. Depth, number of parts and chains of references are bounded, and a reference that leads back
 *    to itself without going on to a part of the value is refused.
 *
 * @module
 */
import type { JsonValue } from '../../internal/json.js'
import { describeValue } from '../../internal/options.js'
import type { JsonSchema } from '../schema.js'
import { Documents, OWN_BASE, resolve, type RawSchema } from './documents.js'
import { linearPattern, type Matcher } from './linear-pattern.js'
import { ANY_TYPE, Choice, SchemaNode, TYPE_BITS } from './node.js'
import { isObject, MAX_VALUE_DEPTH, sizeOf } from './values.js'

/** Levels of schemas in schemas. */
const MAX_SCHEMA_DEPTH = 64
/** Schemas in a schema, itself included. */
const MAX_SCHEMAS = 10_000
/** Schemas that follow each other on the same value, by references and `allOf`, `anyOf`, … */
const MAX_CHAIN = 64

/** Why a schema is refused. A `TypeError`, as the schema is the mistake of whoever wrote it. */
export class SchemaProblem extends TypeError {}

export interface CompileOptions {
  /** What messages call the schema: `tool pay: parameters`. */
  readonly name: string
  /** Never run its patterns with `RegExp`, because a stranger wrote them. */
  readonly isForeign: boolean
}

export interface CompiledSchema {
  readonly root: SchemaNode
  /** The root and all others. */
  readonly nodes: readonly SchemaNode[]
}

/** @throws SchemaProblem naming the place and the keyword that cannot be used. */
export function compileSchema(schema: unknown, options: CompileOptions): CompiledSchema {
  return new Compiler(options).compile(schema)
}

/** Can JavaScript compile this `pattern`? */
export function isPattern(pattern: string): boolean {
  try {
    new RegExp(pattern, 'u')
    return true
  } catch {
    return false
  }
}

/** Keywords of other drafts and those that are refused, with what to write instead. */
const REFUSED: Readonly<Record<string, string>> = {
  $dynamicRef: 'is not supported; use $ref',
  $dynamicAnchor: 'is not supported; use $anchor',
  $recursiveRef: 'is not supported; use $ref',
  $recursiveAnchor: 'is not supported; use $anchor',
  $vocabulary: 'is not supported: only the vocabularies of draft 2020-12 are',
  additionalItems: 'is of an older draft; use items beside prefixItems',
  dependencies: 'is of an older draft; use dependentRequired or dependentSchemas',
}

/** What `$schema` may name. Older drafts are read as draft 2020-12. */
const DRAFT =
  /^https?:\/\/json-schema\.org\/(?:draft-0[467]|draft\/2019-09|draft\/2020-12)\/schema#?$/

export function isKnownDraft(name: unknown): boolean {
  return typeof name === 'string' && DRAFT.test(name)
}

interface Reference {
  readonly node: SchemaNode
  readonly reference: string
  readonly base: string
}

class Compiler {
  readonly #name: string
  readonly #isForeign: boolean
  readonly #documents = new Documents()
  /** Nodes by the resource they belong to and the object they are made of. */
  readonly #nodes = new Map<string, Map<object, SchemaNode>>()
  readonly #all: SchemaNode[] = []
  readonly #references: Reference[] = []

  constructor({ name, isForeign }: CompileOptions) {
    this.#name = name
    this.#isForeign = isForeign
  }

  compile(schema: unknown): CompiledSchema {
    if (isObject(schema)) this.#documents.addResource(OWN_BASE, schema)
    const root = this.#node(schema, OWN_BASE, '', 0)
    // A reference may lead to parts that are no schemas by their place, which may have references.
    for (let i = 0; i < this.#references.length; i++) this.#resolve(this.#references[i]!)
    this.#refuseLoops()
    return { root, nodes: this.#all }
  }

  #fail(path: string, problem: string): never {
    throw new SchemaProblem(`${this.#name}${path} ${problem}`)
  }

  #node(schema: unknown, base: string, path: string, depth: number): SchemaNode {
    if (schema === true) return this.#add(new SchemaNode({}, path))
    if (schema === false) {
      const node = this.#add(new SchemaNode({ not: {} }, path))
      node.isFalse = true
      return node
    }
    if (!isObject(schema)) this.#fail(path, `must be a schema object, got ${describeValue(schema)}`)
    if (depth > MAX_SCHEMA_DEPTH) {
      this.#fail('', `is nested more than ${MAX_SCHEMA_DEPTH} levels deep`)
    }
    const own = this.#enter(schema, base, path)
    let nodes = this.#nodes.get(own)
    if (nodes === undefined) this.#nodes.set(own, (nodes = new Map<object, SchemaNode>()))
    const known = nodes.get(schema)
    if (known !== undefined) return known
    const node = this.#add(new SchemaNode(schema as JsonSchema, path))
    nodes.set(schema, node)
    new Reader(schema, path, (at, problem) => this.#fail(at, problem)).readInto(node)
    this.#readParts(node, schema, own, path, depth)
    return node
  }

  #add(node: SchemaNode): SchemaNode {
    if (this.#all.push(node) > MAX_SCHEMAS) {
      this.#fail('', `has more than ${MAX_SCHEMAS} schemas in it`)
    }
    return node
  }

  /** Records the address and the anchor of a schema; returns the resource that it belongs to. */
  #enter(schema: RawSchema, base: string, path: string): string {
    for (const [keyword, problem] of Object.entries(REFUSED)) {
      if (own(schema, keyword) !== undefined) this.#fail(`${path}.${keyword}`, problem)
    }
    const { $schema, $id, $anchor } = schema
    if ($schema !== undefined && !isKnownDraft($schema)) {
      this.#fail(`${path}.$schema`, 'must be a draft of json-schema.org, best 2020-12')
    }
    let current = base
    if ($id !== undefined) {
      const address = typeof $id === 'string' ? $id.replace(/#$/, '') : '#'
      const absolute = address.includes('#') ? null : resolve(address, base)
      if (absolute === null) this.#fail(`${path}.$id`, 'must be an address without a fragment')
      if (!this.#documents.addResource(absolute, schema)) {
        this.#fail(`${path}.$id`, 'is the address of another part as well')
      }
      current = absolute
    }
    if ($anchor !== undefined) {
      if (typeof $anchor !== 'string' || !/^[A-Za-z_][-A-Za-z0-9._]*$/.test($anchor)) {
        this.#fail(`${path}.$anchor`, 'must be a name of letters, digits, -, . and _')
      }
      if (!this.#documents.addAnchor(current, $anchor, schema)) {
        this.#fail(`${path}.$anchor`, 'is the name of another part as well')
      }
    }
    return current
  }

  #readParts(node: SchemaNode, schema: RawSchema, base: string, path: string, depth: number): void {
    const one = (keyword: string): SchemaNode | null => {
      const part = own(schema, keyword)
      return part === undefined ? null : this.#node(part, base, `${path}.${keyword}`, depth + 1)
    }
    const list = (keyword: string): readonly SchemaNode[] => {
      const parts = own(schema, keyword)
      if (parts === undefined) return []
      if (!Array.isArray(parts) || parts.length === 0) {
        this.#fail(`${path}.${keyword}`, 'must be a list of schemas')
      }
      return parts.map((part: unknown, i) =>
        this.#node(part, base, `${path}.${keyword}[${i}]`, depth + 1),
      )
    }
    const map = (keyword: string): readonly (readonly [string, SchemaNode])[] => {
      const parts = own(schema, keyword)
      if (parts === undefined) return []
      if (!isObject(parts)) this.#fail(`${path}.${keyword}`, 'must be an object of schemas')
      return Object.entries(parts).map(([name, part]) => [
        name,
        this.#node(part, base, `${path}.${keyword}.${name}`, depth + 1),
      ])
    }
    map('$defs')
    map('definitions')
    one('contentSchema')
    node.pattern = node.schema.pattern === undefined
      ? null
      : this.#pattern(node.schema.pattern, `${path}.pattern`)
    const properties = map('properties')
    if (own(schema, 'properties') !== undefined) node.properties = new Map(properties)
    node.patternProperties = map('patternProperties').map(([source, part]) => [
      this.#pattern(source, `${path}.patternProperties`),
      part,
    ])
    node.additionalProperties = one('additionalProperties')
    node.propertyNames = one('propertyNames')
    node.dependentSchemas = map('dependentSchemas')
    node.unevaluatedProperties = one('unevaluatedProperties')
    node.prefixItems = list('prefixItems')
    if (Array.isArray(own(schema, 'items'))) {
      this.#fail(`${path}.items`, 'must be one schema; use prefixItems for a list')
    }
    node.items = one('items')
    node.contains = one('contains')
    node.unevaluatedItems = one('unevaluatedItems')
    node.allOf = list('allOf')
    node.anyOf = list('anyOf')
    node.oneOf = list('oneOf')
    node.not = one('not')
    node.if = one('if')
    node.then = one('then')
    node.else = one('else')
    const reference = own(schema, '$ref')
    if (reference !== undefined) {
      if (typeof reference !== 'string') this.#fail(`${path}.$ref`, 'must be a string')
      this.#references.push({ node, reference, base })
    }
    summarize(node, reference !== undefined)
  }

  #pattern(source: string, at: string): Matcher {
    if (!isPattern(source)) {
      this.#fail(at, `is not a regular expression: ${JSON.stringify(source)}`)
    }
    if (!this.#isForeign) {
      const pattern = new RegExp(source, 'u')
      return { test: (text) => pattern.test(text), cost: 0 }
    }
    const { matcher, problem } = linearPattern(source)
    if (matcher === null) this.#fail(at, `${problem}, so it cannot be matched in linear time`)
    return matcher
  }

  #resolve({ node, reference, base }: Reference): void {
    const target = this.#documents.find(reference, base)
    const shown = JSON.stringify(reference)
    if (target === null) {
      this.#fail(`${node.path}.$ref`, `leads to ${shown}, which is not in this document`)
    }
    if (typeof target.schema !== 'boolean' && !isObject(target.schema)) {
      this.#fail(`${node.path}.$ref`, `leads to ${shown}, which is no schema`)
    }
    node.ref = this.#node(target.schema, target.base, `${node.path}.$ref`, 0)
  }

  /** Refuses schemas that would be applied to the same value without end, or in too long a row. */
  #refuseLoops(): void {
    const heights = new Map<SchemaNode, number>()
    const open = new Set<SchemaNode>()
    const heightOf = (node: SchemaNode): number => {
      const known = heights.get(node)
      if (known !== undefined) return known
      if (open.has(node)) {
        this.#fail(node.path, 'leads back to itself without going on to a part of the value')
      }
      open.add(node)
      if (open.size > MAX_CHAIN) this.#tooLong(node)
      let height = 0
      for (const next of node.hasInPlace ? node.inPlace() : []) {
        height = Math.max(height, heightOf(next) + 1)
      }
      if (height > MAX_CHAIN) this.#tooLong(node)
      open.delete(node)
      heights.set(node, height)
      return height
    }
    for (const node of this.#all) heightOf(node)
  }

  #tooLong(node: SchemaNode): never {
    this.#fail(node.path, `is one of more than ${MAX_CHAIN} schemas in a row for the same value`)
  }
}

/** Fills in what the check asks first, so that it asks little of most nodes. */
function summarize(node: SchemaNode, hasReference: boolean): void {
  node.hasInPlace =
    hasReference ||
    node.dependentSchemas.length > 0 ||
    node.allOf.length + node.anyOf.length + node.oneOf.length > 0 ||
    node.not !== null ||
    node.if !== null
  node.hasItemRules =
    node.uniqueItems ||
    node.prefixItems.length > 0 ||
    node.items !== null ||
    node.contains !== null ||
    node.unevaluatedItems !== null
  node.hasFieldRules =
    node.properties !== null ||
    node.patternProperties.length > 0 ||
    node.additionalProperties !== null ||
    node.propertyNames !== null ||
    node.required.length > 0 ||
    node.dependentRequired.length > 0 ||
    node.unevaluatedProperties !== null
  node.hasNumberRules =
    node.minimum !== -Infinity ||
    node.maximum !== Infinity ||
    node.exclusiveMinimum !== -Infinity ||
    node.exclusiveMaximum !== Infinity ||
    node.multipleOf !== 0
}

/** Reads the keywords that hold no schemas, and refuses values that they cannot have. */
class Reader {
  readonly #schema: RawSchema
  readonly #path: string
  readonly #fail: (path: string, problem: string) => never

  constructor(schema: RawSchema, path: string, fail: (path: string, problem: string) => never) {
    this.#schema = schema
    this.#path = path
    this.#fail = fail
  }

  readInto(node: SchemaNode): void {
    node.types = this.#types()
    const allowed = own(this.#schema, 'enum')
    if (allowed !== undefined) {
      node.enum = this.#choice('enum', this.#list('enum', allowed) as readonly JsonValue[])
    }
    const only = own(this.#schema, 'const') as JsonValue | undefined
    if (only !== undefined) node.const = this.#choice('const', [only])
    node.minimum = this.#number('minimum') ?? -Infinity
    node.maximum = this.#number('maximum') ?? Infinity
    node.exclusiveMinimum = this.#number('exclusiveMinimum') ?? -Infinity
    node.exclusiveMaximum = this.#number('exclusiveMaximum') ?? Infinity
    node.multipleOf = this.#number('multipleOf') ?? 0
    if (node.multipleOf <= 0 && this.#schema['multipleOf'] !== undefined) {
      this.#refuse('multipleOf', 'must be more than 0')
    }
    node.minLength = this.#count('minLength') ?? 0
    node.maxLength = this.#count('maxLength') ?? Infinity
    if (typeof (own(this.#schema, 'pattern') ?? '') !== 'string') {
      this.#refuse('pattern', 'must be a string')
    }
    node.minItems = this.#count('minItems') ?? 0
    node.maxItems = this.#count('maxItems') ?? Infinity
    node.minContains = this.#count('minContains') ?? 1
    node.maxContains = this.#count('maxContains') ?? Infinity
    node.minProperties = this.#count('minProperties') ?? 0
    node.maxProperties = this.#count('maxProperties') ?? Infinity
    const unique = own(this.#schema, 'uniqueItems') ?? false
    if (typeof unique !== 'boolean') this.#refuse('uniqueItems', 'must be true or false')
    node.uniqueItems = unique
    node.required = this.#names('required', own(this.#schema, 'required') ?? [])
    const dependent = own(this.#schema, 'dependentRequired') ?? {}
    if (!isObject(dependent)) this.#refuse('dependentRequired', 'must be an object of lists')
    node.dependentRequired = Object.entries(dependent).map(([name, names]) => [
      name,
      this.#names(`dependentRequired.${name}`, names),
    ])
  }

  #choice(keyword: string, values: readonly JsonValue[]): Choice {
    const size = sizeOf(values)
    if (size === Infinity) {
      this.#refuse(keyword, `has a value that is nested more than ${MAX_VALUE_DEPTH} levels deep`)
    }
    return new Choice(values, size)
  }

  #refuse(keyword: string, problem: string): never {
    return this.#fail(`${this.#path}.${keyword}`, problem)
  }

  #types(): number {
    const type = own(this.#schema, 'type')
    if (type === undefined) return ANY_TYPE
    const names: readonly unknown[] = Array.isArray(type) ? type : [type]
    let bits = 0
    for (const name of names) {
      const isKnown = typeof name === 'string' && Object.hasOwn(TYPE_BITS, name)
      if (!isKnown) this.#refuse('type', `must be one of ${Object.keys(TYPE_BITS).join(', ')}`)
      bits |= TYPE_BITS[name]!
    }
    if (bits === 0) this.#refuse('type', 'must name a type')
    return bits
  }

  #number(keyword: string): number | undefined {
    const value = own(this.#schema, keyword)
    if (value === undefined) return undefined
    if (typeof value !== 'number' || !Number.isFinite(value)) {
      this.#refuse(keyword, `must be a number, got ${describeValue(value)}`)
    }
    return value
  }

  #count(keyword: string): number | undefined {
    const value = this.#number(keyword)
    if (value === undefined || (Number.isInteger(value) && value >= 0)) return value
    return this.#refuse(keyword, `must be a whole number of at least 0, got ${value}`)
  }

  #list(keyword: string, value: unknown): readonly unknown[] {
    if (Array.isArray(value)) return value
    return this.#refuse(keyword, `must be an array, got ${describeValue(value)}`)
  }

  #names(keyword: string, value: unknown): readonly string[] {
    const list = this.#list(keyword, value)
    if (list.every((name) => typeof name === 'string')) return list
    return this.#refuse(keyword, 'must be a list of names')
  }
}

/** A field of the schema itself: a name such as `toString` is no keyword of it. */
function own(schema: RawSchema, keyword: string): unknown {
  return Object.hasOwn(schema, keyword) ? schema[keyword] : undefined
}
