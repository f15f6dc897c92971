/**
 * A run as the engine needs it to go on: its head, its conversation, and where in an iteration it
 * stands. It is a fold over the records of the run and nothing else, so that a process that takes
 * the run up after a crash stands exactly where the first one stood.
 *
 * @module
 */
import type { JsonObject } from '../../internal/json.js'
import type {
  CallEdit,
  EventPayloads,
  NodeName,
  PrivatePayloads,
  RunRecord,
} from '../events.js'
import type { GoalBaseline, TestOutcomes } from '../goal.js'
import type { Message, ToolCall } from '../model.js'
import type { FileChange } from '../workspace/workspace.js'
import {
  checkFeedback,
  firstMessage,
  gateFeedback,
  REPETITION,
  toolOutputForModel,
} from '../conversation/prompts.js'
import {
  newProgress,
  noteCheck,
  noteResult,
  noteTurn,
  startAnew,
  type Progress,
} from './progress.js'
import { foldHead } from './head.js'
import { readLog, type RecordReader } from './read-log.js'
import type { Gate, RunHead } from '../run-details.js'

/** One tool call of the last turn, and how far it has come. */
export interface CallState {
  readonly call: ToolCall
  /**
   * `asked` by the model; `approved` or `rejected` by a human; `started`: may have happened;
   * `done`: its result is in the log.
   */
  status: 'asked' | 'approved' | 'rejected' | 'started' | 'done'
  /** What runs: the model's arguments, or a human's in their place. */
  args: JsonObject
  /** Why a human refused, for the model. */
  feedback: string
  /** What the tool recorded before it started. */
  plan: JsonObject | null
}

/** A file that tools have written: its content hashes, and the lines of all changes. */
export interface ChangedFile {
  readonly first: string | null
  readonly now: string | null
  readonly added: number
  readonly removed: number
}

/** The last goal check and whether its answer still holds. */
export interface LastCheck {
  readonly payload: EventPayloads['goal_check']
  readonly output: string
  /** True once something may have changed since: the check must run again. */
  stale: boolean
}

/** The state of one run; changed in place by {@link foldState}. */
export interface RunState {
  readonly head: RunHead
  readonly frozen: PrivatePayloads['run_created']
  baseline: GoalBaseline | null
  /** The tests of the first check, by which later checks are measured. */
  baselineTests: TestOutcomes | null
  /** The conversation; what no model call sends any more may be forgotten, see `context.ts`. */
  readonly messages: Message[]
  /** The node that runs; null before the first iteration and between two. */
  node: NodeName | null
  /** Model turns of this iteration. */
  turns: number
  /** Tokens of this iteration, judge included. */
  iterationTokens: number
  /** The calls of the last turn, in the model's order. */
  calls: CallState[]
  /** The last turn asked for tools, or went wrong: the model is to have another in this iteration. */
  wantsTurn: boolean
  /** The model said that it has nothing left to try. */
  gaveUp: boolean
  /** Does the run get anywhere? */
  readonly progress: Progress
  /** Iterations in a row in which the model asked for no tool. */
  idleIterations: number
  lastCheck: LastCheck | null
  /** A command ran since the last check; what it left running could change files under the check. */
  mayHaveStrays: boolean
  /** Content hashes of the files that tools wrote, by path: before the first time, and now. */
  readonly changedFiles: Map<string, ChangedFile>
  /** The outcome of a call is unknown, after a crash: nobody saw which files it changed. */
  hasUnseenChanges: boolean
  /** Tools called in this iteration, and how they ended. */
  iterationTools: { readonly tool: string; readonly exitCode: number; readonly command?: string }[]
  /** Ids of all calls so far: a model that repeats one is given another. */
  readonly callIds: Set<string>
  abortRequested: boolean
  /** True when the last record says that the service shut down in good order. */
  suspended: boolean
  /** Milliseconds spent waiting for humans, and since when the open gate waits (epoch ms). */
  waitedMs: number
  waitingSince: number | null
  /**
   * Since when no process drove the run (epoch ms): set by who takes it up, and settled by the first
   * record after that. Null while it is driven.
   */
  downSince: number | null
}

/**
 * Folds one record into the state and returns it; the first record (`run_created`) makes it.
 *
 * @throws {@link IllegalTransitionError} when the record does not fit the run.
 */
export function foldState(state: RunState | null, record: RunRecord): RunState {
  if (state === null) return createState(record)
  const { gate } = state.head.details
  const before = state.head.last_ts
  foldHead(state.head, record)
  // The time during which no process drove the run is not the run's.
  const wasDown = state.suspended || record.kind === 'run_recovered'
  if (wasDown && state.waitingSince === null) state.waitedMs += (record.ts - before) * 1000
  state.downSince = null
  state.suspended = false
  switch (record.kind) {
    case 'run_started':
      state.baseline = record.private?.baseline ?? null
      break
    case 'run_recovered':
      // Calls that were started run again, unless a result that follows settles them.
      for (const call of state.calls) if (call.status === 'started') call.status = 'approved'
      if (state.lastCheck !== null) state.lastCheck.stale = true
      break
    case 'run_suspended':
      state.suspended = true
      break
    case 'abort_requested':
      state.abortRequested = true
      break
    case 'step_start':
      startNode(state, record.payload.node)
      break
    case 'llm_usage':
      state.iterationTokens += record.payload.input_tokens + record.payload.output_tokens
      break
    case 'model_turn':
      foldTurn(state, record)
      break
    case 'tool_started': {
      const started = callOf(state, record.payload.call_id)
      started.status = 'started'
      started.plan = record.private?.plan ?? null
      if (record.payload.pgid !== undefined) state.mayHaveStrays = true
      if (record.payload.effect !== 'read' && state.lastCheck !== null) state.lastCheck.stale = true
      break
    }
    case 'tool_result':
      foldResult(state, record.payload)
      break
    case 'goal_check':
      foldCheck(state, record)
      break
    case 'iteration_complete':
      state.idleIterations = state.calls.length === 0 ? state.idleIterations + 1 : 0
      state.node = null
      break
    case 'human_check_required':
      state.waitingSince = record.ts * 1000
      break
    case 'human_check_response':
      foldResponse(state, record, gate)
      break
    default:
  }
  return state
}

/** Records read from the store at once. */
const PAGE = 1_000

/** The state of a run from its whole log; null for an unknown run. */
export async function loadState(store: RecordReader, runId: string): Promise<RunState | null> {
  let state: RunState | null = null
  for await (const records of readLog(store, runId, PAGE)) {
    for (const record of records) state = foldState(state, record)
  }
  return state
}

function createState(record: RunRecord): RunState {
  const head = foldHead(null, record)
  const frozen = record.kind === 'run_created' ? record.private : undefined
  if (frozen === undefined)
    throw new TypeError(`run ${record.run_id} has no frozen request in its log`)
  return {
    head,
    frozen,
    baseline: null,
    baselineTests: null,
    messages: [],
    node: null,
    turns: 0,
    iterationTokens: 0,
    calls: [],
    wantsTurn: false,
    gaveUp: false,
    progress: newProgress(),
    idleIterations: 0,
    lastCheck: null,
    mayHaveStrays: false,
    changedFiles: new Map(),
    hasUnseenChanges: false,
    iterationTools: [],
    callIds: new Set(),
    abortRequested: false,
    suspended: false,
    waitedMs: 0,
    waitingSince: null,
    downSince: null,
  }
}

function startNode(state: RunState, node: NodeName): void {
  state.node = node
  if (node !== 'plan') return
  state.turns = 0
  state.iterationTokens = 0
  state.calls = []
  state.iterationTools = []
  state.wantsTurn = false
}

type RecordOf<K> = Extract<RunRecord, { kind: K }>

function foldTurn(state: RunState, record: RecordOf<'model_turn'>): void {
  const message = record.private?.message ?? {
    role: 'assistant',
    text: record.payload.text,
    calls: [],
  }
  const feedback = record.private?.feedback
  state.turns += 1
  noteTurn(state.progress, message.calls, feedback !== undefined)
  state.messages.push(message)
  if (feedback !== undefined) state.messages.push({ role: 'user', text: feedback })
  state.wantsTurn = message.calls.length > 0 || feedback !== undefined
  state.gaveUp = record.payload.stop === 'refusal' && message.calls.length === 0
  const calls = message.calls.map(
    (call): CallState => ({ call, status: 'asked', args: call.args, feedback: '', plan: null }),
  )
  // A turn without calls keeps those before it: they tell whether the iteration did anything.
  if (calls.length > 0) state.calls = calls
  for (const { call_id } of message.calls) state.callIds.add(call_id)
}

function callOf(state: RunState, callId: string): CallState {
  const found = state.calls.find(({ call }) => call.call_id === callId)
  if (found === undefined) throw new TypeError(`the log names an unknown tool call ${callId}`)
  return found
}

function foldResult(state: RunState, payload: EventPayloads['tool_result']): void {
  const call = callOf(state, payload.call_id)
  call.status = 'done'
  if (payload.exit_code === -1) state.hasUnseenChanges = true
  const { command } = call.args
  state.iterationTools.push({
    tool: payload.tool,
    exitCode: payload.exit_code,
    ...(typeof command === 'string' && { command }),
  })
  for (const change of payload.changes ?? []) foldChange(state, change)
  const shown = toolOutputForModel(payload.output)
  const isLast = state.calls.every(({ status }) => status === 'done')
  const result = { output: shown, exitCode: payload.exit_code }
  const repeats = noteResult(
    state.progress,
    { tool: payload.tool, args: call.args },
    result,
    isLast,
  )
  state.messages.push({
    role: 'tool',
    call_id: payload.call_id,
    tool: payload.tool,
    output: repeats ? `${shown}\n\n${REPETITION}` : shown,
    exit_code: payload.exit_code,
  })
}

function foldChange({ changedFiles }: RunState, change: FileChange): void {
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

function foldCheck(state: RunState, record: RecordOf<'goal_check'>): void {
  const { payload } = record
  const output = record.private?.output ?? state.lastCheck?.output ?? ''
  const first = state.messages.length === 0
  state.baselineTests ??= record.private?.tests ?? null
  state.lastCheck = { payload, output, stale: false }
  if (!payload.cached) noteCheck(state.progress, payload.reason)
  if (!payload.cached) state.mayHaveStrays = false
  if (first) state.messages.push(firstMessage(state.frozen, payload, output))
  else if (!payload.achieved) state.messages.push(checkFeedback(record.iteration, payload, output))
}

function foldResponse(
  state: RunState,
  record: RecordOf<'human_check_response'>,
  gate: Gate | null,
): void {
  const { decision, feedback, edits } = record.payload
  state.waitedMs += record.ts * 1000 - (state.waitingSince ?? record.ts * 1000)
  state.waitingSince = null
  startAnew(state.progress)
  state.idleIterations = 0
  if (state.lastCheck !== null) state.lastCheck.stale = true
  for (const { call_id } of gate?.calls ?? []) {
    answerCall(callOf(state, call_id), decision, feedback, edits?.[call_id])
  }
  if (feedback === undefined || gate?.kind === 'tool') return // told with the results of the calls
  const waiting = state.calls.find(({ status }) => status !== 'done')
  if (waiting === undefined) state.messages.push(gateFeedback(feedback))
  else waiting.feedback = feedback // a message cannot stand between a call and its result
}

function answerCall(
  call: CallState,
  decision: string,
  feedback: string | undefined,
  edit: CallEdit | undefined,
): void {
  call.status = (edit?.decision ?? decision) === 'approve' ? 'approved' : 'rejected'
  call.args = edit?.args ?? call.args
  call.feedback = edit?.feedback ?? feedback ?? ''
}

/** Where the run's clock stands for its time budget: milliseconds of work, without waits for humans and downtime. */
export function workedMs(state: RunState, nowMs: number): number {
  const { started_at } = state.head.details
  if (started_at === null) return 0
  const since = state.waitingSince ?? state.downSince
  const waiting = since === null ? 0 : nowMs - since
  return nowMs - Date.parse(started_at) - state.waitedMs - waiting
}
