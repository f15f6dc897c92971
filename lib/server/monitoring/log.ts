import type { EndReason, RunStatus } from '../../agent/index.js'
import type { PumpEnd } from '../streams/pump.js'

/** A request was answered. A stream is logged when it was opened, and again as {@link StreamLine}. */
export interface RequestLine {
  readonly event: 'request'
  /** ISO 8601 UTC. */
  readonly time: string
  readonly method: string
  /** The route, as in the API description; null when there is none. Never the path itself. */
  readonly route: string | null
  readonly run_id: string | null
  readonly status: number
  readonly duration_ms: number
  /** Who called; null when the host has no authorization, or nobody was told to be calling. */
  readonly principal: string | null
  readonly tenant: string | null
}

/** A stream has ended. */
export interface StreamLine {
  readonly event: 'stream_end'
  readonly time: string
  readonly kind: StreamKind
  readonly run_id: string
  /** `stuck` is a reader that took nothing for too long; `failed` is our own fault. */
  readonly end: PumpEnd | 'failed'
  readonly duration_ms: number
}

/** A run has ended. */
export interface RunLine {
  readonly event: 'run_end'
  readonly time: string
  readonly run_id: string
  readonly status: RunStatus
  readonly end_reason: EndReason | null
  readonly model_name: string
  readonly iterations: number
  readonly total_tokens: number
  readonly estimated_cost_usd: number
  /** From creation to end. */
  readonly duration_ms: number
}

/** One line of the service's log. It holds no header, query, body or goal, hence no secret. */
export type LogLine = RequestLine | StreamLine | RunLine

/** By which way a reader follows a run. */
export type StreamKind = 'websocket' | 'sse'

/**
 * A log of one JSON document per line, for `onLog`.
 *
 * @param output - where lines go. Default: standard output.
 */
export function jsonLines(
  output: { write(text: string): unknown } = process.stdout,
): (line: LogLine) => void {
  return (line) => void output.write(`${JSON.stringify(line)}\n`)
}
