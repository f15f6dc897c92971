/**
 * The head of a run as a fold over its records: small, cheap, and the same in the engine, in every
 * store and after a restart.
 *
 * @module
 */
import type { EventPayloads, RunCreated, RunRecord } from '../events.js'
import type { ChildUsage } from '../run-tree.js'
import type {
  AttemptInfo, Gate, ModelUsage, RunDetails, RunFailure, RunHead, RunSummary,
} from '../run-details.js'
import { editsHash } from './edits-hash.js'
import { statusAfter } from './transitions.js'

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
  details.status = statusAfter(details.status, record)
  details.last_seq = record.seq
  details.iteration = details.final_state.iteration = record.iteration
  head.last_ts = record.ts
  switch (record.kind) {
    case 'run_started':
      details.started_at = isoTime(record.ts)
      details.check_files = Object.keys(record.private?.baseline.files ?? {}).length
      break
    case 'run_recovered':
      head.recoveries = record.payload.attempt
      foldRepeats(details, record.payload.repeats ?? 0)
      break
    case 'llm_usage':
      foldUsage(details, record.payload)
      break
    case 'model_switched':
      details.active_model = record.payload.to
      break
    case 'model_turn':
      if (record.payload.gives_result !== true && record.payload.text !== '')
        head.answerSeq = record.seq
      break
    case 'result':
      if (record.payload.problem === null) head.resultSeq = record.seq
      break
    case 'tool_started':
      details.usage = { ...details.usage, tool_calls: details.usage.tool_calls + 1 }
      break
    case 'goal_check':
      details.final_state.goal_achieved = record.payload.achieved
      details.final_state.goal_reason = record.payload.reason
      details.assurance = record.payload.assurance ?? null
      if (details.check_files !== null)
        details.check_files += Object.keys(record.private?.seal?.files ?? {}).length
      break
    case 'human_check_required':
      details.gate = openGate(record)
      break
    case 'human_check_response': {
      const { gate_id, decision, attempt } = record.payload
      const edits = editsHash(record.payload.edits)
      details.gate = null
      head.lastDecision = {
        gate_id,
        decision,
        ...(attempt !== undefined && { attempt }),
        ...(edits !== undefined && { edits }),
      }
      break
    }
    case 'checkpoint':
      // `apply`: of the folder that was meant, while the run works in a copy.
      if (record.payload.reason !== 'apply') details.checkpoint_id = record.payload.checkpoint_id
      head.checkpointSeq = record.seq
      break
    case 'files_changing':
      head.operation = record.payload.operation_id
      break
    case 'files_changed':
      head.operation = null
      break
    case 'changes_decided':
      details.changes = record.payload.changes
      break
    case 'attempt_started': {
      const { attempt, run_id, model_name } = record.payload
      const started = { attempt, run_id, model_name, status: null, reason: '' }
      foldAttempt(details, { ...started, assurance: null, changes: null })
      break
    }
    case 'attempt_ended': {
      const { attempt, run_id, status, reason, assurance, changes, usage } = record.payload
      const model_name = details.attempts?.runs.find((one) => one.attempt === attempt)?.model_name
      const ended = { attempt, run_id, model_name: model_name ?? details.model_name, status }
      foldAttempt(details, { ...ended, reason, assurance, changes })
      foldChildUsage(details, usage)
      break
    }
    case 'attempt_chosen':
      foldChosen(details, record.payload.attempt)
      if (record.payload.result !== undefined) head.resultSeq = record.seq
      if (record.payload.answer !== undefined) head.answerSeq = record.seq
      break
    case 'delegate_started':
      details.delegates += 1
      break
    case 'plan_updated':
      details.plan = record.payload.steps
      break
    case 'delegate_ended':
      foldChildUsage(details, record.payload.usage)
      break
    case 'error':
      details.error = failureOf(record)
      break
    case 'run_end':
      details.end_reason = record.payload.end_reason
      details.ended_at = isoTime(record.ts)
      details.gate = null
      // The check was passed, and that was not enough.
      if (record.payload.end_reason === 'result_invalid') {
        details.final_state.goal_achieved = false
        details.final_state.goal_reason = record.payload.reason
      }
      // No check of its own says why.
      if (details.attempts?.chosen === null) details.final_state.goal_reason = record.payload.reason
      if (hasPendingChanges(details, record.payload)) details.changes ??= 'pending'
      break
    default:
  }
  return head
}

function hasPendingChanges(
  { workspace }: RunDetails,
  { achieved, changes }: EventPayloads['run_end'],
): boolean {
  return workspace === 'isolated' && achieved && (changes?.files ?? 0) > 0
}

/** A call that begins again counts when it does so, not twice. */
function foldRepeats(details: RunDetails, repeats: number): void {
  const { usage } = details
  if (repeats > 0) details.usage = { ...usage, tool_calls: usage.tool_calls - repeats }
}

function foldUsage(details: RunDetails, payload: EventPayloads['llm_usage']): void {
  const { final_state, usage } = details
  const isKnown = payload.cost_usd !== null && payload.estimated_tokens === undefined
  details.cost_known = isKnown && isKnownSoFar(details)
  details.usage = {
    input_tokens: usage.input_tokens + payload.input_tokens,
    output_tokens: usage.output_tokens + payload.output_tokens,
    cached_tokens: usage.cached_tokens + payload.cached_tokens,
    reasoning_tokens: usage.reasoning_tokens + payload.reasoning_tokens,
    estimated_tokens: usage.estimated_tokens + (payload.estimated_tokens ?? 0),
    model_calls: usage.model_calls + 1,
    tool_calls: usage.tool_calls,
  }
  final_state.total_tokens += payload.input_tokens + payload.output_tokens
  final_state.estimated_cost_usd += payload.cost_usd ?? 0
  if (payload.model_name !== undefined) foldModelUsage(details, payload.model_name, payload)
}

function foldModelUsage(
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

/** A model without a price has cost nothing yet before its first call, which may tell its cost. */
function isKnownSoFar({ cost_known, usage }: RunDetails): boolean {
  return cost_known || usage.model_calls === 0
}

/** Heads are copied flat, so lists are replaced, never changed. */
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

function foldChildUsage(details: RunDetails, used: ChildUsage): void {
  const { final_state, usage } = details
  details.cost_known = used.cost_known && isKnownSoFar(details)
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

function failureOf({ payload, iteration }: Extract<RunRecord, { kind: 'error' }>): RunFailure {
  const { message, traceback, code } = payload
  return { message, traceback, code, iteration }
}

function openGate({ payload, ts }: Extract<RunRecord, { kind: 'human_check_required' }>): Gate {
  const { gate_id, kind, iteration, summary, deadline, calls = [], candidates } = payload
  const gate = { gate_id, kind, iteration, summary, deadline, opened_at: isoTime(ts), calls }
  return candidates === undefined ? gate : { ...gate, candidates }
}

function createHead(record: RunCreated): RunHead {
  const { payload } = record
  const request = record.private?.request
  const frozen = record.private
  return {
    details: {
      run_id: record.run_id,
      goal: payload.goal,
      status: 'pending',
      model_name: payload.model_name,
      max_iterations: payload.max_iterations,
      hitl_enabled: payload.hitl_enabled,
      cwd: payload.cwd,
      error: null,
      final_state: {
        iteration: 0,
        goal_achieved: false,
        goal_reason: '',
        total_tokens: 0,
        estimated_cost_usd: 0,
      },
      created_at: isoTime(record.ts),
      started_at: null,
      ended_at: null,
      iteration: 0,
      end_reason: null,
      gate: null,
      last_seq: record.seq,
      parent_run_id: payload.parent_run_id,
      metadata: request?.metadata ?? {},
      usage: {
        input_tokens: 0,
        output_tokens: 0,
        cached_tokens: 0,
        reasoning_tokens: 0,
        estimated_tokens: 0,
        model_calls: 0,
        tool_calls: 0,
      },
      cost_known: frozen?.prices !== null,
      check: request?.check ?? null,
      approval: request?.approval ?? 'never',
      max_total_tokens: request?.max_total_tokens ?? null,
      max_cost_usd: request?.max_cost_usd ?? null,
      max_seconds: request?.max_seconds ?? null,
      max_tool_calls: request?.max_tool_calls ?? null,
      temperature: request?.temperature ?? null,
      reasoning_effort: request?.reasoning_effort ?? null,
      max_output_tokens: request?.max_output_tokens ?? null,
      workspace: payload.workspace ?? 'in_place',
      checkpoint_id: null,
      changes: null,
      forked_from: payload.forked_from ?? null,
      assurance: null,
      check_files: null,
      root_run_id: payload.root_run_id ?? record.run_id,
      role: payload.role ?? 'root',
      attempts: attemptsOf(payload),
      delegation: request?.delegation ?? null,
      delegates: 0,
      // Only in the log: see `request/complete-details.ts`.
      instructions: null,
      project_instructions: null,
      tools: request?.tools ?? null,
      compaction: request?.compaction ?? 'drop',
      plan: frozen?.fork?.plan ?? null,
      images: request?.images?.length ?? 0,
      fallback_models: request?.fallback_models ?? null,
      active_model: payload.model_name,
      usage_by_model: request?.fallback_models === undefined ? null : [],
      result_schema: null,
      result: null,
      answer: '',
    },
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
    operation: null,
  }
}

function attemptsOf({ attempts }: EventPayloads['run_created']): RunDetails['attempts'] {
  if (attempts === undefined) return null
  const { count, choose } = attempts
  return { count, choose, chosen: null, runs: [] }
}

/** A head as it was stored: earlier versions did not know some of the fields. */
export type StoredHead = Omit<RunHead, 'details' | NewHeadField> &
  Partial<Pick<RunHead, NewHeadField>> & {
    readonly details: Omit<RunDetails, NewField | 'usage'> &
      Partial<Pick<RunDetails, NewField>> & {
        readonly usage: Omit<RunDetails['usage'], NewCount> &
          Partial<Pick<RunDetails['usage'], NewCount>>
      }
  }

type NewCount = 'estimated_tokens'
type NewHeadField =
  'answerSeq' | 'checkpointSeq' | 'hasInstructions' | 'hasResultSchema' | 'operation' | 'resultSeq'
type NewField =
  | 'active_model'
  | 'answer'
  | 'assurance'
  | 'attempts'
  | 'changes'
  | 'check_files'
  | 'checkpoint_id'
  | 'compaction'
  | 'delegates'
  | 'delegation'
  | 'fallback_models'
  | 'forked_from'
  | 'images'
  | 'instructions'
  | 'max_output_tokens'
  | 'max_tool_calls'
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

/** Fills in what a stored head lacks. */
export function completeHead({ details, ...head }: StoredHead): RunHead {
  return {
    checkpointSeq: null,
    hasInstructions: false,
    hasResultSchema: false,
    resultSeq: null,
    answerSeq: null,
    operation: null,
    ...head,
    details: {
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
      root_run_id: details.run_id,
      role: 'root',
      attempts: null,
      delegation: null,
      delegates: 0,
      instructions: null,
      project_instructions: null,
      tools: null,
      compaction: 'drop',
      plan: null,
      images: 0,
      fallback_models: null,
      active_model: details.model_name,
      usage_by_model: null,
      result_schema: null,
      result: null,
      answer: '',
      ...details,
      usage: { estimated_tokens: 0, ...details.usage },
    },
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

/** Formats float seconds since the epoch as ISO 8601 in UTC with milliseconds. */
export function isoTime(ts: number): string {
  return new Date(Math.round(ts * 1000)).toISOString()
}
