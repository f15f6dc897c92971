/**
 * A run as the service shows it: its details, the short form for lists, and the head that stores
 * keep beside each log. The fold that makes them of records is `log/head.ts`.
 *
 * @module
 */
import type {
  Approval, ChangesState, EndReason, ForkOrigin, GatedCall, RunOwner, RunStatus, WorkspaceMode,
} from './events.js'
import type { Assurance } from './goal.js'
import type { Usage } from './usage.js'

/** The gate at which a run waits for a human. */
export interface Gate {
  readonly gate_id: string
  readonly kind: 'iteration' | 'tool' | 'recovery'
  readonly iteration: number
  readonly summary: string
  /** ISO 8601 UTC; null never expires. */
  readonly deadline: string | null
  readonly opened_at: string
  /** The calls that wait for approval; empty unless the gate is of kind `tool`. */
  readonly calls: readonly GatedCall[]
}

/** The error that ended a run. */
export interface RunFailure {
  readonly message: string
  readonly traceback: string
  readonly code: string
  readonly iteration: number
}

/** What a run has reached so far; after its end, the final result. */
export interface FinalState {
  iteration: number
  goal_achieved: boolean
  goal_reason: string
  total_tokens: number
  estimated_cost_usd: number
}

/** A run as clients get it. */
export interface RunDetails {
  readonly run_id: string
  readonly goal: string
  status: RunStatus
  readonly model_name: string
  readonly max_iterations: number
  readonly hitl_enabled: boolean
  readonly cwd: string
  error: RunFailure | null
  readonly final_state: FinalState
  /** ISO 8601 UTC. */
  readonly created_at: string
  started_at: string | null
  ended_at: string | null
  iteration: number
  end_reason: EndReason | null
  gate: Gate | null
  last_seq: number
  readonly parent_run_id: string | null
  readonly metadata: { readonly [name: string]: string }
  usage: Usage & { readonly model_calls: number; readonly tool_calls: number }
  /** False when a price is unknown: `estimated_cost_usd` counts that model as 0. */
  cost_known: boolean
  readonly check: string | null
  readonly approval: Approval
  readonly max_total_tokens: number | null
  readonly max_cost_usd: number | null
  readonly max_seconds: number | null
  readonly max_tool_calls: number | null
  readonly workspace: WorkspaceMode
  /** The newest checkpoint; null before the first, and without checkpoints. */
  checkpoint_id: string | null
  /** What became of the changes of an isolated run that achieved its goal; null for other runs. */
  changes: ChangesState | null
  readonly forked_from: ForkOrigin | null
  /** What the last verdict rests on; null before the first, and for runs of earlier versions. */
  assurance: Assurance | null
  /** Files that belong to the check; null before the start, and for runs of earlier versions. */
  check_files: number | null
}

/** A run as an element of a list. */
export interface RunSummary {
  readonly run_id: string
  readonly goal: string
  readonly status: RunStatus
  readonly created_at: string
  readonly model_name: string
  readonly iteration: number
  readonly end_reason: EndReason | null
  readonly started_at: string | null
  readonly ended_at: string | null
  readonly parent_run_id: string | null
  readonly last_seq: number
  /** Why the run cannot be used, because its log is damaged or of a newer version; usually null. */
  readonly problem: string | null
}

/** The small fold of a run that stores keep beside its log, for lists and lookups. */
export interface RunHead {
  readonly details: RunDetails
  readonly owner: RunOwner
  readonly idempotency: { readonly key: string; readonly body_hash: string } | null
  /** How often the run was taken over after its process had died. */
  recoveries: number
  /** `ts` of the last record: seconds since the Unix epoch, with fraction. */
  last_ts: number
  /** The last answered gate and its answer, by which a repeated answer is recognised. */
  lastDecision: { readonly gate_id: string; readonly decision: string } | null
  /** The `seq` of the newest checkpoint; null before the first. */
  checkpointSeq: number | null
  /** The restore or apply that has begun and is not finished; null for none. */
  operation: string | null
  /** Why the run cannot be used; only in lists, for a quarantined run. Never stored. */
  readonly problem?: string
}
