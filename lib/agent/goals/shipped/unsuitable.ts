import { GoalError } from '../../errors.js'

/** The error of a goal that does not fit the workspace: what is wrong, and what to do about it. */
export function unsuitable(goal: string, problem: string, remedy: string): GoalError {
  return new GoalError('unsuitable', `${goal}: ${problem}; ${remedy}`)
}
