import type { JsonValue } from '../internal/json.js'

/** The types of JSON values that a schema can name. */
export type JsonSchemaType =
  'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean' | 'null'

/**
 * A JSON Schema of draft 2020-12: all keywords of its validation, applicator and unevaluated
 * vocabularies, and references within the document. Not supported: `$dynamicRef`, references to
 * other documents, and vocabularies of one's own.
 */
export interface JsonSchema {
  readonly $id?: string
  readonly $anchor?: string
  /** `#/$defs/name`, `#anchor`, or the `$id` of a part of the same document. */
  readonly $ref?: string
  readonly $defs?: { readonly [name: string]: JsonSchema | boolean }
  readonly $comment?: string
  readonly type?: JsonSchemaType | readonly JsonSchemaType[]
  readonly title?: string
  readonly description?: string
  readonly default?: JsonValue
  readonly examples?: readonly JsonValue[]
  readonly deprecated?: boolean
  readonly readOnly?: boolean
  readonly writeOnly?: boolean
  /** Says what a string is for; not checked. */
  readonly format?: string
  readonly contentEncoding?: string
  readonly contentMediaType?: string
  readonly contentSchema?: JsonSchema | boolean
  readonly enum?: readonly JsonValue[]
  readonly const?: JsonValue
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly multipleOf?: number
  /** Lengths count code points. */
  readonly minLength?: number
  readonly maxLength?: number
  /** A regular expression of ECMAScript, flag `u`, that some part of the string matches. */
  readonly pattern?: string
  readonly prefixItems?: readonly (JsonSchema | boolean)[]
  readonly items?: JsonSchema | boolean
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
  readonly contains?: JsonSchema | boolean
  readonly minContains?: number
  readonly maxContains?: number
  readonly unevaluatedItems?: JsonSchema | boolean
  readonly properties?: { readonly [name: string]: JsonSchema | boolean }
  readonly patternProperties?: { readonly [pattern: string]: JsonSchema | boolean }
  readonly additionalProperties?: JsonSchema | boolean
  readonly propertyNames?: JsonSchema | boolean
  readonly required?: readonly string[]
  readonly minProperties?: number
  readonly maxProperties?: number
  readonly dependentRequired?: { readonly [name: string]: readonly string[] }
  readonly dependentSchemas?: { readonly [name: string]: JsonSchema | boolean }
  readonly unevaluatedProperties?: JsonSchema | boolean
  readonly allOf?: readonly (JsonSchema | boolean)[]
  readonly anyOf?: readonly (JsonSchema | boolean)[]
  readonly oneOf?: readonly (JsonSchema | boolean)[]
  readonly not?: JsonSchema | boolean
  readonly if?: JsonSchema | boolean
  readonly then?: JsonSchema | boolean
  readonly else?: JsonSchema | boolean
}

/**
 * A schema of a library such as zod, valibot or arktype: what Standard Schema and Standard JSON
 * Schema, both version 1, say that it has (https://standardschema.dev).
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    /** The name of the library. */
    readonly vendor: string
    /** For the compiler only: what a value is before and after it was validated. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
    /** Returns the value, possibly converted and completed, or what is wrong with it. */
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    /** Writes the schema as JSON Schema; throws for what JSON Schema cannot say. */
    readonly jsonSchema: {
      /** Of the values that it accepts. */
      readonly input: (options: { readonly target: 'draft-2020-12' }) => object
      /** Of the values that it returns. */
      readonly output: (options: { readonly target: 'draft-2020-12' }) => object
    }
  }
}

/** What a {@link StandardSchema} says of a value; without `issues` it is valid. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

/** One way in which a value is invalid, in the words of its library. */
export interface StandardIssue {
  readonly message: string
  /** The keys that lead to it; none for the whole value. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** One way in which a value violates its schema. */
export interface SchemaViolation {
  /** JSON Pointer to the value (RFC 6901); empty for the whole value. */
  readonly pointer: string
  /** What was expected and what came, as a predicate: `must be an integer, got "20"`. */
  readonly detail: string
}
