/**
 * A JSON Schema checker for requests, tool arguments and configuration: JSON Schema 2020-12 with
 * references inside the document.
 *
 * 1. It never throws because of a value: depth, work and the number of violations are bounded.
 * 2. Nothing is converted and no default is filled in: `"20"` is not an integer.
 * 3. A violation says what was expected and what came, for people, without secrets.
 *
 * @module
 */
import { checkObject } from '../internal/options.js'
import { Check } from './json-schema/check.js'
import { compileSchema } from './json-schema/compile.js'
import * as words from './json-schema/describe.js'
import type { SchemaNode } from './json-schema/node.js'
import type { JsonSchema, SchemaViolation } from './schema.js'
import type { Tool } from './tool.js'

/** Mistakes in arguments that a model is told at once. */
const MAX_MISTAKES = 8

/** What was made of each schema, for as long as the schema itself is in use. */
const prepared = new WeakMap<JsonSchema, SchemaNode>()

/**
 * Prepares a schema once, so that each check is fast, and refuses one that could not be checked as
 * it is meant. A schema must not change afterwards.
 *
 * @param name - what messages call it: `tool pay: parameters`.
 * @param isForeign - never run its patterns with `RegExp`, because a stranger wrote them.
 * @throws TypeError naming the place and the keyword.
 */
export function prepareSchema(schema: JsonSchema, name: string, isForeign = false): SchemaNode {
  checkObject(name, schema)
  let node = prepared.get(schema)
  if (node === undefined) {
    node = compileSchema(schema, { name, isForeign }).root
    prepared.set(schema, node)
  }
  return node
}

/**
 * Checks a value against a schema and returns up to 32 violations; an empty list means that the
 * value is valid. Lengths count code points. `format` is an annotation, as in JSON Schema itself.
 * No value makes it throw: one that is nested more than 64 levels deep, or would take more than
 * 200 000 steps, is invalid.
 *
 * A schema is prepared on its first use and must not change afterwards.
 *
 * @throws TypeError when the schema itself cannot be used: a keyword with a value that it cannot
 * have, a reference that leads out of the document or back to itself, `$dynamicRef`, vocabularies
 * of one's own, a pattern that is no regular expression.
 *
 * @example
 * ```ts
 * checkSchema({ type: 'integer', minimum: 1, maximum: 1000 }, '20')
 * // [{ pointer: '', detail: 'must be an integer from 1 to 1000, got "20"' }]
 * ```
 */
export function checkSchema(schema: JsonSchema, value: unknown): readonly SchemaViolation[] {
  const node = prepareSchema(schema, 'a schema')
  const answer = new Check(false, words)
  if (answer.matches(node, value) && answer.problem === null) return []
  // What was not looked at must not count as valid.
  if (answer.isTooLarge) return [{ pointer: '', detail: answer.problem ?? '' }]
  const check = new Check(true, words)
  check.matches(node, value)
  if (check.violations.length > 0) return check.violations
  return [{ pointer: '', detail: answer.problem ?? 'does not match its schema' }]
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
  return argumentsProblem(tool, violations, ({ pointer, detail }) => {
    const field = pointer.slice(1).replaceAll('~1', '/').replaceAll('~0', '~')
    return `${field === '' ? 'the arguments' : field} ${detail}`
  })
}

/** The message for the model about arguments with these mistakes, of which `tell` tells one. */
export function argumentsProblem<T>(
  tool: Pick<Tool, 'name' | 'parameters'>,
  mistakes: readonly T[],
  tell: (mistake: T) => string,
): string {
  const lines = mistakes.slice(0, MAX_MISTAKES).map((mistake) => `- ${tell(mistake)}`)
  if (mistakes.length > lines.length) lines.push(`- and ${mistakes.length - lines.length} more`)
  const known = Object.keys(tool.parameters.properties ?? {})
  const hint = known.length === 0 ? '' : ` (its fields: ${known.join(', ')})`
  return [
    `${tool.name} was not run, because its arguments are invalid:`,
    ...lines,
    `Call ${tool.name} again with corrected arguments${hint}.`,
  ].join('\n')
}
