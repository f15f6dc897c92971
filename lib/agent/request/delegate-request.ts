import { InvalidRequestError } from '../errors.js'
import { checkRequest } from '../check-schema.js'
import type { JsonSchema } from '../schema.js'
import type { DelegateRequest } from '../tool.js'
import { schemaViolation, START_REQUEST_SCHEMA } from './start-request.js'

const fields = START_REQUEST_SCHEMA.properties ?? {}

/** The schema of a {@link DelegateRequest}. */
export const DELEGATE_SCHEMA: JsonSchema = {
  type: 'object',
  title: 'DelegateRequest',
  required: ['goal'],
  additionalProperties: false,
  properties: {
    goal: fields['goal']!,
    check: fields['check']!,
    model_name: fields['model_name']!,
    max_iterations: fields['max_iterations']!,
    max_total_tokens: fields['max_total_tokens']!,
    max_cost_usd: fields['max_cost_usd']!,
    max_seconds: fields['max_seconds']!,
    max_tool_calls: fields['max_tool_calls']!,
    result_schema: fields['result_schema']!,
  },
}

/** @throws {@link InvalidRequestError} with a violation per invalid field. */
export function parseDelegateRequest(value: unknown): DelegateRequest {
  const violations = checkRequest(DELEGATE_SCHEMA, value)
  if (violations.length > 0) throw new InvalidRequestError(violations)
  const { result_schema: schema } = value as DelegateRequest
  const unusable = schema === undefined ? null : schemaViolation(schema)
  if (unusable !== null) throw new InvalidRequestError([unusable])
  return value as DelegateRequest
}
