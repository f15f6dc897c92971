/**
 * A typed client of the service, for programs that start and follow runs.
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
  ClientStateError,
  HandlerTransport,
  type AsyncResponse,
  type AsyncTransport,
  type HeadersInit,
  type RequestOptions,
  type RetryOptions,
  type TimeoutOptions,
} from '../../http/index.js'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import type { DamageCounts } from '../monitoring/damage.js'
import type { HealthStatus } from '../monitoring/health.js'
import type { RunService } from '../service.js'
import { answerError } from './answer-error.js'
import {
  FOLLOW_OPTIONS,
  followEvents,
  type FollowOptions,
  type ModelDelta,
  type OpenStream,
} from './follow.js'
import { sseStreams } from './sse-stream.js'
import { webSocketStreams, type WebSocketSettings } from './websocket-stream.js'

/** Options of {@link RunServiceClient}. */
export interface RunServiceClientOptions {
  /** Address of the service, its `basePath` included: `https://apps.example/agents`. */
  readonly baseUrl: string | URL
  /** Sent as `Authorization: Bearer <key>`. */
  readonly key?: string | undefined
  /** Headers sent with every call, such as a session cookie. */
  readonly headers?: HeadersInit | undefined
  /** Timeouts of a call in ms; streams have their own. @defaultValue 30000 for each phase */
  readonly timeout?: TimeoutOptions | undefined
  /** Retries of idempotent calls after faults; null for none. @defaultValue 2 */
  readonly retry?: RetryOptions | null | undefined
  /** Read proxies and certificates from the environment. @defaultValue true */
  readonly trustEnv?: boolean | undefined
  /** Replaces the network, for tests or a unix socket. The caller closes it. */
  readonly transport?: AsyncTransport | undefined
}

/** Cancellation of a call: it rejects with the signal's reason. */
export interface CallSignal {
  readonly signal?: AbortSignal | undefined
}

/** Conditions for runs to list. All must hold. */
export interface RunFilter {
  /** Any of these statuses. */
  readonly status?: RunStatus | readonly RunStatus[] | undefined
  /** The exact goal. */
  readonly goal?: string | undefined
  /** The exact model name. */
  readonly modelName?: string | undefined
  /** Words that all occur in the goal, the model name or the run id, ignoring case. */
  readonly search?: string | undefined
  /** Only runs created after this time. */
  readonly createdAfter?: Date | string | undefined
  /** Only runs created before this time. */
  readonly createdBefore?: Date | string | undefined
  /** Runs per page at most, from 1 to 10 000. @defaultValue 10 000; 100 for `runs()` */
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

/** Health of the service; a caller of a single tenant gets the status only. */
export interface ServiceHealth {
  readonly status: HealthStatus
  /** What is wrong; null when nothing is. */
  readonly problem?: string | null
  /** Present when something is damaged. */
  readonly damaged?: DamageCounts
  readonly version?: string
  readonly runs?: Readonly<Record<RunStatus, number>>
}

const OPTIONS: OptionKinds<RunServiceClientOptions> = {
  baseUrl: 'any! the address of the service', key: 'string', headers: 'any', timeout: 'any',
  retry: 'any', trustEnv: 'boolean', transport: 'object',
}
const CALL: OptionKinds<CallSignal> = { signal: 'object' }
const CREATE: OptionKinds<CallSignal & { idempotencyKey?: string }> = {
  ...CALL, idempotencyKey: 'string',
}
const FILTER: OptionKinds<RunFilter> = {
  status: 'any', goal: 'string', modelName: 'string', search: 'string', createdAfter: 'any',
  createdBefore: 'any', limit: 'number', cursor: 'string',
}

const DEFAULT_TIMEOUT_MS = 30_000
const DEFAULT_RETRIES = 2

/**
 * Starts, follows and controls runs of a service. A response other than success is thrown as a
 * {@link RunServiceError} with the `code` of the problem. When no response arrives, the errors of
 * the HTTP client are thrown (`ERR_HTTP_…`).
 *
 * @example
 * ```ts
 * const { KEY } = process.env
 * await using runs = new RunServiceClient({ baseUrl: 'http://127.0.0.1:8000', key: KEY })
 * const { run_id } = await runs.create({ goal: 'node-test', hitl_enabled: true })
 * for await (const event of runs.events(run_id)) {
 *   if (event.kind === 'human_check_required') await runs.resume(run_id, { decision: 'approve' })
 * }
 * console.log((await runs.get(run_id)).status)
 * ```
 */
export class RunServiceClient implements AsyncDisposable {
  readonly #http: AsyncClient
  /** For streams by WebSocket; null with a transport of the caller's own. */
  readonly #webSocket: WebSocketSettings | null
  readonly #closing = new AbortController()

  /** @throws TypeError naming the invalid option. */
  constructor(options: RunServiceClientOptions) {
    checkOptions(options, OPTIONS, 'new RunServiceClient()')
    this.#http = new AsyncClient({
      baseUrl: options.baseUrl,
      auth: options.key === undefined ? null : new BearerAuth(options.key),
      headers: options.headers,
      timeout: options.timeout ?? DEFAULT_TIMEOUT_MS,
      retry: options.retry === undefined ? DEFAULT_RETRIES : options.retry,
      trustEnv: options.trustEnv,
      transport: options.transport,
    })
    const { baseUrl, key, headers, timeout = DEFAULT_TIMEOUT_MS, trustEnv = true } = options
    this.#webSocket =
      options.transport === undefined ? { baseUrl, key, headers, timeout, trustEnv } : null
  }

  /**
   * A client of a service in this process: its handler is called without a socket. The rules for
   * calls from this machine apply; a service with `authorize` needs a `key`.
   */
  static inProcess(
    service: Pick<RunService, 'handler' | 'basePath'>,
    options: Omit<RunServiceClientOptions, 'baseUrl' | 'transport'> = {},
  ): RunServiceClient {
    if (typeof service?.handler !== 'function') {
      throw new TypeError('inProcess() needs a service, the result of createRunService()')
    }
    return new RunServiceClient({
      ...options,
      baseUrl: `http://localhost${service.basePath}`,
      transport: new HandlerTransport(service.handler),
    })
  }

  /**
   * Starts a run; resolves once it is durable. The same call with the same `idempotencyKey` never
   * starts a second run.
   *
   * @param options.idempotencyKey - 1 to 255 visible ASCII characters. Default: a random one.
   */
  async create(
    request: StartRequest,
    options: CallSignal & { readonly idempotencyKey?: string | undefined } = {},
  ): Promise<RunDetails> {
    checkOptions(options, CREATE, 'create()')
    const headers = { 'Idempotency-Key': options.idempotencyKey ?? randomUUID() }
    return this.#json('POST', '/api/runs', { json: request, headers, signal: options.signal })
  }

  /** Reads one page of runs, newest first. */
  async list(filter: RunFilter = {}, call: CallSignal = {}): Promise<RunList> {
    checkOptions(filter, FILTER, 'list()')
    const params = filterParams(filter)
    const response = await this.#call('GET', '/api/runs', { params, ...signalOf(call) })
    const link = response.links['next']
    const next =
      link === undefined ? null : new URL(link.url, response.url).searchParams.get('cursor')
    return { runs: response.json(), next }
  }

  /** All matching runs, newest first; pages are read as the iteration needs them. */
  async *runs(filter: RunFilter = {}, call: CallSignal = {}): AsyncGenerator<RunSummary, void> {
    checkOptions(filter, FILTER, 'runs()')
    let cursor = filter.cursor ?? null
    do {
      const page = await this.list({ limit: 100, ...filter, cursor: cursor ?? undefined }, call)
      yield* page.runs
      cursor = page.next
    } while (cursor !== null)
  }

  /** Reads the details of a run. */
  async get(runId: string, call: CallSignal = {}): Promise<RunDetails> {
    return this.#json('GET', pathOf(runId), signalOf(call))
  }

  /** Answers the open gate. The first answer counts; repeating it is harmless. */
  async resume(
    runId: string,
    answer: ResumeAnswer,
    call: CallSignal = {},
  ): Promise<ResumeResult> {
    return this.#json('POST', pathOf(runId, '/resume'), { json: answer, ...signalOf(call) })
  }

  /** Requests the end of a run. Aborting a run again is no error. */
  async abort(runId: string, call: CallSignal = {}): Promise<RunDetails> {
    return this.#json('POST', pathOf(runId, '/abort'), { json: {}, ...signalOf(call) })
  }

  /** Starts the same request again, as a new run; two calls start two runs. */
  async retry(runId: string, call: CallSignal = {}): Promise<RunDetails> {
    return this.#json('POST', pathOf(runId, '/retry'), { json: {}, ...signalOf(call) })
  }

  /** Deletes an ended run and its log. */
  async delete(runId: string, call: CallSignal = {}): Promise<void> {
    await this.#call('DELETE', pathOf(runId), signalOf(call))
  }

  /**
   * Follows a run to its end: each event once, in order and without gaps, whatever happens to the
   * connection or the service meanwhile. Ends after `run_end`. A lost stream is reopened behind the
   * last event yielded; leaving the loop ends the stream.
   *
   * @throws {@link RunServiceError} for an unknown or deleted run, and when more than `maxFailures`
   * attempts in a row have failed; the signal's reason.
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
    checkOptions(options, FOLLOW_OPTIONS, 'events()')
    const { signal } = options
    return followEvents(this.#streamsOf(runId, options), options, () =>
      this.get(runId, { signal }),
    )
  }

  #streamsOf(runId: string, { transport = 'sse' }: FollowOptions): OpenStream {
    if (transport === 'sse') return sseStreams(this.#http, pathOf(runId, '/events'))
    if (transport !== 'websocket') {
      const got = JSON.stringify(transport)
      throw new TypeError(`transport must be 'sse' or 'websocket', got ${got}`)
    }
    if (this.#webSocket === null) {
      throw new TypeError("a client with a transport of its own follows events by 'sse' only")
    }
    const path = pathOf(runId).replace('/runs/', '/ws/')
    return webSocketStreams(this.#webSocket, path, this.#closing.signal)
  }

  /**
   * Waits for the end of a run.
   *
   * @returns the details of the ended run.
   * @throws the errors of {@link RunServiceClient.events}.
   */
  async wait(
    runId: string,
    options: Omit<FollowOptions, 'kinds' | 'after' | 'deltas'> = {},
  ): Promise<RunDetails> {
    const end = this.events(runId, { ...options, kinds: ['run_end'] })
    while ((await end.next()).done !== true);
    return this.get(runId, { signal: options.signal })
  }

  /** Lists the models that the host offers. */
  async models(call: CallSignal = {}): Promise<readonly ModelInfo[]> {
    return this.#json('GET', '/api/models', signalOf(call))
  }

  /** Lists the goals that the host offers. */
  async goals(call: CallSignal = {}): Promise<readonly GoalInfo[]> {
    return this.#json('GET', '/api/goals', signalOf(call))
  }

  /** Health of the service; its 503 is returned, not thrown. */
  async health(call: CallSignal = {}): Promise<ServiceHealth> {
    const response = await this.#http.get('/api/health', signalOf(call))
    const isHealth = response.headers.get('content-type') === 'application/json'
    if (response.statusCode !== 503 || !isHealth) await this.#check(response)
    return response.json()
  }

  /** Closes the connections; open streams end with an error. */
  async close(): Promise<void> {
    this.#closing.abort(new ClientStateError('the client was closed'))
    await this.#http.close()
  }

  /** For `await using`: calls `close()`. */
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

/** @throws TypeError for an unknown option of a call. */
function signalOf(call: CallSignal): CallSignal {
  checkOptions(call, CALL, 'a call')
  return call
}

/** @throws TypeError for what would be the path of another resource: nothing, `.` and `..`. */
function pathOf(runId: string, rest = ''): string {
  if (typeof runId !== 'string' || /^\.{0,2}$/.test(runId)) {
    throw new TypeError(`the id of a run must be a string, got ${JSON.stringify(runId)}`)
  }
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
