/**
 * For tests of agents, tools and stores: a model that follows a script, a clock that only moves
 * when told to, evaluations of models, and the conformance suites of stores.
 *
 * @module
 */
export { evaluate } from './evaluation/evaluate.js'
export type {
  EvaluationEngine, EvaluationOptions, EvaluationTask,
} from './evaluation/evaluate.js'
export type { Estimate } from './evaluation/intervals.js'
export type {
  AssuranceCount, EvaluationAttempt, EvaluationCell, EvaluationReport, EvaluationSummary,
  EvaluationTotal, PassEstimate,
} from './evaluation/report.js'
export { formatEvaluation } from './evaluation/table.js'
export { ManualClock } from './manual-clock.js'
export { ScriptedModel } from './scripted-model.js'
export type { ScriptedModelOptions, ScriptedStep } from './scripted-model.js'
export type {
  ScriptedCall,
  ScriptedError,
  ScriptedExpectation,
  ScriptedTurn,
} from '../models/scripted/script.js'
export { testObjectStore } from './test-object-store.js'
export type { TestObjectStoreOptions } from './test-object-store.js'
export { testRunStore } from './test-run-store.js'
export type { TestRunStoreOptions } from './test-run-store.js'
export { testWorkspaceCopies } from './test-workspace-copies.js'
export type { OpenedCopies, TestWorkspaceCopiesOptions } from './test-workspace-copies.js'
