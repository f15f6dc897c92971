/**
 * A typed client of the service, for programs that start and follow runs.
 *
 * @module
 */
import { randomUUID } from 'node:crypto'
import type {
  AgentEvent,
  ApplyRequest,
  ApplyResult,
  CheckFiles,
  Checkpoint,
  FileList,
  FolderOffer,
  ForkRequest,
  GoalInfo,
  MessageRequest,
  ModelInfo,
  NetChanges,
  ResolvedRequest,
  RestoreRequest,
  RestoreResult,
  ResumeAnswer,
  ResumeResult,
  RunDetails,
  RunStatus,
  RunSummary,
  RunUpdate,
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
  atOf,
  CHANGES,
  FILTER,
  filesPath,
  filterParams,
  IMAGE,
  imageOf,
  KEYED,
  pathOf,
  rangeOf,
  signalOf,
  type CallSignal,
  type ChangesCall,
  type FilesCall,
  type ImageCall,
  type KeyedCall,
  type RunFilter,
} from './calls.js'
import {
  FOLLOW_OPTIONS,
  followEvents,
  type FollowOptions,
  type ModelDelta,
  type OpenStream,
} from './follow.js'
import { sseStreams } from './sse-stream.js'
import { runsOf, type RunList } from './run-pages.js'
import { readTree, type RunTree } from './tree.js'
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

/** An image of a run. */
export interface ImageFile {
  /** Such as `image/png`. */
  readonly mediaType: string
  readonly content: Uint8Array
}

/** Health of the service; a caller of a single tenant gets status and demo only. */
export interface ServiceHealth {
  readonly status: HealthStatus
  /** What is wrong; null when nothing is. */
  readonly problem?: string | null
  /** Present when something is damaged. */
  readonly damaged?: DamageCounts
  readonly version?: string
  readonly runs?: Readonly<Record<RunStatus, number>>
  /** Present when `POST /api/demo` starts a demo. */
  readonly demo?: true
}

const OPTIONS: OptionKinds<RunServiceClientOptions> = {
  baseUrl: 'any! the address of the service', key: 'string', headers: 'any', timeout: 'any',
  retry: 'any', trustEnv: 'boolean', transport: 'object',
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
   */
  async create(request: StartRequest, options: KeyedCall = {}): Promise<RunDetails> {
    return this.#keyed('create()', '/api/runs', request, options)
  }

  /** Reads one page of runs, newest first by default. */
  async list(filter: RunFilter = {}, call: CallSignal = {}): Promise<RunList> {
    checkOptions(filter, FILTER, 'list()')
    const params = filterParams(filter)
    const response = await this.#call('GET', '/api/runs', { params, ...signalOf(call) })
    const link = response.links['next']
    const next =
      link === undefined ? null : new URL(link.url, response.url).searchParams.get('cursor')
    return { runs: response.json(), next }
  }

  /**
   * All matching runs, newest first by default; pages are read as the iteration needs them.
   *
   * @throws `RemoteProtocolError` for a list without an end: one that leads back to a page
   * before, or has 64 empty pages in a row.
   */
  async *runs(filter: RunFilter = {}, call: CallSignal = {}): AsyncGenerator<RunSummary, void> {
    checkOptions(filter, FILTER, 'runs()')
    yield* runsOf(filter.cursor, (cursor) => this.list({ limit: 100, ...filter, cursor }, call))
  }

  /** Reads the details of a run. */
  async get(runId: string, call: CallSignal = {}): Promise<RunDetails> {
    return this.#json('GET', pathOf(runId), signalOf(call))
  }

  /**
   * Reads the tree to which a run belongs, from its root: the details of each run, and of those
   * that it started. One that was deleted meanwhile, or cannot be used, is left out with those
   * below it.
   *
   * @throws {@link RunServiceError} 404 `run_not_found` for the run itself, and for its root.
   */
  async tree(runId: string, call: CallSignal = {}): Promise<RunTree> {
    return readTree(runId, {
      get: (id) => this.get(id, call),
      list: (root) => this.runs({ root, limit: 1_000 }, call),
    })
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

  /**
   * Starts a new run from the end of an iteration, or the start, of this one, with its conversation
   * and files; see {@link ForkRequest}. Resolves once it is durable.
   */
  async fork(
    runId: string,
    request: ForkRequest = {},
    options: KeyedCall = {},
  ): Promise<RunDetails> {
    return this.#keyed('fork()', pathOf(runId, '/fork'), request, options)
  }

  /**
   * Sends text to the model of a run that has not ended; resolves once it is durable. The model
   * gets it before its next call, or before the next iteration.
   */
  async message(
    runId: string,
    message: MessageRequest,
    options: KeyedCall = {},
  ): Promise<{ readonly message_id: string }> {
    return this.#keyed('message()', pathOf(runId, '/messages'), message, options)
  }

  /**
   * Changes the request of a run that has not ended; resolves once that is durable. The next check
   * goes by it, and its model hears of it.
   *
   * @throws {@link RunServiceError} 409 `run_ended`: fork the run with it instead.
   */
  async update(runId: string, update: RunUpdate, options: KeyedCall = {}): Promise<RunDetails> {
    return this.#keyed('update()', pathOf(runId), update, options, 'PATCH')
  }

  /** Lists the checkpoints of a run's folder, oldest first. */
  async checkpoints(runId: string, call: CallSignal = {}): Promise<readonly Checkpoint[]> {
    return this.#json('GET', pathOf(runId, '/checkpoints'), signalOf(call))
  }

  /** Lists the files that belong to the check of a run, each with the reason. */
  async checkFiles(runId: string, call: CallSignal = {}): Promise<CheckFiles> {
    return this.#json('GET', pathOf(runId, '/check-files'), signalOf(call))
  }

  /** Reads the net changes between two checkpoints, with secrets redacted. */
  async changes(runId: string, options: ChangesCall = {}): Promise<NetChanges> {
    checkOptions(options, CHANGES, 'changes()')
    return this.#json('GET', pathOf(runId, '/changes'), rangeOf(options))
  }

  /**
   * Reads the same changes as one patch, with exact bytes, for `git apply` and `patch -p1`.
   *
   * @throws {@link RunServiceError} 403 `redacted` with `paths`, when these files hold secrets and
   * the service does not let this caller read them.
   */
  async patch(runId: string, options: ChangesCall = {}): Promise<Uint8Array> {
    checkOptions(options, CHANGES, 'patch()')
    const headers = { Accept: 'text/x-diff' }
    const path = pathOf(runId, '/changes')
    return (await this.#call('GET', path, { ...rangeOf(options), headers })).content
  }

  /** Lists a folder of a run's folder; `''` is the whole. */
  async files(runId: string, path = '', options: FilesCall = {}): Promise<FileList> {
    const headers = { Accept: 'application/json' }
    return this.#json('GET', filesPath(runId, path), { ...atOf(options, 'files()'), headers })
  }

  /**
   * Reads a file of a run's folder.
   *
   * @throws {@link RunServiceError} 404 `file_not_found`, 406 for a folder, 410 `content_not_kept`,
   * and 403 `redacted` as {@link RunServiceClient.patch} does.
   */
  async file(runId: string, path: string, options: FilesCall = {}): Promise<Uint8Array> {
    const headers = { Accept: 'application/octet-stream' }
    const more = { ...atOf(options, 'file()'), headers }
    return (await this.#call('GET', filesPath(runId, path), more)).content
  }

  /**
   * Reads an image of a run's request, or of a result.
   *
   * @throws {@link RunServiceError} 404 `image_not_found` when the event has no such image.
   */
  async image(runId: string, options: ImageCall = {}): Promise<ImageFile> {
    checkOptions(options, IMAGE, 'image()')
    const headers = { Accept: 'image/*' }
    const more = { ...imageOf(options), headers }
    const { headers: answered, content } = await this.#call('GET', pathOf(runId, '/images'), more)
    return { mediaType: answered.get('content-type') ?? '', content }
  }

  /**
   * Gives the folder of a run that waits at a gate or has ended the content of a checkpoint.
   *
   * @returns with the id of a checkpoint made before: restoring that takes the restore back.
   * @throws {@link RunServiceError} 409 `workspace_changed` with the `paths` that others changed,
   * unless `force`.
   */
  async restore(
    runId: string,
    request: RestoreRequest,
    call: CallSignal = {},
  ): Promise<RestoreResult> {
    return this.#json('POST', pathOf(runId, '/restore'), { json: request, ...signalOf(call) })
  }

  /**
   * Brings the changes of an isolated run into its `cwd`, three-way for each file.
   *
   * @throws {@link RunServiceError} 409 `apply_conflict` with the `paths` that both sides changed,
   * unless `force`: nothing was written.
   */
  async apply(
    runId: string,
    request: ApplyRequest = {},
    call: CallSignal = {},
  ): Promise<ApplyResult> {
    return this.#json('POST', pathOf(runId, '/apply'), { json: request, ...signalOf(call) })
  }

  /** Removes the copy in which an isolated run worked; its changes count as discarded. */
  async discard(runId: string, call: CallSignal = {}): Promise<void> {
    await this.#call('POST', pathOf(runId, '/discard'), { json: {}, ...signalOf(call) })
  }

  /** Deletes an ended run and its log. */
  async delete(runId: string, call: CallSignal = {}): Promise<void> {
    await this.#call('DELETE', pathOf(runId), signalOf(call))
  }

  /**
   * Follows a run to its end: each event once, in order and without gaps, whatever happens to the
   * connection or the service meanwhile. Ends after `run_end`, and what the log has behind it by
   * then. A lost stream is reopened behind the last event yielded; leaving the loop ends the
   * stream.
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
    for await (const _ of this.events(runId, { ...options, kinds: ['run_end'] })) break
    return this.get(runId, { signal: options.signal })
  }

  /** Lists the models that the host offers. */
  async models(call: CallSignal = {}): Promise<readonly ModelInfo[]> {
    return this.#json('GET', '/api/models', signalOf(call))
  }

  /**
   * Lists the folders in one, or without `path` the roots, in which the caller may start runs.
   *
   * @throws {@link RunServiceError} 422 for a path outside the roots, or that is no folder.
   */
  async folders(path?: string, call: CallSignal = {}): Promise<FolderOffer> {
    const params: [string, string][] = path === undefined ? [] : [['path', path]]
    return this.#json('GET', '/api/folders', { ...signalOf(call), params })
  }

  /**
   * What a request would start: checked as by {@link RunServiceClient.create}, and nothing is run.
   *
   * @throws {@link RunServiceError} 422 with all invalid fields.
   */
  async resolve(request: StartRequest, call: CallSignal = {}): Promise<ResolvedRequest> {
    return this.#json('POST', '/api/resolve', { ...signalOf(call), json: request })
  }

  /**
   * Starts the demo of the host; two calls start two runs.
   *
   * @throws {@link RunServiceError} 404 where there is none: `demo` of {@link ServiceHealth}.
   */
  async demo(call: CallSignal = {}): Promise<RunDetails> {
    return this.#json('POST', '/api/demo', signalOf(call))
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

  async #keyed<T>(
    what: string,
    path: string,
    request: object,
    options: KeyedCall,
    method: 'POST' | 'PATCH' = 'POST',
  ): Promise<T> {
    checkOptions(options, KEYED, what)
    const headers = { 'Idempotency-Key': options.idempotencyKey ?? randomUUID() }
    return this.#json(method, path, { json: request, headers, signal: options.signal })
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
