/**
 * What a host needs to test its agents, tools and stores: models that say what they are told to,
 * time that moves by hand, and the conformance suite of stores.
 *
 * @module
 */
export { ManualClock } from './manual-clock.js'
export { ScriptedModel } from './scripted-model.js'
export type { ScriptedModelOptions, ScriptedStep } from './scripted-model.js'
export type {
  ScriptedCall,
  ScriptedError,
  ScriptedExpectation,
  ScriptedTurn,
} from '../models/scripted/script.js'
export { testRunStore } from './test-run-store.js'
export type { TestRunStoreOptions } from './test-run-store.js'
