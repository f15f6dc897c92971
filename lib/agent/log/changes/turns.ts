import { compacted } from '../../conversation/compaction.js'
import { RESULT_NOTED } from '../../conversation/prompts.js'
import { planMessage, summaryMessage, turnsLeftOut } from '../../conversation/summary.js'
import type { EventPayloads } from '../../events.js'
import type { AssistantMessage, Message, UserMessage } from '../../model.js'
import { UPDATE_PLAN } from '../../plan.js'
import type { ModelUsage, RunDetails } from '../../run-details.js'
import type { ChildUsage } from '../../run-tree.js'
import { noteMessage, takeHeard } from '../messages.js'
import { noteTurn } from '../progress.js'
import type { CallState } from '../run-state.js'
import {
  forgiveRepetition, outdateCheck, type Changes, type FoldedState, type RecordOf,
} from './change.js'

/** The iterations of a run, the turns of its model, and what the model hears before them. */
export const TURNS: Changes<
  | 'step_start' | 'llm_usage' | 'model_switched' | 'model_turn' | 'reasoning' | 'user_message'
  | 'conversation_compacted' | 'iteration_complete'
> = {
  step_start: {
    version: 1,
    state(state, { payload: { node } }) {
      state.node = node
      if (node !== 'plan') return
      state.turns = 0
      state.iterationTokens = 0
      state.calls = []
      state.iterationTools = []
      state.iterationPlans = 0
      state.wantsTurn = false
    },
  },
  llm_usage: {
    version: 1,
    head({ details }, { payload }) {
      // Field by field: adding to a copy of the payload takes two microseconds.
      addUsage(details, {
        input_tokens: payload.input_tokens,
        output_tokens: payload.output_tokens,
        cached_tokens: payload.cached_tokens,
        reasoning_tokens: payload.reasoning_tokens,
        estimated_tokens: payload.estimated_tokens ?? 0,
        model_calls: 1,
        tool_calls: 0,
        cost_usd: payload.cost_usd ?? 0,
        cost_known: payload.cost_usd !== null && payload.estimated_tokens === undefined,
      })
      if (payload.model_name !== undefined) addModelUsage(details, payload.model_name, payload)
    },
    state(state, { payload }) {
      state.iterationTokens += payload.input_tokens + payload.output_tokens
    },
  },
  model_switched: {
    version: 4,
    head({ details }, { payload }) {
      details.active_model = payload.to
    },
    // What the model before repeated or refused says nothing of this one.
    state(state) {
      state.conversation.dropParts()
      state.room = Infinity
      forgiveRepetition(state)
    },
  },
  model_turn: {
    version: 1,
    head(head, { payload, seq }) {
      if (payload.gives_result !== true && payload.text !== '') head.answerSeq = seq
    },
    state: foldTurn,
  },
  reasoning: { version: 1 },
  user_message: {
    version: 2,
    head({ details }, { payload: { may_change } }) {
      if (may_change !== undefined) details.may_change = may_change.length > 0 ? may_change : null
    },
    state(state, { payload }) {
      noteMessage(state.messages, payload)
      // Its model may have no turn left before the next check.
      if (payload.may_change !== undefined) outdateCheck(state)
    },
  },
  conversation_compacted: { version: 4, state: foldCompaction },
  iteration_complete: {
    version: 1,
    state(state) {
      state.idleIterations = isIdle(state) ? state.idleIterations + 1 : 0
      state.node = null
    },
  },
}

/** Adds what a call of a model used, or a run that the run had started. */
export function addUsage(details: RunDetails, used: ChildUsage): void {
  const { cost_known, final_state, usage } = details
  // A model without a price has cost nothing yet before its first call, which may tell its cost.
  details.cost_known = used.cost_known && (cost_known || usage.model_calls === 0)
  details.usage = {
    input_tokens: usage.input_tokens + used.input_tokens,
    output_tokens: usage.output_tokens + used.output_tokens,
    cached_tokens: usage.cached_tokens + used.cached_tokens,
    reasoning_tokens: usage.reasoning_tokens + used.reasoning_tokens,
    estimated_tokens: usage.estimated_tokens + (used.estimated_tokens ?? 0),
    model_calls: usage.model_calls + used.model_calls,
    tool_calls: usage.tool_calls + used.tool_calls,
  }
  final_state.total_tokens += used.input_tokens + used.output_tokens
  final_state.estimated_cost_usd += used.cost_usd
}

function addModelUsage(
  details: RunDetails,
  model_name: string,
  payload: EventPayloads['llm_usage'],
): void {
  const list = details.usage_by_model ?? []
  const before = list.find((one) => one.model_name === model_name)
  const sum: ModelUsage = {
    model_name,
    input_tokens: (before?.input_tokens ?? 0) + payload.input_tokens,
    output_tokens: (before?.output_tokens ?? 0) + payload.output_tokens,
    cached_tokens: (before?.cached_tokens ?? 0) + payload.cached_tokens,
    reasoning_tokens: (before?.reasoning_tokens ?? 0) + payload.reasoning_tokens,
    model_calls: (before?.model_calls ?? 0) + 1,
    cost_usd: (before?.cost_usd ?? 0) + (payload.cost_usd ?? 0),
  }
  details.usage_by_model =
    before === undefined ? [...list, sum] : list.map((one) => (one === before ? sum : one))
}

/** An iteration without a tool call; a plan alone is no work. */
function isIdle({ calls, iterationPlans, iterationTools }: FoldedState): boolean {
  return calls.length === 0 || (iterationPlans > 0 && iterationTools.length === iterationPlans)
}

function foldTurn(state: FoldedState, record: RecordOf<'model_turn'>): void {
  const { payload, private: hidden } = record
  const message = hidden?.message ?? { role: 'assistant', text: payload.text, calls: [] }
  const feedback = hidden?.feedback
  state.turns += 1
  state.fruitlessRecoveries = 0
  if (payload.gives_result === true) return foldResultTurn(state, record, message)
  if (payload.heard !== undefined) foldHeard(state, payload.heard)
  noteTurn(state.progress, message.calls, feedback !== undefined)
  state.conversation.add(message)
  if (feedback !== undefined) state.conversation.add({ role: 'user', text: feedback })
  state.wantsTurn = message.calls.length > 0 || feedback !== undefined
  state.gaveUp = message.calls.length === 0 ? surrenderOf(payload.stop) : null
  const calls = message.calls.map(
    (call): CallState => ({
      call, status: 'requested', args: call.args, feedback: '', plan: null, setsPlan: false,
    }),
  )
  // A turn without calls keeps the earlier ones, by which `iteration_complete` sees idleness.
  if (calls.length > 0) state.calls = calls
  for (const { call_id } of message.calls) state.callIds.add(call_id)
}

/** A turn that was asked for the result: what it calls does not run. */
function foldResultTurn(
  state: FoldedState,
  { payload, private: hidden }: RecordOf<'model_turn'>,
  message: AssistantMessage,
): void {
  const { conversation } = state
  conversation.add({ role: 'user', text: hidden?.asked ?? '' })
  conversation.add(message)
  for (const { call_id, tool } of message.calls) {
    state.callIds.add(call_id)
    conversation.add({ role: 'tool', call_id, tool, output: RESULT_NOTED, exit_code: 0 })
  }
  state.gaveUp = surrenderOf(payload.stop) ?? state.gaveUp
}

/** Why a model gives up; null for other ends of a turn. */
function surrenderOf(stop: string): FoldedState['gaveUp'] {
  return stop === 'refusal' || stop === 'content_filter' ? stop : null
}

/** After a message, as after a human's answer: people may have changed files, and ask anew. */
function foldHeard(state: FoldedState, ids: readonly string[]): void {
  for (const message of takeHeard(state.messages, ids)) state.conversation.add(message)
  forgiveRepetition(state)
  outdateCheck(state)
}

function foldCompaction(
  state: FoldedState,
  { payload, private: hidden }: RecordOf<'conversation_compacted'>,
): void {
  const { summary } = payload
  const { plan } = state.head.details
  state.room = Math.min(state.room, hidden?.room ?? Infinity)
  const inPlace = (turns: number, kept: readonly Message[]): UserMessage[] => [
    summary === null ? turnsLeftOut(turns) : summaryMessage(summary, turns),
    ...(plan === null || kept.some(isPlanned) ? [] : [planMessage(plan)]),
  ]
  const { conversation } = state
  conversation.replace(compacted(conversation.messages, payload, inPlace, summary !== null))
}

/** The result of a call that has set the plan. */
function isPlanned(message: Message): boolean {
  return message.role === 'tool' && message.tool === UPDATE_PLAN && message.exit_code === 0
}
