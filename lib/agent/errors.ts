/**
 * Errors of `runwright/agent`. Match on `code`; messages are for people and may change.
 *
 * ```
 * AgentError
 * ├─ InvalidRequestError   ERR_AGENT_INVALID_REQUEST     a start request breaks its schema or the host's limits
 * ├─ GoalError             ERR_AGENT_GOAL                a goal is not known or cannot be verified
 * ├─ GoalCheckError        ERR_AGENT_GOAL_CHECK          a goal could not be checked at all
 * ├─ UnknownRunError       ERR_AGENT_UNKNOWN_RUN         no run has this id (or not for this tenant)
 * ├─ RunStateError         ERR_AGENT_RUN_STATE           the run is not in a state for this
 * ├─ QueueFullError        ERR_AGENT_QUEUE_FULL          too many runs wait
 * ├─ CwdBusyError          ERR_AGENT_CWD_BUSY            another live run works in this folder
 * ├─ IdempotencyError      ERR_AGENT_IDEMPOTENCY         the key was used with another request
 * ├─ EngineClosedError     ERR_AGENT_CLOSED              the engine takes no more work
 * ├─ CursorError           ERR_AGENT_CURSOR              a cursor points beyond the log
 * ├─ IllegalTransitionError ERR_AGENT_ILLEGAL_TRANSITION a record does not fit the status of its run
 * ├─ WorkspaceError        ERR_AGENT_OUTSIDE_WORKSPACE, ERR_AGENT_WORKSPACE
 * ├─ StoreError            ERR_AGENT_STORE, ERR_AGENT_STORE_LOCKED, ERR_AGENT_STORE_CORRUPT,
 * │                        ERR_AGENT_STORE_VERSION, ERR_AGENT_SEQ_CONFLICT,
 * │                        ERR_AGENT_STORE_UNAVAILABLE, ERR_AGENT_CLAIM_LOST
 * ├─ McpError              ERR_AGENT_MCP                 a Model Context Protocol server cannot be used
 * └─ ModelError            ERR_AGENT_MODEL, ERR_AGENT_MODEL_AUTH, ERR_AGENT_MODEL_RATE_LIMIT,
 *                          ERR_AGENT_MODEL_QUOTA, ERR_AGENT_MODEL_CONTEXT, ERR_AGENT_MODEL_PROTOCOL
 * ```
 *
 * @module
 */
import type { Usage } from './usage.js'
import type { SchemaViolation } from './schema.js'

/** Stable codes of everything that `runwright/agent` throws. */
export type AgentErrorCode =
  | 'ERR_AGENT_INVALID_REQUEST'
  | 'ERR_AGENT_GOAL'
  | 'ERR_AGENT_GOAL_CHECK'
  | 'ERR_AGENT_UNKNOWN_RUN'
  | 'ERR_AGENT_RUN_STATE'
  | 'ERR_AGENT_QUEUE_FULL'
  | 'ERR_AGENT_CWD_BUSY'
  | 'ERR_AGENT_IDEMPOTENCY'
  | 'ERR_AGENT_CLOSED'
  | 'ERR_AGENT_CURSOR'
  | 'ERR_AGENT_ILLEGAL_TRANSITION'
  | 'ERR_AGENT_MCP'
  | WorkspaceErrorCode
  | StoreErrorCode
  | ModelErrorCode

/** Codes of {@link WorkspaceError}. */
export type WorkspaceErrorCode = 'ERR_AGENT_OUTSIDE_WORKSPACE' | 'ERR_AGENT_WORKSPACE'

/** Codes of {@link StoreError}. */
export type StoreErrorCode =
  | 'ERR_AGENT_STORE'
  | 'ERR_AGENT_STORE_LOCKED'
  | 'ERR_AGENT_STORE_CORRUPT'
  | 'ERR_AGENT_STORE_VERSION'
  | 'ERR_AGENT_SEQ_CONFLICT'
  | 'ERR_AGENT_STORE_UNAVAILABLE'
  | 'ERR_AGENT_CLAIM_LOST'

/** Codes of {@link ModelError}. */
export type ModelErrorCode =
  | 'ERR_AGENT_MODEL'
  | 'ERR_AGENT_MODEL_AUTH'
  | 'ERR_AGENT_MODEL_RATE_LIMIT'
  | 'ERR_AGENT_MODEL_QUOTA'
  | 'ERR_AGENT_MODEL_CONTEXT'
  | 'ERR_AGENT_MODEL_PROTOCOL'

/** Base of all errors of this module. */
export abstract class AgentError extends Error {
  abstract readonly code: AgentErrorCode
}

/** Thrown when a start request breaks its schema or the host's limits; nothing was started. */
export class InvalidRequestError extends AgentError {
  override name = 'InvalidRequestError'
  override readonly code = 'ERR_AGENT_INVALID_REQUEST'
  /** Each field that is wrong. */
  readonly violations: readonly SchemaViolation[]

  constructor(violations: readonly SchemaViolation[]) {
    super(violations.map(({ pointer, detail }) => `${pointer || '/'}: ${detail}`).join('; '))
    this.violations = violations
  }
}

/** Thrown when a goal is not known, is not there in the workspace, or cannot be verified. */
export class GoalError extends AgentError {
  override name = 'GoalError'
  override readonly code = 'ERR_AGENT_GOAL'
  /** `not_verifiable`: free text with neither a check command nor a judge. */
  readonly problem: 'unknown' | 'unsuitable' | 'not_verifiable'

  constructor(
    problem: 'unknown' | 'unsuitable' | 'not_verifiable',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.problem = problem
  }
}

/** Thrown when a goal could not be checked at all; a check that is not passed is an answer. */
export class GoalCheckError extends AgentError {
  override name = 'GoalCheckError'
  override readonly code = 'ERR_AGENT_GOAL_CHECK'
}

/** Thrown when no run has this id, or none that the caller may see. */
export class UnknownRunError extends AgentError {
  override name = 'UnknownRunError'
  override readonly code = 'ERR_AGENT_UNKNOWN_RUN'

  constructor(runId: string) {
    super(`there is no run ${runId}`)
  }
}

/** Thrown when a run is not in a state for what was asked. */
export class RunStateError extends AgentError {
  override name = 'RunStateError'
  override readonly code = 'ERR_AGENT_RUN_STATE'
  /** What stands in the way, for programs: `not_waiting`, `stale_gate`, `already_decided`, `ended`, `live`. */
  readonly problem: 'not_waiting' | 'stale_gate' | 'already_decided' | 'ended' | 'live'

  constructor(problem: RunStateError['problem'], message: string) {
    super(message)
    this.problem = problem
  }
}

/** Thrown when as many runs wait as the host allows; try again later. */
export class QueueFullError extends AgentError {
  override name = 'QueueFullError'
  override readonly code = 'ERR_AGENT_QUEUE_FULL'

  constructor(limit: number) {
    super(`${limit} runs are waiting already; try again when one has started`)
  }
}

/** Thrown when a live run works in the same folder and the host's policy is `reject`. */
export class CwdBusyError extends AgentError {
  override name = 'CwdBusyError'
  override readonly code = 'ERR_AGENT_CWD_BUSY'

  constructor(runId: string) {
    super(`run ${runId} is live in this working directory; wait for its end or abort it`)
  }
}

/** Thrown when an idempotency key comes again with a different request. */
export class IdempotencyError extends AgentError {
  override name = 'IdempotencyError'
  override readonly code = 'ERR_AGENT_IDEMPOTENCY'

  constructor() {
    super('this Idempotency-Key was used with a different request; use a new key for a new request')
  }
}

/** Thrown when the engine is closed or closing. */
export class EngineClosedError extends AgentError {
  override name = 'EngineClosedError'
  override readonly code = 'ERR_AGENT_CLOSED'

  constructor() {
    super('the run engine is closing and takes no more work')
  }
}

/** Thrown when a reader asks to go on after an event that the log does not have. */
export class CursorError extends AgentError {
  override name = 'CursorError'
  override readonly code = 'ERR_AGENT_CURSOR'
  readonly lastSeq: number

  constructor(after: number, lastSeq: number) {
    super(`cursor ${after} is beyond the log, whose last event is ${lastSeq}; start again from 0`)
    this.lastSeq = lastSeq
  }
}

/** Thrown when a record does not fit the status of its run: a bug, or a damaged log. */
export class IllegalTransitionError extends AgentError {
  override name = 'IllegalTransitionError'
  override readonly code = 'ERR_AGENT_ILLEGAL_TRANSITION'

  constructor(status: string, what: string) {
    super(`${what} cannot happen to a run that is ${status}`)
  }
}

/** Thrown when a path leaves the workspace, or is not what it has to be. */
export class WorkspaceError extends AgentError {
  override name = 'WorkspaceError'
  override readonly code: WorkspaceErrorCode

  constructor(code: WorkspaceErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Thrown when a log cannot be opened, read or appended to. */
export class StoreError extends AgentError {
  override name = 'StoreError'
  override readonly code: StoreErrorCode

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/**
 * Thrown when a Model Context Protocol server cannot be started or reached, or does not keep to the
 * protocol. A call of one of its tools never throws it: the model is told.
 */
export class McpError extends AgentError {
  override name = 'McpError'
  override readonly code = 'ERR_AGENT_MCP'
  /** The name that the host gave to the server. */
  readonly server: string
  /**
   * What went wrong, for programs: it could not be reached; it broke the protocol; it answered with
   * an error; it did not answer in time; the connection was lost; it forgot the session.
   */
  readonly problem: 'unreachable' | 'protocol' | 'refused' | 'timeout' | 'lost' | 'session'
  /** The message without the server's name. */
  readonly detail: string

  constructor(
    server: string,
    problem: McpError['problem'],
    detail: string,
    options?: ErrorOptions,
  ) {
    super(`MCP server ${server}: ${detail}`, options)
    this.server = server
    this.problem = problem
    this.detail = detail
  }
}

/** What is known about a failed model call. */
export interface ModelErrorOptions extends ErrorOptions {
  /** HTTP status of the provider's answer, if there was one. */
  readonly statusCode?: number | undefined
  /** May the same call succeed later? Decides whether the engine tries again. */
  readonly retryable: boolean
  /** Milliseconds after which the provider asked us to come back. */
  readonly retryAfterMs?: number | undefined
  /** True when the model, not the request, was at fault: its text is fed back to it. */
  readonly modelMistake?: boolean | undefined
  /** What the failed call used all the same, as far as the provider said: it is paid for. */
  readonly usage?: Usage | undefined
}

/** Thrown when a model call gave no usable answer. Never contains a key. */
export class ModelError extends AgentError {
  override name = 'ModelError'
  override readonly code: ModelErrorCode
  readonly statusCode: number | undefined
  readonly retryable: boolean
  readonly retryAfterMs: number | undefined
  readonly modelMistake: boolean
  readonly usage: Usage | undefined

  constructor(code: ModelErrorCode, message: string, options: ModelErrorOptions) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.statusCode = options.statusCode
    this.retryable = options.retryable
    this.retryAfterMs = options.retryAfterMs
    this.modelMistake = options.modelMistake ?? false
    this.usage = options.usage
  }
}
