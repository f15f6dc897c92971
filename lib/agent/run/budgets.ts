/**
 * Pure: has a run used up a budget?
 *
 * @module
 */
import type { EndReason } from '../events.js'
import type { RunState } from '../log/run-state.js'
import { remainingCalls, remainingMs } from '../log/remaining.js'

/** What runs use that the log of their parent does not have yet. */
export interface Unlogged {
  readonly tokens: number
  readonly costUsd: number
  readonly calls: number
}

const NOTHING: Unlogged = { tokens: 0, costUsd: 0, calls: 0 }

/** The exhausted budget, with a reason for people; null while all are within bounds. */
export function exhausted(
  state: RunState,
  nowMs: number,
  more: Unlogged = NOTHING,
): { readonly endReason: EndReason; readonly reason: string } | null {
  const { request } = state.frozen
  const { final_state } = state.head.details
  const tokens = final_state.total_tokens + more.tokens
  const costUsd = final_state.estimated_cost_usd + more.costUsd
  if (request.max_total_tokens !== null && tokens >= request.max_total_tokens) {
    const reason = `${tokens} of ${request.max_total_tokens} tokens were used`
    return { endReason: 'token_budget', reason }
  }
  if (request.max_cost_usd !== null && costUsd >= request.max_cost_usd) {
    const cost = costUsd.toFixed(4)
    return {
      endReason: 'cost_budget',
      reason: `${cost} of ${request.max_cost_usd} US dollars were spent`,
    }
  }
  if (remainingCalls(state) - more.calls <= 0) {
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
