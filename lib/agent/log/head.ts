/**
 * The head of a run as a fold over its records: small, cheap, and the same in the engine, in every
 * store and after a restart.
 *
 * @module
 */
import { isoTime } from '../../internal/time.js'
import { IllegalTransitionError } from '../errors.js'
import {
  isTerminal, type EventPayloads, type RunCreated, type RunRecord, type RunRequest, type RunStatus,
} from '../events.js'
import type { RunDetails, RunHead, RunSummary } from '../run-details.js'
import { changeOf, type RecordChange } from './changes/index.js'
import { transition } from './transitions.js'

/**
 * Folds one record into the head of its run and returns the head; the first record (`run_created`)
 * creates it. The head is changed in place, because a copy per record would make long runs slow.
 *
 * @throws `IllegalTransitionError` when the record does not fit the status of the run.
 */
export function foldHead(head: RunHead | null, record: RunRecord): RunHead {
  if (head === null) {
    if (record.kind !== 'run_created')
      throw new TypeError(`a run begins with run_created, not ${record.kind}`)
    return createHead(record)
  }
  const { details } = head
  const change = changeOf(record.kind)
  details.status = statusAfter(details.status, record, change)
  details.last_seq = record.seq
  details.iteration = details.final_state.iteration = record.iteration
  head.last_ts = record.ts
  change.head?.(head, record)
  return head
}

/**
 * Returns the status after `record`. Nothing follows a final status but what becomes of the run's
 * files. `change`: that of the kind of the record.
 *
 * @throws {@link IllegalTransitionError}
 */
export function statusAfter(
  status: RunStatus,
  record: RunRecord,
  change: RecordChange = changeOf(record.kind),
): RunStatus {
  const trigger = change.trigger?.(record)
  const next = trigger === undefined ? status : transition(status, trigger)
  const isLate = change.followsEnd !== true && isTerminal(status)
  if (next === null || isLate) throw new IllegalTransitionError(status, record.kind)
  return next
}

function createHead(record: RunCreated): RunHead {
  const { private: frozen } = record
  const request = frozen?.request
  return {
    details: createDetails(record),
    hasInstructions: (request?.instructions ?? frozen?.instructions?.project) !== undefined,
    hasResultSchema: request?.result_schema !== undefined,
    resultSeq: null,
    answerSeq: null,
    owner: frozen?.owner ?? { id: null, tenant: null },
    idempotency: frozen?.idempotency ?? null,
    recoveries: 0,
    last_ts: record.ts,
    lastDecision: null,
    checkpointSeq: null,
    checkedSeq: null,
    operation: null,
  }
}

/** The fields that heads of earlier versions may lack. */
const ADDED: Pick<RunDetails, AddedField> = {
  max_tool_calls: null,
  temperature: null,
  reasoning_effort: null,
  max_output_tokens: null,
  workspace: 'in_place',
  checkpoint_id: null,
  changes: null,
  forked_from: null,
  assurance: null,
  check_files: null,
  held_back: null,
  changed_tests: null,
  allowed: null,
  may_change: null,
  root_run_id: '',
  role: 'root',
  attempts: null,
  delegation: null,
  delegates: 0,
  // Only in the log: see `request/complete-details.ts`.
  instructions: null,
  project_instructions: null,
  tools: null,
  compaction: 'drop',
  plan: null,
  images: 0,
  fallback_models: null,
  active_model: '',
  usage_by_model: null,
  result_schema: null,
  result: null,
  answer: '',
}

/** All fields, as they are before anything is known. */
const BLANK: RunDetails = {
  run_id: '',
  goal: '',
  status: 'pending',
  model_name: '',
  max_iterations: 0,
  hitl_enabled: false,
  cwd: '',
  error: null,
  final_state: {
    iteration: 0, goal_achieved: false, goal_reason: '', total_tokens: 0, estimated_cost_usd: 0,
  },
  created_at: '',
  started_at: null,
  ended_at: null,
  iteration: 0,
  end_reason: null,
  gate: null,
  last_seq: 0,
  parent_run_id: null,
  metadata: {},
  usage: {
    input_tokens: 0,
    output_tokens: 0,
    cached_tokens: 0,
    reasoning_tokens: 0,
    estimated_tokens: 0,
    model_calls: 0,
    tool_calls: 0,
  },
  cost_known: true,
  check: null,
  approval: 'never',
  max_total_tokens: null,
  max_cost_usd: null,
  max_seconds: null,
  ...ADDED,
}

function createDetails({ payload, private: frozen, run_id, seq, ts }: RunCreated): RunDetails {
  return {
    ...BLANK,
    ...requested(frozen?.request),
    run_id,
    goal: payload.goal,
    model_name: payload.model_name,
    max_iterations: payload.max_iterations,
    hitl_enabled: payload.hitl_enabled,
    cwd: payload.cwd,
    final_state: { ...BLANK.final_state },
    created_at: isoTime(ts),
    last_seq: seq,
    parent_run_id: payload.parent_run_id,
    usage: { ...BLANK.usage },
    cost_known: frozen?.prices !== null,
    workspace: payload.workspace ?? 'in_place',
    forked_from: payload.forked_from ?? null,
    root_run_id: payload.root_run_id ?? run_id,
    role: payload.role ?? 'root',
    attempts: attemptsOf(payload),
    plan: frozen?.fork?.plan ?? null,
    active_model: payload.model_name,
  }
}

/** What details show of a request; clients that fold events do not have it. */
function requested(request: Partial<RunRequest> = {}): Partial<RunDetails> {
  return {
    metadata: request.metadata ?? {},
    check: request.check ?? null,
    approval: request.approval ?? 'never',
    max_total_tokens: request.max_total_tokens ?? null,
    max_cost_usd: request.max_cost_usd ?? null,
    max_seconds: request.max_seconds ?? null,
    max_tool_calls: request.max_tool_calls ?? null,
    temperature: request.temperature ?? null,
    reasoning_effort: request.reasoning_effort ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    may_change: request.may_change ?? null,
    delegation: request.delegation ?? null,
    tools: request.tools ?? null,
    compaction: request.compaction ?? 'drop',
    images: request.images?.length ?? 0,
    fallback_models: request.fallback_models ?? null,
    usage_by_model: request.fallback_models === undefined ? null : [],
  }
}

function attemptsOf({ attempts }: EventPayloads['run_created']): RunDetails['attempts'] {
  if (attempts === undefined) return null
  const { count, choose } = attempts
  return { count, choose, chosen: null, runs: [] }
}

/** A head as it was stored: earlier versions did not know some of the fields. */
export type StoredHead = Omit<RunHead, 'details' | NewHeadField> &
  Partial<Pick<RunHead, NewHeadField>> & { readonly details: StoredDetails }

type NewHeadField =
  | 'answerSeq' | 'checkedSeq' | 'checkpointSeq' | 'hasInstructions' | 'hasResultSchema'
  | 'operation' | 'resultSeq'

type StoredDetails = Omit<RunDetails, 'usage' | AddedField> &
  Partial<Pick<RunDetails, AddedField>> & {
    readonly usage: Omit<RunDetails['usage'], AddedCount> &
      Partial<Pick<RunDetails['usage'], AddedCount>>
  }

type AddedCount = 'estimated_tokens'

type AddedField =
  | 'active_model'
  | 'allowed'
  | 'answer'
  | 'assurance'
  | 'attempts'
  | 'changed_tests'
  | 'changes'
  | 'check_files'
  | 'checkpoint_id'
  | 'compaction'
  | 'delegates'
  | 'delegation'
  | 'fallback_models'
  | 'forked_from'
  | 'held_back'
  | 'images'
  | 'instructions'
  | 'max_output_tokens'
  | 'max_tool_calls'
  | 'may_change'
  | 'plan'
  | 'project_instructions'
  | 'reasoning_effort'
  | 'result'
  | 'result_schema'
  | 'role'
  | 'root_run_id'
  | 'temperature'
  | 'tools'
  | 'usage_by_model'
  | 'workspace'

/** Fills in what the head of an earlier version lacks, and nothing that a damaged one lacks. */
export function completeHead({ details, ...head }: StoredHead): RunHead {
  const { run_id: root_run_id, model_name: active_model } = details
  const usage = { estimated_tokens: 0, ...details.usage }
  return {
    checkpointSeq: null,
    checkedSeq: null,
    hasInstructions: false,
    hasResultSchema: false,
    resultSeq: null,
    answerSeq: null,
    operation: null,
    ...head,
    details: { ...ADDED, root_run_id, active_model, ...details, usage },
  }
}

/** A copy of a head that later folds do not change. */
export function copyHead(head: RunHead): RunHead {
  const { details } = head
  return { ...head, details: { ...details, final_state: { ...details.final_state } } }
}

/** The fields of a run that lists show. */
export function summarize({ details, problem }: RunHead): RunSummary {
  return {
    run_id: details.run_id,
    goal: details.goal,
    status: details.status,
    created_at: details.created_at,
    model_name: details.model_name,
    iteration: details.iteration,
    end_reason: details.end_reason,
    started_at: details.started_at,
    ended_at: details.ended_at,
    parent_run_id: details.parent_run_id,
    root_run_id: details.root_run_id,
    role: details.role,
    attempts: details.attempts?.count ?? 0,
    delegates: details.delegates,
    metadata: details.metadata,
    cwd: details.cwd,
    max_iterations: details.max_iterations,
    estimated_cost_usd: details.final_state.estimated_cost_usd,
    cost_known: details.cost_known,
    last_seq: details.last_seq,
    problem: problem ?? null,
  }
}
