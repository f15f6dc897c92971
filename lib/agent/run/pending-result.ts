/**
 * Pure: when a run asks its model for the result, and what came of that.
 *
 * @module
 */
import type { RecordDraft } from '../events.js'
import { MAX_ANSWERS } from '../goals/result-goal.js'
import type { RunState } from '../log/run-state.js'

/** True if a result was requested and none has been accepted yet. */
export function isResultPending({ result }: Pick<RunState, 'result'>): boolean {
  return result !== null && !result.isGiven
}

/** True if the check of the goal passed in this iteration, and nothing was done since. */
export function passedNow({ head, lastCheck }: Pick<RunState, 'head' | 'lastCheck'>): boolean {
  if (lastCheck === null || lastCheck.stale || !lastCheck.payload.achieved) return false
  return lastCheck.iteration === head.details.iteration
}

/**
 * Is the result asked for now, at the end of an iteration? When the check was passed; for a goal
 * that a result meets, when the model is done, or can do no more: `isLast`, or no iterations left.
 */
export function shouldRequestResult(state: RunState, isLast: boolean): boolean {
  const { frozen, gaveUp, head, result, wantsTurn } = state
  const isAnswered = (result?.attempts ?? 0) >= MAX_ANSWERS
  if (!isResultPending(state) || gaveUp !== null || isAnswered) return false
  const { iteration, max_iterations } = head.details
  if (frozen.goal.by_result !== true) return passedNow(state)
  return !wantsTurn || isLast || iteration >= max_iterations
}

/** Why no answer is taken any more; null while one may be. */
export function resultFailure({ result }: Pick<RunState, 'result'>): string | null {
  if (result === null || result.isGiven || result.attempts < MAX_ANSWERS) return null
  return `none of ${result.attempts} answers was a valid result: ${result.problem ?? ''}`
}

/** The check of a goal that is met by a result, which needs no command. */
export function resultCheck(
  iteration: number,
  state: RunState,
): Extract<RecordDraft, { kind: 'goal_check' }> {
  const isGiven = state.result?.isGiven === true
  const missing = resultFailure(state) ?? 'no result was given yet'
  return {
    kind: 'goal_check',
    iteration,
    payload: {
      achieved: isGiven,
      reason: isGiven ? 'the result matches its schema' : missing,
      verified_by: 'schema',
      cached: false,
      counts: null,
      duration_ms: 0,
      assurance: { by: 'schema', sealed: false, canaries: false, holdout: false },
    },
    private: { output: '', tests: null },
  }
}
