import { isoTime } from '../../../internal/time.js'
import { gateFeedback } from '../../conversation/prompts.js'
import type { CallEdit } from '../../events.js'
import type { Gate } from '../../run-details.js'
import { editsHash } from '../edits-hash.js'
import type { CallState } from '../run-state.js'
import { callOf } from './calls.js'
import {
  forgiveRepetition, outdateCheck, type Changes, type FoldedState, type Mutable, type RecordOf,
} from './change.js'

/** The run waits for a human, and gets an answer. */
export const GATES: Changes<'human_check_required' | 'human_check_response'> = {
  human_check_required: {
    version: 1,
    trigger: () => 'gate',
    head({ details }, { payload, ts }) {
      const { gate_id, kind, iteration, summary, deadline, calls = [], candidates } = payload
      const gate = { gate_id, kind, iteration, summary, deadline, opened_at: isoTime(ts), calls }
      details.gate = candidates === undefined ? gate : { ...gate, candidates }
    },
    state(state, { ts }) {
      state.waitingSince = ts * 1000
      const { checkpoints } = state
      if (checkpoints !== null) state.checkpoints = { ...checkpoints, gate: checkpoints.newest }
    },
  },
  human_check_response: {
    version: 1,
    trigger: () => 'respond',
    head(head, { payload: { gate_id, decision, attempt, edits } }) {
      const hash = editsHash(edits)
      head.details.gate = null
      head.lastDecision = {
        gate_id,
        decision,
        ...(attempt !== undefined && { attempt }),
        ...(hash !== undefined && { edits: hash }),
      }
    },
    state: foldAnswer,
  },
}

function foldAnswer(
  state: FoldedState,
  { payload, ts }: RecordOf<'human_check_response'>,
  gate: Gate | null,
): void {
  const { decision, feedback, edits, attempt } = payload
  if (attempt !== undefined) state.choice = attempt
  state.waitedMs += ts * 1000 - (state.waitingSince ?? ts * 1000)
  state.waitingSince = null
  forgiveRepetition(state)
  outdateCheck(state)
  for (const { call_id } of gate?.calls ?? []) {
    const call = callOf(state, call_id, ({ status }) => status === 'requested')
    answerCall(call, decision, feedback, edits?.[call_id])
  }
  if (feedback === undefined || gate?.kind === 'tool') return // shown with the calls' results
  const waiting = state.calls.find(({ status }) => status !== 'done')
  if (waiting === undefined) state.conversation.add(gateFeedback(feedback))
  else waiting.feedback = feedback // a message cannot stand between a call and its result
}

function answerCall(
  call: Mutable<CallState>,
  decision: string,
  feedback: string | undefined,
  edit: CallEdit | undefined,
): void {
  call.status = (edit?.decision ?? decision) === 'approve' ? 'approved' : 'rejected'
  call.args = edit?.args ?? call.args
  call.feedback = edit?.feedback ?? feedback ?? ''
}
