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
import { describeValue } from '../../internal/options.js'
import type { JsonSchema } from '../schema.js'
import { SchemaNode } from './check.js'
import { Documents, OWN_BASE, resolve, type RawSchema } from './documents.js'
import {
  checkDepth, convertSchemas, keywordsIn, problemOf, SchemaProblem, type Keyword,
} from './keywords.js'
import { linearPattern, type Matcher } from './linear-pattern.js'
import { isObject, typeBits } from './values.js'

/** Schemas that follow each other on the same value, by references and `allOf`, `anyOf`, … */
const MAX_CHAIN = 64

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

/** What `$schema` may name. Older drafts are read as draft 2020-12. */
const DRAFT =
  /^https?:\/\/json-schema\.org\/(?:draft-0[467]|draft\/2019-09|draft\/2020-12)\/schema#?$/

export function isKnownDraft(name: unknown): boolean {
  return typeof name === 'string' && DRAFT.test(name)
}

/** Keywords whose null counts as absent: requests of stored runs may have it. */
const NULL_IS_ABSENT = new Set(['dependentRequired', 'pattern', 'required', 'uniqueItems'])

interface Reference {
  readonly node: SchemaNode
  readonly reference: string
  readonly base: string
}

class Compiler {
  readonly #name: string
  readonly #isForeign: boolean
  /** Schemas in the schema, itself included. */
  readonly #maxSchemas: number
  readonly #documents = new Documents()
  /** Nodes by the resource they belong to and the object they are made of. */
  readonly #nodes = new Map<string, Map<object, SchemaNode>>()
  readonly #all: SchemaNode[] = []
  readonly #references: Reference[] = []

  constructor({ name, isForeign }: CompileOptions) {
    this.#name = name
    this.#isForeign = isForeign
    this.#maxSchemas = isForeign ? 1_000 : 10_000
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
    if (typeof schema === 'boolean') return this.#add(schema ? {} : { not: {} }, path, !schema)
    if (!isObject(schema)) this.#fail(path, `must be a schema object, got ${describeValue(schema)}`)
    checkDepth(depth, this.#name)
    const resource = this.#enter(schema, base, path)
    let nodes = this.#nodes.get(resource)
    if (nodes === undefined) this.#nodes.set(resource, (nodes = new Map<object, SchemaNode>()))
    const known = nodes.get(schema)
    if (known !== undefined) return known
    const node = this.#add(schema as JsonSchema, path, false)
    nodes.set(schema, node)
    this.#read(node, schema, resource, depth)
    return node
  }

  #add(schema: JsonSchema, path: string, isFalse: boolean): SchemaNode {
    const node = new SchemaNode(schema, path, isFalse)
    if (this.#all.push(node) > this.#maxSchemas) {
      this.#fail('', `has more than ${this.#maxSchemas} parts`)
    }
    return node
  }

  /** Records the address and the anchor of a schema; returns the resource that it belongs to. */
  #enter(schema: RawSchema, base: string, path: string): string {
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

  /** Reads the keywords of a schema, then makes their rules in the order of the table. */
  #read(node: SchemaNode, schema: RawSchema, base: string, depth: number): void {
    const used = keywordsIn(schema).filter(
      ({ name }) => schema[name] !== null || !NULL_IS_ABSENT.has(name),
    )
    for (const keyword of used) {
      const { name } = keyword
      const path = `${node.path}.${name}`
      const problem = problemOf(keyword, schema[name])
      if (problem !== null) this.#fail(path, problem)
      const parts = convertSchemas(name, schema[name], (part, step) =>
        this.#node(part, base, path + step, depth + 1),
      )
      if (parts === null) continue
      node.links.set(name, parts)
      // Without a condition, `then` and `else` mean nothing.
      const isApplied = keyword.rule !== undefined || schema['if'] !== undefined
      if (keyword.stage === 'inPlace' && isApplied) {
        node.sameValue = [...node.sameValue, ...parts.values()]
      }
    }
    const { type } = node.schema
    if (type !== undefined) node.types = typeBits(type)
    const { $ref: reference } = schema
    if (typeof reference === 'string') this.#references.push({ node, reference, base })
    const matcher = (source: string, name: string): Matcher =>
      this.#matcher(source, `${node.path}.${name}`)
    const made = new Set<Keyword['rule']>()
    for (const { name, takes, rule, stage } of used) {
      if (rule === undefined || stage === undefined || made.has(rule)) continue
      made.add(rule)
      const parts = node.links.get(name)
      const list = takes === 'schemas' ? [...parts!.values()] : parts
      const given = takes === 'schema' ? node.link(name) : (list ?? schema[name])
      node.isLeaf &&= stage === 'limits'
      node[stage] = [...node[stage], rule(given as never, node, matcher)]
    }
  }

  #matcher(source: string, path: string): Matcher {
    let pattern: RegExp
    try {
      pattern = new RegExp(source, 'u')
    } catch {
      return this.#fail(path, `is not a regular expression: ${JSON.stringify(source)}`)
    }
    if (!this.#isForeign) return { test: (text) => pattern.test(text), cost: 0 }
    const { matcher, problem } = linearPattern(source)
    if (matcher === null) this.#fail(path, `${problem}, so it cannot be matched in linear time`)
    return matcher
  }

  #resolve({ node, reference, base }: Reference): void {
    const target = this.#documents.find(reference, base)
    const path = `${node.path}.$ref`
    const shown = `leads to ${JSON.stringify(reference)}, which is`
    if (target === null) this.#fail(path, `${shown} not in this document`)
    const { schema } = target
    if (typeof schema !== 'boolean' && !isObject(schema)) this.#fail(path, `${shown} no schema`)
    const next = this.#node(schema, target.base, path, 0)
    node.links.set('$ref', new Map([['', next]]))
    node.sameValue = [next, ...node.sameValue]
  }

  /** Refuses schemas that would be applied to the same value without end, or in too long a row. */
  #refuseLoops(): void {
    const heights = new Map<SchemaNode, number>()
    const open = new Set<SchemaNode>()
    const tooLong = (node: SchemaNode): never =>
      this.#fail(node.path, `is one of more than ${MAX_CHAIN} schemas in a row for the same value`)
    const heightOf = (node: SchemaNode): number => {
      const known = heights.get(node)
      if (known !== undefined || node.sameValue.length === 0) return known ?? 0
      if (open.has(node)) {
        this.#fail(node.path, 'leads back to itself without going on to a part of the value')
      }
      open.add(node)
      if (open.size > MAX_CHAIN) tooLong(node)
      const height = Math.max(0, ...node.sameValue.map((next) => heightOf(next) + 1))
      if (height > MAX_CHAIN) tooLong(node)
      open.delete(node)
      heights.set(node, height)
      return height
    }
    this.#all.forEach(heightOf)
  }
}
