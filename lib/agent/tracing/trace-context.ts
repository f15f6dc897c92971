/**
 * W3C Trace Context (Level 1): the trace of a run, read from the headers of the request that
 * created it and sent with model calls.
 *
 * @module
 */
import { randomFillSync } from 'node:crypto'
import type { TraceContext } from '../model.js'

export interface TraceParent {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
  /** Whether the caller records the trace. */
  readonly sampled: boolean
}

/** Version 00, or a later one whose first four fields are the same (section 4.3). */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
/** A longer `tracestate` is dropped (section 3.3.1.5). */
const TRACESTATE_BYTES = 512

/** Parses a `traceparent`; null when it is malformed, and thus ignored (section 4.2). */
export function parseTraceparent(text: unknown): TraceParent | null {
  const match = typeof text === 'string' ? TRACEPARENT.exec(text.trim()) : null
  const [, version = '', traceId = '', spanId = '', flags = '', more] = match ?? []
  if (match === null || (version === '00' && more !== undefined)) return null
  return { traceId, spanId, sampled: (parseInt(flags, 16) & 1) === 1 }
}

/** Formats a `traceparent` of version 00. */
export function formatTraceparent({ traceId, spanId, sampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`
}

/**
 * Reads the trace context from headers; null without a valid `traceparent`. Only an invalid
 * `tracestate` is dropped, the rest is kept (section 3.3.1.1).
 */
export function readTraceContext(headers: {
  readonly traceparent?: unknown
  readonly tracestate?: unknown
}): TraceContext | null {
  const parent = parseTraceparent(headers.traceparent)
  if (parent === null) return null
  const state = Array.isArray(headers.tracestate)
    ? headers.tracestate.join(',')
    : headers.tracestate
  const valid =
    typeof state === 'string' && /^[\x20-\x7e\t]+$/.test(state) && state.length <= TRACESTATE_BYTES
  return { traceparent: formatTraceparent(parent), tracestate: valid ? state.trim() : null }
}

const pool = Buffer.alloc(1024)
let used = pool.length

/** A random span id: 16 hexadecimal digits, not all of them 0. */
export function newSpanId(): string {
  if (used + 8 > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const id = pool.toString('hex', used, used + 8)
  used += 8
  return id === '0000000000000000' ? newSpanId() : id
}
