/**
 * Pure: what an answer to a gate means for a run in its current state. If two people answer, the
 * first answer counts; repeating it is harmless, and any other is refused.
 *
 * @module
 */
import { InvalidRequestError, RunStateError } from '../errors.js'
import { type CallEdit, type Decision, isTerminal, type RecordDraft } from '../events.js'
import type { Gate, RunHead } from '../run-details.js'
import { checkArguments, checkRequest } from '../check-schema.js'
import { editsHash } from '../log/edits-hash.js'
import type { SchemaViolation } from '../schema.js'
import type { Tool } from '../tool.js'
import { RESUME_SCHEMA } from './start-request.js'

/** A human's answer to a gate, as {@link RESUME_SCHEMA} describes it. */
export interface ResumeAnswer {
  /** Required: a missing field must never approve. */
  readonly decision: Decision
  /** The gate that is answered; without it, the open one. */
  readonly gate_id?: string | undefined
  /** Sent to the model as a user message; at most 16 384 characters. */
  readonly feedback?: string | undefined
  /** At a gate of kind `choice`: the attempt whose changes are taken. */
  readonly attempt?: number | undefined
  /** At a gate of kind `tool`: changes by call id. */
  readonly edits?: { readonly [callId: string]: CallEdit } | undefined
}

/**
 * The gate that `answer` closes; null when it repeats the answer to the last gate.
 *
 * @throws {@link InvalidRequestError} when the answer is malformed; {@link RunStateError} when it
 * matches no open gate.
 */
export function gateFor(
  head: RunHead,
  answer: ResumeAnswer,
  tools: ReadonlyMap<string, Tool>,
): Gate | null {
  const violations = checkRequest(RESUME_SCHEMA, answer)
  if (violations.length > 0) throw new InvalidRequestError(violations)
  const { gate } = head.details
  if (gate !== null && (answer.gate_id === undefined || answer.gate_id === gate.gate_id)) {
    const wrong = editViolations(gate, answer, tools)
    if (wrong.length > 0) throw new InvalidRequestError(wrong)
    return gate
  }
  if (isRepeated(head, answer)) return null
  throw refusal(head, answer)
}

/** Does the answer repeat the last one? */
function isRepeated(
  { lastDecision, details }: RunHead,
  { attempt, decision, edits, gate_id }: ResumeAnswer,
): boolean {
  if (lastDecision === null || lastDecision.decision !== decision) return false
  // Other edits let other calls run: who sent them must learn that they do not count.
  if (lastDecision.edits !== editsHash(edits)) return false
  const taken = lastDecision.attempt ?? details.attempts?.chosen ?? undefined
  if (attempt !== taken) return false
  if (gate_id !== undefined) return lastDecision.gate_id === gate_id
  if (details.gate !== null) return false
  if (details.attempts !== null) return true // its only gate
  // Without a gate id, it may be meant for a later gate, or come after an unrelated end of the run.
  return !isTerminal(details.status) || details.end_reason === 'human_abort'
}

function refusal({ lastDecision, details }: RunHead, { gate_id }: ResumeAnswer): RunStateError {
  const { run_id, status, gate } = details
  // A run with attempts has one gate at most: no other can be meant.
  const isOnly = gate === null && details.attempts !== null && gate_id === undefined
  if (lastDecision !== null && (isOnly || lastDecision.gate_id === gate_id)) {
    const { attempt, decision, gate_id: last } = lastDecision
    const edited = lastDecision.edits === undefined ? '' : ', with edits'
    const taken = attempt === undefined ? edited : ` of attempt ${attempt}`
    const message = `gate ${last} was already answered with ${decision}${taken}`
    return new RunStateError('already_decided', message)
  }
  if (gate !== null) {
    return new RunStateError('stale_gate', `gate ${gate_id} is not open; ${gate.gate_id} is`)
  }
  return new RunStateError('not_waiting', `run ${run_id} is not waiting at a gate: it is ${status}`)
}

function editViolations(
  gate: Gate,
  { decision, edits, attempt }: ResumeAnswer,
  tools: ReadonlyMap<string, Tool>,
): SchemaViolation[] {
  if (gate.kind !== 'tool' && decision === 'reject') {
    return [
      { pointer: '/decision', detail: `must be approve or abort at a gate of kind ${gate.kind}` },
    ]
  }
  if (gate.kind !== 'choice' && attempt !== undefined)
    return [{ pointer: '/attempt', detail: `must be left out at a gate of kind ${gate.kind}` }]
  if (decision === 'abort' && attempt !== undefined)
    return [{ pointer: '/attempt', detail: 'must be left out when the decision is abort' }]
  if (gate.kind === 'choice' && decision === 'approve') {
    const achieved = (gate.candidates ?? []).filter(({ status }) => status === 'achieved')
    if (!achieved.some((one) => one.attempt === attempt)) {
      const numbers = achieved.map((one) => one.attempt).join(', ')
      const detail = `must be an attempt that achieved the goal: ${numbers}`
      return [{ pointer: '/attempt', detail }]
    }
  }
  return Object.entries(edits ?? {}).flatMap(([callId, edit]) => {
    const pointer = `/edits/${callId.replaceAll('~', '~0').replaceAll('/', '~1')}`
    const call = gate.calls.find(({ call_id }) => call_id === callId)
    if (call === undefined) return [{ pointer, detail: 'is not a call that waits at this gate' }]
    const tool = tools.get(call.tool)
    // A tool with a check of its own makes it when the call runs.
    const isChecked = tool !== undefined && tool.check === undefined && edit.args !== undefined
    const problem = isChecked ? checkArguments(tool, edit.args) : null
    return problem === null ? [] : [{ pointer: `${pointer}/args`, detail: problem }]
  })
}

export function responseRecord(
  gate: Gate,
  answer: ResumeAnswer,
  decidedBy: string | null,
): RecordDraft {
  const { attempt, decision, feedback, edits } = answer
  return {
    kind: 'human_check_response',
    iteration: gate.iteration,
    payload: {
      decision,
      gate_id: gate.gate_id,
      decided_by: decidedBy,
      ...(feedback === undefined || feedback === '' ? undefined : { feedback }),
      ...(edits === undefined ? undefined : { edits }),
      ...(attempt !== undefined && decision === 'approve' && { attempt }),
    },
  }
}
