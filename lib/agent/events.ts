/**
 * The vocabulary of the event log. A run *is* its list of records: every other view of it (details,
 * conversation, status) is a fold over that list. Fields are snake_case as on the wire, because a
 * record is stored, folded and sent in one shape.
 *
 * 1. `seq` counts 1, 2, 3, … within a run, without gaps.
 * 2. `ts` (float seconds since the epoch) never decreases within a run.
 * 3. `private` is for the engine alone and never reaches a subscriber.
 * 4. Readers skip unknown kinds.
 *
 * @module
 */
import type { JsonObject, JsonValue } from '../internal/json.js'
import type { CheckedFiles, SealStart, StoredSeal } from './check-files.js'
import type { Assurance, GoalBaseline, GoalSpec, KeptTests, TestCounts } from './goal.js'
import type { FrozenInstructions } from './instructions.js'
import type { AssistantMessage, ImagePart, Message, ModelSettings, TraceContext } from './model.js'
import type { PlanStep } from './plan.js'
import { isTerminal, type ChangeCounts, type EndReason, type RunStatus } from './run-status.js'
import type { Attempts, Candidate, ChildEnd, ChildRole, Delegation } from './run-tree.js'
import type { LeftOut } from './tree.js'
import type { ModelPrices } from './usage.js'
import type { FileChange } from './workspace/workspace.js'

export { isTerminal }
export type { ChangeCounts, EndReason, RunStatus }

/** Parts of an iteration: `act` begins with the first tool call, `evaluate` checks the goal. */
export type NodeName = 'plan' | 'act' | 'evaluate' | 'human_check'

/** What a human may answer at a gate; `reject` only where single tool calls are gated. */
export type Decision = 'approve' | 'abort' | 'reject'

/** One tool call that waits for approval at a gate of kind `tool`. */
export interface GatedCall {
  readonly call_id: string
  readonly tool: string
  readonly args: JsonObject
}

/** A human's changes to one gated tool call. */
export interface CallEdit {
  readonly decision?: 'approve' | 'reject' | undefined
  /** Replaces the model's arguments; checked against the tool's schema again. */
  readonly args?: JsonObject | undefined
  /** Passed to the model with the result of the call. */
  readonly feedback?: string | undefined
}

/** The payload of each event kind, as subscribers get it. */
export interface EventPayloads {
  readonly run_created: {
    readonly goal: string
    readonly model_name: string
    readonly cwd: string
    readonly max_iterations: number
    readonly hitl_enabled: boolean
    readonly parent_run_id: string | null
    /** Of a child: the run at the top of its tree, and what it is there. */
    readonly root_run_id?: string
    readonly role?: ChildRole
    /** The attempts among which a winner is chosen; absent for a run that works itself. */
    readonly attempts?: Attempts
    /** Where the run works; absent for `in_place`. */
    readonly workspace?: WorkspaceMode
    /** The run, and the event of it, whose conversation and files this run begins with. */
    readonly forked_from?: ForkOrigin
    /** With which a fork begins: those that its source did not hear, then its own. */
    readonly messages?: readonly EventPayloads['user_message'][]
  }
  readonly run_started: Record<never, never>
  /** The `setup` of the request has to run: it begins now, or again after an interruption. */
  readonly setup_started: {
    readonly command: string
    /** True for a copy that was made without what the command had made before. Absent if not. */
    readonly again?: true
  }
  readonly setup_ended: {
    /** The command's own, or 124 after its time limit; any but 0 ends the run. */
    readonly exit_code: number
    /** Beginning and end of what it printed. */
    readonly output: string
    readonly duration_ms: number
  }
  /** The request to abort the run: durable, so that it survives a crash. */
  readonly abort_requested: {
    readonly by: string | null
    /** Why its tree ends it, in words; absent when a caller asked for it. */
    readonly why?: string
  }
  /** The service shut down cleanly; the run continues when it starts again. */
  readonly run_suspended: Record<never, never>
  /** The service died during the run, and a restart or another process took the run over. */
  readonly run_recovered: {
    readonly attempt: number
    /** Ids of calls that had begun and have no result. */
    readonly in_doubt: readonly string[]
    /** So many of them begin again, and count once; absent for none. */
    readonly repeats?: number
  }
  /** The content of the folder was stored. */
  readonly checkpoint: {
    /** The hash of its tree. */
    readonly checkpoint_id: string
    readonly reason: CheckpointReason
    readonly files: number
    /** Bytes of all files, and of the content that was not stored before. */
    readonly bytes: number
    readonly new_bytes: number
    readonly left_out: readonly LeftOut[]
  }
  /** Text for the model from a human or a program, heard before the model's next call. */
  readonly user_message: {
    readonly message_id: string
    readonly text: string
    readonly deliver: MessageDelivery
    readonly by: string | null
    /** From now on, the `may_change` of the run; absent for other messages. */
    readonly may_change?: readonly string[]
  }
  /** The folder is about to be changed: what is not finished, the next start finishes. */
  readonly files_changing: {
    readonly operation_id: string
    readonly operation: FileOperation
    /** The folder before, and the tree whose content the paths get. */
    readonly before: string
    readonly after: string
    readonly by: string | null
    /** Of a merge: the run whose changes are brought, and the paths that stay as they are. */
    readonly run_id?: string
    readonly conflicts?: readonly string[]
  }
  readonly files_changed: {
    readonly operation_id: string
    readonly operation: FileOperation
    readonly paths: readonly string[]
    /** Paths that were left as they are: somebody else changed them, or the system refused it. */
    readonly skipped: readonly string[]
    /** Paths beyond the first 1000 of each of these lists; absent for none. */
    readonly more?: number
  }
  /** A run that attempts the goal is about to begin. */
  readonly attempt_started: {
    /** 1, 2, 3, … */
    readonly attempt: number
    readonly run_id: string
    readonly model_name: string
  }
  readonly attempt_ended: { readonly attempt: number } & ChildEnd
  /** The changes of this attempt are those of the run. */
  readonly attempt_chosen: {
    readonly attempt: number
    readonly run_id: string
    readonly why: string
    /** Its last text, and its result; absent for none. */
    readonly answer?: string
    readonly result?: JsonValue
  }
  /** A call of a tool starts a run, which works in a copy of the folder as it is now. */
  readonly delegate_started: {
    readonly call_id: string
    /** Counts the runs of the call: 1, 2, 3, … */
    readonly number: number
    readonly run_id: string
    readonly goal: string
    /** What the folder has now. */
    readonly checkpoint_id: string
  }
  readonly delegate_ended: {
    readonly call_id: string
    /** Paths that both runs changed: they stay as they are. */
    readonly conflicts: readonly string[]
  } & ChildEnd
  /** What becomes of the changes of an isolated run. */
  readonly changes_decided: { readonly changes: ChangesState; readonly by: string | null }
  readonly step_start: { readonly node: NodeName }
  /** The next model takes over the conversation, and keeps it for the rest of the run. */
  readonly model_switched: {
    readonly from: string
    readonly to: string
    readonly cause: SwitchCause
    /** What the model before said, or the error of its last call. */
    readonly message: string
  }
  readonly llm_usage: {
    /** Includes tokens read from a cache. */
    readonly input_tokens: number
    /** Includes reasoning tokens. */
    readonly output_tokens: number
    readonly cached_tokens: number
    readonly reasoning_tokens: number
    /** Price of this call in US dollars; null when the model's price is unknown. */
    readonly cost_usd: number | null
    /** `summary`: the model of the run, for a summary of its conversation. */
    readonly purpose: 'worker' | 'judge' | 'summary'
    /** Whose call it was; absent in runs without `fallback_models`. */
    readonly model_name?: string
    /** True when the call gave no usable turn; absent for others. */
    readonly failed?: boolean
    /** How many of the tokens its provider has not counted: see `CallUsage`; absent for none. */
    readonly estimated_tokens?: number
  }
  readonly model_turn: {
    readonly turn: number
    readonly text: string
    readonly stop: string
    /** Ids of the messages that the model heard before this turn; absent for none. */
    readonly heard?: readonly string[]
    /** True for an answer to the request for the result; absent for others. */
    readonly gives_result?: boolean
  }
  /** What came of one answer to the request for the result of the run. */
  readonly result: {
    /** Counts these answers: 1, 2, 3. */
    readonly attempt: number
    /** The result of the run; null for an answer that has no valid one. */
    readonly result: JsonValue
    /** What is wrong with the answer; null for a valid result. */
    readonly problem: string | null
  }
  readonly reasoning: { readonly text: string }
  /** The model called a tool; whether the call runs is decided after this event. */
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
    /**
     * The command's own, or 0 ok, 1 tool error, 124 timeout, 126 refused, 127 unknown tool,
     * 130 aborted, -1 outcome unknown.
     */
    readonly exit_code: number
    readonly call_id: string
    readonly duration_ms: number
    /** Files that the tool changed, with their diffs; absent when none or unknown. */
    readonly changes?: readonly FileChange[]
    /** Images for the model, whose content is not in the event; absent for none. */
    readonly images?: readonly ImageInfo[]
  }
  /** The model has a new plan: all of its steps, in order. */
  readonly plan_updated: { readonly call_id: string; readonly steps: readonly PlanStep[] }
  /** From here on, the beginning of the conversation is not sent to the model any more. */
  readonly conversation_compacted: {
    /** So many turns of the model, with their results; those that a fork took over count. */
    readonly turns: number
    /** So many of the newest messages of people among them are sent on, word for word. */
    readonly verbatim: number
    /** What the model wrote for them, and gets in their place; null: they were left out. */
    readonly summary: string | null
    /** Why there is no summary; absent with one. */
    readonly problem?: string
  }
  readonly goal_check: {
    readonly achieved: boolean
    readonly reason: string
    /** Derived from `assurance`. */
    readonly verified_by: 'command' | 'judge' | 'schema'
    /** What the verdict rests on; absent in logs of earlier versions. */
    readonly assurance?: Assurance
    /** Why no sealed check can be made, at the first check; absent when one can. */
    readonly sealed_unavailable?: string
    /**
     * Files of the run that the verdict does not cover, at most 100: the check was passed with them
     * as at the start, or without them. Absent for none.
     */
    readonly held_back?: readonly string[]
    /** Tests of the start that the run has edited, at most 100. Absent for none. */
    readonly changed_tests?: readonly string[]
    /** Files of the check that `may_change` let the run change, at most 100. Absent for none. */
    readonly allowed?: readonly string[]
    /** True when nothing was written since the last check, whose verdict is repeated here. */
    readonly cached: boolean
    readonly counts: TestCounts | null
    readonly duration_ms: number
  }
  /** The held-out tests are about to be evaluated: durable before, so that crashes count. */
  readonly holdout_evaluation: {
    readonly number: number
    /** How often they are evaluated at most. */
    readonly of: number
  }
  readonly iteration_complete: { readonly iteration: number; readonly tokens: number }
  readonly human_check_required: {
    readonly iteration: number
    readonly summary: string
    readonly gate_id: string
    readonly kind: GateKind
    /** ISO 8601; null never expires. */
    readonly deadline: string | null
    readonly calls?: readonly GatedCall[]
    /** Of a gate of kind `choice`: the attempts, of which one that achieved the goal is chosen. */
    readonly candidates?: readonly Candidate[]
  }
  readonly human_check_response: {
    readonly decision: Decision
    readonly gate_id: string
    readonly decided_by: string | null
    readonly feedback?: string
    readonly edits?: { readonly [callId: string]: CallEdit }
    /** The attempt that was chosen at a gate of kind `choice`. */
    readonly attempt?: number
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
    /**
     * Ids of messages that came too late for the model to hear them; absent for none. A fork of the
     * run's end hears them first.
     */
    readonly unheard?: readonly string[]
    /** The net change of the folder since the start; absent without checkpoints. */
    readonly changes?: ChangeCounts
    /** The part of it that an apply brings; absent for all of it. */
    readonly delivered?: ChangeCounts
  }
  readonly error: { readonly message: string; readonly traceback: string; readonly code: string }
  readonly log: { readonly level: 'info' | 'warn' | 'error'; readonly message: string }
}

/** What is told of an image. */
export interface ImageInfo {
  readonly media_type: ImagePart['media_type']
  readonly bytes: number
  /** Absent where its source gave none. */
  readonly name?: string
}

/**
 * When a checkpoint was made: at the start and the end, after an iteration, before all others;
 * `shutdown`: an isolated run was handed over to another process; `delegate`: with these files
 * another run begins; `merge`: before and after its changes came back; `attempt`: the files of the
 * attempt that was chosen.
 */
export type CheckpointReason =
  | 'start' | 'iteration' | 'gate' | 'restore' | 'apply' | 'end' | 'shutdown'
  | 'delegate' | 'merge' | 'attempt'

/**
 * Why another model took over: the model or a content filter refused; its calls failed however
 * often they were repeated; it takes no conversation of this length; or its provider refused the
 * calls for another reason, such as a key, a quota or an unknown model.
 */
export type SwitchCause = 'refusal' | 'retries' | 'context' | 'error'

/** What changes a folder from outside; `merge`: the changes of a run that the run had started. */
export type FileOperation = 'restore' | 'apply' | 'merge'

/** Why a run waits for a human. */
export type GateKind = 'iteration' | 'tool' | 'recovery' | 'choice'

/** What became of the changes of an isolated run. */
export type ChangesState = 'pending' | 'applied' | 'discarded'

/** Where a run works: in its `cwd`, in a private copy of it, or in no folder at all. */
export type WorkspaceMode = 'in_place' | 'isolated' | 'none'

/** The end of the part of a log with which a fork begins. */
export interface ForkOrigin {
  readonly run_id: string
  readonly seq: number
}

/** When a message is heard: before the next model call, or before the first one of an iteration. */
export type MessageDelivery = 'next_turn' | 'next_iteration'

/** Must a goal be met in a sealed copy? `prefer`: where one can be made. */
export type SealedMode = 'require' | 'prefer' | 'off'

/** What stands in place of turns that no longer fit: a summary by the model, or nothing. */
export type Compaction = 'summary' | 'drop'

/** Which tool calls wait for a human's approval: none, those that may change something, or all. */
export type ApprovalMode = 'never' | 'writes' | 'all'

/** The same, with exceptions for some tools by their names. */
export interface ApprovalRules {
  readonly default: ApprovalMode
  readonly tools: { readonly [name: string]: 'never' | 'always' }
}

/** Which tool calls wait for a human's approval; logs of earlier versions have a word. */
export type Approval = ApprovalMode | ApprovalRules

/** A start request with every default filled in, as frozen in the log. */
export interface RunRequest extends ModelSettings {
  readonly goal: string
  /** Real path of the working directory; empty for a run without one. */
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
  /** Absent in logs of earlier versions: `in_place`. */
  readonly workspace?: WorkspaceMode
  /** Absent: as the host's option says. */
  readonly checkpoints?: 'off'
  /** Apply the changes of an isolated run as soon as it has achieved its goal? */
  readonly apply?: 'on_achieved' | 'manual'
  /** Absent: as the host's option says. */
  readonly sealed_checks?: SealedMode
  readonly allow_dependency_changes?: true
  /** Files of the check that count as the run's, as globs. Absent: none. */
  readonly may_change?: readonly string[]
  /** Command that runs once before the first check. Absent: none. */
  readonly setup?: string
  /** Absent for a run that works itself. */
  readonly attempts?: Attempts
  /** Absent: the run starts no others. */
  readonly delegation?: Delegation
  readonly instructions?: string
  /** Absent: the model gets the project's `AGENTS.md`. */
  readonly project_instructions?: false
  /** Absent, as in logs of earlier versions: `drop`. */
  readonly compaction?: 'summary'
  /** Names of the tools that the run may use. Absent: all that the host offers. */
  readonly tools?: readonly string[]
  /** The models that take over in turn when the one before cannot go on. Absent: none. */
  readonly fallback_models?: readonly string[]
  /** What the model sees with the goal. Absent: none. */
  readonly images?: readonly ImagePart[]
  /** What the result of the run must match. Absent: it gives none. */
  readonly result_schema?: JsonObject
}

/** What a fork needs of its source, so that the source can be deleted. */
export interface ForkBase {
  /** The conversation, as it would be sent to the model. */
  readonly messages: readonly Message[]
  /** The files that must not change, and the tests of the first check, of the source. */
  readonly baseline: GoalBaseline | null
  readonly baselineTests: KeptTests | null
  /** Did the first check of the source see no tests? Absent if it did see some. */
  readonly late_tests?: true
  /** Absent when the source had none. */
  readonly seal?: StoredSeal
  /** The checkpoint with which the fork begins; null when the source had none. */
  readonly checkpoint_id: string | null
  /**
   * The checkpoint with which the changes began that the source had not applied: applying the fork
   * brings them as well. Absent when there were none.
   */
  readonly applies_from?: string
  /** What the source showed of its work, for the judge of its goal; absent without one. */
  readonly evidence?: string
  /** The plan of its model; absent without one. */
  readonly plan?: readonly PlanStep[]
  /** True for a fork that goes on in the copy of its source, whose changes were pending. */
  readonly adopts: boolean
  /**
   * True if the folder of the fork has nothing of what `setup` made: that ran in a copy, or in
   * another folder. Absent if it has, and without `setup`.
   */
  readonly lacks_setup?: true
}

/** What only the engine reads: frozen definitions, opaque provider data, full check output. */
export interface PrivatePayloads {
  readonly run_created: {
    readonly request: RunRequest
    readonly goal: GoalSpec
    readonly prices: ModelPrices | null
    /** Of the `fallback_models` of the request, in their order; absent without any. */
    readonly fallback_prices?: readonly (ModelPrices | null)[]
    readonly tools: readonly string[]
    /** Who started the run: `id` for idempotency and decided_by, `tenant` for who may see it. */
    readonly owner: RunOwner
    readonly idempotency: { readonly key: string; readonly body_hash: string } | null
    /** The trace that the request belongs to; absent without one. */
    readonly trace?: TraceContext
    /** Of a fork. */
    readonly fork?: ForkBase
    /** Of a run with held-out tests: the key to what the store has of them, in base64. */
    readonly holdout?: { readonly key: string }
    /** Absent for none, and in logs of earlier versions. */
    readonly instructions?: FrozenInstructions
  }
  readonly run_started: {
    /** Absent for a run that has to be set up first: then it is in `setup_ended`. */
    readonly baseline?: GoalBaseline
    /** What the folder is recognised by; absent in logs of earlier versions. */
    readonly folder?: { readonly device: string; readonly inode: string }
  }
  /** Absent when the run had one before, and if the command failed. */
  readonly setup_ended: { readonly baseline?: GoalBaseline }
  readonly model_turn: {
    readonly message: AssistantMessage
    /** Why the provider rejected the model's output: sent to the model before its next turn. */
    readonly feedback?: string
    /** Of a turn that was asked for the result: what the model was asked. */
    readonly asked?: string
  }
  readonly checkpoint: {
    /** The `seq` of the checkpoint before; null for the first. */
    readonly previous: number | null
    /**
     * Of the first: the tree with which checks compare the folder in its place, as it has changes
     * that an earlier run has left. Absent if it has none.
     */
    readonly check_start?: string
  }
  readonly files_changing: {
    /** The paths that get the content of `after`; null for all that differ. */
    readonly paths: readonly string[] | null
    /** Names the temporary files; absent in logs of earlier versions. */
    readonly key?: string
    /** The folder, by real path. */
    readonly folder: string
    /** Of an apply: the run's content was taken where both sides had changed a file. */
    readonly force: boolean
    /** Of a merge: the tree with which the other run began. */
    readonly base?: string
  }
  readonly tool_started: { readonly plan: JsonObject }
  /** How the check of the attempt used its files; absent if that check was not sealed. */
  readonly attempt_chosen: { readonly files?: CheckedFiles }
  readonly conversation_compacted: {
    /** Tokens of conversation that the model accepts: it has refused more. */
    readonly room: number
  }
  readonly tool_result: {
    /** Absent for none, and where no model of the run takes images. */
    readonly images?: readonly ImagePart[]
    /** See `Tool.explores`; absent for other tools. */
    readonly explores?: true
    /** See `Model.readsWholeOutputs`; absent for other models. */
    readonly whole?: true
  }
  readonly goal_check: {
    readonly output: string
    readonly tests: KeptTests | null
    /** What the check was seen to rest on; absent when nothing was found since the last one. */
    readonly seal?: StoredSeal
    /**
     * Of a first check that ran only in place: what later checks in copies need. It has a field of
     * its own because earlier versions, which check without copies where they find none, may ignore
     * it.
     */
    readonly in_place?: SealStart
    /** Of a sealed check that was passed. */
    readonly files?: CheckedFiles
    /** True when the judge reached no verdict and is asked again; absent without a judge. */
    readonly undecided?: boolean
    /**
     * Of a first check that goes by `check_start`: the files of the check as they were then. They
     * replace those that were found when the run began.
     */
    readonly baseline?: GoalBaseline
  }
}

/** Whom a run belongs to: idempotency keys are per owner, visibility is per tenant. */
export interface RunOwner {
  /** The principal that started the run; null when the host has no authorization. */
  readonly id: string | null
  /** Runs are visible only within their tenant; null is a tenant like any other. */
  readonly tenant: string | null
}

/** The kind of an event, which determines its payload. */
export type EventKind = keyof EventPayloads

/** The fields of every event, whatever its kind. */
export interface EventFields {
  readonly run_id: string
  readonly iteration: number
  /** Seconds since the Unix epoch, with fraction. */
  readonly ts: number
  readonly seq: number
}

/** One event as subscribers get it. */
export type AgentEvent = {
  readonly [K in EventKind]: EventFields & { readonly kind: K; readonly payload: EventPayloads[K] }
}[EventKind]

/** The private part of a record of kind `K`, for kinds that have one. */
export type PrivatePart<K> = K extends keyof PrivatePayloads
  ? { readonly private?: PrivatePayloads[K] }
  : unknown

/** What records have besides the fields of their events, and subscribers never get. */
export interface RecordFields {
  /** The format version: the lowest whose readers may skip what they do not know of the record. */
  readonly v: 1 | 2 | 3 | 4
  /**
   * Milliseconds before this record in which the run did not work: no process drove it, it waited
   * for a slot, its store was unavailable, the machine was suspended, or the time of day was set
   * forward. May be absent for 0, and is in logs of earlier versions.
   */
  readonly idle_ms?: number
}

/** One record of the log: an event, and what only the engine reads. */
export type RunRecord = {
  readonly [K in EventKind]: EventFields &
    RecordFields &
    PrivatePart<K> & { readonly kind: K; readonly payload: EventPayloads[K] }
}[EventKind]

/** The first record of every run. */
export type RunCreated = Extract<RunRecord, { kind: 'run_created' }>

/** A record before the log writer has added run, sequence number and time. */
export type RecordDraft = {
  readonly [K in EventKind]: PrivatePart<K> & {
    readonly kind: K
    readonly iteration: number
    readonly payload: EventPayloads[K]
  }
}[EventKind]

/** The newest format version that this engine can read. */
export const RECORD_VERSION = 4

/** The event of a record: without its version and its private part. */
export function publicEvent(record: RunRecord): AgentEvent {
  const { kind, run_id, iteration, ts, payload, seq } = record
  return { kind, run_id, iteration, ts, payload, seq } as AgentEvent
}
