/**
 * Pure: has a run used up a budget?
 *
 * @module
 */
import type { EndReason } from '../events.js'
import type { RunState } from '../log/run-state.js'
import { remainingMs } from '../log/remaining.js'
import type { RunDetails } from '../run-details.js'

/** What runs use that the log of their parent does not have yet. */
export interface Unlogged {
  readonly tokens: number
  readonly costUsd: number
  readonly calls: number
}

const NOTHING: Unlogged = { tokens: 0, costUsd: 0, calls: 0 }

/** An exhausted budget, with a reason for people. */
export interface Exhausted {
  readonly endReason: EndReason
  readonly reason: string
}

/** The exhausted budget, by the log of the run alone; null while all are within bounds. */
export function exhausted(state: RunState, nowMs: number): Exhausted | null {
  const spent = spentBudget(state.head.details, NOTHING)
  if (spent !== null || remainingMs(state, nowMs) > 0) return spent
  const { max_seconds } = state.frozen.request
  return { endReason: 'time_budget', reason: `the run worked for ${max_seconds} s` }
}

/** The budget that what was used exhausts, whatever the time. */
export function spentBudget(details: RunDetails, more: Unlogged): Exhausted | null {
  const { final_state, max_cost_usd, max_tool_calls, max_total_tokens, usage } = details
  const tokens = final_state.total_tokens + more.tokens
  const costUsd = final_state.estimated_cost_usd + more.costUsd
  if (max_total_tokens !== null && tokens >= max_total_tokens) {
    const reason = `${tokens} of ${max_total_tokens} tokens were used`
    return { endReason: 'token_budget', reason }
  }
  if (max_cost_usd !== null && costUsd >= max_cost_usd) {
    const reason = `${costUsd.toFixed(4)} of ${max_cost_usd} US dollars were spent`
    return { endReason: 'cost_budget', reason }
  }
  const calls = usage.tool_calls + more.calls
  if (max_tool_calls !== null && calls >= max_tool_calls) {
    const reason = `${calls} of ${max_tool_calls} tool calls were made`
    return { endReason: 'tool_call_budget', reason }
  }
  return null
}
