/**
 * Errors of `runwright/agent`. Match on `code`: messages are for people and may change.
 *
 * ```
 * AgentError
 * ├─ InvalidRequestError     ERR_AGENT_INVALID_REQUEST     an invalid request
 * ├─ GoalError               ERR_AGENT_GOAL                the goal is unknown or cannot be checked
 * ├─ GoalCheckError          ERR_AGENT_GOAL_CHECK          the goal could not be checked at all
 * ├─ UnknownRunError         ERR_AGENT_UNKNOWN_RUN         no such run, or not in this tenant
 * ├─ RunStateError           ERR_AGENT_RUN_STATE           its status does not allow this
 * ├─ QueueFullError          ERR_AGENT_QUEUE_FULL          too many runs are waiting
 * ├─ CwdBusyError            ERR_AGENT_CWD_BUSY            another live run works in this folder
 * ├─ ForeignFolderError      ERR_AGENT_FOREIGN_FOLDER      another tenant uses this folder
 * ├─ InstructionsError       ERR_AGENT_INSTRUCTIONS        the host gives no usable instructions
 * ├─ IdempotencyError        ERR_AGENT_IDEMPOTENCY         the key was used for another request
 * ├─ EngineClosedError       ERR_AGENT_CLOSED              the engine is closed or closing
 * ├─ CursorError             ERR_AGENT_CURSOR              a cursor points beyond the log
 * ├─ ExhaustedError          ERR_AGENT_EXHAUSTED           no descriptors, memory or disk right now
 * ├─ IllegalTransitionError  ERR_AGENT_ILLEGAL_TRANSITION  a record does not fit its run's status
 * ├─ WorkspaceError          ERR_AGENT_OUTSIDE_WORKSPACE, ERR_AGENT_WORKSPACE,
 * │                          ERR_AGENT_WORKSPACE_LOST
 * ├─ WorkspaceChangedError   ERR_AGENT_WORKSPACE_CHANGED   others changed the same files
 * ├─ FileOperationError      ERR_AGENT_FILE_OPERATION      the system refused a restore or an apply
 * ├─ WorkspaceTooLargeError  ERR_AGENT_WORKSPACE_TOO_LARGE a copy would exceed the host's limit
 * ├─ CheckpointError         ERR_AGENT_CHECKPOINT          no such checkpoint, or it cannot be used
 * ├─ StoreError              ERR_AGENT_STORE, ERR_AGENT_STORE_LOCKED, ERR_AGENT_STORE_CORRUPT,
 * │                          ERR_AGENT_STORE_VERSION, ERR_AGENT_SEQ_CONFLICT,
 * │                          ERR_AGENT_STORE_UNAVAILABLE, ERR_AGENT_CLAIM_LOST
 * ├─ McpError                ERR_AGENT_MCP                 an MCP server cannot be used
 * └─ ModelError              ERR_AGENT_MODEL, ERR_AGENT_MODEL_AUTH, ERR_AGENT_MODEL_RATE_LIMIT,
 *                            ERR_AGENT_MODEL_QUOTA, ERR_AGENT_MODEL_CONTEXT,
 *                            ERR_AGENT_MODEL_FILTER, ERR_AGENT_MODEL_PROTOCOL
 * ```
 *
 * @module
 */
import { checkOptions, describeValue, type OptionKinds } from '../internal/options.js'
import type { SchemaViolation } from './schema.js'
import type { CallUsage } from './usage.js'

/** Stable codes of everything that `runwright/agent` throws. */
export type AgentErrorCode =
  | 'ERR_AGENT_INVALID_REQUEST'
  | 'ERR_AGENT_GOAL'
  | 'ERR_AGENT_GOAL_CHECK'
  | 'ERR_AGENT_UNKNOWN_RUN'
  | 'ERR_AGENT_RUN_STATE'
  | 'ERR_AGENT_DELEGATION'
  | 'ERR_AGENT_QUEUE_FULL'
  | 'ERR_AGENT_CWD_BUSY'
  | 'ERR_AGENT_FOREIGN_FOLDER'
  | 'ERR_AGENT_INSTRUCTIONS'
  | 'ERR_AGENT_IDEMPOTENCY'
  | 'ERR_AGENT_CLOSED'
  | 'ERR_AGENT_CURSOR'
  | 'ERR_AGENT_EXHAUSTED'
  | 'ERR_AGENT_ILLEGAL_TRANSITION'
  | 'ERR_AGENT_MCP'
  | 'ERR_AGENT_WORKSPACE_CHANGED'
  | 'ERR_AGENT_FILE_OPERATION'
  | 'ERR_AGENT_WORKSPACE_TOO_LARGE'
  | 'ERR_AGENT_CHECKPOINT'
  | WorkspaceErrorCode
  | StoreErrorCode
  | ModelErrorCode

/** Codes of {@link WorkspaceError}. */
export type WorkspaceErrorCode =
  'ERR_AGENT_OUTSIDE_WORKSPACE' | 'ERR_AGENT_WORKSPACE' | 'ERR_AGENT_WORKSPACE_LOST'

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
  | 'ERR_AGENT_MODEL_FILTER'
  | 'ERR_AGENT_MODEL_PROTOCOL'

/** Base class of all errors that `runwright/agent` throws. */
export abstract class AgentError extends Error {
  abstract readonly code: AgentErrorCode
}

/** Thrown when a request violates its schema or the host's limits; nothing was changed. */
export class InvalidRequestError extends AgentError {
  override name = 'InvalidRequestError'
  override readonly code = 'ERR_AGENT_INVALID_REQUEST'
  /** One entry per invalid field. */
  readonly violations: readonly SchemaViolation[]

  constructor(violations: readonly SchemaViolation[]) {
    if (!Array.isArray(violations)) {
      throw new TypeError(`violations must be an array, got ${describeValue(violations)}`)
    }
    super(violations.map(({ pointer, detail }) => `${pointer || '/'}: ${detail}`).join('; '))
    this.violations = violations
  }
}

/** Thrown when a goal is unknown, does not suit the workspace, or cannot be verified. */
export class GoalError extends AgentError {
  override name = 'GoalError'
  override readonly code = 'ERR_AGENT_GOAL'
  /**
   * `not_verifiable`: free text with neither a check command nor a judge; `dependencies_missing`:
   * the check needs packages that are not installed, and the request has no `setup`.
   */
  readonly problem: 'unknown' | 'unsuitable' | 'not_verifiable' | 'dependencies_missing'

  constructor(
    problem: GoalError['problem'],
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.problem = problem
  }
}

/** Thrown when a goal could not be checked at all; a check that fails is a result, not an error. */
export class GoalCheckError extends AgentError {
  override name = 'GoalCheckError'
  override readonly code = 'ERR_AGENT_GOAL_CHECK'
}

/** Thrown when no run with this id is visible to the caller. */
export class UnknownRunError extends AgentError {
  override name = 'UnknownRunError'
  override readonly code = 'ERR_AGENT_UNKNOWN_RUN'

  constructor(runId: string) {
    super(`there is no run ${runId}`)
  }
}

/** Thrown when the status of a run does not allow what was requested. */
export class RunStateError extends AgentError {
  override name = 'RunStateError'
  override readonly code = 'ERR_AGENT_RUN_STATE'
  /** Stable, unlike the message: programs may match on it. */
  readonly problem:
    | 'not_waiting'
    | 'stale_gate'
    | 'already_decided'
    | 'ended'
    | 'live'
    | 'child'
    | 'no_changes'
    | 'too_many_messages'

  constructor(problem: RunStateError['problem'], message: string) {
    super(message)
    this.problem = problem
  }
}

/** Thrown when a tool starts another run, and its run must not, or could not. */
export class DelegationError extends AgentError {
  override name = 'DelegationError'
  override readonly code = 'ERR_AGENT_DELEGATION'
}

/** Thrown when the host's limit of waiting runs is reached; try again later. */
export class QueueFullError extends AgentError {
  override name = 'QueueFullError'
  override readonly code = 'ERR_AGENT_QUEUE_FULL'

  constructor(limit: number) {
    super(`${limit} runs are already waiting; try again when one has started`)
  }
}

/**
 * Thrown when a live run works in the same folder, in one above or in one below, and the host's
 * policy is `reject`.
 */
export class CwdBusyError extends AgentError {
  override name = 'CwdBusyError'
  override readonly code = 'ERR_AGENT_CWD_BUSY'

  constructor(runId: string) {
    super(
      `run ${runId} is working in this directory, or in one above or below it; ` +
        'wait for it to end or abort it',
    )
  }
}

/**
 * Thrown when the store has a run of another tenant in the folder, in one above or in one below. It
 * tells nothing about that run.
 */
export class ForeignFolderError extends AgentError {
  override name = 'ForeignFolderError'
  override readonly code = 'ERR_AGENT_FOREIGN_FOLDER'

  constructor() {
    super('this directory is not available to you; use another one')
  }
}

/**
 * Thrown when the host's `instructions` or `systemPrompt` throws, or returns no usable text, for a
 * run that was to be created. `cause` is what was thrown; the message has nothing of it.
 */
export class InstructionsError extends AgentError {
  override name = 'InstructionsError'
  override readonly code = 'ERR_AGENT_INSTRUCTIONS'
}

/** Thrown when an idempotency key is used again for a different request. */
export class IdempotencyError extends AgentError {
  override name = 'IdempotencyError'
  override readonly code = 'ERR_AGENT_IDEMPOTENCY'

  constructor() {
    super('this Idempotency-Key was used for a different request; use a new key for a new request')
  }
}

/** Thrown when the engine is closed or closing. */
export class EngineClosedError extends AgentError {
  override name = 'EngineClosedError'
  override readonly code = 'ERR_AGENT_CLOSED'

  constructor() {
    super('the run engine is closed or closing and accepts no more work')
  }
}

/** Thrown when a reader wants to resume after an event that the log does not have. */
export class CursorError extends AgentError {
  override name = 'CursorError'
  override readonly code = 'ERR_AGENT_CURSOR'
  readonly lastSeq: number

  constructor(after: number, lastSeq: number) {
    super(`cursor ${after} is beyond the log, whose last event is ${lastSeq}; start again from 0`)
    this.lastSeq = lastSeq
  }
}

/**
 * Thrown when the machine has no file descriptors, processes or memory left right now, or when a
 * disk is full, fails or denies access where the engine keeps files of its own. The same call may
 * succeed later: runs wait for that.
 */
export class ExhaustedError extends AgentError {
  override name = 'ExhaustedError'
  override readonly code = 'ERR_AGENT_EXHAUSTED'
}

/** Thrown when a record does not fit the status of its run: a bug, or a corrupt log. */
export class IllegalTransitionError extends AgentError {
  override name = 'IllegalTransitionError'
  override readonly code = 'ERR_AGENT_ILLEGAL_TRANSITION'

  constructor(status: string, what: string) {
    super(`${what} is not valid for a run that is ${status}`)
  }
}

/**
 * Thrown when a path leaves the workspace, or is not of the required type; with
 * `ERR_AGENT_WORKSPACE_LOST` when the workspace is not the folder any more that it was, which ends
 * its run.
 */
export class WorkspaceError extends AgentError {
  override name = 'WorkspaceError'
  override readonly code: WorkspaceErrorCode

  constructor(code: WorkspaceErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/**
 * Thrown when files that are to be restored or applied were changed by others meanwhile. Nothing
 * was written.
 */
export class WorkspaceChangedError extends AgentError {
  override name = 'WorkspaceChangedError'
  override readonly code = 'ERR_AGENT_WORKSPACE_CHANGED'
  /**
   * `changed` since the last checkpoint; `conflict`: by the run and by others; `in_the_way`: no
   * checkpoint has them, and their folder would have to make room for a file.
   */
  readonly problem: 'changed' | 'conflict' | 'in_the_way'
  /** The first 1000 of these files. */
  readonly paths: readonly string[]

  constructor(problem: WorkspaceChangedError['problem'], paths: readonly string[]) {
    if (!Array.isArray(paths)) {
      throw new TypeError(`paths must be an array, got ${describeValue(paths)}`)
    }
    const few = paths.slice(0, 5).join(', ')
    super(CHANGED[problem](paths.length > 5 ? `${few} and ${paths.length - 5} more` : few))
    this.problem = problem
    this.paths = paths.slice(0, 1_000)
  }
}

const CHANGED: { readonly [P in WorkspaceChangedError['problem']]: (named: string) => string } = {
  changed: (named) =>
    `files were changed since the last checkpoint: ${named}; force restores them as well`,
  conflict: (named) =>
    `files were changed by the run and by others: ${named}; nothing was applied. ` +
    'Apply other paths, or force to take the content of the run',
  in_the_way: (named) =>
    `files that no checkpoint has are in the way of others: ${named}; nothing was changed. ` +
    'Move or remove them, or leave out the paths that need their place',
}

/** The facts of a {@link FileOperationError}. */
export interface FileOperationFacts extends ErrorOptions {
  readonly checkpointId?: string | undefined
  readonly missingBytes?: number | undefined
}

/**
 * Thrown when the system refuses a restore or an apply. With `unfinished`, some files are changed
 * and others are not, which is tried again until all or none are; otherwise nothing was changed.
 */
export class FileOperationError extends AgentError {
  override name = 'FileOperationError'
  override readonly code = 'ERR_AGENT_FILE_OPERATION'
  /**
   * `no_room` on the disk; a `fault` of the disk or the machine that may pass; `refused`: access is
   * denied, or a name is too long; `unfinished`: see above.
   */
  readonly problem: 'no_room' | 'fault' | 'refused' | 'unfinished'
  /** The checkpoint that was made before; null if there was none. */
  readonly checkpointId: string | null
  /** Bytes that are missing on the disk; null if that is not the problem, or not known. */
  readonly missingBytes: number | null

  constructor(
    problem: FileOperationError['problem'],
    message: string,
    { checkpointId, missingBytes, ...options }: FileOperationFacts = {},
  ) {
    super(message, options)
    this.problem = problem
    this.checkpointId = checkpointId ?? null
    this.missingBytes = missingBytes ?? null
  }
}

/** Thrown when the copy of a folder would be larger than the host allows; nothing is left of it. */
export class WorkspaceTooLargeError extends AgentError {
  override name = 'WorkspaceTooLargeError'
  override readonly code = 'ERR_AGENT_WORKSPACE_TOO_LARGE'

  constructor(folder: string, maxBytes: number) {
    super(
      `a copy of ${folder} would have more than ${maxBytes} bytes, the limit of this host; ` +
        'run in place, or in a smaller folder',
    )
  }
}

/** Thrown when a checkpoint is unknown, or cannot be used as requested. */
export class CheckpointError extends AgentError {
  override name = 'CheckpointError'
  override readonly code = 'ERR_AGENT_CHECKPOINT'
  /**
   * `unknown` to this run; `not_kept`: content of it was not stored; `off`: this run or host has no
   * checkpoints; `redacted`: files hold secrets; `too_large`: the patch would exceed 64 MiB;
   * `unsupported`: not on this system.
   */
  readonly problem: 'unknown' | 'not_kept' | 'off' | 'redacted' | 'too_large' | 'unsupported'
  /** The files concerned; often empty. */
  readonly paths: readonly string[]

  constructor(
    problem: CheckpointError['problem'],
    message: string,
    paths: readonly string[] = [],
  ) {
    super(message)
    this.problem = problem
    this.paths = paths
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

/** Is the log of a run damaged, as opposed to a store that fails for now? */
export function isCorrupt(error: unknown): error is StoreError {
  return error instanceof StoreError && error.code === 'ERR_AGENT_STORE_CORRUPT'
}

/** May the same call to a store succeed later? */
export function isUnavailable(error: unknown): error is StoreError {
  return error instanceof StoreError && error.code === 'ERR_AGENT_STORE_UNAVAILABLE'
}

/**
 * Thrown when a Model Context Protocol server cannot be started or reached, or violates the
 * protocol. Calls of its tools do not throw it: the model gets the failure as a result.
 */
export class McpError extends AgentError {
  override name = 'McpError'
  override readonly code = 'ERR_AGENT_MCP'
  /** The server's name, as configured by the host. */
  readonly server: string
  /**
   * What went wrong, for programs. `refused`: the server answered with an error; `session`: it no
   * longer knows the session; `unauthorized`: no access token could be had.
   */
  readonly problem:
    | 'unreachable'
    | 'protocol'
    | 'refused'
    | 'timeout'
    | 'lost'
    | 'session'
    | 'unauthorized'
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

/** Details of a failed model call. */
export interface ModelErrorOptions extends ErrorOptions {
  /** HTTP status of the provider's response, if there was one. */
  readonly statusCode?: number | undefined
  /** True when the same call may succeed later: the engine then retries it. */
  readonly retryable: boolean
  /** Milliseconds after which the provider asks for a retry. */
  readonly retryAfterMs?: number | undefined
  /** True when the model's output, not the request, was at fault: the model gets the message. */
  readonly modelMistake?: boolean | undefined
  /** Tokens charged for the failed call, as far as the provider reported them. */
  readonly usage?: CallUsage | undefined
}

const MODEL_ERROR: OptionKinds<ModelErrorOptions> = {
  cause: 'any', statusCode: 'number', retryable: 'boolean! true if the call may be repeated',
  retryAfterMs: 'number', modelMistake: 'boolean', usage: 'object',
}

/** Thrown when a model call has no usable result. Never contains an API key. */
export class ModelError extends AgentError {
  override name = 'ModelError'
  override readonly code: ModelErrorCode
  readonly statusCode: number | undefined
  readonly retryable: boolean
  readonly retryAfterMs: number | undefined
  readonly modelMistake: boolean
  readonly usage: CallUsage | undefined

  constructor(code: ModelErrorCode, message: string, options: ModelErrorOptions) {
    checkOptions(options, MODEL_ERROR, 'new ModelError()')
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.statusCode = options.statusCode
    this.retryable = options.retryable
    this.retryAfterMs = options.retryAfterMs
    this.modelMistake = options.modelMistake ?? false
    this.usage = options.usage
  }
}
