/**
 * Pure: which end a run comes to when something throws.
 *
 * @module
 */
import { AgentError, GoalCheckError, GoalError, ModelError } from '../../errors.js'
import type { Outcome } from '../next-step.js'
import type { Failure } from './finish.js'

/** Characters of a traceback that are kept. */
const TRACEBACK_CHARACTERS = 8_000

/** The outcome of a run in which `error` was thrown, and what is told of it. */
export function failureOf(
  error: unknown,
  cwd: string,
): { readonly outcome: Outcome; readonly failure: Failure } {
  const { message, stack } = error instanceof Error ? error : new Error(String(error))
  const code = error instanceof AgentError ? error.code : 'ERR_AGENT_INTERNAL'
  // Paths below the folder are shown relative; the folder itself keeps its name.
  const hide = (text: string): string =>
    text.replaceAll(`${cwd}/`, './').replaceAll(`${process.cwd()}/`, './')
  const outcome: Outcome = {
    status: 'failed',
    endReason: endReasonOf(error),
    reason: hide(message),
  }
  const traceback = hide(stack ?? '').slice(0, TRACEBACK_CHARACTERS)
  return { outcome, failure: { message: hide(message), traceback, code } }
}

function endReasonOf(error: unknown): Outcome['endReason'] {
  if (error instanceof GoalCheckError || error instanceof GoalError) return 'goal_check_error'
  if (!(error instanceof ModelError)) return 'internal_error'
  return error.code === 'ERR_AGENT_MODEL_CONTEXT' ? 'context_exhausted' : 'provider_error'
}
