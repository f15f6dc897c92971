/**
 * Results of runs: the goal that a result meets, how a model is asked for one, and how its answer
 * is read.
 *
 * 1. A result is valid as it is stored and shown: secrets are redacted before it is checked.
 * 2. The schema comes from a caller who is not trusted: it is checked in bounded time, and its
 *    patterns in linear time.
 *
 * @module
 */
import { isJsonObject, parseJson, plainCopy, type JsonObject } from '../../internal/json.js'
import { checkSchema, prepareSchema } from '../check-schema.js'
import type { GoalSpec } from '../goal.js'
import type { AssistantMessage, ToolSpec } from '../model.js'
import { clip } from '../output.js'
import type { JsonSchema, SchemaViolation } from '../schema.js'

/** The name of the goal. */
export const RESULT_GOAL = 'result'
/** The tool by which models give a result whose provider has no better way. */
export const RESULT_TOOL = 'give_result'
/** Answers to the request for the result, beyond which a run has failed. */
export const MAX_ANSWERS = 3

/** Characters of a result, as JSON. */
const MAX_RESULT = 256 * 1024
/** Characters of what a model is told of a result that is not valid, and violations in it. */
const MAX_PROBLEM = 4_000
const MAX_VIOLATIONS = 8

/** The frozen definition of a goal that is met by a result. */
export function resultGoal(goal: string): GoalSpec {
  return {
    name: RESULT_GOAL,
    goal,
    command: '',
    env: {},
    timeout_ms: 1,
    success_exit_code: 0,
    reporter: null,
    protected: [],
    allow_test_changes: false,
    by_result: true,
    instructions: 'The goal is met by a result that matches the schema of this run.',
  }
}

/** The tool that takes a result; nothing runs when it is called. */
export function resultTool(schema: JsonSchema): ToolSpec {
  return {
    name: RESULT_TOOL,
    description: 'Gives the result of the run. Call it only when you are asked for the result.',
    parameters: schema,
  }
}

/** What a schema of a stranger finds wrong with a value; empty for a valid one. */
export function resultViolations(
  schema: JsonSchema,
  value: unknown,
): readonly SchemaViolation[] {
  prepareSchema(schema, '$', true)
  return checkSchema(schema, value)
}

/** A result, or why an answer has none, for the model and for people. */
export type ResultAnswer =
  | { readonly result: JsonObject; readonly problem: null }
  | { readonly result: null; readonly problem: string }

/** The result in an answer: the arguments of the one call of {@link RESULT_TOOL}, or its text. */
export function readResult(
  message: AssistantMessage,
  schema: JsonSchema,
  redactor: { value<T>(value: T): T },
): ResultAnswer {
  const calls = message.calls.filter(({ tool }) => tool === RESULT_TOOL)
  const [call] = calls
  if (calls.length > 1) return problem(`it calls ${RESULT_TOOL} ${calls.length} times`)
  if (call?.error !== undefined) return problem(call.error)
  const value = call?.args ?? parseJson(withoutFence(message.text))
  if (value === undefined)
    return problem(message.text.trim() === '' ? 'it is empty' : 'it is not JSON')
  if (!isJsonObject(value)) return problem('it is not a JSON object')
  const copy = plainCopy(value, MAX_RESULT, true)
  if (copy.problem !== null) return problem(`it ${copy.problem}`)
  const result = redactor.value(copy.value as JsonObject)
  const violations = resultViolations(schema, result)
  if (violations.length === 0) return { result, problem: null }
  const lines = violations.slice(0, MAX_VIOLATIONS).map(({ pointer, detail }) => {
    return `${pointer === '' ? 'the result' : pointer} ${detail}`
  })
  const more = violations.length - lines.length
  return problem([...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('; '))
}

function problem(text: string): ResultAnswer {
  return { result: null, problem: clip(text, MAX_PROBLEM) }
}

/** Models that are not held to JSON like to mark it as a block of code. */
function withoutFence(text: string): string {
  const trimmed = text.trim()
  if (!trimmed.startsWith('```') || !trimmed.endsWith('```')) return trimmed
  const begin = trimmed.indexOf('\n')
  return begin === -1 ? trimmed : trimmed.slice(begin + 1, -3)
}
