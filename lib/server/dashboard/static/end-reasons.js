/**
 * Why a run ended, in words: a table with a row for every reason. The second text, where there is
 * one, says it with the numbers of the run.
 */
import { cost, duration, number, plural } from './numbers.js'

/**
 * @typedef {import('../types.js').EndReason} EndReason
 * @typedef {import('../types.js').RunSummary} RunSummary
 * @typedef {Pick<RunSummary, 'iteration' | 'max_iterations' | 'estimated_cost_usd' | 'cost_known' |
 *   'started_at' | 'ended_at' | 'attempts'>} Spent
 */

/** @type {Record<EndReason, readonly [words: string, counted?: (run: Spent) => string | null]>} */
export const END_REASONS = {
  goal_achieved: [
    'the goal was met',
    ({ iteration }) =>
      iteration === 0 ? null : `the goal was met in ${plural(iteration, 'iteration')}`,
  ],
  max_iterations: [
    'out of iterations',
    ({ iteration, max_iterations }) =>
      max_iterations === 0
        ? null
        : `${number(iteration)} of ${plural(max_iterations, 'iteration')} used`,
  ],
  token_budget: ['the token budget is spent'],
  cost_budget: [
    'the cost budget is spent',
    ({ estimated_cost_usd, cost_known }) =>
      estimated_cost_usd === 0
        ? null
        : `its budget is spent: ${cost(estimated_cost_usd, cost_known)}`,
  ],
  time_budget: [
    'the time budget is spent',
    (run) => {
      const ms = workingMs(run, 0)
      return ms === null ? null : `its time is spent: ${duration(ms)}`
    },
  ],
  tool_call_budget: ['the tool call budget is spent'],
  setup_failed: ['the setup failed'],
  holdout_exhausted: ['the held-out tests failed too often'],
  stuck: ['the model repeated itself'],
  content_filter: ['the provider’s content filter stopped it'],
  context_exhausted: ['the conversation outgrew the model'],
  provider_error: ['the model provider failed'],
  goal_check_error: ['the goal could not be checked'],
  internal_error: ['an internal error occurred'],
  recovery_failed: ['it could not be resumed after a restart'],
  human_abort: ['stopped by a human at a gate'],
  cancelled: ['stopped before it was done'],
  gate_timeout: ['the gate was not answered in time'],
  attempts_failed: [
    'no attempt met the goal',
    ({ attempts }) =>
      attempts === 0 ? null : `none of ${plural(attempts, 'attempt')} met the goal`,
  ],
  result_invalid: ['no valid result was given'],
}

/**
 * The words of a reason, of which a newer service may have more.
 *
 * @param {string} reason
 */
export function endReason(reason) {
  return rowOf(reason)?.[0] ?? reason.replaceAll('_', ' ')
}

/**
 * Why this run ended; empty for one that has not.
 *
 * @param {Spent & { readonly end_reason: string | null }} run
 */
export function whyEnded(run) {
  const { end_reason } = run
  if (end_reason === null) return ''
  return rowOf(end_reason)?.[1]?.(run) ?? endReason(end_reason)
}

/** @param {string} reason */
function rowOf(reason) {
  return Object.hasOwn(END_REASONS, reason)
    ? END_REASONS[/** @type {EndReason} */ (reason)]
    : undefined
}

/**
 * How long a run has worked, its waits included; null before it started.
 *
 * @param {Pick<RunSummary, 'started_at' | 'ended_at'>} run
 * @param {number} now epoch milliseconds, for a run that has not ended
 */
export function workingMs({ started_at, ended_at }, now) {
  if (started_at === null) return null
  return Math.max(0, (ended_at === null ? now : Date.parse(ended_at)) - Date.parse(started_at))
}
