/**
 * Checks a value against a compiled schema.
 *
 * 1. One pass answers yes or no and stops at the first violation. Only for values that are invalid
 *    a second pass collects what to say about them.
 * 2. Steps, depth and violations are bounded. A check that has reached a bound has given up:
 *    {@link Check.problem} tells, and no answer of it counts.
 *
 * @module
 */
import type { JsonSchema, SchemaViolation } from '../schema.js'
import { describe, join, quote } from './describe.js'
import { ANY_TYPE, hasType, MAX_VALUE_DEPTH } from './values.js'

/** The check stops at this many violations. */
const MAX_VIOLATIONS = 32
/** Steps before the check gives up: one for each schema that is applied to a value, or more. */
const MAX_STEPS = 200_000
/** Schemas that are being applied at one time, each by the one before. */
const MAX_NESTING = 400

const TOO_DEEP = `is nested more than ${MAX_VALUE_DEPTH} levels deep`

/** Decides whether a value matches what one keyword says. All but limits report why not. */
export type Rule = (value: unknown, check: Check) => boolean

const NONE: readonly never[] = []

/** When a rule is checked: see the fields of {@link SchemaNode}, which are in this order. */
export type Stage = 'limits' | 'inPlace' | 'parts' | 'whole' | 'rest'

/** A schema with its rules, and its subschemas and references as links to other nodes. */
export class SchemaNode {
  /** The types that a value may have, for `hasType()`. */
  types: number = ANY_TYPE
  /** Rules for the value itself. One violation message covers all of them. */
  limits: readonly Rule[] = NONE
  /** Other schemas for the same value. */
  inPlace: readonly Rule[] = NONE
  /** Schemas for the items of a list and the fields of an object. */
  parts: readonly Rule[] = NONE
  /** Rules for a whole list, checked once its items are valid. */
  whole: readonly Rule[] = NONE
  /** Schemas for the parts that no other schema has seen, once everything else is valid. */
  rest: readonly Rule[] = NONE
  /** Subschemas by their keyword, and by their name in it; that of `$ref` is the target. */
  readonly links: Map<string, ReadonlyMap<string, SchemaNode>> = new Map()
  /** The nodes that are applied to the same value as this one. */
  sameValue: readonly SchemaNode[] = NONE
  /** True if the schema has only `limits`. */
  isLeaf = true

  /** The schema that violation messages describe. */
  readonly schema: JsonSchema
  /** From the root, `.properties.a`, for messages about the schema itself. */
  readonly path: string
  /** The schema `false`. */
  readonly isFalse: boolean

  constructor(schema: JsonSchema, path: string, isFalse: boolean) {
    this.schema = schema
    this.path = path
    this.isFalse = isFalse
  }

  link(keyword: string): SchemaNode | undefined {
    return this.links.get(keyword)?.get('')
  }
}

export class Check {
  /** Null while only the answer counts. */
  #violations: SchemaViolation[] | null
  /** Names and indexes of the parts that schemas have seen; null while no schema asks for them. */
  seen: string[] | null = null
  /** How many of them are from before the schema that asks. */
  seenBefore = 0
  /** Names of the parts that lead to the value; only kept while violations are collected. */
  readonly #path: (string | number)[] = []
  #level = 0
  #nesting = 0
  #stepsLeft = MAX_STEPS
  #isTooDeep = false

  /** @param reports - whether to collect violations, instead of stopping at the first. */
  constructor(reports: boolean) {
    this.#violations = reports ? [] : null
  }

  get violations(): readonly SchemaViolation[] {
    return this.#violations ?? []
  }


  /** Why the check could not be finished, as a predicate; null if it was. */
  get problem(): string | null {
    if (this.#isTooDeep) return TOO_DEEP
    return this.isTooLarge ? 'is too large to be checked; send less' : null
  }

  get isTooLarge(): boolean {
    return this.#stepsLeft <= 0
  }

  get isOver(): boolean {
    if (this.#stepsLeft <= 0) return true
    return this.#violations !== null && this.#violations.length >= MAX_VIOLATIONS
  }

  /** True if checking can stop at the first violation. */
  get isLost(): boolean {
    return this.#violations === null || this.isOver
  }

  /** Takes steps for work that depends on the value; false when none are left. */
  spend(steps: number): boolean {
    this.#stepsLeft -= steps
    return this.#stepsLeft > 0
  }

  /**
   * Rejects the value, or the part of it that is named.
   *
   * @param detail - only called if it is reported.
   */
  fail(detail: () => string, name?: string): false {
    if (this.#violations === null || this.isOver) return false
    const names = this.#path.slice(0, this.#level)
    if (name !== undefined) names.push(name)
    const pointer = names.reduce<string>((before, step) => join(before, String(step)), '')
    this.#violations.push({ pointer, detail: detail() })
    return false
  }

  /** True if all items fit. Stops at the first misfit unless all violations are reported. */
  all<T>(list: readonly T[], fits: (one: T) => boolean): boolean {
    let valid = true
    for (const one of list) {
      if (fits(one)) continue
      if (this.isLost) return false
      valid = false
    }
    return valid
  }

  /** Applies a schema to the value. */
  apply(node: SchemaNode, value: unknown): boolean {
    this.#stepsLeft -= 1
    if (this.isOver) return false
    if (this.#level > MAX_VALUE_DEPTH || this.#nesting > MAX_NESTING) {
      this.#isTooDeep = true
      return this.fail(() => TOO_DEEP)
    }
    if (node.isFalse) return this.fail(() => 'is not allowed')
    if (node.types !== ANY_TYPE && !hasType(node.types, value)) return this.#failLimits(node, value)
    for (const rule of node.limits) {
      if (!rule(value, this)) return this.#failLimits(node, value)
    }
    return node.isLeaf || this.#applyParts(node, value)
  }

  #applyParts(node: SchemaNode, value: unknown): boolean {
    const { seen } = this
    const { inPlace, whole, rest } = node
    if (rest.length > 0) this.seen ??= []
    const seenBefore = this.seen === null ? 0 : this.seen.length
    this.#nesting += 1
    const fits = inPlace.length === 0 || this.#all(inPlace, value)
    let valid = (fits || !this.isLost) && this.#all(node.parts, value)
    if (whole.length > 0) valid = valid && this.#all(whole, value)
    valid &&= fits
    if (valid && rest.length > 0) {
      this.seenBefore = seenBefore
      valid = this.#all(rest, value)
    }
    this.#nesting -= 1
    // What a schema that does not match has seen does not count.
    if (!valid && this.seen !== null) this.seen.length = seenBefore
    this.seen = seen
    return valid
  }

  #all(rules: readonly Rule[], value: unknown): boolean {
    let valid = true
    for (const rule of rules) {
      if (rule(value, this)) continue
      if (this.isLost) return false
      valid = false
    }
    return valid
  }

  #failLimits({ schema }: SchemaNode, value: unknown): false {
    return this.fail(() => `must be ${describe(schema, value)}, got ${quote(value, schema)}`)
  }

  /** Applies a schema to a part of the value. */
  applyTo(node: SchemaNode, part: unknown, name: string | number): boolean {
    const { seen } = this
    if (this.#violations !== null) this.#path[this.#level] = name
    this.seen = null
    this.#level += 1
    const valid = this.apply(node, part)
    this.#level -= 1
    this.seen = seen
    return valid
  }

  /** Whether a schema accepts the value, or a part of it; reports nothing. */
  accepts(node: SchemaNode, value: unknown, isPart = false): boolean {
    const violations = this.#violations
    this.#violations = null
    const valid = isPart ? this.applyTo(node, value, '') : this.apply(node, value)
    this.#violations = violations
    return valid
  }
}
