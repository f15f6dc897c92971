/**
 * The fold of a run's records to its state; `run-state.ts` says what that is.
 *
 * 1. The state is a fold over the records of the run and nothing else, so a process that takes the
 *    run over after a crash continues exactly where the first one stopped.
 * 2. Only this file changes a state: to every other file its fields are read-only.
 * 3. What is not in the log (what a model turned out to accept, when this process took the run
 *    over) is kept elsewhere.
 *
 * @module
 */
import { compacted } from '../conversation/compaction.js'
import { Conversation } from '../conversation/conversation.js'
import {
  checkFeedback,
  firstMessage,
  forkFeedback,
  gateFeedback,
  REPETITION,
  RESULT_NOTED,
  restoreNotice,
  toolOutputForModel,
} from '../conversation/prompts.js'
import { planMessage, summaryMessage, turnsLeftOut } from '../conversation/summary.js'
import type {
  CallEdit,
  EventPayloads,
  NodeName,
  RunRecord,
} from '../events.js'
import type { AssistantMessage, Message, UserMessage } from '../model.js'
import { UPDATE_PLAN } from '../plan.js'
import type { Gate } from '../run-details.js'
import type { FileChange } from '../workspace/workspace.js'
import { joinSeals, type StoredSeal } from '../check-files.js'
import { foldHead } from './head.js'
import {
  newMessages,
  noteMessage,
  takeHeard,
  type FoldedMessages,
} from './messages.js'
import {
  filesAsTheyAre,
  newProgress,
  noteCheck,
  notePlan,
  noteResult,
  noteTurn,
  resetCounts,
  type Progress,
} from './progress.js'
import { readLog, type RecordReader } from './read-log.js'
import type {
  CallState, ChangedFile, ChildState, LastCheck, RunState, ToolUse,
} from './run-state.js'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** The state as the fold sees it. */
interface FoldedState extends Mutable<RunState> {
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

/**
 * Folds one record into the state and returns it; the first record (`run_created`) creates it.
 *
 * @throws {@link IllegalTransitionError} when the record does not fit the run.
 */
export function foldState(before: RunState | null, record: RunRecord): RunState {
  if (before === null) return createState(record)
  const state = before as FoldedState
  const { gate, started_at } = state.head.details
  const idle = record.idle_ms ?? downtimeBefore(state, record)
  if (started_at !== null && state.waitingSince === null) state.waitedMs += idle
  foldHead(state.head, record)
  if (record.kind !== 'user_message') state.suspended = false
  switch (record.kind) {
    case 'run_started':
      state.baseline = record.private?.baseline ?? null
      state.folder = record.private?.folder ?? null
      break
    case 'run_recovered':
      state.fruitlessRecoveries += 1
      if (state.lastWrite > 0) state.lastWrite = record.seq
      // Calls that were started run again, unless a following result settles them.
      for (const call of state.calls) if (call.status === 'started') call.status = 'approved'
      if (state.lastCheck !== null) state.lastCheck.stale = true
      break
    case 'run_suspended':
      state.suspended = true
      break
    case 'abort_requested':
      state.abortRequested = true
      state.abortWhy = record.payload.why ?? null
      break
    case 'user_message':
      noteMessage(state.messages, record.payload)
      break
    case 'conversation_compacted':
      foldCompaction(state, record)
      break
    case 'plan_updated':
      foldPlan(state, record.payload.call_id)
      break
    case 'step_start':
      startNode(state, record.payload.node)
      break
    case 'model_switched':
      // What the model before repeated or refused says nothing of this one.
      state.conversation.dropParts()
      state.room = Infinity
      resetCounts(state.progress)
      state.idleIterations = 0
      break
    case 'llm_usage':
      state.iterationTokens += record.payload.input_tokens + record.payload.output_tokens
      break
    case 'model_turn':
      foldTurn(state, record)
      break
    case 'tool_started':
      foldStart(state, record)
      break
    case 'tool_result':
      foldResult(state, record.payload, record.private)
      break
    case 'result':
      foldResultAnswer(state, record.payload)
      break
    case 'goal_check':
      foldCheck(state, record)
      break
    case 'holdout_evaluation':
      state.holdoutEvaluations += 1
      break
    case 'iteration_complete':
      state.idleIterations = isIdle(state) ? state.idleIterations + 1 : 0
      state.node = null
      break
    case 'human_check_required':
      state.waitingSince = record.ts * 1000
      if (state.checkpoints !== null)
        state.checkpoints = { ...state.checkpoints, gate: state.checkpoints.newest }
      break
    case 'checkpoint':
      foldCheckpoint(state, record)
      break
    case 'attempt_started':
    case 'attempt_ended':
    case 'delegate_started':
    case 'delegate_ended':
    case 'files_changing':
      foldChild(state, record)
      break
    case 'files_changed':
      foldFilesChanged(state, record)
      break
    case 'human_check_response':
      foldResponse(state, record, gate)
      break
    default:
  }
  return state
}

/** Milliseconds without a process, in logs that do not have the field `idle_ms` yet. */
function downtimeBefore({ suspended, head }: RunState, { kind, ts }: RunRecord): number {
  return suspended || kind === 'run_recovered' ? (ts - head.last_ts) * 1000 : 0
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

function createState(record: RunRecord): FoldedState {
  const head = foldHead(null, record)
  const frozen = record.kind === 'run_created' ? record.private : undefined
  if (frozen === undefined)
    throw new TypeError(`run ${record.run_id} has no frozen request in its log`)
  const { fork } = frozen
  const conversation = new Conversation()
  for (const message of fork?.messages ?? []) conversation.add(message)
  const sent = record.kind === 'run_created' ? record.payload.messages : undefined
  return {
    head,
    frozen,
    baseline: null,
    folder: null,
    baselineTests: fork?.baselineTests ?? null,
    conversation,
    room: Infinity,
    messages: newMessages(sent),
    node: null,
    turns: 0,
    iterationTokens: 0,
    calls: [],
    wantsTurn: false,
    gaveUp: null,
    progress: newProgress(),
    idleIterations: 0,
    lastCheck: null,
    result: frozen.request.result_schema === undefined ? null : NO_RESULT,
    holdoutEvaluations: 0,
    seal: fork?.seal ?? null,
    mayHaveStrays: false,
    changedFiles: new Map(),
    hasUnseenChanges: false,
    checkpoints: null,
    lastWrite: 0,
    notices: [],
    iterationTools: [],
    iterationPlans: 0,
    callIds: new Set(fork?.messages.flatMap(callIdsOf)),
    children: new Map(),
    choice: null,
    abortRequested: false,
    abortWhy: null,
    suspended: false,
    fruitlessRecoveries: 0,
    waitedMs: 0,
    waitingSince: null,
  }
}

const NO_RESULT = { attempts: 0, isGiven: false, problem: null }

function callIdsOf(message: Message): string[] {
  return message.role === 'assistant' ? message.calls.map(({ call_id }) => call_id) : []
}

function startNode(state: FoldedState, node: NodeName): void {
  state.node = node
  if (node !== 'plan') return
  state.turns = 0
  state.iterationTokens = 0
  state.calls = []
  state.iterationTools = []
  state.iterationPlans = 0
  state.wantsTurn = false
}

/** An iteration without a tool call; a plan alone is no work. */
function isIdle({ calls, iterationPlans, iterationTools }: FoldedState): boolean {
  return calls.length === 0 || (iterationPlans > 0 && iterationTools.length === iterationPlans)
}

/** A call that was cut off may set the plan again. */
function foldPlan(state: FoldedState, callId: string): void {
  const call = callOf(state, callId)
  if (!call.setsPlan) state.iterationPlans += 1
  call.setsPlan = true
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

type RecordOf<K> = Extract<RunRecord, { kind: K }>

function foldTurn(state: FoldedState, record: RecordOf<'model_turn'>): void {
  const message = record.private?.message ?? {
    role: 'assistant',
    text: record.payload.text,
    calls: [],
  }
  const feedback = record.private?.feedback
  state.turns += 1
  state.fruitlessRecoveries = 0
  if (record.payload.gives_result === true) return foldResultTurn(state, record, message)
  if (record.payload.heard !== undefined) foldHeard(state, record.payload.heard)
  noteTurn(state.progress, message.calls, feedback !== undefined)
  state.conversation.add(message)
  if (feedback !== undefined) state.conversation.add({ role: 'user', text: feedback })
  state.wantsTurn = message.calls.length > 0 || feedback !== undefined
  const { stop } = record.payload
  const isEnd = stop === 'refusal' || stop === 'content_filter'
  state.gaveUp = isEnd && message.calls.length === 0 ? stop : null
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
  const { stop } = payload
  if (stop === 'refusal' || stop === 'content_filter') state.gaveUp = stop
}

function foldResultAnswer(
  state: FoldedState,
  { attempt, problem }: EventPayloads['result'],
): void {
  state.result = { attempts: attempt, isGiven: problem === null, problem }
  if (problem === null) state.gaveUp = null
}

/** After a message, as after a human's answer: people may have changed files, and ask anew. */
function foldHeard(state: FoldedState, ids: readonly string[]): void {
  for (const message of takeHeard(state.messages, ids)) state.conversation.add(message)
  resetCounts(state.progress)
  state.idleIterations = 0
  if (state.lastCheck !== null) state.lastCheck.stale = true
}

/**
 * The open call with this id, else the first open one: results come in the order of the calls, and
 * in logs of earlier versions the id in an event may be redacted.
 */
function callOf(
  state: FoldedState,
  callId: string,
  isOpen = ({ status }: CallState): boolean => status !== 'done',
): Mutable<CallState> {
  const open = state.calls.filter(isOpen)
  const found = open.find(({ call }) => call.call_id === callId) ?? open[0]
  if (found === undefined) throw new TypeError(`the log names an unknown tool call ${callId}`)
  return found
}

function foldStart(state: FoldedState, record: RecordOf<'tool_started'>): void {
  const { payload } = record
  const call = callOf(state, payload.call_id)
  call.status = 'started'
  call.plan = record.private?.plan ?? null
  if (payload.pgid !== undefined) state.mayHaveStrays = true
  if (payload.effect === 'read') return
  state.lastWrite = record.seq
  if (state.lastCheck !== null) state.lastCheck.stale = true
}

function foldCheckpoint(state: FoldedState, { payload, seq }: RecordOf<'checkpoint'>): void {
  // Of the folder that was meant; the run works in a copy.
  if (payload.reason === 'apply') return
  const newest = payload.checkpoint_id
  const { start = newest, gate = newest } = state.checkpoints ?? {}
  state.checkpoints = { start, gate, newest, seq }
}

/** What a run has started, and what came of it. */
function foldChild(
  { children, checkpoints }: FoldedState,
  { kind, payload }: RecordOf<
    | 'attempt_started' | 'attempt_ended' | 'delegate_started' | 'delegate_ended'
    | 'files_changing'
  >,
): void {
  const known = children.get(payload.run_id ?? '')
  if (kind === 'attempt_started' || kind === 'delegate_started') {
    const isAttempt = kind === 'attempt_started'
    children.set(payload.run_id, {
      runId: payload.run_id,
      role: isAttempt ? 'attempt' : 'delegate',
      number: isAttempt ? payload.attempt : payload.number,
      callId: isAttempt ? '' : payload.call_id,
      checkpointId: isAttempt ? (checkpoints?.start ?? '') : payload.checkpoint_id,
      end: null,
      merged: null,
    })
  } else if (known !== undefined && kind === 'files_changing') {
    // What is cut off is done by the next start.
    const merged = { operation: payload.operation_id, conflicts: payload.conflicts ?? [] }
    children.set(known.runId, { ...known, merged })
  } else if (known !== undefined && kind !== 'files_changing') {
    children.set(known.runId, { ...known, end: payload })
  }
}

/** What somebody changed between the intent and its end stays as it is, like any conflict. */
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

/** Others changed files while the run waited: it is checked again, and the model hears of it. */
function foldFilesChanged(state: FoldedState, record: RecordOf<'files_changed'>): void {
  // An isolated run works in a copy: the folder that was meant is nothing to it.
  const isOwn = state.head.checkpointSeq === state.checkpoints?.seq
  // The call that brought them tells the model.
  if (record.payload.operation === 'merge') {
    state.lastWrite = record.seq
    foldSkipped(state, record.payload)
  }
  if (record.payload.operation !== 'restore' || !isOwn) return
  state.lastWrite = record.seq
  if (state.lastCheck !== null) state.lastCheck.stale = true
  const notice = restoreNotice(record.payload)
  // A message cannot stand between a call and its result.
  if (state.calls.every(({ status }) => status === 'done')) state.conversation.add(notice)
  else state.notices.push(notice)
}

function foldResult(
  state: FoldedState,
  payload: EventPayloads['tool_result'],
  { images, explores, whole }: NonNullable<RecordOf<'tool_result'>['private']> = {},
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

/**
 * How the reason of a check without a verdict began in logs that do not have the field `undecided`
 * yet.
 */
const UNDECIDED_BEFORE = 'not judged: '

function isUndecided({ payload, private: hidden }: RecordOf<'goal_check'>): boolean {
  return hidden?.undecided ?? payload.reason.startsWith(UNDECIDED_BEFORE)
}

function foldCheck(state: FoldedState, record: RecordOf<'goal_check'>): void {
  const { payload } = record
  state.fruitlessRecoveries = 0
  const output = record.private?.output ?? state.lastCheck?.output ?? ''
  state.baselineTests ??= record.private?.tests ?? null
  if (record.private?.seal !== undefined) foldSeal(state, record.private.seal)
  const isFirst = state.lastCheck === null
  const { iteration } = record
  state.lastCheck = { payload, iteration, output, stale: isUndecided(record) }
  if (!payload.cached) noteCheck(state.progress, payload.reason)
  if (!payload.cached) state.mayHaveStrays = false
  const { conversation, frozen } = state
  if (conversation.isEmpty) conversation.add(firstMessage(frozen, payload, output))
  else if (isFirst) conversation.add(forkFeedback(payload, output))
  else if (!payload.achieved) conversation.add(checkFeedback(record.iteration, payload, output))
}

/** What was found to belong to the check is compared from now on. */
function foldSeal(state: FoldedState, seal: StoredSeal): void {
  state.seal = joinSeals(state.seal, seal)
  if (state.baseline !== null)
    state.baseline = { files: { ...seal.files, ...state.baseline.files } }
}

function foldResponse(
  state: FoldedState,
  record: RecordOf<'human_check_response'>,
  gate: Gate | null,
): void {
  const { decision, feedback, edits, attempt } = record.payload
  if (attempt !== undefined) state.choice = attempt
  state.waitedMs += record.ts * 1000 - (state.waitingSince ?? record.ts * 1000)
  state.waitingSince = null
  resetCounts(state.progress)
  state.idleIterations = 0
  if (state.lastCheck !== null) state.lastCheck.stale = true
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
