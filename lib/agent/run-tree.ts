/**
 * Trees of runs: a run lets others attempt its goal, or do a part of its work.
 *
 * @module
 */
import type { Assurance, ChangeCounts, EndReason, RunStatus } from './run-status.js'
import type { TestCounts } from './test-outcomes.js'

/** What a run is that another one started. */
export type ChildRole = 'attempt' | 'delegate'

/** How the winner is chosen: `human` among those that achieved the goal. */
export type ChooseBy = 'first' | 'smallest' | 'human'

/** The attempts of a run, as its request has them, with every default filled in. */
export type Attempts = {
  readonly count: number
  /** The models of the attempts, in turn. */
  readonly models: readonly string[]
  readonly choose: ChooseBy
}

/** How far a run may start runs that work for it. */
export type Delegation = {
  /** Levels of runs below it: 1 to 3. @defaultValue 1 */
  readonly depth: number
  /** Runs that it may start: 1 to 16. @defaultValue 4 */
  readonly children: number
}

/** How a child ended, and what it used with all runs below it. */
export interface ChildEnd {
  readonly run_id: string
  readonly status: RunStatus
  readonly end_reason: EndReason | null
  readonly reason: string
  readonly assurance: Assurance | null
  /** Its net change, of an attempt what would be delivered; null when that is not known. */
  readonly changes: ChangeCounts | null
  /** Files that its verdict does not cover, at most 100; absent for none. */
  readonly held_back?: readonly string[]
  /** Tests of the start that it has edited, at most 100; absent for none. */
  readonly changed_tests?: readonly string[]
  /** Of its last check; null if that counts no tests, or says that they were changed. */
  readonly counts: TestCounts | null
  readonly usage: ChildUsage
}

/** What a child used, with all runs below it. */
export interface ChildUsage {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cached_tokens: number
  readonly reasoning_tokens: number
  /** Of calls that broke off; absent for none. */
  readonly estimated_tokens?: number
  readonly model_calls: number
  readonly tool_calls: number
  readonly cost_usd: number
  readonly cost_known: boolean
}

/** An attempt as a human sees it who chooses one. */
export interface Candidate {
  readonly attempt: number
  readonly run_id: string
  readonly model_name: string
  readonly status: RunStatus
  readonly reason: string
  readonly assurance: Assurance | null
  /** What would be delivered. */
  readonly changes: ChangeCounts | null
  /** Files that its verdict does not cover, at most 100; absent for none. */
  readonly held_back?: readonly string[]
  /** Tests of the start that it has edited, at most 100; absent for none. */
  readonly changed_tests?: readonly string[]
  readonly total_tokens: number
  readonly cost_usd: number
  readonly cost_known: boolean
}
