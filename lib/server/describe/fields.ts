/** Parts of schemas, whose fields the compiler compares with a type's. @module */
import type {
  Assurance,
  ChangeCounts,
  CheckpointReason,
  JsonSchema,
  LeftOut,
  LeftOutReason,
} from '../../agent/index.js'

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

/** One of a union's members; the compiler checks that none is missing. */
export function memberOf<T extends string>(members: Readonly<Record<T, true>>): JsonSchema {
  return oneOf(...Object.keys(members))
}

export const orNull = (schema: JsonSchema): JsonSchema => ({ anyOf: [schema, { type: 'null' }] })
export const listOf = (items: JsonSchema): JsonSchema => ({ type: 'array', items })
export const oneOf = (...values: readonly string[]): JsonSchema => ({
  type: 'string',
  enum: values,
})

/** When a checkpoint was made. */
export const CHECKPOINT_REASON: JsonSchema = memberOf<CheckpointReason>({
  start: true,
  iteration: true,
  gate: true,
  restore: true,
  apply: true,
  end: true,
  shutdown: true,
  delegate: true,
  merge: true,
  attempt: true,
})

/** What is no part of a checkpoint, for one reason. */
export const LEFT_OUT: JsonSchema = fields<LeftOut>({
  reason: memberOf<LeftOutReason>({
    secret: true,
    size: true,
    count: true,
    kind: true,
    unreadable: true,
    budget: true,
    passed_over: true,
    hard_link: true,
  }),
  count,
  paths: { ...listOf(text), description: 'the first 1000; of what is passed over, 100' },
})

/** How much changed. */
export const CHANGE_COUNTS: JsonSchema = fields<ChangeCounts>(
  {
    files: count,
    additions: count,
    deletions: count,
    uncounted: {
      ...count,
      description: 'files whose lines do not count: binary or too large; absent for none',
    },
  },
  'uncounted',
)

/** What a verdict rests on. */
export const ASSURANCE: JsonSchema = fields<Assurance>({
  by: memberOf<Assurance['by']>({ tests: true, exit_code: true, schema: true, judge: true }),
  sealed: flag,
  canaries: flag,
  holdout: flag,
  own_tests: flag,
}, 'own_tests')
