/**
 * Observability for the operator: metrics at `/metrics` and lines for `onLog`, both off by default.
 *
 * @module
 */
import type { AgentEvent, ObservedAppend, RunStatus } from '../../agent/index.js'
import { callHost } from '../../internal/web.js'
import { describeError, warn } from '../../internal/errors.js'
import type { Principal } from '../access/auth.js'
import type { ServiceEngine } from '../config.js'
import type { StreamEnd } from '../streams/pump.js'
import { countDamage, damageOf } from './damage.js'
import type { LogLine, StreamKind } from './log.js'
import { Counter, exposition, Gauge, Histogram, type Metric } from './metrics.js'

/** Bounds of the duration buckets, in seconds. */
const APPEND_BOUNDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2]
const REQUEST_BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]

export interface AnsweredRequest {
  readonly method: string
  /** The route's path; null when none matched. */
  readonly route: string | null
  readonly requestId: string
  readonly runId: string | null
  readonly status: number
  readonly principal: Principal | null
  /** `performance.now()` when it arrived. */
  readonly began: number
}

export class Monitor {
  readonly #engine: ServiceEngine
  readonly #onLog: ((line: LogLine) => void) | null
  readonly #unobserve: () => void
  readonly #streams: Record<StreamKind, number> = { websocket: 0, sse: 0 }
  #counts: Readonly<Record<RunStatus, number>> | null = null

  readonly #requests = new Counter(
    'runwright_http_requests_total',
    'Requests answered, by route.',
    ['method', 'route', 'status'],
  )
  readonly #requestSeconds = new Histogram(
    'runwright_http_request_seconds',
    'Time from a request to the head of its response.',
    REQUEST_BOUNDS,
  )
  readonly #streamEnds = new Counter(
    'runwright_streams_ended_total',
    'Ended streams, by how they ended.',
    ['kind', 'end'],
  )
  readonly #slowReaders = new Counter(
    'runwright_slow_readers_dropped_total',
    'Readers disconnected because they took nothing for too long.',
  )
  readonly #events = new Counter('runwright_events_appended_total', 'Events made durable.')
  readonly #appendSeconds = new Histogram(
    'runwright_append_seconds',
    'Time until appended events were durable.',
    APPEND_BOUNDS,
  )
  readonly #runEnds = new Counter(
    'runwright_runs_ended_total',
    'Ended runs, by reason.',
    ['status', 'end_reason'],
  )
  readonly #modelCalls = new Counter('runwright_model_calls_total', 'Model calls.', ['model'])
  readonly #tokens = new Counter('runwright_model_tokens_total', 'Tokens of model calls.', [
    'model',
    'direction',
  ])
  readonly #cost = new Counter(
    'runwright_model_cost_usd_total',
    'Estimated cost of model calls of known price.',
    ['model'],
  )
  readonly #files = new FileMetrics()
  readonly #page = [
    new Gauge('runwright_runs', 'Runs in the store, by status.', ['status'], () =>
      Object.entries(this.#counts ?? {}).map(([status, count]) => [count, status]),
    ),
    new Gauge('runwright_queue_depth', 'Runs waiting for a slot.', [], () => [
      [this.#engine.capacity().queued],
    ]),
    new Gauge('runwright_queue_limit', 'Limit of runs waiting for a slot.', [], () => [
      [this.#engine.capacity().maxQueued],
    ]),
    new Gauge('runwright_gates_waiting', 'Runs waiting for a human.', [], () =>
      this.#counts === null ? [] : [[this.#counts.awaiting_human]],
    ),
    new Gauge('runwright_damaged', 'Damaged runs, and missing or unreadable files.', ['kind'], () =>
      Object.entries(countDamage(damageOf(this.#engine))).map(([kind, count]) => [count, kind]),
    ),
    new Gauge('runwright_streams_open', 'Connected readers.', ['kind'], () =>
      Object.entries(this.#streams).map(([kind, count]) => [count, kind]),
    ),
    this.#events,
    this.#appendSeconds,
    this.#runEnds,
    this.#modelCalls,
    this.#tokens,
    this.#cost,
    ...this.#files.all,
    this.#requests,
    this.#requestSeconds,
    this.#streamEnds,
    this.#slowReaders,
  ]

  constructor(engine: ServiceEngine, onLog: ((line: LogLine) => void) | null) {
    this.#engine = engine
    this.#onLog = onLog
    this.#unobserve = engine.observe((append) => this.#appended(append))
  }

  /** The text of `/metrics`; each call reads the numbers of runs from the store. */
  async page(): Promise<string> {
    // A store that cannot be read must not hide the other numbers.
    this.#counts = await this.#engine.counts().catch(() => null)
    return exposition(this.#page)
  }

  /** Counts and logs an answered request. */
  answered({ method, route, requestId, runId, status, principal, began }: AnsweredRequest): void {
    const durationMs = performance.now() - began
    this.#requests.add(1, knownMethod(method), route ?? 'none', String(status))
    this.#requestSeconds.observe(durationMs / 1_000)
    this.#log({
      event: 'request',
      time: new Date().toISOString(),
      method: knownMethod(method),
      route,
      request_id: requestId,
      run_id: runId,
      status,
      duration_ms: rounded(durationMs),
      principal: principal?.id ?? null,
      tenant: principal?.tenant ?? null,
    })
  }

  /** Counts an open stream. The caller reports its end, once, to the function returned. */
  streamOpened(kind: StreamKind, runId: string): (end: StreamEnd) => void {
    const began = performance.now()
    this.#streams[kind] += 1
    return (end) => {
      this.#streams[kind] -= 1
      this.#streamEnds.add(1, kind, end)
      if (end === 'stuck') this.#slowReaders.add(1)
      const time = new Date().toISOString()
      const duration_ms = rounded(performance.now() - began)
      this.#log({ event: 'stream_end', time, kind, run_id: runId, end, duration_ms })
    }
  }

  close(): void {
    this.#unobserve()
  }

  #appended({ details, events, durationMs }: ObservedAppend): void {
    this.#events.add(events.length)
    this.#appendSeconds.observe(durationMs / 1_000)
    for (const event of events) {
      const { kind, payload } = event
      this.#files.count(event)
      if (kind === 'llm_usage') {
        const model = details.model_name
        this.#modelCalls.add(1, model)
        this.#tokens.add(payload.input_tokens, model, 'input')
        this.#tokens.add(payload.output_tokens, model, 'output')
        this.#tokens.add(payload.cached_tokens, model, 'cached')
        this.#tokens.add(payload.reasoning_tokens, model, 'reasoning')
        this.#cost.add(payload.cost_usd ?? 0, model)
      } else if (kind === 'run_end') {
        this.#runEnds.add(1, payload.status, payload.end_reason)
        this.#log({
          event: 'run_end',
          time: new Date().toISOString(),
          run_id: details.run_id,
          status: payload.status,
          end_reason: payload.end_reason,
          model_name: details.model_name,
          iterations: payload.iterations,
          total_tokens: payload.total_tokens,
          estimated_cost_usd: payload.estimated_cost_usd,
          duration_ms: Math.round(event.ts * 1_000) - Date.parse(details.created_at),
        })
      }
    }
  }

  #log(line: LogLine): void {
    callHost(
      () => this.#onLog?.(line),
      (error) => warn(`onLog failed: ${describeError(error)}`),
    )
  }
}

const METHODS = ['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS', 'PUT', 'PATCH']

/** Other methods share one label, which bounds the cardinality of the metric. */
function knownMethod(method: string): string {
  return METHODS.includes(method) ? method : 'OTHER'
}

function rounded(ms: number): number {
  return Math.round(ms * 1_000) / 1_000
}

/** Counts what runs, and people after them, do to folders and conversations. */
class FileMetrics {
  readonly #checkpoints = new Counter(
    'runwright_checkpoints_total',
    'Checkpoints of folders, by the reason for them.',
    ['reason'],
  )
  readonly #bytes = new Counter(
    'runwright_checkpoint_bytes_total',
    'Bytes of content that checkpoints stored and that were not stored before.',
  )
  readonly #operations = new Counter(
    'runwright_file_operations_total',
    'Finished restores and applies; incomplete ones left alone what others changed meanwhile.',
    ['operation', 'outcome'],
  )
  readonly #decisions = new Counter(
    'runwright_changes_decided_total',
    'What became of the changes of isolated runs.',
    ['changes'],
  )
  readonly #isolated = new Counter(
    'runwright_isolated_runs_total',
    'Isolated runs created, but for attempts and delegates.',
  )
  readonly #forks = new Counter('runwright_forks_total', 'Runs forked from others.')
  readonly #messages = new Counter('runwright_messages_total', 'Messages to runs.')

  readonly all: readonly Metric[] = [
    this.#checkpoints,
    this.#bytes,
    this.#operations,
    this.#decisions,
    this.#isolated,
    this.#forks,
    this.#messages,
  ]

  count({ kind, payload }: AgentEvent): void {
    if (kind === 'checkpoint') {
      this.#checkpoints.add(1, payload.reason)
      this.#bytes.add(payload.new_bytes)
    } else if (kind === 'files_changed') {
      const outcome = payload.skipped.length === 0 ? 'done' : 'incomplete'
      this.#operations.add(1, payload.operation, outcome)
    } else if (kind === 'changes_decided') this.#decisions.add(1, payload.changes)
    else if (kind === 'user_message') this.#messages.add(1)
    else if (kind === 'run_created') {
      const { role, workspace } = payload
      if (workspace === 'isolated' && role === undefined) this.#isolated.add(1)
      if (payload.forked_from !== undefined) this.#forks.add(1)
    }
  }
}
