/**
 * The plan of a run's model: what it says with the tool `update_plan`.
 *
 * @module
 */

/** The name of the tool. */
export const UPDATE_PLAN = 'update_plan'

/** How far a step is. */
export type PlanStatus = 'pending' | 'in_progress' | 'done'

/** One step of a plan. */
export interface PlanStep {
  /** At most 200 characters, as the model wrote them. */
  readonly text: string
  readonly status: PlanStatus
}

export const PLAN_STATUSES: readonly PlanStatus[] = ['pending', 'in_progress', 'done']
/** Steps of a plan, and characters of one: each write of a run's head has them. */
export const MAX_STEPS = 40
export const STEP_CHARACTERS = 200
