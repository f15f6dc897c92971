/**
 * When a failed model call is retried, and what its error says when it is not. Pure: randomness is
 * a parameter.
 *
 * @module
 */
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import { backoffDelay } from '../../internal/time.js'
import { ModelError } from '../errors.js'
import { withWords } from './provider-errors.js'

/** How many attempts a call gets, and how long the waits between them are. */
export interface RetryPolicy {
  /** Total number of calls, including the first. @defaultValue 5 */
  readonly maxAttempts: number
  /** Milliseconds: bound of the first wait; each further bound doubles. @defaultValue 500 */
  readonly baseDelayMs: number
  /** Milliseconds: bound of every wait that the provider did not ask for. @defaultValue 30000 */
  readonly maxDelayMs: number
  /** Milliseconds: a call fails if the provider asks for a longer wait. @defaultValue 120000 */
  readonly maxRetryAfterMs: number
}

const POLICY: OptionKinds<RetryPolicy> = {
  maxAttempts: 'number! a number of calls', baseDelayMs: 'number! milliseconds',
  maxDelayMs: 'number! milliseconds', maxRetryAfterMs: 'number! milliseconds',
}

/** Five calls, with waits of at most 0.5 s, 1 s, 2 s and 4 s, plus what the provider asks for. */
export const DEFAULT_RETRY_POLICY: RetryPolicy = {
  maxAttempts: 5,
  baseDelayMs: 500,
  maxDelayMs: 30_000,
  maxRetryAfterMs: 120_000,
}

/**
 * Milliseconds to wait before the next attempt, or null to give up: the error is final, no attempt
 * is left, or the provider asks for a longer wait than the policy allows.
 *
 * Waits are random between 0 and their bound ("full jitter"), so that runs that failed together do
 * not retry together; the jitter is added to whatever wait the provider asks for.
 *
 * @param attempt - calls made so far, 1 after the first failure.
 * @param random - returns a number from 0 to below 1.
 */
export function retryDelay(
  attempt: number,
  error: unknown,
  random: () => number = Math.random,
  policy: RetryPolicy = DEFAULT_RETRY_POLICY,
): number | null {
  checkOptions(policy, POLICY, 'retryDelay()')
  if (!(error instanceof ModelError) || !error.retryable || attempt >= policy.maxAttempts)
    return null
  const backoff = { firstMs: policy.baseDelayMs, maxMs: policy.maxDelayMs }
  const jitter = Math.round(backoffDelay(attempt, backoff, random))
  const { retryAfterMs } = error
  if (retryAfterMs === undefined) return jitter
  return retryAfterMs > policy.maxRetryAfterMs ? null : retryAfterMs + jitter
}

/**
 * The error of a call that is given up: if the provider asks for a longer wait than the policy
 * allows, its message says so, and what to do.
 */
export function finalError(
  error: ModelError,
  { maxRetryAfterMs }: RetryPolicy = DEFAULT_RETRY_POLICY,
): ModelError {
  const { retryable, retryAfterMs = 0 } = error
  if (!retryable || retryAfterMs <= maxRetryAfterMs) return error
  return withWords(
    error,
    ` (the provider asks to wait ${minutes(retryAfterMs)}, and a run waits ` +
      `${minutes(maxRetryAfterMs)} at most: retry the run after that, or use another model)`,
  )
}

/** Rounded up. */
function minutes(ms: number): string {
  return `${Math.ceil(ms / 60_000)} minutes`
}
