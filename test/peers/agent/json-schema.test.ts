/**
 * Random schemas and values: where two other validators agree, so does ours. They do not always
 * agree with each other, mostly on unevaluated items.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Validator } from '@cfworker/json-schema'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { checkSchema, type JsonSchema } from 'runwright/agent'
import { Random } from '../../helpers/random.js'

const CASES = Number(process.env['RUNWRIGHT_SCHEMAS'] ?? 120)
const SEED = Number(process.env['RUNWRIGHT_SEED'] ?? Date.now() % 1_000_000)
const NAMES = ['a', 'b', 'c'] as const
const LEAVES: readonly JsonSchemaOrFlag[] = [
  true, false, {}, { type: 'string' }, { type: 'integer' }, { const: 1 }, { enum: ['a', 1] },
  { minimum: 1 }, { type: 'object' }, { type: 'array' },
]
const TYPES: readonly NonNullable<JsonSchema['type']>[] = [
  'string', 'number', 'integer', 'object', 'array', 'boolean', 'null', ['string', 'null'],
  ['object', 'array'],
]

type JsonSchemaOrFlag = JsonSchema | boolean

function someNames(random: Random): string[] {
  return NAMES.filter(() => random.chance(0.5))
}

function randomValue(random: Random, depth: number): unknown {
  switch (random.integer(0, depth <= 0 ? 2 : 4)) {
    case 0:
      return random.pick([null, true, false])
    case 1:
      return random.pick([-1, 0, 1, 2, 3, 1.5, 4])
    case 2:
      return random.pick(['', 'a', 'ab', 'abc'])
    case 3:
      return Array.from({ length: random.integer(0, 3) }, () => randomValue(random, depth - 1))
    default:
      return Object.fromEntries(
        someNames(random).map((name) => [name, randomValue(random, depth - 1)]),
      )
  }
}

/** One or two keywords of each kind, of which some concern other kinds of values. */
function randomKeywords(random: Random, depth: number): JsonSchema {
  const part = (): JsonSchemaOrFlag => randomSchema(random, depth - 1)
  const parts = (): JsonSchemaOrFlag[] => [part(), part()]
  const count = (): number => random.integer(0, 2)
  return random.pick<() => object>([
    () => ({ type: random.pick(TYPES) }),
    () => ({ properties: Object.fromEntries(someNames(random).map((name) => [name, part()])) }),
    () => ({ required: someNames(random) }),
    () => ({ additionalProperties: part() }),
    () => ({ patternProperties: { '^a': part() } }),
    () => ({ propertyNames: random.pick([{ maxLength: 1 }, { enum: ['a'] }]) }),
    () => ({ items: part() }),
    () => ({ prefixItems: parts().slice(random.integer(0, 1)) }),
    () => ({ contains: part(), minContains: count() }),
    () => ({ contains: part(), maxContains: count() }),
    () => ({ uniqueItems: true }),
    () => ({ minItems: count() }),
    () => ({ maxItems: count() }),
    () => ({ allOf: parts() }),
    () => ({ anyOf: parts() }),
    () => ({ oneOf: parts() }),
    () => ({ not: part() }),
    () => ({ if: part(), then: part() }),
    () => ({ if: part(), else: part() }),
    () => ({ dependentSchemas: { a: part() } }),
    () => ({ dependentRequired: { a: ['b'] } }),
    () => ({ unevaluatedProperties: part() }),
    () => ({ unevaluatedItems: part() }),
    () => ({ minProperties: count() }),
    () => ({ maxProperties: count() }),
    () => ({ multipleOf: random.pick([1, 2, 0.5]) }),
    () => ({ exclusiveMinimum: count() }),
    () => ({ $ref: '#/$defs/x' }),
  ])()
}

function randomSchema(random: Random, depth: number): JsonSchemaOrFlag {
  if (depth <= 0) return random.pick(LEAVES)
  const keywords = Array.from({ length: random.integer(1, 3) }, () => randomKeywords(random, depth))
  return Object.assign({}, ...keywords) as JsonSchema
}

/** Null when a validator cannot use the schema, or the value with it. */
function opinionsOf(schema: JsonSchema): ((value: unknown) => boolean | null) | null {
  try {
    const ajv = new Ajv2020({ strict: false, logger: false, validateFormats: false })
    const first = ajv.compile(schema)
    const second = new Validator(schema as object, '2020-12')
    return (value) => {
      try {
        const [one, other] = [first(value), second.validate(value).valid]
        return one === other ? one : null
      } catch {
        return null
      }
    }
  } catch {
    return null
  }
}

test(`where two validators agree on a random schema, so does ours (seed ${SEED})`, () => {
  const random = new Random(SEED)
  let agreed = 0
  let valid = 0
  for (let n = 0; n < CASES; n++) {
    const $defs = { x: random.pick(LEAVES) }
    const schema: JsonSchema = { ...randomKeywords(random, 3), ...randomKeywords(random, 3), $defs }
    const opinionOf = opinionsOf(schema)
    if (opinionOf === null) continue
    for (let i = 0; i < 6; i++) {
      const value = randomValue(random, 3)
      const opinion: boolean | null = opinionOf(value)
      if (opinion === null) continue
      agreed += 1
      if (opinion) valid += 1
      const ours: boolean = checkSchema(schema, value).length === 0
      assert.equal(ours, opinion, `${JSON.stringify(schema)} of ${JSON.stringify(value)}`)
    }
  }
  assert.ok(agreed > 4 * CASES, `they agreed on ${agreed}`)
  assert.ok(valid > agreed / 10 && valid < (agreed * 9) / 10, `${valid} of ${agreed} were valid`)
})
