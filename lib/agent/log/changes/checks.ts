import { joinSeals, shownOf, type CheckedFiles, type StoredSeal } from '../../check-files.js'
import { checkFeedback, firstMessage, forkFeedback } from '../../conversation/prompts.js'
import type { RunHead } from '../../run-details.js'
import { areHashed } from '../../test-outcomes.js'
import { noteCheck } from '../progress.js'
import type { Changes, DraftOf, FoldedState, RecordOf, Version } from './change.js'

/** Records which files the newest verdict covers. */
export function noteFiles(head: RunHead, seq: number, files: CheckedFiles | undefined): void {
  head.checkedSeq = files === undefined ? null : seq
  const { details } = head
  details.held_back = files === undefined ? null : shownOf(files.held_back)
  details.changed_tests = files === undefined ? null : shownOf(files.changed_tests ?? [])
  details.allowed = files === undefined ? null : shownOf(files.allowed ?? [])
}

/** How far the run is from its goal. */
export const CHECKS: Changes<'goal_check' | 'holdout_evaluation' | 'result'> = {
  goal_check: {
    version: 1,
    newerVersion: versionOfCheck,
    head(head, { payload, private: hidden, seq }) {
      const { details } = head
      if (!payload.cached) noteFiles(head, seq, hidden?.files)
      details.final_state.goal_achieved = payload.achieved
      details.final_state.goal_reason = payload.reason
      details.assurance = payload.assurance ?? null
      if (hidden?.baseline !== undefined)
        details.check_files = Object.keys(hidden.baseline.files).length
      if (details.check_files !== null)
        details.check_files += Object.keys(hidden?.seal?.files ?? {}).length
    },
    state: foldCheck,
  },
  holdout_evaluation: {
    version: 3,
    state(state) {
      state.holdoutEvaluations += 1
    },
  },
  result: {
    version: 1,
    head(head, { payload, seq }) {
      if (payload.problem === null) head.resultSeq = seq
    },
    state(state, { payload: { attempt, problem } }) {
      state.result = { attempts: attempt, isGiven: problem === null, problem }
      if (problem === null) state.gaveUp = null
    },
  },
}

/**
 * How the reason of a check without a verdict began in logs that do not have the field `undecided`
 * yet.
 */
const UNDECIDED_BEFORE = 'not judged: '

function versionOfCheck({ private: hidden }: DraftOf<'goal_check'>): Version {
  // Earlier engines would compare with what an earlier run has left.
  if (hidden?.baseline !== undefined) return 4
  // Version 2 would take the parts of hashed tests for names of tests, and miss those.
  return areHashed(hidden?.tests) ? 3 : 1
}

function isUndecided({ payload, private: hidden }: RecordOf<'goal_check'>): boolean {
  return hidden?.undecided ?? payload.reason.startsWith(UNDECIDED_BEFORE)
}

function foldCheck(state: FoldedState, record: RecordOf<'goal_check'>): void {
  const { payload, iteration, private: hidden } = record
  state.fruitlessRecoveries = 0
  const output = hidden?.output ?? state.lastCheck?.output ?? ''
  if (state.baselineTests === null && hidden?.tests != null) {
    state.baselineTests = hidden.tests
    // Attempts and delegates begin with the files of the run that started them, and no verdict.
    state.areTestsLate = state.lastCheck !== null || state.head.details.forked_from !== null
  }
  const { baseline, files = null, seal, in_place: start } = hidden ?? {}
  if (baseline !== undefined) state.baseline = baseline
  if (!payload.cached) state.checkedFiles = files
  if (seal !== undefined) foldSeal(state, seal)
  else if (start !== undefined) foldSeal(state, { files: {}, reasons: {}, start })
  const isFirst = state.lastCheck === null
  state.lastCheck = { payload, iteration, output, stale: isUndecided(record) }
  if (!payload.cached) noteCheck(state.progress, payload.reason)
  if (!payload.cached) state.mayHaveStrays = false
  const { conversation, frozen } = state
  if (conversation.isEmpty) conversation.add(firstMessage(frozen, payload, output))
  else if (isFirst) conversation.add(forkFeedback(payload, output))
  else if (!payload.achieved) conversation.add(checkFeedback(iteration, payload, output))
}

/** What was found to belong to the check is compared from now on. */
function foldSeal(state: FoldedState, seal: StoredSeal): void {
  state.seal = joinSeals(state.seal, seal)
  if (state.baseline !== null)
    state.baseline = { files: { ...seal.files, ...state.baseline.files } }
}
