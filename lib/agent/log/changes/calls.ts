import { REPETITION, toolOutputForModel } from '../../conversation/prompts.js'
import type { FileChange } from '../../workspace/workspace.js'
import { filesAsTheyAre, notePlan, noteResult } from '../progress.js'
import type { CallState } from '../run-state.js'
import {
  outdateCheck, type Changes, type FoldedState, type Mutable, type RecordOf,
} from './change.js'

/** What the model calls, and what comes of it. */
export const CALLS: Changes<'tool_call' | 'tool_started' | 'tool_result' | 'plan_updated'> = {
  tool_call: { version: 1 },
  tool_started: {
    version: 1,
    head({ details }) {
      details.usage = { ...details.usage, tool_calls: details.usage.tool_calls + 1 }
    },
    state(state, { payload, private: hidden, seq }) {
      const call = callOf(state, payload.call_id)
      call.status = 'started'
      call.plan = hidden?.plan ?? null
      if (payload.pgid !== undefined) state.mayHaveStrays = true
      if (payload.effect === 'read') return
      state.lastWrite = seq
      outdateCheck(state)
    },
  },
  tool_result: { version: 1, state: foldResult },
  plan_updated: {
    version: 1,
    head({ details }, { payload }) {
      details.plan = payload.steps
    },
    // A call that was cut off may set the plan again.
    state(state, { payload }) {
      const call = callOf(state, payload.call_id)
      if (!call.setsPlan) state.iterationPlans += 1
      call.setsPlan = true
    },
  },
}

/**
 * The open call with this id, else the first open one: results come in the order of the calls, and
 * in logs of earlier versions the id in an event may be redacted.
 */
export function callOf(
  state: FoldedState,
  callId: string,
  isOpen: (call: CallState) => boolean = ({ status }) => status !== 'done',
): Mutable<CallState> {
  const open = state.calls.filter(isOpen)
  const found = open.find(({ call }) => call.call_id === callId) ?? open[0]
  if (found === undefined) throw new TypeError(`the log names an unknown tool call ${callId}`)
  return found
}

function foldResult(
  state: FoldedState,
  { payload, private: { images, explores, whole } = {} }: RecordOf<'tool_result'>,
): void {
  const call = callOf(state, payload.call_id)
  // A recovery settles calls that did not start again: that is no progress.
  if (call.status !== 'approved') state.fruitlessRecoveries = 0
  call.status = 'done'
  if (payload.exit_code === -1) state.hasUnseenChanges = true
  const { command } = call.args
  state.iterationTools.push({
    tool: payload.tool,
    exitCode: payload.exit_code,
    ...(typeof command === 'string' && { command }),
  })
  for (const change of payload.changes ?? []) foldChange(state, change)
  const shown = whole === true ? payload.output : toolOutputForModel(payload.output)
  const isLast = state.calls.every(({ status }) => status === 'done')
  const made = { tool: payload.tool, args: call.args }
  const output = explores === true ? filesAsTheyAre(state.changedFiles) : shown
  const result = { output, exitCode: payload.exit_code }
  const repeats = call.setsPlan
    ? notePlan(state.progress, isLast)
    : noteResult(state.progress, made, result, isLast)
  state.conversation.add({
    role: 'tool',
    call_id: call.call.call_id,
    tool: payload.tool,
    output: repeats ? `${shown}\n\n${REPETITION}` : shown,
    exit_code: payload.exit_code,
    ...(images !== undefined && { images }),
  })
  if (!isLast) return
  for (const notice of state.notices.splice(0)) state.conversation.add(notice)
}

function foldChange({ changedFiles }: FoldedState, change: FileChange): void {
  const { path, from, before_sha256 = '', after_sha256 = '' } = change
  const note = (
    name: string,
    before: string | null,
    now: string | null,
    [added, removed]: readonly [number, number],
  ): void => {
    const known = changedFiles.get(name) ?? { first: before, added: 0, removed: 0 }
    changedFiles.set(name, {
      first: known.first,
      now,
      added: known.added + added,
      removed: known.removed + removed,
    })
  }
  if (from !== undefined) note(from, before_sha256, null, [0, 0])
  const lines = [change.added_lines, change.removed_lines] as const
  note(path, from === undefined ? before_sha256 : null, after_sha256, lines)
}
