/**
 * What a schema expects and what came, in words for people and models, without secrets.
 *
 * @module
 */
import { nearestName } from '../../internal/text.js'
import { redactor } from '../redaction/redactor.js'
import type { JsonSchema } from '../schema.js'
import { codePoints, fitsLength, isObject } from './values.js'

/** Characters of a name or string that a message quotes. */
const MAX_QUOTED = 80
/** Alternatives that a message lists. */
const MAX_LISTED = 10

/** What a schema expects, as a noun: `an integer from 1 to 1000`. */
export function describe(part: JsonSchema | boolean, value?: unknown): string {
  if (typeof part === 'boolean') return part ? 'any value' : 'no value'
  const schema = part
  if (schema.const !== undefined) return quoteJson(schema.const)
  if (schema.enum !== undefined) {
    const shown = schema.enum.slice(0, 20).map(quoteJson)
    if (shown.length < schema.enum.length) shown.push('…')
    return shown.length === 1 ? (shown[0] ?? '') : `one of ${shown.join(', ')}`
  }
  const type = schema.type ?? typeFor(schema, value)
  if (typeof type !== 'string' && type !== undefined) {
    return type.map((one) => describe({ ...schema, type: one })).join(' or ')
  }
  switch (type) {
    case 'integer':
      return `an integer${range(schema.minimum, schema.maximum, '')}${numberRules(schema)}`
    case 'number':
      return `a number${range(schema.minimum, schema.maximum, '')}${numberRules(schema)}`
    case 'string': {
      const length = range(schema.minLength, schema.maxLength, ' characters')
      const pattern = schema.pattern === undefined ? '' : ` that matches ${schema.pattern}`
      return `a string${length}${pattern}`
    }
    case 'array':
      return `an array${range(schema.minItems, schema.maxItems, ' items')}`
    case 'object':
      return `an object${range(schema.minProperties, schema.maxProperties, ' fields')}`
    case 'boolean':
      return 'true or false'
    case 'null':
      return 'null'
    default:
      return schema.title ?? 'another value'
  }
}

/** The type that the rules of a schema without `type` are about, if the value has it. */
function typeFor(schema: JsonSchema, value: unknown): JsonSchema['type'] {
  const has = (...keywords: (keyof JsonSchema)[]): boolean =>
    keywords.some((keyword) => schema[keyword] !== undefined)
  if (typeof value === 'number') {
    const rules = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'] as const
    return has(...rules, 'multipleOf') ? 'number' : undefined
  }
  if (typeof value === 'string') {
    return has('minLength', 'maxLength', 'pattern') ? 'string' : undefined
  }
  if (Array.isArray(value)) return has('minItems', 'maxItems') ? 'array' : undefined
  if (isObject(value)) return has('minProperties', 'maxProperties') ? 'object' : undefined
  return undefined
}

/** Names the alternatives; objects by the fields that tell them apart. */
export function describeAny(branches: readonly (JsonSchema | boolean)[]): string {
  return branches.slice(0, MAX_LISTED).map(describeBranch).join(', or ')
}

function describeBranch(branch: JsonSchema | boolean): string {
  if (typeof branch === 'boolean') return describe(branch)
  const { type, required = [], properties = {} } = branch
  if ((type !== undefined && type !== 'object') || branch.const !== undefined) {
    return describe(branch)
  }
  if (branch.enum !== undefined || required.length === 0) return describe(branch)
  const shown = required.slice(0, MAX_LISTED).map((name) => {
    const part = Object.hasOwn(properties, name) ? properties[name] : undefined
    const only = typeof part === 'object' ? part.const : undefined
    return only === undefined ? clipped(name) : `${clipped(name)} = ${quoteJson(only)}`
  })
  return `an object with ${shown.join(', ')}`
}

function quoteJson(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > MAX_QUOTED * 4 ? `${text.slice(0, MAX_QUOTED * 4)}…` : text
}

function clipped(name: string): string {
  return name.length > MAX_QUOTED ? '…' : name
}

/** What bounds alone do not say: `, more than 0 and a multiple of 5`. */
function numberRules(schema: JsonSchema): string {
  const { exclusiveMinimum: above, exclusiveMaximum: below, multipleOf: step } = schema
  const rules = [
    ...(above === undefined ? [] : [`more than ${above}`]),
    ...(below === undefined ? [] : [`less than ${below}`]),
    ...(step === undefined ? [] : [`a multiple of ${step}`]),
  ]
  if (rules.length === 0) return ''
  const list = rules.join(' and ')
  return schema.minimum === undefined && schema.maximum === undefined
    ? ` that is ${list}`
    : `, ${list}`
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
export function quote(value: unknown, schema: JsonSchema = {}): string {
  if (typeof value === 'string') {
    const { type, minLength = 0, maxLength = Infinity } = schema
    if (type === 'string' && !fitsLength(value, minLength, maxLength)) {
      return value === '' ? 'an empty string' : `one of ${codePoints(value)}`
    }
    // A part of it could be a part of a secret, which nothing would recognize.
    if (value.length > MAX_QUOTED) return `a text of ${value.length}`
    return JSON.stringify(redactor.text(value))
  }
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (value === null) return 'null'
  if (isObject(value)) {
    const { minProperties, maxProperties } = schema
    if (minProperties === undefined && maxProperties === undefined) return 'an object'
    const count = Object.keys(value).length
    return count > (maxProperties ?? Infinity) ? 'more' : `one of ${count}`
  }
  return value === undefined ? 'nothing' : `a ${typeof value}`
}

/** RFC 6901, section 3. */
export function join(pointer: string, name: string): string {
  const shown = name.length > MAX_QUOTED ? '…' : redactor.text(name)
  return `${pointer}/${shown.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

export function unknownField(name: string, known: readonly string[]): string {
  const meant = nearestName(name, known)
  return `is not a known field${meant === undefined ? '' : `; did you mean ${meant}?`}`
}
