import { restoreNotice } from '../../conversation/prompts.js'
import type { EventPayloads, FileOperation } from '../../events.js'
import {
  outdateCheck, type Changes, type FoldedState, type RecordOf, type Version,
} from './change.js'

/** Earlier engines do not know merges. */
function versionOfOperation(operation: FileOperation): Version {
  return operation === 'merge' ? 4 : 2
}

/** The content of the folder is stored, and changed from outside. */
export const FILES: Changes<
  'checkpoint' | 'files_changing' | 'files_changed' | 'changes_decided'
> = {
  checkpoint: {
    version: 1,
    // Earlier engines would take what an earlier run has changed for the start.
    newerVersion: ({ private: hidden }) => (hidden?.check_start === undefined ? 1 : 4),
    followsEnd: true,
    head(head, { payload, seq }) {
      if (!isOfOriginal(payload)) head.details.checkpoint_id = payload.checkpoint_id
      head.checkpointSeq = seq
    },
    state(state, { payload, private: hidden, seq }) {
      if (isOfOriginal(payload)) return
      const newest = payload.checkpoint_id
      const { start = newest, gate = newest } = state.checkpoints ?? {}
      const checkStart = state.checkpoints?.checkStart ?? hidden?.check_start ?? null
      state.checkpoints = { start, checkStart, gate, newest, seq }
    },
  },
  files_changing: {
    version: 2,
    // They would restore all files.
    newerVersion: ({ payload: { operation }, private: { paths = null } = {} }) =>
      operation === 'restore' && paths !== null ? 4 : versionOfOperation(operation),
    followsEnd: true,
    head(head, { payload }) {
      head.operation = payload.operation_id
    },
    state({ children }, { payload: { conflicts = [], operation_id, run_id = '' } }) {
      const child = children.get(run_id)
      if (child === undefined) return
      // What is cut off is done by the next start.
      children.set(run_id, { ...child, merged: { operation: operation_id, conflicts } })
    },
  },
  files_changed: {
    version: 2,
    newerVersion: ({ payload }) => versionOfOperation(payload.operation),
    followsEnd: true,
    head(head) {
      head.operation = null
    },
    state: foldFilesChanged,
  },
  changes_decided: {
    version: 2,
    followsEnd: true,
    head({ details }, { payload }) {
      details.changes = payload.changes
    },
  },
}

/** Of the folder that was meant, while the run works in a copy. */
function isOfOriginal({ reason }: EventPayloads['checkpoint']): boolean {
  return reason === 'apply'
}

/** Others changed files while the run waited: it is checked again, and the model hears of it. */
function foldFilesChanged(state: FoldedState, { payload, seq }: RecordOf<'files_changed'>): void {
  // An isolated run works in a copy: the folder that was meant is nothing to it.
  const isOwn = state.head.checkpointSeq === state.checkpoints?.seq
  // The call that brought them tells the model.
  if (payload.operation === 'merge') {
    state.lastWrite = seq
    foldSkipped(state, payload)
  }
  if (payload.operation !== 'restore' || !isOwn) return
  state.lastWrite = seq
  outdateCheck(state)
  const notice = restoreNotice(payload)
  // A message cannot stand between a call and its result.
  if (state.calls.every(({ status }) => status === 'done')) state.conversation.add(notice)
  else state.notices.push(notice)
}

/** Paths that others changed since the merge began stay as they are, like any conflict. */
function foldSkipped(
  { children }: FoldedState,
  { operation_id, skipped }: EventPayloads['files_changed'],
): void {
  for (const child of children.values()) {
    const { merged, runId } = child
    if (merged?.operation !== operation_id || skipped.length === 0) continue
    const conflicts = [...merged.conflicts, ...skipped]
    children.set(runId, { ...child, merged: { ...merged, conflicts } })
  }
}
