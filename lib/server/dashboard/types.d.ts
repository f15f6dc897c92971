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
  readonly workspace: 'in_place' | 'isolated'
  /** Null before the first checkpoint, and without checkpoints. */
  readonly checkpoint_id: string | null
  readonly changes: ChangesState | null
  readonly forked_from: { readonly run_id: string; readonly seq: number } | null
}

export type ChangesState = 'pending' | 'applied' | 'discarded'

export interface LeftOut {
  readonly reason: string
  readonly count: number
  readonly paths: readonly string[]
}

/** A checkpoint as its event reports it. */
export interface Checkpoint {
  readonly checkpoint_id: string
  readonly seq: number
  readonly iteration: number
  readonly reason: string
  readonly ts: number
}

export interface NetChange {
  readonly path: string
  readonly old_path: string | null
  readonly status: 'added' | 'modified' | 'deleted' | 'renamed'
  readonly additions: number
  readonly deletions: number
  readonly binary: boolean
  readonly mode: { readonly before: string | null; readonly after: string | null }
  /** Null when it was left out. */
  readonly diff: string | null
  readonly redacted: boolean
}

export interface NetChanges {
  readonly from: string | null
  readonly to: string | null
  readonly changes: readonly NetChange[]
  readonly more: number
  readonly left_out: readonly LeftOut[]
  readonly note: string | null
}

export interface FileEntry {
  readonly path: string
  readonly type: 'file' | 'folder' | 'link'
  readonly size: number
  readonly mode: string
}

export interface FileList {
  readonly path: string
  readonly at: string
  readonly entries: readonly FileEntry[]
  readonly more: number
}

export interface RestoreResult {
  readonly restored: string
  readonly checkpoint_id: string
  readonly paths: readonly string[]
  readonly left_out: readonly LeftOut[]
}

export interface ApplyResult {
  readonly applied: readonly string[]
  readonly merged: readonly string[]
  readonly conflicts: readonly string[]
  readonly checkpoint_id: string | null
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
  run_created: {
    goal: string
    model_name: string
    cwd: string
    /** With which a fork begins. */
    messages?: readonly { message_id: string; text: string; by: string | null }[]
  }
  run_recovered: { attempt: number; in_doubt: readonly string[] }
  abort_requested: { by: string | null }
  checkpoint: {
    checkpoint_id: string
    reason: string
    files: number
    bytes: number
    new_bytes: number
    left_out: readonly LeftOut[]
  }
  user_message: { message_id: string; text: string; deliver: string; by: string | null }
  files_changing: { operation: 'restore' | 'apply'; by: string | null }
  files_changed: {
    operation: 'restore' | 'apply'
    paths: readonly string[]
    skipped: readonly string[]
    /** Paths beyond those of both lists. */
    more?: number
  }
  changes_decided: { changes: ChangesState; by: string | null }
  step_start: { node: string }
  llm_usage: {
    input_tokens: number
    output_tokens: number
    cost_usd: number | null
    purpose: string
  }
  model_turn: { turn: number; text: string; stop: string; heard?: readonly string[] }
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
    /** Ids of messages that came too late. */
    unheard?: readonly string[]
    changes?: { files: number; additions: number; deletions: number }
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
  /** Files concerned. */
  readonly paths?: readonly string[]
}
