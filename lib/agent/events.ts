/**
 * The vocabulary of the event log. A run *is* its list of records: every other view of it (details,
 * conversation, status) is a fold over that list. Names on the wire are snake_case, and so are the
 * fields here: a record is stored, folded and sent in one shape.
 *
 * 1. `seq` counts 1, 2, 3, … within a run, without gaps.
 * 2. `ts` (float seconds since the epoch) never decreases within a run.
 * 3. What stands under `private` is for the engine alone and never reaches a subscriber.
 * 4. A reader skips kinds that it does not know.
 *
 * @module
 */
import type { JsonObject } from '../internal/json.js'
import type { GoalBaseline, GoalSpec, TestCounts, TestOutcomes } from './goal.js'
import type { AssistantMessage } from './model.js'
import type { ModelPrices } from './usage.js'
import type { TraceContext } from './tracing/trace-context.js'
import type { FileChange } from './workspace/workspace.js'

/** Where a run stands; the last three absorb. */
export type RunStatus = 'pending' | 'running' | 'awaiting_human' | 'achieved' | 'failed' | 'aborted'

/** True once nothing more can happen to a run. */
export function isTerminal(status: RunStatus): boolean {
  return status === 'achieved' || status === 'failed' || status === 'aborted'
}

/** Why a run ended. */
export type EndReason =
  | 'goal_achieved'
  | 'max_iterations'
  | 'token_budget'
  | 'cost_budget'
  | 'time_budget'
  | 'tool_call_budget'
  | 'stuck'
  | 'context_exhausted'
  | 'provider_error'
  | 'goal_check_error'
  | 'internal_error'
  | 'recovery_failed'
  | 'human_abort'
  | 'cancelled'
  | 'gate_timeout'

/** The nodes of one iteration. */
export type NodeName = 'plan' | 'act' | 'evaluate' | 'human_check'

/** What a human may answer at a gate; `reject` only where single tool calls are gated. */
export type Decision = 'approve' | 'abort' | 'reject'

/** One tool call that waits at a gate of kind `tool`. */
export interface GatedCall {
  readonly call_id: string
  readonly tool: string
  readonly args: JsonObject
}

/** What a human wants changed about one gated tool call. */
export interface CallEdit {
  readonly decision?: 'approve' | 'reject' | undefined
  /** Arguments to use in place of the model's; checked against the tool's schema again. */
  readonly args?: JsonObject | undefined
  /** Told to the model when the call is rejected. */
  readonly feedback?: string | undefined
}

/** The payload of each event kind, as it is sent to subscribers. */
export interface EventPayloads {
  readonly run_created: {
    readonly goal: string
    readonly model_name: string
    readonly cwd: string
    readonly max_iterations: number
    readonly hitl_enabled: boolean
    readonly parent_run_id: string | null
  }
  readonly run_started: Record<never, never>
  /** Somebody asked for the run's end; durable, so that it holds after a crash as well. */
  readonly abort_requested: { readonly by: string | null }
  /** The service shut down in good order; the run goes on when it starts again. */
  readonly run_suspended: Record<never, never>
  /** The service stopped during the run, and another process (or a restart) took it up. */
  readonly run_recovered: { readonly attempt: number; readonly in_doubt: readonly string[] }
  readonly step_start: { readonly node: NodeName }
  readonly llm_usage: {
    /** Includes tokens read from a cache. */
    readonly input_tokens: number
    /** Includes reasoning tokens. */
    readonly output_tokens: number
    readonly cached_tokens: number
    readonly reasoning_tokens: number
    /** Price of this call in US dollars; null when the model's price is not known. */
    readonly cost_usd: number | null
    readonly purpose: 'worker' | 'judge'
  }
  readonly model_turn: { readonly turn: number; readonly text: string; readonly stop: string }
  readonly reasoning: { readonly text: string }
  /** The model asked for a tool; whether it runs is decided after this event. */
  readonly tool_call: {
    readonly tool: string
    readonly args: JsonObject
    readonly call_id: string
  }
  /** Durable before the tool does anything. */
  readonly tool_started: {
    readonly call_id: string
    readonly args_hash: string
    readonly effect: 'read' | 'idempotent' | 'unsafe'
    /** Process group of the command, for tools that start one. */
    readonly pgid?: number
  }
  readonly tool_result: {
    readonly tool: string
    readonly output: string
    /** A process's own, or 0 ok, 1 tool error, 124 timeout, 126 refused, 127 unknown tool,
     * 130 aborted, -1 outcome unknown. */
    readonly exit_code: number
    readonly call_id: string
    readonly duration_ms: number
    /** Files that the tool changed, with their diffs; absent when none or not known. */
    readonly changes?: readonly FileChange[]
  }
  readonly goal_check: {
    readonly achieved: boolean
    readonly reason: string
    readonly verified_by: 'command' | 'judge'
    /** True when nothing was written since the last check, so that its answer still holds. */
    readonly cached: boolean
    readonly counts: TestCounts | null
    readonly duration_ms: number
  }
  readonly iteration_complete: { readonly iteration: number; readonly tokens: number }
  readonly human_check_required: {
    readonly iteration: number
    readonly summary: string
    readonly gate_id: string
    readonly kind: 'iteration' | 'tool' | 'recovery'
    /** ISO 8601; null waits for ever. */
    readonly deadline: string | null
    readonly calls?: readonly GatedCall[]
  }
  readonly human_check_response: {
    readonly decision: Decision
    readonly gate_id: string
    readonly decided_by: string | null
    readonly feedback?: string
    readonly edits?: { readonly [callId: string]: CallEdit }
  }
  readonly run_end: {
    readonly achieved: boolean
    readonly iterations: number
    readonly total_tokens: number
    readonly status: RunStatus
    readonly end_reason: EndReason
    readonly reason: string
    readonly estimated_cost_usd: number
    readonly cost_known: boolean
  }
  readonly error: { readonly message: string; readonly traceback: string; readonly code: string }
  readonly log: { readonly level: 'info' | 'warn' | 'error'; readonly message: string }
}

/** When single tool calls wait for a human. */
export type Approval = 'never' | 'writes' | 'all'

/** A start request with every default filled in, as it is frozen in the log. */
export interface RunRequest {
  readonly goal: string
  /** Real path of the working directory. */
  readonly cwd: string
  readonly model_name: string
  readonly max_iterations: number
  readonly hitl_enabled: boolean
  /** Command that verifies a free-text goal. */
  readonly check: string | null
  readonly approval: Approval
  readonly max_total_tokens: number | null
  readonly max_cost_usd: number | null
  readonly max_seconds: number | null
  readonly max_tool_calls: number | null
  readonly metadata: { readonly [name: string]: string }
}

/** What only the engine reads: frozen definitions, opaque provider data, whole check output. */
export interface PrivatePayloads {
  readonly run_created: {
    readonly request: RunRequest
    readonly goal: GoalSpec
    readonly prices: ModelPrices | null
    readonly tools: readonly string[]
    /** Who started the run: `id` for idempotency and decided_by, `tenant` for who may see it. */
    readonly owner: RunOwner
    readonly idempotency: { readonly key: string; readonly body_hash: string } | null
    /** The trace that the request belongs to; absent when it named none. */
    readonly trace?: TraceContext
  }
  readonly run_started: { readonly baseline: GoalBaseline }
  readonly model_turn: {
    readonly message: AssistantMessage
    /** Set when the provider refused what the model wrote: told to it before its next turn. */
    readonly feedback?: string
  }
  readonly tool_started: { readonly plan: JsonObject }
  readonly goal_check: {
    readonly output: string
    readonly tests: TestOutcomes | null
    /** True when the judge reached no verdict and is asked again; absent without a judge. */
    readonly undecided?: boolean
  }
}

/** Who a run belongs to. */
export interface RunOwner {
  /** The principal that started the run; null when the host has no authorization. */
  readonly id: string | null
  /** Runs are seen only within their tenant; null is a tenant like any other. */
  readonly tenant: string | null
}

/** Names of all event kinds. */
export type EventKind = keyof EventPayloads

/** What every event has, whatever its kind. */
export interface EventFields {
  readonly run_id: string
  readonly iteration: number
  /** Seconds since the Unix epoch, with fraction. */
  readonly ts: number
  readonly seq: number
}

/** One event as subscribers get it: the spec's five fields and `seq`. */
export type AgentEvent = {
  readonly [K in EventKind]: EventFields & { readonly kind: K; readonly payload: EventPayloads[K] }
}[EventKind]

/** The part of a record of kind `K` that only the engine reads, for kinds that have one. */
export type PrivatePart<K> = K extends keyof PrivatePayloads
  ? { readonly private?: PrivatePayloads[K] }
  : unknown

/** One record of the log: an event, the version of its format, and what only the engine reads. */
export type RunRecord = {
  readonly [K in EventKind]: EventFields &
    PrivatePart<K> & { readonly v: 1; readonly kind: K; readonly payload: EventPayloads[K] }
}[EventKind]

/** The record that a run begins with. */
export type RunCreated = Extract<RunRecord, { kind: 'run_created' }>

/** A record before the log has given it run, sequence number and time. */
export type RecordDraft = {
  readonly [K in EventKind]: PrivatePart<K> & {
    readonly kind: K
    readonly iteration: number
    readonly payload: EventPayloads[K]
  }
}[EventKind]

/** The format version that this engine writes, and the newest that it reads. */
export const RECORD_VERSION = 1

/** The event that subscribers get of a record: without its version and its private part. */
export function publicEvent(record: RunRecord): AgentEvent {
  const { kind, run_id, iteration, ts, payload, seq } = record
  return { kind, run_id, iteration, ts, payload, seq } as AgentEvent
}
