import { backoffDelay, TRANSIENT_STATUSES } from '../internal/time.js'
import { checkOptions, type OptionKinds } from '../internal/options.js'
import { checkCount } from './config.js'
import { retryChannel, type RetryEvent } from './diagnostics.js'
import {
  ConnectError,
  ConnectTimeoutError,
  NetworkError,
  RemoteProtocolError,
  TimeoutError,
  TotalTimeoutError,
} from './errors.js'
import type { Flow } from './flow.js'
import type { Headers } from './headers.js'
import type { Request } from './request.js'

/** When and how often a request is sent again. */
export interface RetryPolicy {
  /** Attempts after the first. @defaultValue 2 */
  readonly retries: number
  /** Methods to repeat even if the server may have acted. @defaultValue the idempotent ones */
  readonly methods: readonly string[]
  /** Statuses after which to retry. @defaultValue 408 425 429 500 502 503 504 */
  readonly statuses: readonly number[]
  /** Delay before the first retry, in ms; doubles with each retry. @defaultValue 200 */
  readonly backoffMs: number
  /** Longest delay without a Retry-After, in ms. @defaultValue 20000 */
  readonly maxBackoffMs: number
  /** Longest Retry-After to honour, in ms; a longer one ends the retries. @defaultValue 60000 */
  readonly maxRetryAfterMs: number
  /** Returns a number from 0 to 1, for jitter. @defaultValue Math.random */
  readonly random: () => number
}

/** A number of retries, or any subset of {@link RetryPolicy}. */
export type RetryOptions =
  number | { readonly [K in keyof RetryPolicy]?: RetryPolicy[K] | undefined }

/** Two retries of idempotent requests, after network errors and transient statuses. */
export const DEFAULT_RETRY: RetryPolicy = {
  retries: 2,
  methods: ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'],
  statuses: TRANSIENT_STATUSES,
  backoffMs: 200,
  maxBackoffMs: 20_000,
  maxRetryAfterMs: 60_000,
  random: Math.random,
}

const POLICY: OptionKinds<Partial<RetryPolicy>> = {
  retries: 'number', methods: 'array', statuses: 'array', backoffMs: 'number',
  maxBackoffMs: 'number', maxRetryAfterMs: 'number', random: 'function',
}

/** Adds defaults to `options` and validates them. @throws TypeError naming the wrong option. */
export function resolveRetry(options: RetryOptions): RetryPolicy {
  const given = typeof options === 'number' ? { retries: options } : options
  if (typeof given !== 'object') {
    throw new TypeError(`retry must be a number of retries, a policy or null, got ${String(given)}`)
  }
  checkOptions(given, POLICY, 'retry')
  const set = Object.keys(POLICY).map((name) => [name, given[name as keyof RetryPolicy]])
  const resolved: RetryPolicy = {
    ...DEFAULT_RETRY,
    ...Object.fromEntries(set.filter(([, value]) => value !== undefined)),
  }
  checkCount('retry.retries', resolved.retries, 0)
  for (const name of ['backoffMs', 'maxBackoffMs', 'maxRetryAfterMs'] as const) {
    if (!(resolved[name] >= 0)) {
      throw new TypeError(`retry.${name} must be 0 or a positive number of milliseconds`)
    }
  }
  return resolved
}

/** Whether the body can be sent again, which a consumed stream cannot. */
function canSendAgain(request: Request): boolean {
  return request.body?.replayable !== false
}

/** Delay before retrying after a response, in ms; null to return the response. */
export function delayAfterResponse(
  policy: RetryPolicy,
  request: Request,
  tries: number,
  response: { readonly statusCode: number; readonly headers: Headers },
): number | null {
  if (tries > policy.retries || !canSendAgain(request)) return null
  const { statusCode, headers } = response
  if (!policy.methods.includes(request.method) || !policy.statuses.includes(statusCode)) return null
  const retryAfter = parseRetryAfter(headers.get('retry-after'), Date.now())
  if (retryAfter === null) return backoff(policy, tries)
  if (retryAfter > policy.maxRetryAfterMs) return null
  return retryAfter + policy.random() * Math.min(100, retryAfter)
}

/** Delay before retrying after an error, in ms; null to throw it. */
export function delayAfterError(
  policy: RetryPolicy,
  request: Request,
  tries: number,
  error: unknown,
): number | null {
  if (tries > policy.retries || !canSendAgain(request)) return null
  if (error instanceof TotalTimeoutError) return null
  // Without a connection nothing was sent, so any method may be repeated.
  const unsent = error instanceof ConnectError || error instanceof ConnectTimeoutError
  const lost =
    error instanceof NetworkError ||
    error instanceof TimeoutError ||
    error instanceof RemoteProtocolError
  if (!unsent && !(lost && policy.methods.includes(request.method))) return null
  return backoff(policy, tries)
}

/** What {@link withRetries} needs from the client or transport that it serves. */
export interface Retrying<R> {
  /** Sends the request once; what it throws may be retried too. */
  attempt(): Flow<R>
  /** Frees the connection of a response that is not returned. */
  discard(response: R): Flow<void>
  /** Whether hooks and time limits permit another attempt. */
  allows(event: RetryEvent): Flow<boolean>
  sleep(ms: number): Flow<void>
}

/** Sends `request` until `policy` ends it; returns the last response or throws the last error. */
export function* withRetries<R extends { readonly statusCode: number; readonly headers: Headers }>(
  policy: RetryPolicy,
  request: Request,
  { attempt, discard, allows, sleep }: Retrying<R>,
): Flow<R> {
  for (let tries = 1; ; tries++) {
    let response: R | null = null
    let error: unknown
    let delayMs: number | null
    try {
      response = yield* attempt()
      delayMs = delayAfterResponse(policy, request, tries, response)
    } catch (caught) {
      error = caught
      delayMs = delayAfterError(policy, request, tries, caught)
    }
    const event = {
      request,
      tries,
      delayMs: delayMs ?? 0,
      error,
      statusCode: response?.statusCode ?? null,
    }
    let again = false
    try {
      again = delayMs !== null && (yield* allows(event))
    } catch (caught) {
      if (response !== null) yield* discard(response)
      throw caught
    }
    if (!again) {
      if (response === null) throw error
      return response
    }
    if (response !== null) yield* discard(response)
    if (retryChannel.hasSubscribers) retryChannel.publish(event)
    yield* sleep(event.delayMs)
  }
}

function backoff({ backoffMs, maxBackoffMs, random }: RetryPolicy, tries: number): number {
  return backoffDelay(tries, { firstMs: backoffMs, maxMs: maxBackoffMs }, random)
}

/** Retry-After in ms, from seconds or an HTTP date (RFC 9110, section 10.2.3); null if invalid. */
export function parseRetryAfter(value: string | null, now: number): number | null {
  if (value === null) return null
  if (/^[0-9]{1,10}$/.test(value.trim())) return Number(value) * 1000
  const at = Date.parse(value)
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}
