import { backoffDelay, TRANSIENT_STATUSES } from '../internal/backoff.js'
import {
  ConnectError,
  ConnectTimeoutError,
  NetworkError,
  RemoteProtocolError,
  TimeoutError,
  TotalTimeoutError,
} from './errors.js'
import { checkCount } from './config.js'
import { retryChannel, type RetryEvent } from './diagnostics.js'
import type { Flow } from './flow.js'
import type { Headers } from './headers.js'
import type { Request } from './request.js'

/** When and how often a request is sent again. */
export interface RetryPolicy {
  /** Further tries after the first. @defaultValue 2 */
  readonly retries: number
  /** Methods that may be sent again once they may have been received. @defaultValue the idempotent ones */
  readonly methods: readonly string[]
  /** Answers to try again after. @defaultValue 408 425 429 500 502 503 504 */
  readonly statuses: readonly number[]
  /** Delay before the first retry, in ms; doubled for each further one. @defaultValue 200 */
  readonly backoffMs: number
  /** Longest delay of ours, in ms. @defaultValue 20000 */
  readonly maxBackoffMs: number
  /** Longest Retry-After that is waited for, in ms; beyond it the answer is given back. @defaultValue 60000 */
  readonly maxRetryAfterMs: number
  /** From 0 to 1, for jitter. @defaultValue Math.random */
  readonly random: () => number
}

/** A number of retries, or any subset of {@link RetryPolicy}. */
export type RetryOptions =
  number | { readonly [K in keyof RetryPolicy]?: RetryPolicy[K] | undefined }

/** Two retries of idempotent requests. */
export const DEFAULT_RETRY: RetryPolicy = {
  retries: 2,
  methods: ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'],
  statuses: TRANSIENT_STATUSES,
  backoffMs: 200,
  maxBackoffMs: 20_000,
  maxRetryAfterMs: 60_000,
  random: Math.random,
}

/** Fills {@link RetryPolicy} and checks it. */
export function resolveRetry(options: RetryOptions): RetryPolicy {
  const given = typeof options === 'number' ? { retries: options } : options
  if (typeof given !== 'object') {
    throw new TypeError(`retry must be a number of retries, a policy or null, got ${String(given)}`)
  }
  const policy: Record<string, unknown> = { ...DEFAULT_RETRY }
  for (const [name, value] of Object.entries(given)) {
    if (!(name in DEFAULT_RETRY)) throw new TypeError(`retry.${name} is not known`)
    if (value !== undefined) policy[name] = value
  }
  const resolved = policy as unknown as RetryPolicy
  checkCount('retry.retries', resolved.retries, 0)
  for (const name of ['backoffMs', 'maxBackoffMs', 'maxRetryAfterMs'] as const) {
    if (!(resolved[name] >= 0)) throw new TypeError(`retry.${name} must be a number of ms from 0`)
  }
  return resolved
}

/** Whether the body can be had once more; a stream that was sent cannot. */
function canSendAgain(request: Request): boolean {
  return request.body?.replayable !== false
}

/** How long to wait before sending again after an answer, in ms; null to give the answer back. */
export function delayAfterResponse(
  policy: RetryPolicy,
  request: Request,
  tries: number,
  answer: { readonly statusCode: number; readonly headers: Headers },
): number | null {
  if (tries > policy.retries || !canSendAgain(request)) return null
  if (!policy.methods.includes(request.method) || !policy.statuses.includes(answer.statusCode))
    return null
  const asked = parseRetryAfter(answer.headers.get('retry-after'), Date.now())
  if (asked === null) return backoff(policy, tries)
  return asked > policy.maxRetryAfterMs ? null : asked + policy.random() * Math.min(100, asked)
}

/** How long to wait before sending again after an error, in ms; null to throw it. */
export function delayAfterError(
  policy: RetryPolicy,
  request: Request,
  tries: number,
  error: unknown,
): number | null {
  if (tries > policy.retries || !canSendAgain(request)) return null
  if (error instanceof TotalTimeoutError) return null
  // Without a connection nothing was sent, whatever the method.
  const unsent = error instanceof ConnectError || error instanceof ConnectTimeoutError
  const lost =
    error instanceof NetworkError ||
    error instanceof TimeoutError ||
    error instanceof RemoteProtocolError
  if (!unsent && !(lost && policy.methods.includes(request.method))) return null
  return backoff(policy, tries)
}

/** What a retried exchange needs of those who make it. */
export interface Retrying<R> {
  /** One try. */
  attempt(): Flow<R>
  /** Frees an answer that is not wanted. */
  discard(answer: R): Flow<void>
  /** Whether there is to be another try, and time for it. */
  allows(event: RetryEvent): Flow<boolean>
  sleep(ms: number): Flow<void>
}

/** Tries `request` as often as `policy` says, and gives the last answer back, or throws its error. */
export function* withRetries<R extends { readonly statusCode: number; readonly headers: Headers }>(
  policy: RetryPolicy,
  request: Request,
  { attempt, discard, allows, sleep }: Retrying<R>,
): Flow<R> {
  for (let tries = 1; ; tries++) {
    let answer: R | null = null
    let error: unknown
    let delayMs: number | null
    try {
      answer = yield* attempt()
      delayMs = delayAfterResponse(policy, request, tries, answer)
    } catch (caught) {
      error = caught
      delayMs = delayAfterError(policy, request, tries, caught)
    }
    const event = {
      request,
      tries,
      delayMs: delayMs ?? 0,
      error,
      statusCode: answer?.statusCode ?? null,
    }
    let again = false
    try {
      again = delayMs !== null && (yield* allows(event))
    } catch (caught) {
      if (answer !== null) yield* discard(answer)
      throw caught
    }
    if (!again) {
      if (answer === null) throw error
      return answer
    }
    if (answer !== null) yield* discard(answer)
    if (retryChannel.hasSubscribers) retryChannel.publish(event)
    yield* sleep(event.delayMs)
  }
}

function backoff({ backoffMs, maxBackoffMs, random }: RetryPolicy, tries: number): number {
  return backoffDelay(tries, { firstMs: backoffMs, maxMs: maxBackoffMs }, random)
}

/** Retry-After in ms: seconds or an HTTP date (RFC 9110, section 10.2.3); null when it is neither. */
export function parseRetryAfter(value: string | null, now: number): number | null {
  if (value === null) return null
  if (/^[0-9]{1,10}$/.test(value.trim())) return Number(value) * 1000
  const at = Date.parse(value)
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}
