/**
 * A JSON Schema checker for requests, tool arguments and configuration.
 *
 * 1. It never throws, whatever the value is: depth, work and the number of violations are bounded.
 * 2. Nothing is converted and no default is filled in: `"20"` is not an integer.
 * 3. A violation says what was expected and what came, for people, without secrets.
 *
 * @module
 */
import { checkObject } from '../internal/options.js'
import type { JsonValue } from '../internal/json.js'
import { nearestName } from '../internal/nearest-name.js'
import { redacted } from './output.js'
import type { JsonSchema, SchemaViolation } from './schema.js'

/** The check stops at this many violations. */
const MAX_VIOLATIONS = 32
/** Deeper nesting is a violation. */
const MAX_DEPTH = 64
/** Visits before the check gives up: nested `anyOf` can require any amount of work. */
const MAX_STEPS = 200_000
/** Characters of a name or string that a message quotes. */
const MAX_QUOTED = 80

/**
 * Checks a value against a schema and returns up to 32 violations; an empty list means that the
 * value is valid. Lengths count code points. `format` is an annotation, as in JSON Schema itself,
 * and a pattern that JavaScript cannot compile is not checked. No value makes it throw.
 *
 * @example
 * ```ts
 * checkSchema({ type: 'integer', minimum: 1, maximum: 1000 }, '20')
 * // [{ pointer: '', detail: 'must be an integer from 1 to 1000, got "20"' }]
 * ```
 */
export function checkSchema(schema: JsonSchema, value: unknown): readonly SchemaViolation[] {
  checkObject('a schema', schema)
  const work: Work = { stepsLeft: MAX_STEPS }
  const check = new Check(work)
  check.visit(schema, value, '', 0)
  if (work.stepsLeft > 0) return check.violations
  // What was not visited must not count as valid.
  const unfinished = { pointer: '', detail: 'is too large to be checked; send less' }
  return [unfinished, ...check.violations].slice(0, MAX_VIOLATIONS)
}

/** The budget that all alternatives of one check share. */
interface Work {
  stepsLeft: number
}

class Check {
  readonly violations: SchemaViolation[] = []
  readonly #work: Work

  constructor(work: Work) {
    this.#work = work
  }

  get #over(): boolean {
    return this.violations.length >= MAX_VIOLATIONS || this.#work.stepsLeft <= 0
  }

  #report(pointer: string, detail: string): void {
    if (!this.#over) this.violations.push({ pointer, detail })
  }

  visit(schema: JsonSchema, value: unknown, pointer: string, depth: number): void {
    if (this.#over) return
    this.#work.stepsLeft -= 1
    if (depth > MAX_DEPTH) {
      this.#report(pointer, `is nested more than ${MAX_DEPTH} levels deep`)
      return
    }
    if (!hasType(schema, value) || !fitsScalar(schema, value)) {
      this.#report(pointer, `must be ${describe(schema)}, got ${quote(value, schema)}`)
      return
    }
    if (schema.anyOf !== undefined) this.#anyOf(schema.anyOf, value, pointer, depth)
    if (Array.isArray(value)) this.#items(schema, value, pointer, depth)
    else if (isObject(value)) this.#properties(schema, value, pointer, depth)
  }

  #items(schema: JsonSchema, value: readonly unknown[], pointer: string, depth: number): void {
    if (schema.items === undefined) return
    for (let i = 0; i < value.length && !this.#over; i++) {
      this.visit(schema.items, value[i], `${pointer}/${i}`, depth + 1)
    }
  }

  #properties(
    schema: JsonSchema,
    value: Readonly<Record<string, unknown>>,
    pointer: string,
    depth: number,
  ): void {
    for (const name of schema.required ?? []) {
      if (!Object.hasOwn(value, name)) this.#report(join(pointer, name), 'is required')
    }
    const known = schema.properties ?? {}
    const rest = schema.additionalProperties ?? true
    for (const name in value) {
      if (this.#over) return
      if (!Object.hasOwn(value, name)) continue
      const at = join(pointer, name)
      const property = Object.hasOwn(known, name) ? known[name] : undefined
      if (property !== undefined) this.visit(property, value[name], at, depth + 1)
      else if (rest === false) this.#report(at, unknownField(name, Object.keys(known)))
      else if (rest !== true) this.visit(rest, value[name], at, depth + 1)
    }
  }

  #anyOf(
    branches: readonly JsonSchema[],
    value: unknown,
    pointer: string,
    depth: number,
  ): void {
    const ofSameType: SchemaViolation[][] = []
    for (const branch of branches) {
      const attempt = new Check(this.#work)
      attempt.visit(branch, value, pointer, depth + 1)
      if (attempt.violations.length === 0) return
      if (hasType(branch, value)) ofSameType.push(attempt.violations)
    }
    // If exactly one branch has the value's type, that branch was meant.
    if (ofSameType.length === 1) {
      for (const { pointer: at, detail } of ofSameType[0] ?? []) this.#report(at, detail)
    } else {
      this.#report(pointer, `must be ${describeAny(branches)}, got ${quote(value)}`)
    }
  }
}

/** Can JavaScript compile this `pattern`? */
export function isPattern(pattern: string): boolean {
  return compile(pattern) !== null
}

const patterns = new WeakMap<JsonSchema, RegExp | null>()

/** The compiled pattern of a schema, cached per schema object. */
function patternOf(schema: JsonSchema): RegExp | null {
  if (schema.pattern === undefined) return null
  let pattern = patterns.get(schema)
  if (pattern === undefined) {
    pattern = compile(schema.pattern)
    patterns.set(schema, pattern)
  }
  return pattern
}

function compile(pattern: string): RegExp | null {
  try {
    return new RegExp(pattern, 'u')
  } catch {
    return null
  }
}

function hasType(schema: JsonSchema, value: unknown): boolean {
  // Schemas of MCP servers may list several types.
  const type: unknown = schema.type
  if (type === undefined) return true
  return Array.isArray(type) ? type.some((one) => isOfType(one, value)) : isOfType(type, value)
}

function isOfType(type: unknown, value: unknown): boolean {
  switch (type) {
    case 'object':
      return isObject(value)
    case 'array':
      return Array.isArray(value)
    case 'integer':
      return Number.isInteger(value)
    case 'number':
      return Number.isFinite(value)
    case 'null':
      return value === null
    default:
      return typeof value === type
  }
}

/** All keywords that do not concern the parts of the value. */
function fitsScalar(schema: JsonSchema, value: unknown): boolean {
  if (schema.const !== undefined && !sameJson(schema.const, value)) return false
  if (schema.enum !== undefined && !schema.enum.some((one) => sameJson(one, value))) return false
  if (typeof value === 'number') {
    return value >= (schema.minimum ?? -Infinity) && value <= (schema.maximum ?? Infinity)
  }
  if (typeof value === 'string') {
    return fitsLength(schema, value) && patternOf(schema)?.test(value) !== false
  }
  if (Array.isArray(value)) {
    return value.length >= (schema.minItems ?? 0) && value.length <= (schema.maxItems ?? Infinity)
  }
  if (isObject(value) && schema.maxProperties !== undefined) {
    return Object.keys(value).length <= schema.maxProperties
  }
  return true
}

/** Lengths count code points; counting is avoided where UTF-16 units decide. */
function fitsLength({ minLength = 0, maxLength = Infinity }: JsonSchema, value: string): boolean {
  // A string has at least half as many code points as UTF-16 units, and at most as many.
  if (value.length < minLength || value.length > maxLength * 2) return false
  if (value.length <= maxLength && value.length >= minLength * 2) return true
  let length = 0
  for (const _ of value) length += 1
  return length >= minLength && length <= maxLength
}

/** Equality of JSON values; the work is bounded by the size of `expected`. */
function sameJson(expected: JsonValue, value: unknown): boolean {
  if (expected === null || typeof expected !== 'object') return expected === value
  if (isList(expected)) {
    if (!Array.isArray(value) || value.length !== expected.length) return false
    return expected.every((one, i) => sameJson(one, value[i]))
  }
  if (!isObject(value)) return false
  const names = Object.keys(expected)
  if (Object.keys(value).length !== names.length) return false
  return names.every((name) => {
    const one = expected[name]
    return one !== undefined && Object.hasOwn(value, name) && sameJson(one, value[name])
  })
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What a schema expects, as a noun: `an integer from 1 to 1000`. */
function describe(schema: JsonSchema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) {
    const shown = schema.enum.slice(0, 20).map((one) => JSON.stringify(one))
    if (shown.length < schema.enum.length) shown.push('…')
    return shown.length === 1 ? (shown[0] ?? '') : `one of ${shown.join(', ')}`
  }
  const type: unknown = schema.type
  if (Array.isArray(type)) {
    return type.map((one) => describe({ ...schema, type: one as never })).join(' or ')
  }
  switch (schema.type) {
    case 'integer':
      return `an integer${range(schema.minimum, schema.maximum, '')}`
    case 'number':
      return `a number${range(schema.minimum, schema.maximum, '')}`
    case 'string': {
      const length = range(schema.minLength, schema.maxLength, ' characters')
      const pattern = patternOf(schema) === null ? '' : ` that matches ${schema.pattern}`
      return `a string${length}${pattern}`
    }
    case 'array':
      return `an array${range(schema.minItems, schema.maxItems, ' items')}`
    case 'object': {
      const { maxProperties } = schema
      return `an object${maxProperties === undefined ? '' : ` of at most ${maxProperties} fields`}`
    }
    case 'boolean':
      return 'true or false'
    case 'null':
      return 'null'
    default:
      return 'another value'
  }
}

function describeAny(branches: readonly JsonSchema[]): string {
  return branches.slice(0, 10).map(describe).join(', or ')
}

function range(least: number | undefined, most: number | undefined, unit: string): string {
  if (least === undefined && most === undefined) return ''
  if (unit === '') {
    if (least === undefined) return ` of at most ${most}`
    return most === undefined ? ` of at least ${least}` : ` from ${least} to ${most}`
  }
  if (least === undefined || least === 0) {
    return most === undefined ? '' : ` of at most ${most}${unit}`
  }
  if (most === undefined) return ` of at least ${least}${unit}`
  return ` of ${least === most ? '' : `${least} to `}${most}${unit}`
}

/** The value, short enough for a message. */
function quote(value: unknown, schema: JsonSchema = {}): string {
  if (typeof value === 'string') {
    if (schema.type === 'string' && !fitsLength(schema, value)) {
      return value === '' ? 'an empty string' : `one of ${codePoints(value)}`
    }
    // A part of it could be a part of a secret, which nothing would recognize.
    if (value.length > MAX_QUOTED) return `a text of ${value.length}`
    return JSON.stringify(redacted(value))
  }
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (value === null) return 'null'
  if (isObject(value)) return schema.maxProperties === undefined ? 'an object' : 'more'
  return value === undefined ? 'nothing' : `a ${typeof value}`
}

function codePoints(value: string): number {
  let length = 0
  for (const _ of value) length += 1
  return length
}

/** RFC 6901, section 3. */
function join(pointer: string, name: string): string {
  const shown = name.length > MAX_QUOTED ? '…' : redacted(name)
  return `${pointer}/${shown.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

function unknownField(name: string, known: readonly string[]): string {
  const meant = nearestName(name, known)
  return `is not a known field${meant === undefined ? '' : `; did you mean ${meant}?`}`
}
