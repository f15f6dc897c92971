/**
 * When a failed model call is tried again. Pure: time and randomness come from outside.
 *
 * @module
 */
import { backoffDelay } from '../../internal/backoff.js'
import { ModelError } from '../errors.js'

/** How often and how long is waited. */
export interface RetryPolicy {
  /** Calls in all, the first one included. @defaultValue 5 */
  readonly maxAttempts: number
  /** Milliseconds: bound of the first wait; each further one is twice as long. @defaultValue 500 */
  readonly baseDelayMs: number
  /** Milliseconds: upper bound of all waits of our own choice. @defaultValue 30000 */
  readonly maxDelayMs: number
  /** Milliseconds that a provider may ask for; asked for more, we give up. @defaultValue 120000 */
  readonly maxRetryAfterMs: number
}

/** Five calls, with waits of at most 0.5 s, 1 s, 2 s and 4 s, or what the provider asks for. */
export const DEFAULT_RETRY_POLICY: RetryPolicy = {
  maxAttempts: 5,
  baseDelayMs: 500,
  maxDelayMs: 30_000,
  maxRetryAfterMs: 120_000,
}

/**
 * Milliseconds to wait before the next attempt, or null to give up: the error is final, the
 * attempts are used up, or the provider asks for a longer wait than a run should sit through.
 *
 * Waits are random between 0 and their bound ("full jitter"), so that runs that failed together do
 * not come back together; on top of what a provider asks for, the wait is random as well.
 *
 * @param attempt - calls made so far, 1 after the first failure.
 * @param random - a number from 0 to below 1.
 */
export function retryDelay(
  attempt: number,
  error: unknown,
  random: () => number = Math.random,
  policy: RetryPolicy = DEFAULT_RETRY_POLICY,
): number | null {
  if (!(error instanceof ModelError) || !error.retryable || attempt >= policy.maxAttempts)
    return null
  const backoff = { firstMs: policy.baseDelayMs, maxMs: policy.maxDelayMs }
  const jitter = Math.round(backoffDelay(attempt, backoff, random))
  const { retryAfterMs } = error
  if (retryAfterMs === undefined) return jitter
  return retryAfterMs > policy.maxRetryAfterMs ? null : retryAfterMs + jitter
}
