/**
 * The service from the other side: a typed client for programs that start runs and watch them.
 *
 * @module
 */
import { randomUUID } from 'node:crypto'
import type {
  AgentEvent,
  GoalInfo,
  ModelInfo,
  ResumeAnswer,
  ResumeResult,
  RunDetails,
  RunStatus,
  RunSummary,
  StartRequest,
} from '../../agent/index.js'
import {
  AsyncClient,
  BearerAuth,
  HandlerTransport,
  type AsyncResponse,
  type AsyncTransport,
  type HeadersInit,
  type RequestOptions,
  type RetryOptions,
  type TimeoutOptions,
} from '../../http/index.js'
import { answerError } from './answer-error.js'
import { followEvents, type FollowOptions, type ModelDelta } from './follow.js'
import type { HealthStatus } from '../monitoring/health.js'
import type { RunService } from '../service.js'

/** Options of {@link RunServiceClient}. */
export interface RunServiceClientOptions {
  /** Where the service is mounted, its prefix included: `https://apps.example/agents`. */
  readonly baseUrl: string | URL
  /** Sent as `Authorization: Bearer <key>`. */
  readonly key?: string | undefined
  /** Headers of every call, such as a session cookie. */
  readonly headers?: HeadersInit | undefined
  /** Time limits of a call in ms; streams have their own. @defaultValue 30000 for each phase */
  readonly timeout?: TimeoutOptions | undefined
  /** Calls that change nothing are sent again after faults. @defaultValue 2 times */
  readonly retry?: RetryOptions | null | undefined
  /** Whether proxies and certificates are read from the environment. @defaultValue true */
  readonly trustEnv?: boolean | undefined
  /** Replaces the network, for tests or a unix socket. It stays the caller's to close. */
  readonly transport?: AsyncTransport | undefined
}

/** What ends a call before its time; it rejects with the signal's reason. */
export interface CallSignal {
  readonly signal?: AbortSignal | undefined
}

/** Which runs to list. All conditions must hold. */
export interface RunFilter {
  /** Any of these. */
  readonly status?: RunStatus | readonly RunStatus[] | undefined
  /** The exact goal. */
  readonly goal?: string | undefined
  /** The exact name. */
  readonly modelName?: string | undefined
  /** Words that all stand in the goal, the model's name or the run id, in any case. */
  readonly search?: string | undefined
  /** Created later than this. */
  readonly createdAfter?: Date | string | undefined
  /** Created earlier than this. */
  readonly createdBefore?: Date | string | undefined
  /** How many in one page at most, 1 to 10 000. */
  readonly limit?: number | undefined
  /** `next` of an earlier page with the same conditions. */
  readonly cursor?: string | undefined
}

/** One page of runs, newest first. */
export interface RunList {
  readonly runs: readonly RunSummary[]
  /** The cursor of the next page; null on the last. */
  readonly next: string | null
}

/** How the service is, as far as the caller may know. */
export interface ServiceHealth {
  readonly status: HealthStatus
  /** What is wrong; null when nothing is. */
  readonly problem?: string | null
  readonly version?: string
  readonly runs?: Readonly<Record<RunStatus, number>>
}

/** Milliseconds for each phase of a call. */
const DEFAULT_TIMEOUT_MS = 30_000
/** Further tries of calls that change nothing. */
const DEFAULT_RETRIES = 2

/**
 * Starts, watches and steers runs of a service. Answers other than success are thrown as
 * {@link RunServiceError} with the `code` of the problem; what keeps an answer from coming is
 * thrown by the HTTP client underneath, as its own errors (`ERR_HTTP_…`).
 *
 * @example
 * ```ts
 * await using runs = new RunServiceClient({ baseUrl: 'http://127.0.0.1:8000', key: process.env.KEY })
 * const { run_id } = await runs.create({ goal: 'node-test', hitl_enabled: true })
 * for await (const event of runs.events(run_id)) {
 *   if (event.kind === 'human_check_required') await runs.resume(run_id, { decision: 'approve' })
 * }
 * console.log((await runs.get(run_id)).status)
 * ```
 */
export class RunServiceClient implements AsyncDisposable {
  readonly #http: AsyncClient

  /** @throws TypeError naming the option that is wrong. */
  constructor(options: RunServiceClientOptions) {
    this.#http = new AsyncClient({
      baseUrl: options.baseUrl,
      auth: options.key === undefined ? null : new BearerAuth(options.key),
      headers: options.headers,
      timeout: options.timeout ?? DEFAULT_TIMEOUT_MS,
      retry: options.retry === undefined ? DEFAULT_RETRIES : options.retry,
      trustEnv: options.trustEnv,
      transport: options.transport,
    })
  }

  /**
   * A client of a service in this very process: its handler is called without a socket. Every rule
   * holds as for calls from this machine; a service with `authorize` wants a `key`.
   */
  static inProcess(
    service: Pick<RunService, 'handler' | 'basePath'>,
    options: Omit<RunServiceClientOptions, 'baseUrl' | 'transport'> = {},
  ): RunServiceClient {
    return new RunServiceClient({
      ...options,
      baseUrl: `http://localhost${service.basePath}`,
      transport: new HandlerTransport(service.handler),
    })
  }

  /**
   * Starts a run; resolves once it is durable. The call carries an idempotency key, so that the same
   * call with the same `idempotencyKey` never starts a second run.
   *
   * @param options.idempotencyKey - 1 to 255 visible ASCII characters. Default: a fresh one.
   */
  async create(
    request: StartRequest,
    options: CallSignal & { readonly idempotencyKey?: string | undefined } = {},
  ): Promise<RunDetails> {
    const headers = { 'Idempotency-Key': options.idempotencyKey ?? randomUUID() }
    return this.#json('POST', '/api/runs', { json: request, headers, signal: options.signal })
  }

  /** One page of runs. */
  async list(filter: RunFilter = {}, { signal }: CallSignal = {}): Promise<RunList> {
    const response = await this.#call('GET', '/api/runs', { params: filterParams(filter), signal })
    const link = response.links['next']
    const next =
      link === undefined ? null : new URL(link.url, response.url).searchParams.get('cursor')
    return { runs: response.json(), next }
  }

  /** All runs that fit, newest first, read page by page as they are asked for. */
  async *runs(filter: RunFilter = {}, call: CallSignal = {}): AsyncGenerator<RunSummary, void> {
    let cursor = filter.cursor ?? null
    do {
      const page = await this.list({ limit: 100, ...filter, cursor: cursor ?? undefined }, call)
      yield* page.runs
      cursor = page.next
    } while (cursor !== null)
  }

  /** A run in full. */
  async get(runId: string, { signal }: CallSignal = {}): Promise<RunDetails> {
    return this.#json('GET', pathOf(runId), { signal })
  }

  /** Answers the open gate. The first answer counts; the same one again is harmless. */
  async resume(
    runId: string,
    answer: ResumeAnswer,
    { signal }: CallSignal = {},
  ): Promise<ResumeResult> {
    return this.#json('POST', pathOf(runId, '/resume'), { json: answer, signal })
  }

  /** Asks for a run's end. One that was aborted before is no error. */
  async abort(runId: string, { signal }: CallSignal = {}): Promise<RunDetails> {
    return this.#json('POST', pathOf(runId, '/abort'), { json: {}, signal })
  }

  /** Starts the same request again, as a new run. Called twice it starts two. */
  async retry(runId: string, { signal }: CallSignal = {}): Promise<RunDetails> {
    return this.#json('POST', pathOf(runId, '/retry'), { json: {}, signal })
  }

  /** Removes an ended run and its log. */
  async delete(runId: string, { signal }: CallSignal = {}): Promise<void> {
    await this.#call('DELETE', pathOf(runId), { signal })
  }

  /**
   * Follows a run to its end: each event once, in order and without a gap, whatever happens to the
   * connection or the service meanwhile. Ends after `run_end`. A lost stream is opened again behind
   * the last event that was handed out; leaving the loop ends the stream.
   *
   * @throws {@link RunServiceError} for an unknown or deleted run, and when the stream could not be
   * opened `maxFailures` times in a row; the signal's reason.
   */
  events(
    runId: string,
    options: FollowOptions & { readonly deltas: true },
  ): AsyncGenerator<AgentEvent | ModelDelta, void>
  events(
    runId: string,
    options?: FollowOptions & { readonly deltas?: false | undefined },
  ): AsyncGenerator<AgentEvent, void>
  events(
    runId: string,
    options: FollowOptions = {},
  ): AsyncGenerator<AgentEvent | ModelDelta, void> {
    return followEvents(this.#http, pathOf(runId, '/events'), options, () =>
      this.get(runId, options),
    )
  }

  /**
   * Waits for a run's end.
   *
   * @returns the run as it ended.
   * @throws as {@link RunServiceClient.events} does.
   */
  async wait(
    runId: string,
    options: Omit<FollowOptions, 'kinds' | 'after' | 'deltas'> = {},
  ): Promise<RunDetails> {
    const end = this.events(runId, { ...options, kinds: ['run_end'] })
    while ((await end.next()).done !== true);
    return this.get(runId, options)
  }

  /** The models that the host offers. */
  async models({ signal }: CallSignal = {}): Promise<readonly ModelInfo[]> {
    return this.#json('GET', '/api/models', { signal })
  }

  /** The goals that the host offers. */
  async goals({ signal }: CallSignal = {}): Promise<readonly GoalInfo[]> {
    return this.#json('GET', '/api/goals', { signal })
  }

  /** How the service is; a 503 is an answer here. */
  async health({ signal }: CallSignal = {}): Promise<ServiceHealth> {
    const response = await this.#http.get('/api/health', { signal })
    const isHealth = response.headers.get('content-type') === 'application/json'
    if (response.statusCode !== 503 || !isHealth) await this.#check(response)
    return response.json()
  }

  /** Closes the client's connections; streams that are being read end with an error. */
  async close(): Promise<void> {
    await this.#http.close()
  }

  /** Closes the client. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #json<T>(method: string, path: string, options: RequestOptions): Promise<T> {
    return (await this.#call(method, path, options)).json<T>()
  }

  async #call(method: string, path: string, options: RequestOptions): Promise<AsyncResponse> {
    return this.#check(await this.#http.request(method, path, options))
  }

  async #check(response: AsyncResponse): Promise<AsyncResponse> {
    if (response.isSuccess) return response
    throw await answerError(response)
  }
}

function pathOf(runId: string, rest = ''): string {
  return `/api/runs/${encodeURIComponent(runId)}${rest}`
}

function filterParams(filter: RunFilter): [string, string][] {
  const { status = [], createdAfter, createdBefore } = filter
  const single = {
    goal: filter.goal,
    model_name: filter.modelName,
    search: filter.search,
    created_after: createdAfter instanceof Date ? createdAfter.toISOString() : createdAfter,
    created_before: createdBefore instanceof Date ? createdBefore.toISOString() : createdBefore,
    limit: filter.limit?.toString(),
    cursor: filter.cursor,
  }
  const given = Object.entries(single).filter((pair): pair is [string, string] => {
    return pair[1] !== undefined
  })
  return [...[status].flat().map((one): [string, string] => ['status', one]), ...given]
}
