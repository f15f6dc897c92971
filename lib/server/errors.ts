/**
 * Errors of a call, as problem details (RFC 9457). A {@link ProblemError} carries its own response,
 * errors of the engine are translated by their `code`, and everything else is a 500 that reveals
 * nothing internal.
 *
 * ```
 * ProblemError      a response other than success: status, code, detail, headers, field errors
 * RunServiceError   the same, as the client of a service throws it
 * ```
 *
 * @module
 */
import { checkOptions, type OptionKinds } from '../internal/options.js'
import type { AgentErrorCode, SchemaViolation } from '../agent/index.js'

/** The stable `code` of each problem that the service answers with. */
export type ProblemCode =
  | 'bad_json'
  | 'bad_body'
  | 'unauthorized'
  | 'forbidden_peer'
  | 'forbidden_host'
  | 'forbidden_proxy'
  | 'forbidden_origin'
  | 'forbidden_tenant'
  | 'forbidden_cwd'
  | 'redacted'
  | 'not_found'
  | 'run_not_found'
  | 'checkpoint_not_found'
  | 'file_not_found'
  | 'image_not_found'
  | 'method_not_allowed'
  | 'not_acceptable'
  | 'cwd_busy'
  | 'not_waiting'
  | 'stale_gate'
  | 'already_decided'
  | 'run_ended'
  | 'run_live'
  | 'child_run'
  | 'no_changes'
  | 'checkpoints_off'
  | 'workspace_changed'
  | 'apply_conflict'
  | 'workspace_lost'
  | 'cursor_ahead'
  | 'content_not_kept'
  | 'body_too_large'
  | 'unsupported_media_type'
  | 'invalid_request'
  | 'goal_unknown'
  | 'goal_unsuitable'
  | 'dependencies_missing'
  | 'goal_not_verifiable'
  | 'idempotency_mismatch'
  | 'workspace_too_large'
  | 'patch_too_large'
  | 'upgrade_required'
  | 'queue_full'
  | 'too_many_messages'
  | 'rate_limited'
  | 'too_many_at_once'
  | 'quota_runs'
  | 'quota_cost'
  | 'internal_error'
  | 'run_damaged'
  | 'run_too_new'
  | 'mount_mismatch'
  | 'unsupported'
  | 'draining'
  | 'store_unavailable'
  | 'files_in_the_way'
  | 'files_unfinished'
  | 'files_refused'
  | 'machine_fault'
  | 'no_room'

/** One invalid field of a request. */
export interface FieldError extends SchemaViolation {
  /** The part of the request that holds the field; absent for the body. */
  readonly in?: 'query' | 'header' | 'path'
}

/** How much of a limit per tenant is used. */
export interface QuotaUse {
  /** Runs that have not ended, or US dollars within 24 hours: see the `code`. */
  readonly used: number
  readonly allowed: number
  /** ISO 8601 UTC: when the oldest of what is used no longer counts; null when not known. */
  readonly frees_at: string | null
}

/** The effect of a restore or an apply that failed. */
export interface FailedChange {
  /** `some`: that is tried again until all files are changed, or none. */
  readonly changed: 'nothing' | 'some'
  /** The checkpoint that was made before; null if there was none. */
  readonly checkpoint_id: string | null
  /** Bytes that are missing on the disk; null if that is not the problem, or not known. */
  readonly missing_bytes: number | null
}

/** The body of an error response: `application/problem+json` (RFC 9457). */
export interface Problem {
  /** `about:blank`: the problem has no meaning beyond its status and `code`. */
  readonly type: 'about:blank'
  /** The reason phrase of the status. */
  readonly title: string
  readonly status: number
  /** For humans: what is wrong and what to do about it. */
  readonly detail: string
  /** For programs; a {@link ProblemCode} unless the host throws its own. */
  readonly code: string
  /** All invalid fields; absent when there are none. */
  readonly errors?: readonly FieldError[]
  /** The files concerned, at most 1000 of them; absent when there are none. */
  readonly paths?: readonly string[]
  /** The limit that the tenant exceeds; absent when it is none. */
  readonly quota?: QuotaUse
  /** The effect on files; absent for other problems. */
  readonly files?: FailedChange
  /** The `X-Request-Id` of the response. */
  readonly request_id?: string
}

/** Optional parts of a {@link ProblemError}. */
export interface ProblemOptions extends ErrorOptions {
  /** Response headers, for example `Retry-After`. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly errors?: readonly FieldError[] | undefined
  /** The files concerned. */
  readonly paths?: readonly string[] | undefined
  /** The limit that the tenant exceeds. */
  readonly quota?: QuotaUse | undefined
  /** The effect on files. */
  readonly files?: FailedChange | undefined
}

const PROBLEM_OPTIONS: OptionKinds<ProblemOptions> = {
  cause: 'any', headers: 'object', errors: 'array', paths: 'array', quota: 'object',
  files: 'object',
}

/**
 * Thrown to answer a call with a problem. A host throws it in `authorize` for a response other than
 * 401, for example `new ProblemError(403, 'no_access', 'this key may only read')`.
 */
export class ProblemError extends Error {
  override name = 'ProblemError'
  readonly status: number
  readonly code: string
  readonly headers: Readonly<Record<string, string>>
  readonly errors: readonly FieldError[]
  readonly paths: readonly string[]
  readonly quota: QuotaUse | null
  readonly files: FailedChange | null

  constructor(
    status: number,
    code: ProblemCode | (string & {}),
    detail: string,
    options: ProblemOptions = {},
  ) {
    checkOptions(options, PROBLEM_OPTIONS, 'new ProblemError()')
    super(detail, 'cause' in options ? { cause: options.cause } : undefined)
    if (!Number.isInteger(status) || status < 400 || status > 599) {
      throw new RangeError(`status must be an integer from 400 to 599, got ${status}`)
    }
    this.status = status
    this.code = code
    this.headers = options.headers ?? {}
    this.errors = options.errors ?? []
    this.paths = options.paths ?? []
    this.quota = options.quota ?? null
    this.files = options.files ?? null
  }
}

/** Optional parts of a {@link RunServiceError}. */
export interface RunServiceErrorFacts {
  readonly errors?: readonly FieldError[]
  readonly paths?: readonly string[]
  readonly quota?: QuotaUse | null
  readonly files?: FailedChange | null
  readonly retryAfterMs?: number | null
  readonly requestId?: string | null
}

/** Thrown by `RunServiceClient` for a response other than success. */
export class RunServiceError extends Error {
  override name = 'RunServiceError'
  readonly status: number
  /**
   * The `code` of the problem details; a host may add its own. `unexpected_answer` when there are
   * none, because something other than the service answered.
   */
  readonly code: string
  /** All invalid fields; empty when the response names none. */
  readonly errors: readonly FieldError[]
  /** The files concerned; empty when the response names none. */
  readonly paths: readonly string[]
  /** The limit that the tenant exceeds; null when it is none. */
  readonly quota: QuotaUse | null
  /** The effect of a restore or an apply that failed; null for other calls. */
  readonly files: FailedChange | null
  /** The Retry-After of the response, in milliseconds; null without one. */
  readonly retryAfterMs: number | null
  /** The X-Request-Id of the response, by which the service's log has it; null without one. */
  readonly requestId: string | null

  constructor(
    status: number,
    code: ProblemCode | 'unexpected_answer' | (string & {}),
    detail: string,
    facts: RunServiceErrorFacts = {},
  ) {
    super(detail)
    const { errors = [], paths = [], quota = null, files = null } = facts
    const { retryAfterMs = null, requestId = null } = facts
    this.status = status
    this.code = code
    this.errors = errors
    this.paths = paths
    this.quota = quota
    this.files = files
    this.retryAfterMs = retryAfterMs
    this.requestId = requestId
  }
}

/** The 422 for one invalid field. `pointer` is a JSON Pointer; `where` is absent for the body. */
export function invalidField(
  pointer: string,
  detail: string,
  where?: NonNullable<FieldError['in']>,
): ProblemError {
  const error: FieldError =
    where === undefined ? { pointer, detail } : { pointer, detail, in: where }
  const name = pointer.slice(1) || 'the body'
  return new ProblemError(422, 'invalid_request', `${name} ${detail}`, { errors: [error] })
}

/** The 404 for a run: the same for malformed ids, unknown runs and runs of other tenants. */
export function unknownRun(): ProblemError {
  return new ProblemError(404, 'run_not_found', 'there is no run with this id')
}

/** Reason phrases of the statuses in use (RFC 9110, section 15). */
const PHRASES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  409: 'Conflict',
  410: 'Gone',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Content',
  426: 'Upgrade Required',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
  507: 'Insufficient Storage',
}

/** The problem details of a {@link ProblemError}; `requestId` is null where no request is meant. */
export function problemOf(error: ProblemError, requestId: string | null): Problem {
  const { status, code, message: detail, errors, paths, quota, files } = error
  const title = PHRASES[status] ?? (status < 500 ? 'Client Error' : 'Server Error')
  return {
    type: 'about:blank',
    title,
    status,
    detail,
    code,
    ...(errors.length > 0 && { errors }),
    ...(paths.length > 0 && { paths }),
    ...(quota !== null && { quota }),
    ...(files !== null && { files }),
    ...(requestId !== null && { request_id: requestId }),
  }
}

/** Fields of the engine's errors that the translation reads. */
interface EngineErrorFacts {
  readonly code?: unknown
  readonly problem?: unknown
  readonly violations?: readonly SchemaViolation[]
  readonly paths?: readonly string[]
  readonly checkpointId?: string | null
  readonly missingBytes?: number | null
}

const RUN_STATE_CODES: Readonly<Record<string, ProblemCode>> = {
  not_waiting: 'not_waiting',
  stale_gate: 'stale_gate',
  already_decided: 'already_decided',
  ended: 'run_ended',
  live: 'run_live',
  child: 'child_run',
  no_changes: 'no_changes',
}

const GOAL_CODES: Readonly<Record<string, ProblemCode>> = {
  unknown: 'goal_unknown',
  unsuitable: 'goal_unsuitable',
  not_verifiable: 'goal_not_verifiable',
  dependencies_missing: 'dependencies_missing',
}

const CHANGED_CODES: Readonly<Record<string, ProblemCode>> = {
  changed: 'workspace_changed',
  conflict: 'apply_conflict',
  in_the_way: 'files_in_the_way',
}

/** Status and code by the problem of a `FileOperationError`. */
const OPERATION_PROBLEMS: Readonly<Record<string, readonly [number, ProblemCode]>> = {
  no_room: [507, 'no_room'],
  fault: [503, 'machine_fault'],
  refused: [409, 'files_refused'],
  unfinished: [503, 'files_unfinished'],
}

/** Status and code by the problem of a `CheckpointError`. */
const CHECKPOINT_PROBLEMS: Readonly<Record<string, readonly [number, ProblemCode]>> = {
  unknown: [404, 'checkpoint_not_found'],
  not_kept: [410, 'content_not_kept'],
  off: [409, 'checkpoints_off'],
  redacted: [403, 'redacted'],
  too_large: [422, 'patch_too_large'],
  unsupported: [501, 'unsupported'],
}

/** When a client should retry after the queue of runs, or of messages, was full. */
const WAIT_FOR_ROOM: ProblemOptions = { headers: { 'Retry-After': '5' } }
/** Seconds after which another process should have taken over from a draining one. */
const DRAIN_RETRY_SECONDS = 10
/** Seconds after which an unreachable store may be back. */
const STORE_RETRY_SECONDS = 2
/** Seconds after which a fault of the machine may be over. */
const FAULT_RETRY = { 'Retry-After': '5' }

/** The 503 of a service that is closing. */
export function draining(): ProblemError {
  return new ProblemError(503, 'draining', 'the service is shutting down; try again in a moment', {
    headers: { 'Retry-After': String(DRAIN_RETRY_SECONDS) },
  })
}

/**
 * The 503 for a store that takes nothing at present, that another process has taken over, or whose
 * run another process has claimed. `cause` may contain a path: it is for callers of all tenants.
 */
function storeUnavailable({ message }: Error, seesAll: boolean): ProblemError {
  const detail = `the store is unavailable${seesAll ? `: ${message}` : '; try again in a moment'}`
  return new ProblemError(503, 'store_unavailable', detail, {
    headers: { 'Retry-After': String(STORE_RETRY_SECONDS) },
  })
}

/** Whether the run cannot be used until it is restored. Its store has reported that already. */
export function isUnusableRun(code: string): boolean {
  return code === 'run_damaged' || code === 'run_too_new'
}

type Translate = (error: Error & EngineErrorFacts, seesAll: boolean) => ProblemError

/** For callers of a single tenant, who may not see paths of the store. */
const ASK = 'ask the operator of this service'

/** Engine errors that a client can act on. All others are faults of the service, hence 500. */
const TRANSLATIONS: { readonly [C in AgentErrorCode]?: Translate } = {
  ERR_AGENT_INVALID_REQUEST: ({ message, violations }) =>
    new ProblemError(422, 'invalid_request', message, { errors: violations }),
  ERR_AGENT_GOAL: ({ message, problem }) =>
    new ProblemError(422, GOAL_CODES[String(problem)] ?? 'goal_unsuitable', message, {
      errors: [
        { pointer: problem === 'dependencies_missing' ? '/setup' : '/goal', detail: message },
      ],
    }),
  ERR_AGENT_OUTSIDE_WORKSPACE: ({ message }) =>
    new ProblemError(422, 'invalid_request', message, {
      errors: [{ pointer: '/cwd', detail: message }],
    }),
  ERR_AGENT_WORKSPACE_LOST: ({ message }) => new ProblemError(409, 'workspace_lost', message),
  ERR_AGENT_WORKSPACE_CHANGED: ({ message, problem, paths }) =>
    new ProblemError(409, CHANGED_CODES[String(problem)] ?? 'workspace_changed', message, {
      paths,
    }),
  ERR_AGENT_FILE_OPERATION: ({ message, problem, checkpointId = null, missingBytes = null }) => {
    const [status, code] = OPERATION_PROBLEMS[String(problem)] ?? OPERATION_PROBLEMS['fault']!
    const changed = problem === 'unfinished' ? 'some' : 'nothing'
    const files = { changed, checkpoint_id: checkpointId, missing_bytes: missingBytes } as const
    const headers = status === 503 ? FAULT_RETRY : {}
    return new ProblemError(status, code, message, { headers, files })
  },
  ERR_AGENT_EXHAUSTED: ({ message }, seesAll) => {
    const detail = `the machine is at fault${seesAll ? `: ${message}` : '; try again in a moment'}`
    return new ProblemError(503, 'machine_fault', detail, { headers: FAULT_RETRY })
  },
  ERR_AGENT_WORKSPACE_TOO_LARGE: ({ message }) =>
    new ProblemError(422, 'workspace_too_large', message),
  ERR_AGENT_CHECKPOINT: ({ message, problem, paths }) => {
    const [status, code] = CHECKPOINT_PROBLEMS[String(problem)] ?? CHECKPOINT_PROBLEMS['unknown']!
    return new ProblemError(status, code, message, { paths })
  },
  ERR_AGENT_UNKNOWN_RUN: () => unknownRun(),
  ERR_AGENT_RUN_STATE: ({ message, problem }) =>
    problem === 'too_many_messages'
      ? new ProblemError(429, 'too_many_messages', message, WAIT_FOR_ROOM)
      : new ProblemError(409, RUN_STATE_CODES[String(problem)] ?? 'run_ended', message),
  ERR_AGENT_QUEUE_FULL: ({ message }) =>
    new ProblemError(429, 'queue_full', message, WAIT_FOR_ROOM),
  ERR_AGENT_CWD_BUSY: ({ message }) => new ProblemError(409, 'cwd_busy', message),
  ERR_AGENT_FOREIGN_FOLDER: ({ message }) => new ProblemError(403, 'forbidden_cwd', message),
  // What the host's function has thrown may be meant for the caller.
  ERR_AGENT_INSTRUCTIONS: (error) =>
    error.cause instanceof ProblemError ? error.cause : internalError(error),
  ERR_AGENT_IDEMPOTENCY: ({ message }) =>
    new ProblemError(422, 'idempotency_mismatch', message, {
      errors: [{ pointer: '/idempotency-key', detail: message, in: 'header' }],
    }),
  ERR_AGENT_CURSOR: ({ message }) => new ProblemError(409, 'cursor_ahead', message),
  ERR_AGENT_CLOSED: () => draining(),
  ERR_AGENT_STORE_UNAVAILABLE: storeUnavailable,
  ERR_AGENT_STORE_LOCKED: storeUnavailable,
  ERR_AGENT_CLAIM_LOST: storeUnavailable,
  ERR_AGENT_STORE_CORRUPT: ({ message }, seesAll) =>
    new ProblemError(500, 'run_damaged', seesAll ? message : `this run is damaged; ${ASK}`),
  ERR_AGENT_STORE_VERSION: ({ message }, seesAll) =>
    new ProblemError(500, 'run_too_new', seesAll ? message : `this run is too new; ${ASK}`),
}

/**
 * The problem to answer a thrown value with. An unknown value becomes a 500 with the value as
 * `cause`, for the host's log only.
 *
 * @param seesAll - whether the caller may see all tenants, and hence paths of the store.
 */
export function toProblemError(error: unknown, seesAll: boolean): ProblemError {
  if (error instanceof ProblemError) return error
  if (error instanceof Error) {
    const code = (error as EngineErrorFacts).code
    const known = typeof code === 'string' && Object.hasOwn(TRANSLATIONS, code)
    const translate = known ? TRANSLATIONS[code as AgentErrorCode] : undefined
    if (translate !== undefined) return translate(error, seesAll)
  }
  return internalError(error)
}

function internalError(cause: unknown): ProblemError {
  const detail = 'the service failed to answer; its log has the cause'
  return new ProblemError(500, 'internal_error', detail, { cause })
}
