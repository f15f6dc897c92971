/**
 * Runs that other runs start: what may be asked of them, and what they get of their parent.
 *
 * @module
 */
import { InvalidRequestError } from '../errors.js'
import type { ChildRole } from '../events.js'
import type { RunState } from '../log/run-state.js'
import type { JsonSchema } from '../schema.js'
import type { DelegateRequest } from '../tool.js'
import { checkSchema } from '../check-schema.js'
import type { NewChildPlace, NewRun, RequestContext } from './new-run.js'
import { parseStartRequest, START_REQUEST_SCHEMA, type StartRequest } from './start-request.js'

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
  },
}

/** A run that is to be started, with the id under which the log of its parent has it. */
export interface NewChild {
  readonly runId: string
  readonly role: ChildRole
  /** Of an attempt: its model. Of a delegate: what it is to do. */
  readonly asked: { readonly model_name: string } | DelegateRequest
}

/** What is left of the budgets of a run, for one that it starts; null: no bound. */
export interface RemainingBudget {
  readonly max_total_tokens: number | null
  readonly max_cost_usd: number | null
  readonly max_seconds: number | null
  readonly max_tool_calls: number | null
}

/** @throws {@link InvalidRequestError} with a violation per invalid field. */
export function parseDelegateRequest(value: unknown): DelegateRequest {
  const violations = checkSchema(DELEGATE_SCHEMA, value)
  if (violations.length > 0) throw new InvalidRequestError(violations)
  return value as DelegateRequest
}

/** The place of a child in its tree, and what it begins with. */
export function childPlace(
  parent: RunState,
  role: ChildRole,
  checkpointId: string,
): NewChildPlace {
  const { root_run_id: rootRunId } = parent.head.details
  // What belongs to the goal of the parent is found by the child in its own copy.
  const baseline = role === 'attempt' ? parent.baseline : null
  const base = { messages: [], baseline, baselineTests: null, checkpoint_id: checkpointId }
  return { rootRunId, role, base: { ...base, adopts: false } }
}

/** An attempt at the goal of its parent. */
export function attemptRun(
  { frozen }: RunState,
  modelName: string,
  budget: RemainingBudget,
  { resolveModel }: Pick<RequestContext, 'resolveModel'>,
): NewRun {
  const { attempts: _, apply: __, ...request } = frozen.request
  return {
    request: { ...request, ...budget, model_name: modelName, apply: 'manual' },
    goal: frozen.goal,
    model: resolveModel(modelName),
  }
}

/** The start request of a delegate: what is asked for, within what is left to its parent. */
export function delegateStart(
  { frozen }: RunState,
  asked: DelegateRequest,
  left: RemainingBudget,
): StartRequest {
  const { approval, cwd, delegation, hitl_enabled, metadata, model_name } = frozen.request
  const { allow_dependency_changes, sealed_checks } = frozen.request
  const bounds = Object.entries(left).map(([name, most]): [string, number | null] => {
    const wanted = asked[name as keyof RemainingBudget]
    return [name, wanted === undefined ? most : Math.min(wanted, most ?? Infinity)]
  })
  return parseStartRequest({
    cwd,
    approval,
    hitl_enabled,
    metadata,
    model_name,
    ...asked,
    ...Object.fromEntries(bounds.filter(([, bound]) => bound !== null)),
    workspace: 'isolated',
    apply: 'manual',
    ...(sealed_checks !== undefined && { sealed_checks }),
    ...(allow_dependency_changes !== undefined && { allow_dependency_changes }),
    ...(delegation !== undefined &&
      delegation.depth > 1 && { delegation: { ...delegation, depth: delegation.depth - 1 } }),
  })
}
