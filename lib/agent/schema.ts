import type { JsonValue } from '../internal/json.js'

/** The subset of JSON Schema 2020-12 that is checked here and that providers understand. */
export interface JsonSchema {
  readonly type?: 'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean' | 'null'
  readonly title?: string
  readonly description?: string
  readonly properties?: { readonly [name: string]: JsonSchema }
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | JsonSchema
  readonly items?: JsonSchema
  readonly enum?: readonly JsonValue[]
  readonly const?: JsonValue
  readonly default?: JsonValue
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly maxProperties?: number
  readonly anyOf?: readonly JsonSchema[]
  readonly format?: string
  readonly examples?: readonly JsonValue[]
}

/** One way in which a value violates its schema. */
export interface SchemaViolation {
  /** JSON Pointer to the value (RFC 6901); empty for the whole value. */
  readonly pointer: string
  /** What was expected and what came, as a predicate: `must be an integer, got "20"`. */
  readonly detail: string
}
