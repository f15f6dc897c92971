/** The documents of the REST API, with the fields that the page shows. */

export type Status = 'pending' | 'running' | 'awaiting_human' | 'achieved' | 'failed' | 'aborted'

export interface RunSummary {
  readonly run_id: string
  readonly goal: string
  readonly status: Status
  readonly created_at: string
  readonly model_name: string
  readonly iteration: number
  readonly end_reason: string | null
  readonly started_at: string | null
  readonly ended_at: string | null
  readonly last_seq: number
  /** Why the run cannot be used; usually null. */
  readonly problem: string | null
}

export interface GatedCall {
  readonly call_id: string
  readonly tool: string
  readonly args: unknown
}

export interface Gate {
  readonly gate_id: string
  readonly kind: 'iteration' | 'tool' | 'recovery'
  readonly iteration: number
  readonly summary: string
  readonly deadline: string | null
  readonly calls: readonly GatedCall[]
}

export interface RunDetails extends Omit<RunSummary, 'problem'> {
  readonly max_iterations: number
  readonly hitl_enabled: boolean
  readonly cwd: string
  readonly error: {
    readonly message: string
    readonly traceback: string
    readonly code: string
  } | null
  readonly final_state: {
    readonly iteration: number
    readonly goal_achieved: boolean
    readonly goal_reason: string
    readonly total_tokens: number
    readonly estimated_cost_usd: number
  }
  readonly gate: Gate | null
  readonly parent_run_id: string | null
  readonly cost_known: boolean
  readonly check: string | null
  readonly approval: string
  readonly max_total_tokens: number | null
  readonly max_cost_usd: number | null
  readonly max_seconds: number | null
  readonly max_tool_calls: number | null
  readonly usage: {
    readonly input_tokens: number
    readonly output_tokens: number
    readonly cached_tokens: number
    readonly model_calls: number
    readonly tool_calls: number
  }
}

export interface FileChange {
  readonly path: string
  readonly change: 'created' | 'modified' | 'deleted' | 'renamed'
  readonly from?: string
  readonly added_lines: number
  readonly removed_lines: number
  readonly diff: string
}

export interface TestCounts {
  readonly total: number
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** Payloads of the kinds that have a view of their own; others show their name. */
export interface Payloads {
  run_created: { goal: string; model_name: string; cwd: string }
  run_recovered: { attempt: number; in_doubt: readonly string[] }
  abort_requested: { by: string | null }
  step_start: { node: string }
  llm_usage: {
    input_tokens: number
    output_tokens: number
    cost_usd: number | null
    purpose: string
  }
  model_turn: { turn: number; text: string; stop: string }
  reasoning: { text: string }
  tool_call: { tool: string; args: unknown; call_id: string }
  tool_started: { call_id: string }
  tool_result: {
    tool: string
    output: string
    exit_code: number
    call_id: string
    duration_ms: number
    changes?: readonly FileChange[]
  }
  goal_check: {
    achieved: boolean
    reason: string
    verified_by: string
    cached: boolean
    counts: TestCounts | null
    duration_ms: number
  }
  iteration_complete: { iteration: number; tokens: number }
  human_check_required: { gate_id: string; kind: string; summary: string; iteration: number }
  human_check_response: {
    decision: string
    gate_id: string
    decided_by: string | null
    feedback?: string
      edits?: Record<string, object>
  }
  run_end: {
    achieved: boolean
    iterations: number
    total_tokens: number
    status: Status
    end_reason: string
    reason: string
  }
  error: { message: string; traceback: string; code: string }
  log: { level: string; message: string }
}

interface EventFields {
  readonly run_id: string
  readonly iteration: number
  readonly ts: number
  readonly seq: number
}

export type AgentEvent = {
  [K in keyof Payloads]: EventFields & { readonly kind: K; readonly payload: Payloads[K] }
}[keyof Payloads]

export interface Model {
  readonly name: string
  readonly provider: string
  readonly is_language_model: boolean
  readonly default: boolean
  readonly description: string
}

export interface Goal {
  readonly name: string
  readonly description: string
  readonly usage: string
}

export interface Problem {
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: string
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[]
}
