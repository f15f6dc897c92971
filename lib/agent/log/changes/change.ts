/**
 * What the events of a kind change in their run. `index.ts` puts the tables of all groups of kinds
 * together.
 *
 * 1. Handlers run after everything that records of any kind change, `head` before `state`.
 * 2. Only handlers change a state: to every other file its fields are read-only.
 * 3. Heads are copied flat: handlers replace lists and objects in the details, but for
 *    `final_state`.
 * 4. Clients fold events that have no private part, so `head` does without one.
 *
 * @module
 */
import type { EventKind, RecordDraft, RunRecord } from '../../events.js'
import type { Message } from '../../model.js'
import type { Gate, RunHead } from '../../run-details.js'
import type { FoldedMessages } from '../messages.js'
import { resetCounts, type Progress } from '../progress.js'
import type {
  CallState, ChangedFile, ChildState, LastCheck, RunState, ToolUse,
} from '../run-state.js'
import type { Trigger } from '../transitions.js'

export type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** The state as handlers see it. */
export interface FoldedState extends Mutable<RunState> {
  calls: Mutable<CallState>[]
  messages: FoldedMessages
  progress: Progress
  lastCheck: Mutable<LastCheck> | null
  changedFiles: Map<string, ChangedFile>
  notices: Message[]
  iterationTools: ToolUse[]
  callIds: Set<string>
  children: Map<string, ChildState>
}

export type RecordOf<K extends EventKind> = Extract<RunRecord, { kind: K }>
export type DraftOf<K extends EventKind> = Extract<RecordDraft, { kind: K }>
export type Version = RunRecord['v']

/** What the records of one kind change. The methods let a table of all kinds take any record. */
export interface Change<Record = RunRecord, Draft = RecordDraft> {
  /** The format version of new records: see {@link RecordFields.v}. */
  readonly version: Version
  /** The version of a record that may need a newer one. */
  newerVersion?(draft: Draft): Version
  /** What happens to the status of the run. Absent: nothing. */
  trigger?(record: Record): Trigger | undefined
  /** True for what people do with the files of a run that has ended. */
  readonly followsEnd?: boolean
  head?(head: RunHead, record: Record): void
  /** `gate`: the one that was open before the record. */
  state?(state: FoldedState, record: Record, gate: Gate | null): void
}

/** The changes of some kinds, or of all. */
export type Changes<Kinds extends EventKind = EventKind> = {
  readonly [K in Kinds]: Change<RecordOf<K>, DraftOf<K>>
}

/** Something may have changed since the last check: the next one runs. */
export function outdateCheck({ lastCheck }: FoldedState): void {
  if (lastCheck !== null) lastCheck.stale = true
}

/** After a change from outside, repeating a call or doing nothing may make sense. */
export function forgiveRepetition(state: FoldedState): void {
  resetCounts(state.progress)
  state.idleIterations = 0
}
