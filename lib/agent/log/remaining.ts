/**
 * Pure: what is left of the budgets of a run.
 *
 * @module
 */
import type { RunState } from './run-state.js'

/**
 * Milliseconds of work up to `nowMs`, for the time budget: without waits for humans and without
 * time in which no process drove the run.
 */
export function workedMs(state: RunState, nowMs: number): number {
  const { started_at } = state.head.details
  if (started_at === null) return 0
  return (state.waitingSince ?? nowMs) - Date.parse(started_at) - state.waitedMs
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

/** The least that can be a budget in US dollars. */
const LEAST_USD = 0.000001

/** What is left of the budgets of a run, for one that it starts; null: no bound. */
export interface RemainingBudget {
  readonly max_total_tokens: number | null
  readonly max_cost_usd: number | null
  readonly max_seconds: number | null
  readonly max_tool_calls: number | null
}

/** The budgets of a run that this one starts now. */
export function remainingBudget(state: RunState, nowMs: number): RemainingBudget {
  const { max_total_tokens: tokens, max_cost_usd: usd } = state.frozen.request
  const { max_seconds, max_tool_calls } = state.frozen.request
  const { final_state } = state.head.details
  const seconds = Math.ceil(remainingMs(state, nowMs) / 1000)
  return {
    max_total_tokens: tokens === null ? null : Math.max(1, tokens - final_state.total_tokens),
    max_cost_usd:
      usd === null ? null : Math.max(LEAST_USD, usd - final_state.estimated_cost_usd),
    max_seconds: max_seconds === null ? null : Math.max(1, seconds),
    max_tool_calls: max_tool_calls === null ? null : Math.max(1, remainingCalls(state)),
  }
}
