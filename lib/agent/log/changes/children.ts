import type { AttemptInfo, RunDetails } from '../../run-details.js'
import type { ChildEnd } from '../../run-tree.js'
import type { ChildState } from '../run-state.js'
import type { Changes, FoldedState } from './change.js'
import { noteFiles } from './checks.js'
import { addUsage } from './turns.js'

/** The runs that the run starts. */
export const CHILDREN: Changes<
  'attempt_started' | 'attempt_ended' | 'attempt_chosen' | 'delegate_started' | 'delegate_ended'
> = {
  attempt_started: {
    version: 4,
    head({ details }, { payload: { attempt, run_id, model_name } }) {
      const started = { attempt, run_id, model_name, status: null, reason: '' }
      foldAttempt(details, { ...started, assurance: null, changes: null })
    },
    state(state, { payload: { attempt, run_id } }) {
      const checkpointId = state.checkpoints?.start ?? ''
      const place = { role: 'attempt', number: attempt, callId: '', checkpointId } as const
      beginChild(state, run_id, place)
    },
  },
  attempt_ended: {
    version: 4,
    head({ details }, { payload }) {
      const { attempt, run_id, status, reason, assurance, changes, usage } = payload
      const model_name = details.attempts?.runs.find((one) => one.attempt === attempt)?.model_name
      const ended = { attempt, run_id, model_name: model_name ?? details.model_name, status }
      foldAttempt(details, { ...ended, reason, assurance, changes })
      addUsage(details, usage)
    },
    state: (state, { payload }) => endChild(state, payload),
  },
  attempt_chosen: {
    version: 4,
    head(head, { payload, private: hidden, seq }) {
      foldChosen(head.details, payload.attempt)
      noteFiles(head, seq, hidden?.files)
      if (payload.result !== undefined) head.resultSeq = seq
      if (payload.answer !== undefined) head.answerSeq = seq
    },
    state(state, { private: hidden }) {
      state.checkedFiles = hidden?.files ?? null
    },
  },
  delegate_started: {
    version: 4,
    head({ details }) {
      details.delegates += 1
    },
    state(state, { payload: { call_id: callId, checkpoint_id: checkpointId, number, run_id } }) {
      beginChild(state, run_id, { role: 'delegate', number, callId, checkpointId })
    },
  },
  delegate_ended: {
    version: 4,
    head({ details }, { payload }) {
      addUsage(details, payload.usage)
    },
    state: (state, { payload }) => endChild(state, payload),
  },
}

function foldAttempt(details: RunDetails, info: AttemptInfo): void {
  const { attempts } = details
  if (attempts === null) return
  const others = attempts.runs.filter(({ attempt }) => attempt !== info.attempt)
  const runs = [...others, info].sort((a, b) => a.attempt - b.attempt)
  details.attempts = { ...attempts, runs }
}

/** What the chosen attempt has shown is what the run has shown. */
function foldChosen(details: RunDetails, chosen: number): void {
  if (details.attempts === null) return
  details.attempts = { ...details.attempts, chosen }
  const winner = details.attempts.runs.find(({ attempt }) => attempt === chosen)
  details.final_state.goal_achieved = winner?.status === 'achieved'
  details.final_state.goal_reason = winner?.reason ?? ''
  details.assurance = winner?.assurance ?? null
}

function beginChild(
  { children }: FoldedState,
  runId: string,
  place: Pick<ChildState, 'role' | 'number' | 'callId' | 'checkpointId'>,
): void {
  children.set(runId, { runId, ...place, end: null, merged: null })
}

function endChild({ children }: FoldedState, end: ChildEnd): void {
  const child = children.get(end.run_id)
  if (child !== undefined) children.set(end.run_id, { ...child, end })
}
