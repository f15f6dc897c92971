/**
 * How long to wait before a retry: of HTTP requests, model calls, webhooks, reconnecting readers,
 * stores and MCP servers.
 *
 * The wait is random between zero and a bound that doubles with each retry ("full jitter"), so that
 * clients that failed at the same time do not retry at the same time.
 *
 * @module
 */

/** Bounds of the waits, in milliseconds. */
export interface Backoff {
  /** Bound of the first wait; each later bound is twice the previous one. */
  readonly firstMs: number
  /** Bound of all waits. */
  readonly maxMs: number
}

/**
 * Statuses after which the same request may succeed later: timeout, too early (RFC 8470,
 * section 5.2), too many requests, and errors of a server or gateway that may be temporary.
 */
export const TRANSIENT_STATUSES: readonly number[] = [408, 425, 429, 500, 502, 503, 504]

/** Bound of the wait before retry `retry` (1, 2, …), in milliseconds. */
export function backoffBound(retry: number, { firstMs, maxMs }: Backoff): number {
  return Math.min(maxMs, firstMs * 2 ** (retry - 1))
}

/**
 * Wait before retry `retry` (1, 2, …), in milliseconds, not rounded.
 *
 * @param random - from 0 to below 1, like `Math.random`.
 */
export function backoffDelay(
  retry: number,
  backoff: Backoff,
  random: () => number = Math.random,
): number {
  return random() * backoffBound(retry, backoff)
}
