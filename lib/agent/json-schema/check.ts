/**
 * Checks a value against a prepared schema.
 *
 * 1. One pass answers yes or no and stops at the first violation. Only for values that are invalid
 *    a second pass collects what to say about them.
 * 2. Steps, depth and violations are bounded. A check that has reached a bound has given up, and
 *    what was given up never counts as valid, wherever the schema uses the answer.
 *
 * @module
 */
import type { JsonSchema, SchemaViolation } from '../schema.js'
import { Evaluated } from './evaluated.js'
import { fitsNumber, hasType, type SchemaNode } from './node.js'
import { firstTwins, fitsLength, isObject, MAX_VALUE_DEPTH } from './values.js'

/** The check stops at this many violations. */
const MAX_VIOLATIONS = 32
/** Steps before the check gives up: one for each schema that is applied to a value, or more. */
const MAX_STEPS = 200_000
/** Schemas that are being applied at one time, each by the one before. */
const MAX_NESTING = 400

/** How violations are put into words: what `describe.ts` exports. */
export interface Words {
  describe(schema: JsonSchema | boolean, value?: unknown): string
  describeAny(schemas: readonly (JsonSchema | boolean)[]): string
  quote(value: unknown, schema?: JsonSchema): string
  join(pointer: string, name: string): string
  unknownField(name: string, known: readonly string[]): string
}

export class Check {
  /** Null while only the answer counts. */
  #violations: SchemaViolation[] | null
  readonly #words: Words
  #stepsLeft = MAX_STEPS
  #nesting = 0
  #isTooDeep = false

  /** @param reports - whether to collect violations, instead of stopping at the first. */
  constructor(reports: boolean, words: Words) {
    this.#words = words
    this.#violations = reports ? [] : null
  }

  get violations(): readonly SchemaViolation[] {
    return this.#violations ?? []
  }

  /** Why the check could not be finished, as a predicate; null if it was. */
  get problem(): string | null {
    if (this.#isTooDeep) return `is nested more than ${MAX_VALUE_DEPTH} levels deep`
    return this.isTooLarge ? 'is too large to be checked; send less' : null
  }

  get isTooLarge(): boolean {
    return this.#stepsLeft <= 0
  }

  /** Whether the value matches; read {@link problem} as well. */
  matches(root: SchemaNode, value: unknown): boolean {
    return this.#visit(root, value, '', 0, null)
  }

  get #isOver(): boolean {
    return (
      this.#stepsLeft <= 0 ||
      (this.#violations !== null && this.#violations.length >= MAX_VIOLATIONS)
    )
  }

  #report(pointer: string, detail: string): false {
    if (this.#violations !== null && !this.#isOver) this.#violations.push({ pointer, detail })
    return false
  }

  /**
   * Applies a schema to a value.
   *
   * @param level - how deep the value is in the whole value.
   * @param seen - gets what was looked at, if the value matches.
   */
  #visit(
    node: SchemaNode,
    value: unknown,
    pointer: string,
    level: number,
    seen: Evaluated | null,
  ): boolean {
    this.#stepsLeft -= 1
    if (this.#isOver) return false
    if (level > MAX_VALUE_DEPTH || this.#nesting > MAX_NESTING) {
      this.#isTooDeep = true
      return this.#report(pointer, `is nested more than ${MAX_VALUE_DEPTH} levels deep`)
    }
    if (node.isFalse) return this.#report(pointer, 'is not allowed')
    if (!this.#fits(node, value)) {
      if (this.#violations === null) return false
      const { schema } = node
      const expected = this.#words.describe(schema, value)
      return this.#report(pointer, `must be ${expected}, got ${this.#words.quote(value, schema)}`)
    }
    const isList = Array.isArray(value)
    const hasParts = isList
      ? node.hasItemRules
      : node.hasFieldRules && typeof value === 'object' && value !== null
    if (!hasParts && !node.hasInPlace) return true
    this.#nesting += 1
    const valid = this.#apply(node, value, pointer, level, seen, hasParts)
    this.#nesting -= 1
    return valid
  }

  #apply(
    node: SchemaNode,
    value: unknown,
    pointer: string,
    level: number,
    seen: Evaluated | null,
    hasParts: boolean,
  ): boolean {
    const tracks = node.unevaluatedProperties !== null || node.unevaluatedItems !== null
    const own = tracks || seen !== null ? new Evaluated() : null
    let valid = !node.hasInPlace || this.#inPlace(node, value, pointer, level, own)
    if (!valid && this.#violations === null) return false
    if (hasParts) {
      const parts = Array.isArray(value)
        ? this.#items(node, value, pointer, level, own)
        : this.#fields(node, value as Readonly<Record<string, unknown>>, pointer, level, own)
      valid &&= parts
    }
    // What a part that does not match has looked at is unknown.
    if (valid && tracks && own !== null) valid = this.#rest(node, value, pointer, level, own)
    if (valid && own !== null) seen?.add(own)
    return valid
  }

  /** All keywords that concern neither the parts of the value nor apply other schemas. */
  #fits(node: SchemaNode, value: unknown): boolean {
    if (node.types !== -1 && !hasType(node.types, value)) return false
    if (node.const !== null && !this.#isIn(node.const, value)) return false
    if (node.enum !== null && !this.#isIn(node.enum, value)) return false
    switch (typeof value) {
      case 'string':
        return this.#fitsText(node, value)
      case 'number':
        return !node.hasNumberRules || fitsNumber(node, value)
      case 'object':
        break
      default:
        return true
    }
    if (Array.isArray(value)) {
      return value.length >= node.minItems && value.length <= node.maxItems
    }
    if (value === null || (node.minProperties === 0 && node.maxProperties === Infinity)) return true
    const count = Object.keys(value).length
    this.#stepsLeft -= count >> 4
    return count >= node.minProperties && count <= node.maxProperties
  }

  #isIn(choice: NonNullable<SchemaNode['enum']>, value: unknown): boolean {
    this.#stepsLeft -= choice.cost
    return this.#stepsLeft > 0 && choice.has(value)
  }

  #fitsText({ minLength, maxLength, pattern }: SchemaNode, value: string): boolean {
    this.#stepsLeft -= value.length >> 10
    if ((minLength > 0 || maxLength !== Infinity) && !fitsLength(value, minLength, maxLength)) {
      return false
    }
    return pattern === null || this.#hasMatch(pattern, value)
  }

  #hasMatch(pattern: NonNullable<SchemaNode['pattern']>, text: string): boolean {
    this.#stepsLeft -= Math.floor(text.length * pattern.cost / 64)
    return this.#stepsLeft > 0 && pattern.test(text)
  }

  // Keywords that apply other schemas to the same value.

  #inPlace(
    node: SchemaNode,
    value: unknown,
    pointer: string,
    level: number,
    seen: Evaluated | null,
  ): boolean {
    const reports = this.#violations !== null
    let valid = true
    const apply = (part: SchemaNode): boolean => {
      valid = this.#visit(part, value, pointer, level, seen) && valid
      return valid || reports
    }
    if (node.ref !== null && !apply(node.ref)) return false
    for (const part of node.allOf) if (!apply(part)) return false
    if (node.anyOf.length > 0) {
      valid = this.#anyOf(node, value, pointer, level, seen) && valid
      if (!valid && !reports) return false
    }
    if (node.oneOf.length > 0) {
      valid = this.#oneOf(node, value, pointer, level, seen) && valid
      if (!valid && !reports) return false
    }
    if (node.not !== null && this.#isMatch(node.not, value, level, null)) {
      if (!reports) return false
      const unwanted = this.#words.describe(node.not.schema, value)
      this.#report(pointer, `must not be ${unwanted}, got ${this.#words.quote(value)}`)
      valid = false
    }
    if (node.if !== null) {
      const next = this.#isMatch(node.if, value, level, seen) ? node.then : node.else
      if (next !== null && !apply(next)) return false
    }
    if (node.dependentSchemas.length > 0 && isObject(value)) {
      this.#stepsLeft -= node.dependentSchemas.length >> 4
      for (const [name, part] of node.dependentSchemas) {
        if (Object.hasOwn(value, name) && !apply(part)) return false
      }
    }
    return valid && this.#stepsLeft > 0
  }

  /** Whether the value matches, without a report. */
  #isMatch(node: SchemaNode, value: unknown, level: number, seen: Evaluated | null): boolean {
    const reports = this.#violations
    this.#violations = null
    const valid = this.#visit(node, value, '', level, seen)
    this.#violations = reports
    return valid
  }

  #anyOf(
    node: SchemaNode,
    value: unknown,
    pointer: string,
    level: number,
    seen: Evaluated | null,
  ): boolean {
    let valid = false
    for (const branch of node.anyOf) {
      valid = this.#isMatch(branch, value, level, seen) || valid
      // All branches count for what was looked at.
      if (valid && seen === null) return true
    }
    return valid || this.#noBranch(node.anyOf, value, pointer, level)
  }

  #oneOf(
    node: SchemaNode,
    value: unknown,
    pointer: string,
    level: number,
    seen: Evaluated | null,
  ): boolean {
    const matching: SchemaNode[] = []
    for (const branch of node.oneOf) {
      if (this.#isMatch(branch, value, level, seen)) matching.push(branch)
      if (matching.length > 1) {
        if (this.#violations === null) return false
        const both = matching.map(({ schema }) => this.#words.describe(schema, value)).join(' and ')
        return this.#report(pointer, `must match one alternative only, got ${both} at once`)
      }
    }
    return matching.length === 1 || this.#noBranch(node.oneOf, value, pointer, level)
  }

  /** Reports on the branch that was meant, if that can be told. */
  #noBranch(
    branches: readonly SchemaNode[],
    value: unknown,
    pointer: string,
    level: number,
  ): false {
    if (this.#violations === null) return false
    const meant = this.#meant(branches, value, level)
    if (meant !== undefined) {
      this.#visit(meant, value, pointer, level, null)
      return false
    }
    const expected = this.#words.describeAny(branches.map((branch) => target(branch).schema))
    return this.#report(pointer, `must be ${expected}, got ${this.#words.quote(value)}`)
  }

  /** The only branch that has the value's type, or the constants that the value has. */
  #meant(branches: readonly SchemaNode[], value: unknown, level: number): SchemaNode | undefined {
    const ofType = branches.filter((branch) => {
      const { types, isFalse } = target(branch)
      return !isFalse && (types === -1 || hasType(types, value))
    })
    if (ofType.length <= 1 || !isObject(value)) return ofType.length === 1 ? ofType[0] : undefined
    const tagged = ofType.filter((branch) => {
      const parts = [...(target(branch).properties ?? [])]
      const tags = parts.filter(([name, { schema }]) => {
        const isTag = schema.const !== undefined || schema.enum !== undefined
        return isTag && Object.hasOwn(value, name)
      })
      return (
        tags.length > 0 &&
        tags.every(([name, part]) => this.#isMatch(part, value[name], level + 1, null))
      )
    })
    return tagged.length === 1 ? tagged[0] : undefined
  }

  // Keywords about the items of a list.

  #items(
    node: SchemaNode,
    value: readonly unknown[],
    pointer: string,
    level: number,
    seen: Evaluated | null,
  ): boolean {
    const reports = this.#violations !== null
    const { prefixItems, items } = node
    const first = Math.min(prefixItems.length, value.length)
    const end = items === null ? first : value.length
    let valid = true
    for (let i = 0; i < end; i++) {
      const part = i < prefixItems.length ? prefixItems[i]! : items!
      const at = reports ? `${pointer}/${i}` : ''
      if (!this.#visit(part, value[i], at, level + 1, null)) {
        valid = false
        if (!reports || this.#isOver) return false
      }
    }
    if (seen !== null) {
      seen.items = Math.max(seen.items, first)
      seen.allItems ||= items !== null
    }
    if (node.contains !== null) {
      valid = this.#contains(node, node.contains, value, pointer, level, seen) && valid
    }
    if (node.uniqueItems && valid) valid = this.#areUnique(value, pointer)
    return valid
  }

  #areUnique(value: readonly unknown[], pointer: string): boolean {
    const twins = firstTwins(value, (values) => (this.#stepsLeft -= values) > 0)
    if (twins === null) return this.#stepsLeft > 0
    const [one, other] = twins
    const detail = `must not have the same item twice: items ${one} and ${other} are equal`
    return this.#report(pointer, detail)
  }

  #contains(
    { minContains, maxContains, schema }: SchemaNode,
    part: SchemaNode,
    value: readonly unknown[],
    pointer: string,
    level: number,
    seen: Evaluated | null,
  ): boolean {
    let count = 0
    for (let i = 0; i < value.length && this.#stepsLeft > 0; i++) {
      if (!this.#isMatch(part, value[i], level + 1, null)) continue
      count += 1
      seen?.found.add(i)
      if (seen === null && count >= minContains && maxContains === Infinity) return true
    }
    if (count >= minContains && count <= maxContains) return this.#stepsLeft > 0
    if (this.#violations === null) return false
    const least = schema.minContains ?? 1
    const most = maxContains === Infinity ? '' : least === 0 ? '' : ` and at most ${maxContains}`
    const amount = least === 0 ? `at most ${maxContains}` : `at least ${least}${most}`
    const wanted = this.#words.describe(part.schema)
    return this.#report(pointer, `must have ${amount} of these items: ${wanted}; got ${count}`)
  }

  // Keywords about the fields of an object.

  #fields(
    node: SchemaNode,
    value: Readonly<Record<string, unknown>>,
    pointer: string,
    level: number,
    seen: Evaluated | null,
  ): boolean {
    const reports = this.#violations !== null
    let valid = true
    for (const name of node.required) {
      if (Object.hasOwn(value, name)) continue
      valid = this.#missing(name, pointer)
      if (!reports) return false
    }
    this.#stepsLeft -= node.dependentRequired.length >> 4
    for (const [name, needed] of node.dependentRequired) {
      if (!Object.hasOwn(value, name)) continue
      for (const other of needed) {
        if (Object.hasOwn(value, other)) continue
        if (!reports) return false
        valid = this.#report(this.#words.join(pointer, other), `is required beside ${name}`)
      }
    }
    const { properties, patternProperties, additionalProperties, propertyNames } = node
    const needsFields =
      properties !== null || patternProperties.length > 0 || additionalProperties !== null
    if (!needsFields && propertyNames === null) return valid
    for (const name in value) {
      if (!Object.hasOwn(value, name)) continue
      if (this.#isOver) return false
      if (!this.#field(node, name, value[name], pointer, level, seen)) {
        valid = false
        if (!reports) return false
      }
    }
    return valid
  }

  #missing(name: string, pointer: string): false {
    if (this.#violations === null) return false
    return this.#report(this.#words.join(pointer, name), 'is required')
  }

  #field(
    node: SchemaNode,
    name: string,
    value: unknown,
    pointer: string,
    level: number,
    seen: Evaluated | null,
  ): boolean {
    const at = this.#violations === null ? '' : this.#words.join(pointer, name)
    let valid = true
    if (node.propertyNames !== null && !this.#isMatch(node.propertyNames, name, level + 1, null)) {
      if (this.#violations === null) return false
      const expected = this.#words.describe(node.propertyNames.schema, name)
      valid = this.#report(at, `has a name that is not allowed: it must be ${expected}`)
    }
    const part = node.properties?.get(name)
    let known = part !== undefined
    if (part === undefined) this.#stepsLeft -= 1
    else {
      valid = this.#visit(part, value, at, level + 1, null) && valid
    }
    for (const [pattern, ruled] of node.patternProperties) {
      this.#stepsLeft -= 1
      if (!this.#hasMatch(pattern, name)) continue
      known = true
      valid = this.#visit(ruled, value, at, level + 1, null) && valid
    }
    const rest = node.additionalProperties
    if (!known && rest !== null) {
      valid = rest.isFalse
        ? this.#unknown(node, name, at)
        : this.#visit(rest, value, at, level + 1, null) && valid
    }
    if (known || rest !== null) seen?.fields.add(name)
    return valid
  }

  #unknown(node: SchemaNode, name: string, pointer: string): false {
    if (this.#violations === null) return false
    return this.#report(pointer, this.#words.unknownField(name, knownFields(node)))
  }

  /** What no other keyword has looked at. */
  #rest(
    node: SchemaNode,
    value: unknown,
    pointer: string,
    level: number,
    own: Evaluated,
  ): boolean {
    const reports = this.#violations !== null
    let valid = true
    if (Array.isArray(value) && node.unevaluatedItems !== null) {
      for (let i = 0; i < value.length && !this.#isOver; i++) {
        if (own.hasItem(i)) continue
        const at = reports ? `${pointer}/${i}` : ''
        valid = this.#visit(node.unevaluatedItems, value[i], at, level + 1, null) && valid
        if (!valid && !reports) return false
      }
      own.allItems = true
    } else if (isObject(value) && node.unevaluatedProperties !== null && !own.allFields) {
      for (const name of Object.keys(value)) {
        if (this.#isOver) return false
        if (own.fields.has(name)) continue
        const at = reports ? this.#words.join(pointer, name) : ''
        const fits = node.unevaluatedProperties.isFalse
          ? this.#unknown(node, name, at)
          : this.#visit(node.unevaluatedProperties, value[name], at, level + 1, null)
        valid = fits && valid
        if (!valid && !reports) return false
      }
      own.allFields = true
    }
    return valid && this.#stepsLeft > 0
  }
}

/** What a schema that is only a reference stands for. */
function target(node: SchemaNode): SchemaNode {
  let at = node
  while (at.ref !== null && at.types === -1 && at.properties === null) at = at.ref
  return at
}

/** Names of fields that the schema, and those that it applies to the same object, know. */
function knownFields(node: SchemaNode): readonly string[] {
  const names = new Set<string>()
  const visited = new Set<SchemaNode>()
  const collect = (one: SchemaNode): void => {
    if (visited.has(one) || visited.size > 100) return
    visited.add(one)
    for (const name of one.properties?.keys() ?? []) names.add(name)
    if (one.hasInPlace) one.inPlace().forEach(collect)
  }
  collect(node)
  return [...names]
}
