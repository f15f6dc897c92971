import { checkOptions, describeValue, type OptionKinds } from '../internal/options.js'

/** Time limits for the phases of an exchange, in milliseconds; `null` for no limit. */
export interface Timeouts {
  /** Opening a connection, name resolution and TLS included. */
  readonly connect: number | null
  /** Longest silence while waiting for the response or reading it. */
  readonly read: number | null
  /** Longest time in which the peer accepts no byte of the request. */
  readonly write: number | null
  /** Longest wait for a free connection of the pool. */
  readonly pool: number | null
  /** The whole call: redirects, authentication, retries and reading the body. */
  readonly total: number | null
}

/** One number for connect, read, write and pool alike, or any subset of {@link Timeouts}. */
export type TimeoutOptions =
  | number
  | null
  | { readonly [K in keyof Timeouts]?: Timeouts[K] | undefined }

const TIMEOUTS: OptionKinds<Partial<Timeouts>> = {
  connect: 'number|null', read: 'number|null', write: 'number|null', pool: 'number|null',
  total: 'number|null',
}

/** 5 s each for connect, read, write and pool; no total limit. */
export const DEFAULT_TIMEOUTS: Timeouts = {
  connect: 5_000,
  read: 5_000,
  write: 5_000,
  pool: 5_000,
  total: null,
}

const PHASES = Object.keys(TIMEOUTS) as readonly (keyof Timeouts)[]
const NO_TIMEOUTS: Timeouts = { connect: null, read: null, write: null, pool: null, total: null }

/** How many connections a client opens and keeps. */
export interface Limits {
  /** Most open connections, over all origins; `null` for no limit. @defaultValue 100 */
  readonly maxConnections: number | null
  /** Most idle connections; `null` for no limit. @defaultValue 20 */
  readonly maxKeepaliveConnections: number | null
  /** How long an idle connection is kept, in ms; `null` for ever. @defaultValue 5000 */
  readonly keepaliveExpiry: number | null
  /** Most open connections to one origin; `null` for no limit. @defaultValue null */
  readonly maxConnectionsPerOrigin: number | null
}

/** Any subset of {@link Limits}. An omitted limit has its default; `null` switches it off. */
export type LimitOptions = { readonly [K in keyof Limits]?: Limits[K] | undefined }

const LIMITS: OptionKinds<LimitOptions> = {
  maxConnections: 'number|null', maxKeepaliveConnections: 'number|null',
  keepaliveExpiry: 'number|null', maxConnectionsPerOrigin: 'number|null',
}

/** 100 connections, 20 of them idle, for 5 s. */
export const DEFAULT_LIMITS: Limits = {
  maxConnections: 100,
  maxKeepaliveConnections: 20,
  keepaliveExpiry: 5_000,
  maxConnectionsPerOrigin: null,
}

/** Most redirects that one call follows. */
export const DEFAULT_MAX_REDIRECTS = 20

/** Most decoded bytes that a call reads, unless it streams. */
export const DEFAULT_MAX_RESPONSE_BYTES: number = 256 * 1024 * 1024

/** Most bytes of a response's head, and of its trailers. */
export const DEFAULT_MAX_HEADER_BYTES: number = 64 * 1024

/** Silence on an HTTP/2 connection, in ms, after which a ping is sent. */
export const DEFAULT_PING_INTERVAL = 15_000

/** Most requests that one authentication flow may yield. */
export const MAX_AUTH_REQUESTS = 10

/** Merges the time limits of a call over those of its client. */
export function resolveTimeouts(
  option: TimeoutOptions | undefined,
  inherited: Timeouts = DEFAULT_TIMEOUTS,
): Timeouts {
  if (option === undefined) return inherited
  if (option === null) return NO_TIMEOUTS
  if (typeof option === 'number') {
    checkMs('timeout', option)
    const all = { connect: option, read: option, write: option, pool: option }
    return unlessSame(inherited, { ...all, total: inherited.total })
  }
  if (typeof option !== 'object') {
    throw new TypeError(
      `timeout must be a number of milliseconds, an object or null, got ${describeValue(option)}`,
    )
  }
  checkOptions(option, TIMEOUTS, 'timeout')
  const merged: { -readonly [K in keyof Timeouts]: Timeouts[K] } = { ...inherited }
  for (const name of PHASES) {
    const value = option[name]
    if (value === undefined) continue
    if (value !== null) checkMs(`timeout.${name}`, value)
    merged[name] = value
  }
  return unlessSame(inherited, merged)
}

/** A call whose limits are one object with those of its request needs no second request. */
function unlessSame(inherited: Timeouts, merged: Timeouts): Timeouts {
  return PHASES.every((name) => merged[name] === inherited[name]) ? inherited : merged
}

function checkMs(name: string, value: unknown): void {
  if (typeof value !== 'number' || !(value > 0)) {
    throw new TypeError(
      `${name} must be a positive number of milliseconds or null, got ${String(value)}`,
    )
  }
}

/** Adds defaults to `option` and validates it. @throws TypeError naming the wrong limit. */
export function resolveLimits(option: LimitOptions | undefined): Limits {
  if (option === undefined) return DEFAULT_LIMITS
  checkOptions(option, LIMITS, 'limits')
  const merged: { -readonly [K in keyof Limits]: Limits[K] } = { ...DEFAULT_LIMITS }
  for (const name of Object.keys(LIMITS) as (keyof Limits)[]) {
    const value = option[name]
    if (value === undefined) continue
    const least = name === 'maxConnections' || name === 'maxConnectionsPerOrigin' ? 1 : 0
    if (value !== null && !(value >= least)) {
      throw new TypeError(`limits.${name} must be a number from ${least} or null, got ${value}`)
    }
    merged[name] = value
  }
  return merged
}

/** Returns `value` if it is a boolean. @throws TypeError naming the option otherwise. */
export function checkBoolean(name: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value
  throw new TypeError(`${name} must be true or false, got ${String(value)}`)
}

/** Returns `value` if it is null or a whole number from `least`. @throws TypeError otherwise. */
export function checkCount<T extends number | null>(name: string, value: T, least: number): T {
  if (value !== null && !(Number.isInteger(value) && (value as number) >= least)) {
    throw new TypeError(`${name} must be a whole number from ${least}, got ${String(value)}`)
  }
  return value
}
