import { checkOptions, describeValue, type OptionKinds } from '../../internal/options.js'
import type { JsonObject } from '../../internal/json.js'
import { argumentsProblem, checkArguments, prepareSchema } from '../check-schema.js'
import { compileSchema } from '../json-schema/compile.js'
import { SCHEMA_OPTIONS } from '../json-schema/keywords.js'
import { describeIssue, isStandardSchema, writeSchema } from '../json-schema/standard.js'
import type { JsonSchema, StandardSchema } from '../schema.js'
import type { Tool, ToolContext, ToolEffect, ToolOutput } from '../tool.js'

/**
 * The type of the values that a schema accepts, as far as TypeScript can express it; what a schema
 * says by `$ref`, `oneOf`, `allOf` or conditions is `unknown`.
 */
export type SchemaValue<S> = S extends { readonly const: infer C }
  ? C
  : S extends { readonly enum: readonly (infer E)[] }
    ? E
    : S extends { readonly anyOf: readonly (infer A)[] }
      ? SchemaValue<A>
      : S extends { readonly oneOf: readonly (infer A)[]; readonly properties?: undefined }
        ? SchemaValue<A>
        : S extends { readonly type: readonly (infer T)[] }
          ? TypedValue<S, T>
          : S extends { readonly type: infer T }
            ? TypedValue<S, T>
            : unknown

/** The value of one type that a schema names; a union of types is taken apart. */
export type TypedValue<S, T> = T extends 'string'
  ? string
  : T extends 'number' | 'integer'
    ? number
    : T extends 'boolean'
      ? boolean
      : T extends 'null'
        ? null
        : T extends 'array'
          ? S extends { readonly items: infer I }
            ? readonly SchemaValue<I>[]
            : unknown
          : T extends 'object'
            ? S extends { readonly properties: infer P }
              ? ObjectValue<S, P>
              : unknown
            : unknown

/** The fields of an object schema, of which the required ones are always there. */
export type ObjectValue<S, P> = {
  readonly [K in keyof P as K extends RequiredName<S> ? K : never]: SchemaValue<P[K]>
} & {
  readonly [K in keyof P as K extends RequiredName<S> ? never : K]?: SchemaValue<P[K]>
}

/** The names of the fields that an object schema requires. */
export type RequiredName<S> = S extends { readonly required: readonly (infer R)[] } ? R : never

/** A JSON Schema, or one of a library that can write it: not one that only has fields like it. */
export type ToolSchema = (JsonSchema & { readonly '~standard'?: never }) | StandardSchema

/**
 * The arguments that `execute` gets: what a library makes of them, with its conversions and
 * defaults, or the values that a JSON Schema accepts.
 */
export type ToolArguments<S> = S extends StandardSchema<infer _, infer Output>
  ? Output
  : SchemaValue<S>

/** What {@link defineTool} takes: a {@link Tool} whose arguments are typed by its schema. */
export interface ToolDefinition<S extends ToolSchema> {
  /** Matches `^[a-zA-Z0-9_-]{1,64}$`. */
  readonly name: string
  /** Tells the model what the tool does and when to use it. */
  readonly description: string
  /**
   * A JSON Schema of type `object`, by which other fields are refused unless it allows them. Or a
   * schema of zod, arktype or another library with Standard JSON Schema, which then validates.
   */
  readonly parameters: S
  /** Whether a call may be repeated after a crash. @defaultValue 'unsafe' */
  readonly effect?: ToolEffect | undefined
  /** True when the tool runs a command. @defaultValue false */
  readonly startsProcess?: boolean | undefined
  /** True when it may change files without reporting `changes` itself. @defaultValue false */
  readonly changesFiles?: boolean | undefined
  /**
   * True for a tool that tries things out: its calls are progress by their arguments alone, see
   * {@link Tool.explores}. @defaultValue false
   */
  readonly explores?: boolean | undefined
  /** True for a tool that is useless to runs without a folder. @defaultValue false */
  readonly needsFolder?: boolean | undefined
  /** True to take the place of the shipped tool of the same name. @defaultValue false */
  readonly replace?: boolean | undefined
  /** Milliseconds after which a call is stopped. @defaultValue the engine's `toolTimeoutMs` */
  readonly timeoutMs?: number | undefined
  /**
   * How often a call that throws is tried again, 0 to 5 times, after a wait of at most 0.5 s that
   * doubles each time; all within the time of one call. For `read` tools only. @defaultValue 0
   */
  readonly retries?: number | undefined
  /** See {@link Tool.commands}; only called with arguments that match a JSON Schema. */
  commands?: Tool['commands'] | undefined
  /** See {@link Tool.plan}; needed when `effect` is `idempotent`. */
  plan?(args: ToolArguments<S>, context: ToolContext): Promise<JsonObject>
  /** See {@link Tool.verify}; needed when `effect` is `idempotent`. */
  verify?(
    args: ToolArguments<S>,
    plan: JsonObject,
    context: ToolContext,
  ): Promise<'done' | 'undone' | 'unknown'>
  /** Does the work. A string means exit code 0, an exception exit code 1. */
  execute(
    args: ToolArguments<S>,
    context: ToolContext,
  ): Promise<ToolOutput | string> | ToolOutput | string
}

/** Most retries of one call. */
const MAX_RETRIES = 5

const DEFINITION: OptionKinds<ToolDefinition<JsonSchema>> = {
  name: 'string! 1 to 64 letters, digits, - or _',
  description: 'string! text that tells the model what the tool does',
  parameters: "object! a schema with type: 'object'", effect: 'string', startsProcess: 'boolean',
  changesFiles: 'boolean', explores: 'boolean', needsFolder: 'boolean', replace: 'boolean',
  timeoutMs: 'number', retries: 'number', commands: 'function', plan: 'function',
  verify: 'function',
  execute: 'function! the function that does the work',
}

const KEYWORDS = SCHEMA_OPTIONS as OptionKinds<JsonSchema>

/**
 * Makes a tool that runs can offer to their models. Name and schema are checked here, arguments
 * before every execution, so `execute` gets only arguments that match its schema.
 *
 * @throws TypeError that names the invalid field.
 *
 * @example
 * ```ts
 * const weather = defineTool({
 *   name: 'weather',
 *   description: 'The weather of a city now.',
 *   parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
 *   effect: 'read',
 *   execute: async ({ city }, { signal }) => await forecast(city, signal),
 * })
 * ```
 */
export function defineTool<const S extends ToolSchema>(
  definition: ToolDefinition<S>,
): Tool {
  checkOptions(definition, DEFINITION, 'defineTool()')
  const {
    name,
    description,
    effect = 'unsafe',
    startsProcess = false,
    changesFiles = false,
    explores = false,
    needsFolder = false,
    replace = false,
    timeoutMs,
    retries = 0,
  } = definition
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
    throw new TypeError(
      `a tool's name must be 1 to 64 letters, digits, - or _, got ${JSON.stringify(name)}`,
    )
  }
  const invalid = (problem: string): TypeError => new TypeError(`tool ${name}: ${problem}`)
  if (description.trim() === '') {
    throw invalid('description must be text that tells the model what the tool does')
  }
  if (!['read', 'idempotent', 'unsafe'].includes(effect)) {
    throw invalid(`effect must be read, idempotent or unsafe, got ${JSON.stringify(effect)}`)
  }
  if (effect === 'idempotent' && !(definition.plan && definition.verify)) {
    throw invalid('an idempotent tool needs plan() and verify(), which prevent a second execution')
  }
  if (timeoutMs !== undefined && !(Number.isInteger(timeoutMs) && timeoutMs > 0)) {
    throw invalid(`timeoutMs must be a positive integer, got ${timeoutMs}`)
  }
  if (!(Number.isInteger(retries) && retries >= 0 && retries <= MAX_RETRIES)) {
    throw invalid(`retries must be an integer from 0 to ${MAX_RETRIES}, got ${retries}`)
  }
  if (retries > 0 && effect !== 'read') {
    throw invalid('retries are for tools of effect read: a call of others may have done its work')
  }
  const { parameters, read, check } = argumentsOf(name, definition.parameters)
  // Sound, because arguments are checked against the schema first.
  const typed = (value: unknown): ToolArguments<S> => value as ToolArguments<S>
  const tool: Tool = {
    name,
    description,
    parameters,
    effect,
    ...(startsProcess ? { startsProcess } : {}),
    ...(changesFiles ? { changesFiles } : {}),
    ...(explores ? { explores } : {}),
    ...(needsFolder ? { needsFolder } : {}),
    ...(replace ? { replace } : {}),
    ...(timeoutMs !== undefined ? { timeoutMs } : {}),
    ...(retries > 0 ? { retries } : {}),
    ...(check === undefined ? {} : { check }),
    async execute(args, context) {
      const given = await read(args)
      if (given.problem !== null) return { output: given.problem, exitCode: 1 }
      const result = await definition.execute(typed(given.value), context)
      return typeof result === 'string' ? { output: result, exitCode: 0 } : result
    },
  }
  const { commands } = definition
  if (commands) {
    const isLibrary = check !== undefined
    tool.commands = (args, commandOfGoal) =>
      isLibrary || checkArguments(tool, args) === null ? commands(args, commandOfGoal) : []
  }
  if (definition.plan) {
    tool.plan = async (args, context) => {
      const given = await read(args)
      if (given.problem !== null) throw new TypeError(given.problem)
      return (await definition.plan?.(typed(given.value), context)) ?? {}
    }
  }
  if (definition.verify) {
    tool.verify = async (args, plan, context) => {
      const given = await read(args)
      // Valid when the call was planned: the schema has changed since.
      if (given.problem !== null) return 'unknown'
      return (await definition.verify?.(typed(given.value), plan, context)) ?? 'unknown'
    }
  }
  return Object.freeze(tool)
}

/** Arguments as `execute` gets them, or what the model is told about them. */
type ReadArguments =
  | { readonly value: unknown; readonly problem: null }
  | { readonly problem: string }

/** How a tool gets its arguments, and what models are told about them. */
interface ArgumentReader {
  readonly parameters: JsonSchema
  /** Checks arguments, and makes of them what `execute` gets. */
  readonly read: (args: JsonObject) => Promise<ReadArguments>
  readonly check?: Tool['check']
}

/** @throws TypeError for a schema by which arguments could not be checked. */
function argumentsOf(name: string, schema: ToolSchema): ArgumentReader {
  if (isStandardSchema(schema)) return libraryArguments(name, schema)
  if (schema.type !== 'object') {
    throw new TypeError(`tool ${name}: parameters must be a schema with type: 'object'`)
  }
  checkDefinition(schema, `tool ${name}: parameters`)
  const parameters: JsonSchema = structuredClone(closed(schema))
  prepareSchema(parameters, `tool ${name}: parameters`)
  return {
    parameters,
    read: async (args) => {
      const problem = checkArguments({ name, parameters }, args)
      return problem === null ? { value: args, problem } : { problem }
    },
  }
}

/** Arguments that the library of their schema validates, once for each call. */
function libraryArguments(name: string, schema: StandardSchema): ArgumentReader {
  const of = `tool ${name}: parameters`
  const written = writeSchema(schema, 'input', of)
  // Arguments are always an object, which a union or a reference need not say.
  const { type = 'object' } = written
  if (type !== 'object') {
    throw new TypeError(`${of} must be a schema of an object, got one of ${JSON.stringify(type)}`)
  }
  const parameters: JsonSchema = { type, ...written }
  prepareSchema(parameters, of)
  const { vendor } = schema['~standard']
  const valid = new WeakMap<JsonObject, ReadArguments>()
  const read = async (args: JsonObject): Promise<ReadArguments> => {
    const known = valid.get(args)
    if (known !== undefined) return known
    const result = await schema['~standard'].validate(args)
    if (typeof result !== 'object' || result === null) {
      throw new TypeError(`validate() of ${vendor} returned ${describeValue(result)}`)
    }
    const { issues } = result
    if (issues) return { problem: argumentsProblem({ name, parameters }, issues, describeIssue) }
    valid.set(args, { value: result.value, problem: null })
    return { value: result.value, problem: null }
  }
  return { parameters, read, check: async (args) => (await read(args)).problem }
}

/** The schema with no other fields allowed than those that it names, unless it says more itself. */
function closed(schema: JsonSchema): JsonSchema {
  if (schema.unevaluatedProperties !== undefined) return schema
  // Fields that only an alternative names are unknown to `additionalProperties`.
  if (!isCombined(schema)) return { additionalProperties: false, ...schema }
  return 'additionalProperties' in schema ? schema : { unevaluatedProperties: false, ...schema }
}

/** Whether other schemas may name fields of the same object. */
function isCombined(schema: JsonSchema): boolean {
  const keywords = ['$ref', 'allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas'] as const
  return keywords.some((keyword) => schema[keyword] !== undefined)
}

/** @throws TypeError for a schema that could not be checked, or that has a mistake in it. */
function checkDefinition(schema: JsonSchema, name: string): void {
  const { nodes } = compileSchema(schema, { name, isForeign: false })
  // A part of an alternative or a condition may require what its whole describes.
  const parts = new Set(
    nodes.flatMap((node) => node.sameValue.filter((part) => part !== node.link('$ref'))),
  )
  for (const node of nodes) {
    checkOptions(node.schema, KEYWORDS, `${name}${node.path}`)
    const unknown = parts.has(node) ? undefined : misspelt(node.schema)
    if (unknown === undefined) continue
    throw new TypeError(
      `${name}${node.path}.required names ${unknown}, which is not in its properties`,
    )
  }
}

/** A required field that no property describes, in a schema that describes its fields itself. */
function misspelt(schema: JsonSchema): string | undefined {
  const { type, properties, required = [], patternProperties, additionalProperties } = schema
  const isOpen = patternProperties !== undefined || typeof additionalProperties === 'object'
  if (isOpen || isCombined(schema)) return undefined
  if (properties === undefined && type !== 'object') return undefined
  return required.find((name) => !Object.hasOwn(properties ?? {}, name))
}
