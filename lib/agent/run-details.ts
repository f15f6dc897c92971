/**
 * A run as the service shows it: its details, the short form for lists, and the head that stores
 * keep beside each log. The fold that makes them of records is `log/head.ts`.
 *
 * @module
 */
import type {
  Approval, ChangeCounts, ChangesState, Compaction, EndReason, ForkOrigin, GatedCall, GateKind,
  RunOwner, RunStatus, WorkspaceMode,
} from './events.js'
import type { JsonObject, JsonValue } from '../internal/json.js'
import type { Candidate, ChildRole, ChooseBy, Delegation } from './run-tree.js'
import type { Assurance } from './goal.js'
import type { ProjectInstructions } from './instructions.js'
import type { ReasoningEffort } from './model.js'
import type { PlanStep } from './plan.js'
import type { Usage } from './usage.js'

/** The gate at which a run waits for a human. */
export interface Gate {
  readonly gate_id: string
  readonly kind: GateKind
  readonly iteration: number
  readonly summary: string
  /** ISO 8601 UTC; null never expires. */
  readonly deadline: string | null
  readonly opened_at: string
  /** The calls that wait for approval; empty unless the gate is of kind `tool`. */
  readonly calls: readonly GatedCall[]
  /** The attempts among which one is chosen; absent unless the gate is of kind `choice`. */
  readonly candidates?: readonly Candidate[]
}

/** One attempt of a run, as far as the run knows. */
export interface AttemptInfo {
  readonly attempt: number
  readonly run_id: string
  readonly model_name: string
  /** Null until it has ended. */
  readonly status: RunStatus | null
  readonly reason: string
  readonly assurance: Assurance | null
  readonly changes: ChangeCounts | null
}

/** The attempts of a run. */
export interface AttemptsInfo {
  readonly count: number
  readonly choose: ChooseBy
  /** The attempt whose changes are those of the run; null before the choice, and for none. */
  chosen: number | null
  /** Those that were started, in their order. */
  runs: readonly AttemptInfo[]
}

/** The error that ended a run. */
export interface RunFailure {
  readonly message: string
  readonly traceback: string
  readonly code: string
  readonly iteration: number
}

/** What the calls of one model have used in a run, by its own price. */
export interface ModelUsage extends Usage {
  readonly model_name: string
  readonly model_calls: number
  /** Calls whose price is not known count as 0. */
  readonly cost_usd: number
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
  /** Empty for a run without a folder. */
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
  usage: Usage & {
    /** Of the tokens above: those of calls that broke off, which no provider has counted. */
    readonly estimated_tokens: number
    readonly model_calls: number
    readonly tool_calls: number
  }
  /**
   * False when a price is unknown, which `estimated_cost_usd` counts as 0, or when tokens are
   * estimated.
   */
  cost_known: boolean
  readonly check: string | null
  readonly approval: Approval
  readonly max_total_tokens: number | null
  readonly max_cost_usd: number | null
  readonly max_seconds: number | null
  readonly max_tool_calls: number | null
  /** What the run asks of its model; null: as the host or the provider has it. */
  readonly temperature: number | null
  readonly reasoning_effort: ReasoningEffort | null
  readonly max_output_tokens: number | null
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
  /**
   * Files of the run that the last verdict does not cover, at most 100: the check was passed with
   * them as at the start, or without them. Null if the last check was not made in a copy.
   */
  held_back: readonly string[] | null
  /** Tests of the start that the run has edited, at most 100. Null as `held_back` is. */
  changed_tests: readonly string[] | null
  /** Files of the check that `may_change` let it change, at most 100. Null as `held_back` is. */
  allowed: readonly string[] | null
  /** Files of the check that count as the run's, as globs: the newest list. Null for none. */
  may_change: readonly string[] | null
  /** The run at the top of the tree: the run itself unless another one started it. */
  readonly root_run_id: string
  readonly role: 'root' | ChildRole
  /** Null for a run that works itself. */
  attempts: AttemptsInfo | null
  /** How far it may start runs that work for it; null: not at all. */
  readonly delegation: Delegation | null
  /** How many it has started. */
  delegates: number
  /** Those of the request; null for none. */
  readonly instructions: string | null
  /** The project's `AGENTS.md`; null when the model was not given any. */
  readonly project_instructions: ProjectInstructions | null
  /** Names of the tools that it may use; null: all that the host offers. */
  readonly tools: readonly string[] | null
  readonly compaction: Compaction
  /** The newest plan of its model; null for none. */
  plan: readonly PlanStep[] | null
  /** How many the request has. */
  readonly images: number
  /** The models that take over in turn; null for none. */
  readonly fallback_models: readonly string[] | null
  /** The model that works now: `model_name`, or the one that has taken over. */
  active_model: string
  /**
   * What each model has used in this run itself, the judge included and runs that it has started
   * not, by first use; null for a run without `fallback_models`.
   */
  usage_by_model: readonly ModelUsage[] | null
  /** What its result must match; null for a run that gives none. */
  readonly result_schema: JsonObject | null
  /** Matches `result_schema`; null before it was given. */
  readonly result: JsonValue
  /** The last text of the model, but for its result; empty before the first. */
  readonly answer: string
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
  readonly root_run_id: string
  readonly role: 'root' | ChildRole
  /** How many attempts the run makes; 0 for one that works itself. */
  readonly attempts: number
  /** How many runs it has started that work for it. */
  readonly delegates: number
  readonly metadata: Readonly<Record<string, string>>
  /** Empty for a run without a folder. */
  readonly cwd: string
  readonly max_iterations: number
  readonly estimated_cost_usd: number
  /** As in {@link RunDetails.cost_known}. */
  readonly cost_known: boolean
  readonly last_seq: number
  /** Why the run cannot be used, because its log is damaged or of a newer version; usually null. */
  readonly problem: string | null
}

/** The small fold of a run that stores keep beside its log, for lists and lookups. */
export interface RunHead {
  /** Without the texts of instructions, schema, result and answer. */
  readonly details: RunDetails
  /** Does the log have instructions that the details of the run show? */
  readonly hasInstructions: boolean
  /** Does the run give a result? Its schema is in the log. */
  readonly hasResultSchema: boolean
  /** The `seq` of the record that has the result, and of the last answer; null for none. */
  resultSeq: number | null
  /** The `seq` of the record with the files that the newest verdict covers; null for none. */
  checkedSeq: number | null
  answerSeq: number | null
  readonly owner: RunOwner
  readonly idempotency: { readonly key: string; readonly body_hash: string } | null
  /** How often the run was taken over after its process had died. */
  recoveries: number
  /** `ts` of the last record: seconds since the Unix epoch, with fraction. */
  last_ts: number
  /** The last answered gate and its answer, by which a repeated answer is recognised. */
  lastDecision: {
    readonly gate_id: string
    readonly decision: string
    /** The attempt that was chosen; absent in heads of earlier versions. */
    readonly attempt?: number
    /** A hash of its edits; absent for none, and in heads of earlier versions. */
    readonly edits?: string
  } | null
  /** The `seq` of the newest checkpoint; null before the first. */
  checkpointSeq: number | null
  /** The restore or apply that has begun and is not finished; null for none. */
  operation: string | null
  /** Why the run cannot be used; only in lists, for a quarantined run. Never stored. */
  readonly problem?: string
}
