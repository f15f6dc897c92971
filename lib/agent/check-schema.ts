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
import { MAX_RECORD_DEPTH } from '../internal/json.js'
import { checkObject } from '../internal/options.js'
import { isStorable, isStorableName, MUST_BE_STORABLE } from '../internal/text.js'
import { Check, type SchemaNode } from './json-schema/check.js'
import { compileSchema } from './json-schema/compile.js'
import type { JsonSchema, SchemaViolation } from './schema.js'
import type { Tool } from './tool.js'

/** Mistakes in arguments that a model is told at once. */
const MAX_MISTAKES = 8

/** Values of a request that are looked at. */
const MAX_VALUES = 1_000_000
/** Violations that are reported at once. */
const MAX_VIOLATIONS = 32

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
  const answer = new Check(false)
  if (answer.apply(node, value) && answer.problem === null) return []
  // What was not looked at must not count as valid.
  if (answer.isTooLarge) return [{ pointer: '', detail: answer.problem ?? '' }]
  const check = new Check(true)
  check.apply(node, value)
  if (check.violations.length > 0) return check.violations
  return [{ pointer: '', detail: answer.problem ?? 'does not match its schema' }]
}

/**
 * What is wrong with a request, as {@link checkSchema} says it; and no text in it, names of fields
 * included, may contain NUL or half of a character. In the fields `exact`, which hold names of
 * files, a half may stand for a byte.
 */
export function checkRequest(
  schema: JsonSchema,
  request: unknown,
  exact: readonly string[] = [],
): readonly SchemaViolation[] {
  const violations = checkSchema(schema, request)
  return violations.length > 0 ? violations : unstorableTexts(request, exact)
}

function unstorableTexts(request: unknown, exact: readonly string[]): readonly SchemaViolation[] {
  const violations: SchemaViolation[] = []
  const report = (pointer: string, detail: string): void => {
    violations.push({ pointer, detail })
  }
  let left = MAX_VALUES
  type IsFit = (text: string) => boolean
  const visit = (value: unknown, pointer: string, depth: number, isFit: IsFit): void => {
    if (left === 0 || violations.length === MAX_VIOLATIONS) return
    left -= 1
    if (typeof value === 'string' && !isFit(value)) return report(pointer, MUST_BE_STORABLE)
    if (typeof value !== 'object' || value === null) return
    if (depth > MAX_RECORD_DEPTH) {
      const field = pointer.split('/', 2).join('/')
      return report(field, `is nested more than ${MAX_RECORD_DEPTH} levels deep`)
    }
    for (const name of Object.keys(value)) {
      const isExact = depth === 0 && exact.includes(name)
      const part = (value as Readonly<Record<string, unknown>>)[name]
      if (isStorable(name))
        visit(part, `${pointer}/${escaped(name)}`, depth + 1, isExact ? isStorableName : isFit)
      else report(pointer, `${MUST_BE_STORABLE} in the name of a field`)
    }
  }
  try {
    visit(request, '', 0, isStorable)
  } catch {
    // Getters and proxies of a host may throw anything.
    report('', 'cannot be read')
  }
  if (left === 0) report('', 'is too large to be checked; send less')
  return violations
}

/** A name as a part of a JSON Pointer (RFC 6901). */
function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
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
