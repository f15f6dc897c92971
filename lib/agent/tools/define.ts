import { checkObject, checkOptions, type OptionKinds } from '../../internal/options.js'
import type { JsonObject } from '../../internal/json.js'
import { checkSchema, isPattern } from '../check-schema.js'
import type { JsonSchema } from '../schema.js'
import type { Tool, ToolContext, ToolEffect, ToolOutput } from '../tool.js'

/** The type of the values that a schema accepts, as far as TypeScript can express it. */
export type SchemaValue<S> = S extends { readonly const: infer C }
  ? C
  : S extends { readonly enum: readonly (infer E)[] }
    ? E
    : S extends { readonly anyOf: readonly (infer A)[] }
      ? SchemaValue<A>
      : S extends { readonly type: 'string' }
        ? string
        : S extends { readonly type: 'number' | 'integer' }
          ? number
          : S extends { readonly type: 'boolean' }
            ? boolean
            : S extends { readonly type: 'null' }
              ? null
              : S extends { readonly type: 'array'; readonly items: infer I }
                ? readonly SchemaValue<I>[]
                : S extends { readonly type: 'object'; readonly properties: infer P }
                ? {
                    readonly [K in keyof P as K extends RequiredName<S> ? K : never]: SchemaValue<
                      P[K]
                    >
                  } & {
                    readonly [K in keyof P as K extends RequiredName<S> ? never : K]?: SchemaValue<
                      P[K]
                    >
                  }
                : unknown

/** The names of the fields that an object schema requires. */
export type RequiredName<S> = S extends { readonly required: readonly (infer R)[] } ? R : never

/** What {@link defineTool} takes: a {@link Tool} whose arguments are typed by its schema. */
export interface ToolDefinition<S extends JsonSchema> {
  /** Matches `^[a-zA-Z0-9_-]{1,64}$`. */
  readonly name: string
  /** Tells the model what the tool does and when to use it. */
  readonly description: string
  /** A schema of type `object`. Other fields are refused unless it allows them. */
  readonly parameters: S
  /** Whether a call may be repeated after a crash. @defaultValue 'unsafe' */
  readonly effect?: ToolEffect | undefined
  /** True when the tool runs a command. @defaultValue false */
  readonly startsProcess?: boolean | undefined
  /** True when it may change files without reporting `changes` itself. @defaultValue false */
  readonly changesFiles?: boolean | undefined
  /** True to take the place of the shipped tool of the same name. @defaultValue false */
  readonly replace?: boolean | undefined
  /** Milliseconds after which a call is stopped. @defaultValue the engine's `toolTimeoutMs` */
  readonly timeoutMs?: number | undefined
  /**
   * How often a call that throws is tried again, 0 to 5 times, after a wait of at most 0.5 s that
   * doubles each time; all within the time of one call. For `read` tools only. @defaultValue 0
   */
  readonly retries?: number | undefined
  /** See {@link Tool.plan}; needed when `effect` is `idempotent`. */
  plan?(args: SchemaValue<S>, context: ToolContext): Promise<JsonObject>
  /** See {@link Tool.verify}; needed when `effect` is `idempotent`. */
  verify?(
    args: SchemaValue<S>,
    plan: JsonObject,
    context: ToolContext,
  ): Promise<'done' | 'undone' | 'unknown'>
  /** Does the work. A string means exit code 0, an exception exit code 1. */
  execute(
    args: SchemaValue<S>,
    context: ToolContext,
  ): Promise<ToolOutput | string> | ToolOutput | string
}

/** Most retries of one call. */
const MAX_RETRIES = 5

const DEFINITION: OptionKinds<ToolDefinition<JsonSchema>> = {
  name: 'string! 1 to 64 letters, digits, - or _',
  description: 'string! text that tells the model what the tool does',
  parameters: "object! a schema with type: 'object'", effect: 'string', startsProcess: 'boolean',
  changesFiles: 'boolean', replace: 'boolean', timeoutMs: 'number', retries: 'number',
  plan: 'function', verify: 'function',
  execute: 'function! the function that does the work',
}

/** `$schema`, which generators of schemas add, says nothing about values. */
const SCHEMA: OptionKinds<JsonSchema & { readonly $schema?: string }> = {
  $schema: 'string', type: 'string', title: 'string', description: 'string', properties: 'object',
  required: 'array', additionalProperties: 'any', items: 'object', enum: 'array', const: 'any',
  default: 'any', minLength: 'number', maxLength: 'number', pattern: 'string', minimum: 'number',
  maximum: 'number', minItems: 'number', maxItems: 'number', maxProperties: 'number',
  anyOf: 'array', format: 'string', examples: 'array',
}

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
export function defineTool<const S extends JsonSchema>(definition: ToolDefinition<S>): Tool {
  checkOptions(definition, DEFINITION, 'defineTool()')
  const {
    name,
    description,
    effect = 'unsafe',
    startsProcess = false,
    changesFiles = false,
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
  if (definition.parameters.type !== 'object') {
    throw invalid("parameters must be a schema with type: 'object'")
  }
  const problem = schemaProblem(definition.parameters, `tool ${name}: parameters`, 0)
  if (problem !== null) throw new TypeError(problem)
  const parameters: JsonSchema = { additionalProperties: false, ...definition.parameters }
  // Sound, because arguments are checked against this schema first.
  const typed = (args: JsonObject): SchemaValue<S> => args as SchemaValue<S>
  const tool: Tool = {
    name,
    description,
    parameters: structuredClone(parameters),
    effect,
    ...(startsProcess ? { startsProcess } : {}),
    ...(changesFiles ? { changesFiles } : {}),
    ...(replace ? { replace } : {}),
    ...(timeoutMs !== undefined ? { timeoutMs } : {}),
    ...(retries > 0 ? { retries } : {}),
    async execute(args, context) {
      const mistake = checkArguments(tool, args)
      if (mistake !== null) return { output: mistake, exitCode: 1 }
      const result = await definition.execute(typed(args), context)
      return typeof result === 'string' ? { output: result, exitCode: 0 } : result
    },
  }
  if (definition.plan) {
    tool.plan = async (args, context) => (await definition.plan?.(typed(args), context)) ?? {}
  }
  if (definition.verify) {
    tool.verify = async (args, plan, context) =>
      (await definition.verify?.(typed(args), plan, context)) ?? 'unknown'
  }
  return Object.freeze(tool)
}

/**
 * Checks the arguments of a tool call; null when they match. Otherwise a message for the model:
 * what is wrong with each argument, and that it may call again.
 */
export function checkArguments(
  tool: Pick<Tool, 'name' | 'parameters'>,
  args: unknown,
): string | null {
  checkObject('a tool', tool)
  const violations = checkSchema(tool.parameters, args)
  if (violations.length === 0) return null
  const lines = violations.slice(0, 8).map(({ pointer, detail }) => {
    const field = pointer.slice(1).replaceAll('~1', '/').replaceAll('~0', '~')
    return `- ${field === '' ? 'the arguments' : field} ${detail}`
  })
  if (violations.length > lines.length) lines.push(`- and ${violations.length - lines.length} more`)
  const known = Object.keys(tool.parameters.properties ?? {})
  const hint = known.length === 0 ? '' : ` (its fields: ${known.join(', ')})`
  return [
    `${tool.name} was not run, because its arguments are invalid:`,
    ...lines,
    `Call ${tool.name} again with corrected arguments${hint}.`,
  ].join('\n')
}

/** What is wrong with a schema itself; null when it is valid. @throws for an unknown keyword. */
function schemaProblem(schema: JsonSchema, at: string, depth: number): string | null {
  if (typeof schema !== 'object' || schema === null) return `${at} must be a schema object`
  if (depth > 32) return `${at} is nested more than 32 levels deep`
  checkOptions(schema, SCHEMA, at)
  if (schema.pattern !== undefined && !isPattern(schema.pattern)) {
    return `${at}.pattern is not a regular expression: ${JSON.stringify(schema.pattern)}`
  }
  const properties = schema.properties ?? {}
  const missing = schema.required?.find((name) => !Object.hasOwn(properties, name))
  if (missing !== undefined) {
    return `${at}.required names ${missing}, which is not in its properties`
  }
  const { items, additionalProperties: rest } = schema
  const parts = new Map<string, JsonSchema>()
  for (const [name, part] of Object.entries(properties)) parts.set(`properties.${name}`, part)
  for (const [i, part] of (schema.anyOf ?? []).entries()) parts.set(`anyOf[${i}]`, part)
  if (items !== undefined) parts.set('items', items)
  if (typeof rest === 'object') parts.set('additionalProperties', rest)
  for (const [name, part] of parts) {
    const problem = schemaProblem(part, `${at}.${name}`, depth + 1)
    if (problem !== null) return problem
  }
  return null
}
