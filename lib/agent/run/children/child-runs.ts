/**
 * The seam between a run and the runs that it starts.
 *
 * 1. The id of a child is in the log of its parent before the child exists, so that a crash neither
 *    starts a child twice nor loses one.
 * 2. The end of a child is in the log of its parent before the parent ends.
 * 3. A parent that waits for children holds no slot.
 *
 * @module
 */
import type { ChildUsage } from '../../run-tree.js'
import type { RemainingBudget } from '../../log/remaining.js'
import type { ChildState, RunState } from '../../log/run-state.js'
import type { NewChild } from '../../request/new-child.js'
import type { RunHead } from '../../run-details.js'

/** The runs of an engine, as a run that starts some of them needs them. */
export interface ChildRuns {
  /**
   * Checks what is asked of a child, within the remaining budget of its parent; the function
   * returned begins it with the files of a checkpoint, unless it exists.
   *
   * @throws as the engine's `create`.
   */
  prepare(
    parent: RunState,
    budget: RemainingBudget,
    child: NewChild,
  ): Promise<(checkpointId: string) => Promise<void>>
  /**
   * Resolves when a run has ended or was deleted.
   *
   * @throws the signal's reason; {@link StoreError}.
   */
  follow(runId: string, signal: AbortSignal): Promise<void>
  /** The head of a run; null when there is none, or its log is damaged. */
  head(runId: string): Promise<RunHead | null>
  /** The heads of the runs of a tree that have not ended, as far as they can be read. */
  live(rootRunId: string): Promise<readonly RunHead[]>
  /** Requests the end of a run that may have ended; `why` is for its log. */
  abort(runId: string, why: string): Promise<void>
}

/** Why runs are ended that another one has started. */
export const PARENT_ENDED = 'the run that started it has ended'

/** The same, by the state of the run that has started it. */
export function whyEnded({ abortRequested, head }: RunState): string {
  const { attempts } = head.details
  if (attempts !== null && attempts.chosen !== null)
    return 'another attempt was the first to achieve the goal'
  if (abortRequested) return 'the run that started it was aborted'
  return 'the run that started it needed it no more'
}

/** The children that have not ended, as far as the log of their parent knows. */
export function liveChildren({ children }: Pick<RunState, 'children'>): readonly ChildState[] {
  if (children.size === 0) return []
  return [...children.values()].filter(({ end }) => end === null)
}

/** Live children for which nobody waits any more: the call that started them is over. */
export function leftBehind(state: RunState): readonly ChildState[] {
  return liveChildren(state).filter(({ role, callId }) => {
    if (role === 'attempt') return state.abortRequested
    const call = state.calls.find((one) => one.call.call_id === callId)
    return call === undefined || call.status === 'done' || state.abortRequested
  })
}

/** What a run has used, with all runs below it that its log knows of. */
export function usageOf({ details }: RunHead): ChildUsage {
  const { cost_known, final_state, usage } = details
  return {
    input_tokens: usage.input_tokens,
    output_tokens: usage.output_tokens,
    cached_tokens: usage.cached_tokens,
    reasoning_tokens: usage.reasoning_tokens,
    model_calls: usage.model_calls,
    tool_calls: usage.tool_calls,
    cost_usd: final_state.estimated_cost_usd,
    cost_known,
    ...(usage.estimated_tokens > 0 && { estimated_tokens: usage.estimated_tokens }),
  }
}
