import { escapeInvisibleJson } from '../../internal/text.js'
import type { EndReason, RunStatus } from '../../agent/index.js'
import type { PumpEnd } from '../streams/pump.js'

/** An answered request. A stream is logged when it opens, and again as {@link StreamLine}. */
export interface RequestLine {
  readonly event: 'request'
  /** ISO 8601 UTC. */
  readonly time: string
  readonly method: string
  /** The route as in the API description, never the path itself; null when none matched. */
  readonly route: string | null
  /** The `X-Request-Id` of the response: the caller's, if it sent a sane one. */
  readonly request_id: string
  readonly run_id: string | null
  readonly status: number
  readonly duration_ms: number
  /** Id of the caller; null without `authorize`, on public routes and for refused calls. */
  readonly principal: string | null
  readonly tenant: string | null
}

/** The end of a stream; `duration_ms` counts from its opening. */
export interface StreamLine {
  readonly event: 'stream_end'
  readonly time: string
  readonly kind: StreamKind
  readonly run_id: string
  /** `stuck`: the reader took nothing for too long. `failed`: a fault of the service. */
  readonly end: PumpEnd | 'failed'
  readonly duration_ms: number
}

/** The end of a run, logged by the process that drove it. */
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
  /** From its creation to its end. */
  readonly duration_ms: number
}

/** One line of the service's log. It has no other header, and no query, body or goal. */
export type LogLine = RequestLine | StreamLine | RunLine

/** The transport of a stream; in the metrics, the label `kind`. */
export type StreamKind = 'websocket' | 'sse'

/**
 * Creates a function for `onLog` that writes one JSON document per line. What a terminal would obey
 * or not show is escaped, as JSON does.
 *
 * @param output - receives the lines. Default: standard output.
 */
export function jsonLines(
  output: { write(text: string): unknown } = process.stdout,
): (line: LogLine) => void {
  return (line) => void output.write(`${escapeInvisibleJson(JSON.stringify(line))}\n`)
}
