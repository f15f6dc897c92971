/**
 * A run as the engine needs it to continue: its head, its conversation, and its position within an
 * iteration. Only the fold in `state.ts`, by the handlers in `changes`, changes it.
 *
 * @module
 */
import type { JsonObject } from '../../internal/json.js'
import type { Conversation } from '../conversation/conversation.js'
import type { EventPayloads, NodeName, PrivatePayloads } from '../events.js'
import type { ChildEnd, ChildRole } from '../run-tree.js'
import type { CheckedFiles, StoredSeal } from '../check-files.js'
import type { GoalBaseline, KeptTests } from '../goal.js'
import type { Message, ToolCall } from '../model.js'
import type { RunHead } from '../run-details.js'
import type { RunMessages } from './messages.js'
import type { Progress } from './progress.js'

/** One tool call of the last turn, and its progress. */
export interface CallState {
  readonly call: ToolCall
  /**
   * `requested` by the model; `approved` or `rejected` by a human; `started`: may have happened;
   * `done`: its result is in the log.
   */
  readonly status: 'requested' | 'approved' | 'rejected' | 'started' | 'done'
  /** The arguments to run with: the model's, or a human's in their place. */
  readonly args: JsonObject
  /** A human's remark on the call, for the model; empty when there is none. */
  readonly feedback: string
  /** What the tool recorded before it started. */
  readonly plan: JsonObject | null
  /** It has set the plan of the model, which is no progress of the run. */
  readonly setsPlan: boolean
}

/** A file written by tools: its content hashes, and the lines of all changes added up. */
export interface ChangedFile {
  readonly first: string | null
  readonly now: string | null
  readonly added: number
  readonly removed: number
}

export interface LastCheck {
  readonly payload: EventPayloads['goal_check']
  /** In which it was made. */
  readonly iteration: number
  readonly output: string
  /** True when the check must run again: something may have changed, or it reached no verdict. */
  readonly stale: boolean
}

/** How far a run is that has to give a result. */
export interface ResultState {
  /** Answers to the request for it. */
  readonly attempts: number
  readonly isGiven: boolean
  /** What is wrong with the last answer; null before the first, and for a valid one. */
  readonly problem: string | null
}

/** A run that the run has started. */
export interface ChildState {
  readonly runId: string
  readonly role: ChildRole
  /** The number of the attempt, or of the run among those of its call. */
  readonly number: number
  /** The call that started it; empty for attempts. */
  readonly callId: string
  /** The checkpoint with which it began. */
  readonly checkpointId: string
  /** Null until its end is in the log. */
  readonly end: ChildEnd | null
  /**
   * The operation that has brought its changes back, and the paths that stay as they are; null as
   * long as none has begun.
   */
  readonly merged: { readonly operation: string; readonly conflicts: readonly string[] } | null
}

/** The state of one run, changed in place by `foldState()` alone. */
export interface RunState {
  readonly head: RunHead
  readonly frozen: PrivatePayloads['run_created']
  readonly baseline: GoalBaseline | null
  /** What the folder was recognised by when the run started; null when that is not known. */
  readonly folder: NonNullable<PrivatePayloads['run_started']['folder']> | null
  /** The tests of the first check, with which later checks are compared. */
  readonly baselineTests: KeptTests | null
  /** Did the first check see no tests, so that they are of a later one? */
  readonly areTestsLate: boolean
  /** `due`: the setup has to run before anything else; how it failed; null for neither. */
  readonly setup: 'due' | EventPayloads['setup_ended'] | null
  readonly conversation: Conversation
  /** Tokens of conversation that the model accepts, as far as the log says that it refused more. */
  readonly room: number
  /** What was sent to the run, and what of it the model has not heard. */
  readonly messages: RunMessages
  /** The node that runs; null before the first iteration and between two. */
  readonly node: NodeName | null
  /** Model turns of this iteration. */
  readonly turns: number
  /** Tokens of this iteration, those of the judge included. */
  readonly iterationTokens: number
  /** The calls of the last turn that had any in this iteration, in the model's order. */
  readonly calls: readonly CallState[]
  /**
   * The last turn called tools or was unusable, so the model gets another one in this iteration.
   */
  readonly wantsTurn: boolean
  /** The model said that it has nothing left to try, or a filter stopped it. */
  readonly gaveUp: 'refusal' | 'content_filter' | null
  readonly progress: Readonly<Progress>
  /** Consecutive iterations without a tool call. */
  readonly idleIterations: number
  readonly lastCheck: LastCheck | null
  /** Null for a run that gives no result. */
  readonly result: ResultState | null
  /** How often the held-out tests were evaluated. */
  readonly holdoutEvaluations: number
  /** What checks were seen to rest on; null before the first sealed one. */
  readonly seal: StoredSeal | null
  /** The files that the newest verdict covers; null if unknown. */
  readonly checkedFiles: CheckedFiles | null
  /** A command ran since the last check; processes it left could change files during the check. */
  readonly mayHaveStrays: boolean
  /** Files that tools wrote, by path. */
  readonly changedFiles: ReadonlyMap<string, ChangedFile>
  /** A crash left the outcome of a call unknown: which files it changed is unknown as well. */
  readonly hasUnseenChanges: boolean
  /** The checkpoints of the run; null before the first. */
  readonly checkpoints: RunTrees | null
  /** The `seq` of the last record after which files may have changed; 0 before any. */
  readonly lastWrite: number
  /** What the model hears once its calls have their results. */
  readonly notices: readonly Message[]
  /** Tools called in this iteration, and how they ended. */
  readonly iterationTools: readonly ToolUse[]
  /** How many of them changed the plan of the model and nothing else. */
  readonly iterationPlans: number
  /** Ids of all calls so far: a repeated id is replaced. */
  readonly callIds: ReadonlySet<string>
  /** The runs that it has started, by their ids. */
  readonly children: ReadonlyMap<string, ChildState>
  /** The attempt that a human has chosen; null before. */
  readonly choice: number | null
  readonly abortRequested: boolean
  /** Why its tree asked for that, in words; null for a caller's request, and without one. */
  readonly abortWhy: string | null
  /** True when nothing but messages follows `run_suspended`. */
  readonly suspended: boolean
  /** Recoveries after a crash since the run last made progress: a turn, a result or a check. */
  readonly fruitlessRecoveries: number
  /** Milliseconds that do not count as work: waits for humans, and `idle_ms` of the records. */
  readonly waitedMs: number
  /** Since when the open gate waits (epoch ms); null without an open gate. */
  readonly waitingSince: number | null
}

/** Checkpoints between which people compare: ids of trees. */
export interface RunTrees {
  readonly start: string
  /** The tree that checks take for the start; null: that is `start`. */
  readonly checkStart: string | null
  readonly newest: string
  /** `seq` of the newest. */
  readonly seq: number
  /** The newest one when the last gate opened; the first without a gate. */
  readonly gate: string
}

/** One tool call as the summary of a gate counts it. */
export interface ToolUse {
  readonly tool: string
  readonly exitCode: number
  /** The command line, of tools that run one. */
  readonly command?: string
}
