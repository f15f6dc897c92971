/**
 * Reads from response headers how long a provider asks to wait.
 *
 * @module
 */

/** Returns a header by its lower-case name, or null. */
export type HeaderLookup = (name: string) => string | null

/** Pairs of headers: what remains of a limit, and when it resets. */
const LIMITS = [
  ['x-ratelimit-remaining-requests', 'x-ratelimit-reset-requests'],
  ['x-ratelimit-remaining-tokens', 'x-ratelimit-reset-tokens'],
  ['x-ratelimit-remaining', 'x-ratelimit-reset'],
  ['ratelimit-remaining', 'ratelimit-reset'],
  ['anthropic-ratelimit-requests-remaining', 'anthropic-ratelimit-requests-reset'],
  ['anthropic-ratelimit-tokens-remaining', 'anthropic-ratelimit-tokens-reset'],
  ['anthropic-ratelimit-input-tokens-remaining', 'anthropic-ratelimit-input-tokens-reset'],
  ['anthropic-ratelimit-output-tokens-remaining', 'anthropic-ratelimit-output-tokens-reset'],
] as const

/**
 * Milliseconds that the provider asks to wait: `retry-after-ms`, `retry-after` (seconds or a date,
 * RFC 9110, section 10.2.3), else the latest reset among the exhausted limits. Undefined when no
 * header says.
 *
 * @param now - milliseconds since the epoch.
 */
export function retryAfterFromHeaders(header: HeaderLookup, now: number): number | undefined {
  const ms = numberOf(header('retry-after-ms'))
  if (ms !== undefined) return Math.ceil(ms)
  const after = header('retry-after')?.trim() ?? ''
  const seconds = numberOf(after)
  if (seconds !== undefined) return Math.ceil(seconds * 1000)
  const date = dateOf(after, now)
  return date ?? latestReset(header, now)
}

function latestReset(header: HeaderLookup, now: number): number | undefined {
  let latest: number | undefined
  for (const [remaining, reset] of LIMITS) {
    if (numberOf(header(remaining)) !== 0) continue
    const wait = resetTime(header(reset)?.trim() ?? '', now)
    if (wait !== undefined) latest = Math.max(latest ?? 0, wait)
  }
  return latest
}

/** Accepts seconds, a duration such as `6m0s` or `20ms`, an epoch time (s or ms), or a date. */
function resetTime(text: string, now: number): number | undefined {
  const number = numberOf(text)
  if (number === undefined) return durationOf(text) ?? dateOf(text, now)
  if (number > 1e12) return Math.max(0, Math.ceil(number - now))
  if (number > 1e9) return Math.max(0, Math.ceil(number * 1000 - now))
  return Math.ceil(number * 1000)
}

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** Milliseconds of a duration such as `1h2m3.5s` or `120ms`; undefined for any other text. */
export function durationOf(text: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(text)) return undefined
  let total = 0
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/gy)) {
    total += Number(amount) * UNIT_MS[unit!]!
  }
  return Math.ceil(total)
}

function dateOf(text: string, now: number): number | undefined {
  if (!/\d{4}/.test(text)) return undefined
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

function numberOf(text: string | null): number | undefined {
  return text !== null && /^\s*\d+(?:\.\d+)?\s*$/.test(text) ? Number(text) : undefined
}
