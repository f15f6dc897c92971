/**
 * What goes wrong in a call, as problem details (RFC 9457). A {@link ProblemError} says itself what
 * to answer; errors of the engine are translated by their `code`; everything else is a 500 that
 * tells nothing about the inside.
 *
 * ```
 * ProblemError      an answer other than success: status, code, detail, headers, field errors
 * RunServiceError   the same, as the client of a service meets it
 * ```
 *
 * @module
 */
import type { AgentErrorCode, SchemaViolation } from '../agent/index.js'

/** Stable `code` of every problem that the service answers with. */
export type ProblemCode =
  | 'bad_json'
  | 'bad_body'
  | 'unauthorized'
  | 'forbidden_peer'
  | 'forbidden_host'
  | 'forbidden_proxy'
  | 'forbidden_origin'
  | 'forbidden_tenant'
  | 'not_found'
  | 'run_not_found'
  | 'method_not_allowed'
  | 'not_acceptable'
  | 'cwd_busy'
  | 'not_waiting'
  | 'stale_gate'
  | 'already_decided'
  | 'run_ended'
  | 'run_live'
  | 'cursor_ahead'
  | 'body_too_large'
  | 'unsupported_media_type'
  | 'invalid_request'
  | 'goal_unknown'
  | 'goal_unsuitable'
  | 'goal_not_verifiable'
  | 'idempotency_mismatch'
  | 'upgrade_required'
  | 'queue_full'
  | 'rate_limited'
  | 'too_many_at_once'
  | 'internal_error'
  | 'mount_mismatch'
  | 'draining'
  | 'store_unavailable'

/** One wrong field of a request. */
export interface FieldError extends SchemaViolation {
  /** Where the field stands; the body when absent. */
  readonly in?: 'query' | 'header'
}

/** An `application/problem+json` document. */
export interface Problem {
  /** `about:blank`: the status says what kind of problem it is, `code` says which one. */
  readonly type: 'about:blank'
  /** The phrase of the status. */
  readonly title: string
  readonly status: number
  /** For people: what is wrong and what to do about it. */
  readonly detail: string
  /** For programs. A host may answer with codes of its own. */
  readonly code: string
  /** Each field that is wrong. */
  readonly errors?: readonly FieldError[]
}

/** What a {@link ProblemError} may carry beside status, code and detail. */
export interface ProblemOptions extends ErrorOptions {
  /** Response headers, for example `Retry-After`. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly errors?: readonly FieldError[] | undefined
}

/**
 * Thrown to answer a call with a problem. A host throws it in `authorize` to answer something else
 * than 401, for example `new ProblemError(403, 'no_access', 'this key may only read')`.
 */
export class ProblemError extends Error {
  override name = 'ProblemError'
  readonly status: number
  readonly code: string
  readonly headers: Readonly<Record<string, string>>
  readonly errors: readonly FieldError[]

  constructor(
    status: number,
    code: ProblemCode | (string & {}),
    detail: string,
    options: ProblemOptions = {},
  ) {
    super(detail, 'cause' in options ? { cause: options.cause } : undefined)
    if (!Number.isInteger(status) || status < 400 || status > 599) {
      throw new RangeError(`status must be a whole number from 400 to 599, got ${status}`)
    }
    this.status = status
    this.code = code
    this.headers = options.headers ?? {}
    this.errors = options.errors ?? []
  }
}

/** What a {@link RunServiceError} carries beside status, code and detail. */
export interface RunServiceErrorFacts {
  readonly errors?: readonly FieldError[]
  readonly retryAfterMs?: number | null
}

/** Thrown by `RunServiceClient` when the service answers something else than success. */
export class RunServiceError extends Error {
  override name = 'RunServiceError'
  /** The status of the answer. */
  readonly status: number
  /**
   * The `code` of its problem details; a host may have codes of its own. `unexpected_answer` when it
   * has none, because something else than the service answered.
   */
  readonly code: string
  /** Each field that is wrong. */
  readonly errors: readonly FieldError[]
  /** When the service asks to be called again, in ms from now; null when it does not say. */
  readonly retryAfterMs: number | null

  constructor(
    status: number,
    code: ProblemCode | 'unexpected_answer' | (string & {}),
    detail: string,
    { errors = [], retryAfterMs = null }: RunServiceErrorFacts = {},
  ) {
    super(detail)
    this.status = status
    this.code = code
    this.errors = errors
    this.retryAfterMs = retryAfterMs
  }
}

/** The 422 for one field. */
export function invalidField(
  pointer: string,
  detail: string,
  where?: 'query' | 'header',
): ProblemError {
  const error: FieldError =
    where === undefined ? { pointer, detail } : { pointer, detail, in: where }
  const name = pointer.slice(1) || 'the body'
  return new ProblemError(422, 'invalid_request', `${name} ${detail}`, { errors: [error] })
}

/** The 404 for a run, the same for ids that cannot be, unknown runs and runs of other tenants. */
export function unknownRun(): ProblemError {
  return new ProblemError(404, 'run_not_found', 'there is no run with this id')
}

/** Phrases of the statuses that we answer with (RFC 9110, section 15). */
const PHRASES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  409: 'Conflict',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Content',
  426: 'Upgrade Required',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
}

/** The document that a {@link ProblemError} is answered with. */
export function problemOf(error: ProblemError): Problem {
  const { status, code, message: detail, errors } = error
  const title = PHRASES[status] ?? (status < 500 ? 'Client Error' : 'Server Error')
  const problem: Problem = { type: 'about:blank', title, status, detail, code }
  return errors.length === 0 ? problem : { ...problem, errors }
}

/** Facts that errors of the engine carry beside their code. */
interface EngineErrorFacts {
  readonly code?: unknown
  readonly problem?: unknown
  readonly violations?: readonly SchemaViolation[]
}

const RUN_STATE_CODES: Readonly<Record<string, ProblemCode>> = {
  not_waiting: 'not_waiting',
  stale_gate: 'stale_gate',
  already_decided: 'already_decided',
  ended: 'run_ended',
  live: 'run_live',
}

const GOAL_CODES: Readonly<Record<string, ProblemCode>> = {
  unknown: 'goal_unknown',
  unsuitable: 'goal_unsuitable',
  not_verifiable: 'goal_not_verifiable',
}

/** Seconds after which a client that met a full queue should try again. */
const QUEUE_RETRY_SECONDS = 5
/** Seconds after which another process should have taken over from one that drains. */
const DRAIN_RETRY_SECONDS = 10

/** Seconds after which a store that could not be reached may be there again. */
const STORE_RETRY_SECONDS = 2

/** The 503 of a service that is closing. */
export function draining(): ProblemError {
  return new ProblemError(503, 'draining', 'the service is shutting down; try again in a moment', {
    headers: { 'Retry-After': String(DRAIN_RETRY_SECONDS) },
  })
}

/** The 503 of a service whose database cannot be reached, or is fought over, just now. */
function storeUnavailable(): ProblemError {
  return new ProblemError(
    503,
    'store_unavailable',
    'the store cannot be reached now; try again in a moment',
    {
      headers: { 'Retry-After': String(STORE_RETRY_SECONDS) },
    },
  )
}

type Translate = (error: Error & EngineErrorFacts) => ProblemError

/** Engine errors that a client can do something about; the others are our own fault, hence 500. */
const TRANSLATIONS: { readonly [C in AgentErrorCode]?: Translate } = {
  ERR_AGENT_INVALID_REQUEST: ({ message, violations }) =>
    new ProblemError(422, 'invalid_request', message, { errors: violations }),
  ERR_AGENT_GOAL: ({ message, problem }) =>
    new ProblemError(422, GOAL_CODES[String(problem)] ?? 'goal_unsuitable', message, {
      errors: [{ pointer: '/goal', detail: message }],
    }),
  ERR_AGENT_OUTSIDE_WORKSPACE: ({ message }) =>
    new ProblemError(422, 'invalid_request', message, {
      errors: [{ pointer: '/cwd', detail: message }],
    }),
  ERR_AGENT_UNKNOWN_RUN: () => unknownRun(),
  ERR_AGENT_RUN_STATE: ({ message, problem }) =>
    new ProblemError(409, RUN_STATE_CODES[String(problem)] ?? 'run_ended', message),
  ERR_AGENT_QUEUE_FULL: ({ message }) =>
    new ProblemError(429, 'queue_full', message, {
      headers: { 'Retry-After': String(QUEUE_RETRY_SECONDS) },
    }),
  ERR_AGENT_CWD_BUSY: ({ message }) => new ProblemError(409, 'cwd_busy', message),
  ERR_AGENT_IDEMPOTENCY: ({ message }) =>
    new ProblemError(422, 'idempotency_mismatch', message, {
      errors: [{ pointer: '/idempotency-key', detail: message, in: 'header' }],
    }),
  ERR_AGENT_CURSOR: ({ message }) => new ProblemError(409, 'cursor_ahead', message),
  ERR_AGENT_CLOSED: () => draining(),
  ERR_AGENT_STORE_UNAVAILABLE: () => storeUnavailable(),
  ERR_AGENT_CLAIM_LOST: () => storeUnavailable(),
}

/**
 * Any thrown value as the problem to answer with. What is not known becomes a 500 with the thrown
 * value as `cause`, for the host's log only.
 */
export function toProblemError(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error
  if (error instanceof Error) {
    const code = (error as EngineErrorFacts).code
    const known = typeof code === 'string' && Object.hasOwn(TRANSLATIONS, code)
    const translate = known ? TRANSLATIONS[code as AgentErrorCode] : undefined
    if (translate !== undefined) return translate(error)
  }
  return new ProblemError(
    500,
    'internal_error',
    'the service failed to answer; its log has the cause',
    {
      cause: error,
    },
  )
}
