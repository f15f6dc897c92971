/** Parts of schemas, whose fields the compiler compares with a type's. @module */
import type { JsonSchema, LeftOut } from '../../agent/index.js'

type Optional<T> = { readonly [K in keyof T]-?: undefined extends T[K] ? K : never }[keyof T]

/** The schema of an object with the fields of `T`; `optional` names those that may be absent. */
export function fields<T>(
  properties: { readonly [K in keyof T]-?: JsonSchema },
  ...optional: readonly Optional<T>[]
): JsonSchema {
  const required = Object.keys(properties).filter(
    (name) => !(optional as readonly string[]).includes(name),
  )
  return { type: 'object', properties, required }
}

export const text: JsonSchema = { type: 'string' }
export const flag: JsonSchema = { type: 'boolean' }
export const whole: JsonSchema = { type: 'integer' }
export const count: JsonSchema = { type: 'integer', minimum: 0 }
export const amount: JsonSchema = { type: 'number', minimum: 0 }
export const object: JsonSchema = { type: 'object' }

export const orNull = (schema: JsonSchema): JsonSchema => ({ anyOf: [schema, { type: 'null' }] })
export const listOf = (items: JsonSchema): JsonSchema => ({ type: 'array', items })
export const oneOf = (...values: readonly string[]): JsonSchema => ({
  type: 'string',
  enum: values,
})

/** What is no part of a checkpoint, for one reason. */
export const LEFT_OUT: JsonSchema = fields<LeftOut>({
  reason: oneOf('secret', 'size', 'count', 'kind', 'unreadable', 'budget'),
  count,
  paths: { ...listOf(text), description: 'the first 1000' },
})
