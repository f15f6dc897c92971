/**
 * Runs that other runs start: what they get of their parent.
 *
 * @module
 */
import type { ChildRole } from '../run-tree.js'
import type { RemainingBudget } from '../log/remaining.js'
import type { RunState } from '../log/run-state.js'
import type { DelegateRequest, Tool } from '../tool.js'
import { delegateTool } from '../tools/delegate.js'
import type { NewChildPlace, NewRun, RequestContext } from './new-run.js'
import { parseStartRequest, settingsOf, type StartRequest } from './start-request.js'

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
    fallbacks: (request.fallback_models ?? []).map(resolveModel),
  }
}

/** The start request of a delegate: what is asked for, within what is left to its parent. */
export function delegateStart(
  { frozen }: RunState,
  asked: DelegateRequest,
  left: RemainingBudget,
  offered: ReadonlyMap<string, Tool>,
): StartRequest {
  const { approval, cwd, delegation, hitl_enabled, metadata, model_name, tools } = frozen.request
  const { allow_dependency_changes, compaction = 'drop', instructions } = frozen.request
  const { fallback_models, sealed_checks } = frozen.request
  const delegates = delegation !== undefined && delegation.depth > 1
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
    ...(fallback_models !== undefined && { fallback_models }),
    ...settingsOf(frozen.request),
    ...asked,
    ...Object.fromEntries(bounds.filter(([, bound]) => bound !== null)),
    workspace: 'isolated',
    apply: 'manual',
    compaction,
    ...(instructions !== undefined && { instructions }),
    ...(sealed_checks !== undefined && { sealed_checks }),
    ...(allow_dependency_changes !== undefined && { allow_dependency_changes }),
    ...(tools !== undefined && { tools: delegates ? tools : withoutDelegate(tools, offered) }),
    ...(delegates && { delegation: { ...delegation, depth: delegation.depth - 1 } }),
  })
}

/** What a run may use that starts no others. An empty list would be none at all. */
function withoutDelegate(
  tools: readonly string[],
  offered: ReadonlyMap<string, Tool>,
): readonly string[] {
  const rest = tools.filter((name) => offered.get(name) !== delegateTool)
  return rest.length > 0 ? rest : tools
}
