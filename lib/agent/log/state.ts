/**
 * The fold of a run's records to its state; `run-state.ts` says what that is.
 *
 * 1. The state is a fold over the records of the run and nothing else, so a process that takes the
 *    run over after a crash continues exactly where the first one stopped.
 * 2. Only this file and the handlers in `changes` change a state: to every other file its fields
 *    are read-only.
 * 3. What is not in the log (what a model turned out to accept, when this process took the run
 *    over) is kept elsewhere.
 *
 * @module
 */
import { Conversation } from '../conversation/conversation.js'
import type { RunRecord } from '../events.js'
import type { Message } from '../model.js'
import { changeOf, type FoldedState } from './changes/index.js'
import { foldHead } from './head.js'
import { newMessages } from './messages.js'
import { newProgress } from './progress.js'
import { readLog, type RecordReader } from './read-log.js'
import type { RunState } from './run-state.js'

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
  changeOf(record.kind).state?.(state, record, gate)
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
    setup: null,
    baselineTests: fork?.baselineTests ?? null,
    areTestsLate: fork?.late_tests ?? false,
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
    checkedFiles: null,
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
