/**
 * How goals are defined and resolved. The steps of a run that check a goal import `check.ts`,
 * `protected-files.ts`, `evidence.ts` and `judge.ts` themselves: they need nothing of the above.
 *
 * @module
 */
export { commandGoal, DEFAULT_CHECK_TIMEOUT_MS } from './command-goal.js'
export type { CommandGoal } from './command-goal.js'
export { goalRegistry } from './registry.js'
export type { GoalRegistry, ListedGoal, ResolveOptions } from './registry.js'
