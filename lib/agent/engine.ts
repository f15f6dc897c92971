import type { JsonObject } from '../internal/json.js'
import type { EngineOptions } from './config.js'
import type { AgentEvent, CallEdit, Decision, RunOwner, RunStatus } from './events.js'
import type { RunDetails, RunSummary } from './run-details.js'
import type { RunQuery } from './store.js'
import type { RunSubscription } from './subscription.js'

/** On whose behalf the engine is called. Omitted: by the host itself, which may see every run. */
export interface Caller {
  readonly owner: RunOwner
}

/** An answer to an open gate. */
export interface ResumeAnswer {
  /** Required: a missing field must never approve. */
  readonly decision: Decision
  /** Which gate is meant; without it the one that is open. */
  readonly gate_id?: string | undefined
  /** Told to the model as a user message, at most 16 KiB. */
  readonly feedback?: string | undefined
  /** For tool gates: changes by call id. */
  readonly edits?: { readonly [callId: string]: CallEdit } | undefined
}

/** What {@link RunEngine.resume} tells. */
export interface ResumeResult {
  readonly run_id: string
  readonly status: RunStatus
  readonly decision: Decision
  readonly gate_id: string
}

/** A model as it is offered to people. */
export interface ModelInfo {
  readonly name: string
  readonly provider: string
  /** False for `builtin:` programs, which are no language models. */
  readonly is_language_model: boolean
  readonly default: boolean
  readonly description: string
}

/** A goal as it is offered to people. */
export interface GoalInfo {
  readonly name: string
  readonly description: string
  readonly usage: string
}

/** Runs agents: creates, drives, stores, recovers and reports runs. */
export class RunEngine {
  /** Opens the store, takes up the runs that were live when it was last closed, and starts. */
  static async open(options: EngineOptions): Promise<RunEngine> {
    throw new Error(String(options))
  }
  /**
   * Creates a run and resolves once it is durable; it starts as soon as a slot and its folder are
   * free. `request` is checked here (it may be anything): see `RunRequest`.
   *
   * @throws {@link InvalidRequestError}, {@link GoalError}, {@link QueueFullError},
   * {@link CwdBusyError}, {@link IdempotencyError}, {@link EngineClosedError}
   */
  declare create: (
    request: JsonObject,
    options?: { readonly caller?: Caller | undefined; readonly idempotencyKey?: string | undefined },
  ) => Promise<{ readonly details: RunDetails; readonly created: boolean }>
  declare list: (
    query: Partial<RunQuery>,
  ) => Promise<{ readonly runs: readonly RunSummary[]; readonly next: string | null }>
  /** @throws {@link UnknownRunError} */
  declare get: (runId: string, caller?: Caller) => Promise<RunDetails>
  /** Resolves once the answer is durable; never waits for the run. @throws {@link RunStateError} */
  declare resume: (runId: string, answer: ResumeAnswer, caller?: Caller) => Promise<ResumeResult>
  /** `already` when the run was aborted before. @throws {@link RunStateError} when otherwise ended. */
  declare abort: (
    runId: string,
    caller?: Caller,
  ) => Promise<{ readonly details: RunDetails; readonly already: boolean }>
  /** The same request as a new run with `parent_run_id`. */
  declare retry: (runId: string, caller?: Caller) => Promise<RunDetails>
  /** @throws {@link RunStateError} while the run lives. */
  declare delete: (runId: string, caller?: Caller) => Promise<void>
  /** A page of the event log: events with `seq` > `after`. */
  declare events: (
    runId: string,
    page: { readonly after: number; readonly limit: number },
    caller?: Caller,
  ) => Promise<readonly AgentEvent[]>
  /**
   * Follows a run: everything after `after` (0 = from the start, -1 = only what is to come), then
   * live, gap-free and in order, ending after `run_end`.
   *
   * @throws {@link UnknownRunError}, {@link CursorError} when `after` is beyond the log.
   */
  declare subscribe: (
    runId: string,
    options?: { readonly after?: number | undefined },
    caller?: Caller,
  ) => Promise<RunSubscription>
  declare models: () => readonly ModelInfo[]
  declare goals: () => readonly GoalInfo[]
  declare counts: () => Promise<Readonly<Record<RunStatus, number>>>
  /** Takes no more runs, waits up to `graceMs` for live ones, leaves the rest resumable. */
  declare close: (options?: { readonly graceMs?: number }) => Promise<void>
}
