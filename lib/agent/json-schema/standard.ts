/**
 * Schemas of other libraries: the JSON Schema that the library writes, and what it says of values.
 *
 * @module
 */
import { describeError } from '../../internal/errors.js'
import { describeValue } from '../../internal/options.js'
import { clip, redacted } from '../output.js'
import type { JsonSchema, StandardIssue, StandardSchema } from '../schema.js'

/** Characters of what a library says about one mistake: its messages may repeat the value. */
const MAX_MESSAGE = 300
/** Keys of a path that a message shows. */
const MAX_KEYS = 16

/** What to do about a schema that cannot be written, by the library that it is of. */
const REMEDIES: Readonly<Record<string, string>> = {
  arktype: 'use arktype 2.1.28 or later',
  valibot: 'pass toStandardJsonSchema(schema) of @valibot/to-json-schema',
  zod: 'use zod 4.2 or later, and with zod/mini pass z.toJSONSchema(schema)',
}

/** Whether a value is a schema of a library. That of arktype is a function. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function'
  return isObject && '~standard' in value
}

/**
 * The JSON Schema (draft 2020-12) of a schema of zod, valibot, arktype or any other library with
 * Standard JSON Schema. A JSON Schema is returned as it is.
 *
 * @param side - `input`: what the library accepts; `output`: what it makes of that by conversions
 * and defaults. @defaultValue 'input'
 * @throws TypeError that says what to do, for a schema that cannot be written as JSON Schema.
 *
 * @example
 * ```ts
 * toJsonSchema(z.object({ city: z.string() }))
 * // { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], … }
 * ```
 */
export function toJsonSchema(
  schema: StandardSchema | JsonSchema,
  side: 'input' | 'output' = 'input',
): JsonSchema {
  return writeSchema(schema, side, 'a schema')
}

/** {@link toJsonSchema}, for a schema that messages call `name`. */
export function writeSchema(
  schema: StandardSchema | JsonSchema,
  side: 'input' | 'output',
  name: string,
): JsonSchema {
  if (side !== 'input' && side !== 'output') {
    throw new TypeError(`side must be input or output, got ${describeValue(side)}`)
  }
  if (!isStandardSchema(schema)) {
    if (typeof schema === 'object' && schema !== null) return schema
    throw new TypeError(`${name} must be a schema object, got ${describeValue(schema)}`)
  }
  const { vendor, jsonSchema } = standardOf(schema, name)
  let written: unknown
  try {
    // As JSON, since what libraries return may have more in it, and may be shared.
    written = JSON.parse(JSON.stringify(jsonSchema[side]({ target: 'draft-2020-12' })))
  } catch (cause) {
    const why = describeError(cause)
    const problem = `cannot be written as JSON Schema by ${vendor}: ${why}`
    throw new TypeError(`${name} ${problem}; use types that JSON has`, { cause })
  }
  if (typeof written === 'object' && written !== null) return written
  throw new TypeError(`${name} must be an object as JSON Schema, got ${describeValue(written)}`)
}

/** What the library says of its schema. @throws TypeError if that is not enough to use it. */
function standardOf(schema: StandardSchema, name: string): StandardSchema['~standard'] {
  const standard: Partial<StandardSchema['~standard']> | null = schema['~standard']
  const vendor = String(standard?.vendor ?? 'an unknown library')
  if (standard?.version !== 1 || typeof standard.validate !== 'function') {
    throw new TypeError(`${name} must be a Standard Schema of version 1; that of ${vendor} is none`)
  }
  if (typeof standard.jsonSchema?.input === 'function') return schema['~standard']
  const remedy = Object.hasOwn(REMEDIES, vendor)
    ? REMEDIES[vendor]
    : "put { input, output }, functions that return it, as jsonSchema into its '~standard'"
  throw new TypeError(
    `${name} of ${vendor} validates, but cannot write itself as JSON Schema, which models read: ` +
      remedy,
  )
}

/** One mistake in the words of the library, for people and models, without secrets. */
export function describeIssue({ message, path = [] }: StandardIssue): string {
  const keys = path.slice(0, MAX_KEYS).map((step) => {
    return String(typeof step === 'object' ? step.key : step)
  })
  const field = keys.length === 0 ? 'the arguments' : keys.join('/')
  const said = String(message).replaceAll(/\s+/g, ' ').trim()
  return `${clip(redacted(field), MAX_MESSAGE)}: ${clip(redacted(said), MAX_MESSAGE)}`
}
