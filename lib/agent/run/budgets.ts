/**
 * Pure: has a run used up a budget?
 *
 * @module
 */
import type { EndReason } from '../events.js'
import type { RunState } from '../log/run-state.js'
import { workedMs } from '../log/state.js'

/** The exhausted budget, with a reason for people; null while all are within bounds. */
export function exhausted(
  state: RunState,
  nowMs: number,
): { readonly endReason: EndReason; readonly reason: string } | null {
  const { request } = state.frozen
  const { final_state } = state.head.details
  if (request.max_total_tokens !== null && final_state.total_tokens >= request.max_total_tokens) {
    const reason = `${final_state.total_tokens} of ${request.max_total_tokens} tokens were used`
    return { endReason: 'token_budget', reason }
  }
  if (request.max_cost_usd !== null && final_state.estimated_cost_usd >= request.max_cost_usd) {
    const cost = final_state.estimated_cost_usd.toFixed(4)
    return {
      endReason: 'cost_budget',
      reason: `${cost} of ${request.max_cost_usd} US dollars were spent`,
    }
  }
  if (remainingCalls(state) <= 0) {
    return {
      endReason: 'tool_call_budget',
      reason: `${request.max_tool_calls} tool calls were made`,
    }
  }
  if (remainingMs(state, nowMs) <= 0) {
    return { endReason: 'time_budget', reason: `the run worked for ${request.max_seconds} s` }
  }
  return null
}

/** Tool calls that may still begin; Infinity without a budget. */
export function remainingCalls({ frozen, head }: RunState): number {
  const { max_tool_calls } = frozen.request
  return max_tool_calls === null ? Infinity : max_tool_calls - head.details.usage.tool_calls
}

/** Milliseconds of work left in the time budget; Infinity without one. */
export function remainingMs(state: RunState, nowMs: number): number {
  const { max_seconds } = state.frozen.request
  return max_seconds === null ? Infinity : max_seconds * 1000 - workedMs(state, nowMs)
}
