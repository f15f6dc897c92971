/** The documents of the REST API that the page shows: types of the library, and nothing shipped. */
import type { AgentEvent, CheckpointReason } from '../../agent/events.js'

export type { ApplyResult, FileEntry, FileList, NetChange } from '../../agent/checkpoint.js'
export type { NetChanges, RestoreResult } from '../../agent/checkpoint.js'
export type { AgentEvent, ChangeCounts, ChangesState } from '../../agent/events.js'
export type { EndReason, GatedCall, ImageInfo } from '../../agent/events.js'
export type { RunSort } from '../../internal/run-sorts.js'
export type { Candidate, ChildRole } from '../../agent/run-tree.js'
export type { RunStatus as Status } from '../../agent/events.js'
export type { CheckFile, CheckFiles } from '../../agent/check-files.js'
export type { Assurance, TestCounts } from '../../agent/goal.js'
export type { AttemptsInfo, Gate, RunDetails, RunSummary } from '../../agent/run-details.js'
export type { FolderOffer, ResolvedRequest } from '../../agent/offers.js'
export type { LeftOut } from '../../agent/tree.js'
export type { FileChange } from '../../agent/workspace/workspace.js'

/** An event of one kind. */
export type EventOf<K extends AgentEvent['kind']> = Extract<AgentEvent, { kind: K }>

/** A checkpoint as its event reports it. */
export interface Checkpoint {
  readonly checkpoint_id: string
  readonly seq: number
  readonly iteration: number
  readonly reason: CheckpointReason
  readonly ts: number
}

export interface Model {
  readonly name: string
  readonly is_language_model: boolean
  readonly default: boolean
  readonly description: string
  readonly prices: { readonly input: number; readonly output: number } | null
  readonly context_window: number | null
}

export interface Goal {
  readonly name: string
  readonly description: string
  readonly usage: string
}

export interface Problem {
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: string
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[]
  /** Files concerned. */
  readonly paths?: readonly string[]
}
