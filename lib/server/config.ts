import { checkOptions, type OptionKinds } from '../internal/options.js'
import type { EngineOptions, RunEngine, StartRequest } from '../agent/index.js'
import { asError } from '../internal/errors.js'
import { escapeInvisible } from '../internal/text.js'
import type { Authorize, Principal } from './access/auth.js'
import type { LimitSettings } from './access/limits.js'
import type { TenantLimits } from './access/quotas.js'
import { isHttpOrigin } from './access/origin.js'
import type { LogLine } from './monitoring/log.js'
import type { WebhookOptions } from './webhooks/options.js'

/** The part of {@link RunEngine} that the service uses. */
export type ServiceEngine = Pick<
  RunEngine,
  | 'create'
  | 'list'
  | 'get'
  | 'resume'
  | 'abort'
  | 'retry'
  | 'delete'
  | 'fork'
  | 'message'
  | 'update'
  | 'workspaces'
  | 'offers'
  | 'checkFiles'
  | 'events'
  | 'images'
  | 'subscribe'
  | 'models'
  | 'goals'
  | 'counts'
  | 'capacity'
  | 'usage'
  | 'check'
  | 'damage'
  | 'observe'
  | 'close'
>

/** Keep-alive of event streams, and how long a stuck reader is tolerated. In milliseconds. */
export interface StreamSettings {
  /** Between two pings on a WebSocket. @defaultValue 20000 */
  readonly pingMs: number
  /** Between two comments on a stream of server-sent events. @defaultValue 15000 */
  readonly commentMs: number
  /** A reader that takes nothing for this long is disconnected (1013). @defaultValue 60000 */
  readonly stuckMs: number
}

/** The call in which an unexpected error happened. */
export interface FailedCall {
  readonly method: string
  /** Path without the query, which may contain secrets. */
  readonly path: string
  /** The `X-Request-Id` of its response; null when the fault is that of no single request. */
  readonly requestId: string | null
}

/** Limits per principal, and `perTenant`; omitted and null set no limit. */
export type LimitOptions = {
  readonly [K in keyof LimitSettings]?: LimitSettings[K] | undefined
} & {
  /** Limits per tenant, see {@link TenantLimits}. @defaultValue no limits */
  readonly perTenant?: {
    readonly [K in keyof TenantLimits]?: TenantLimits[K] | undefined
  } | undefined
}

/** Options of `createRunService()`. */
export interface RunServiceOptions {
  /**
   * A running engine, which the host closes, or the options of one, which the service opens and
   * closes itself.
   */
  readonly engine: EngineOptions | ServiceEngine
  /**
   * Path under which the service is mounted, without a trailing slash: `/agents`. Upgrades are
   * routed by it, and links begin with it. @defaultValue ''
   */
  readonly basePath?: string | undefined
  /**
   * Identifies the caller. Without it only programs on this machine may call, and only directly:
   * see `docs/rest-api.md`, "Who may call". Gates bind only with it: otherwise a run's own shell
   * could answer them.
   */
  readonly authorize?: Authorize | undefined
  /**
   * The origin that browsers see, such as `https://agents.example`, for hosts behind a proxy that
   * changes the Host header. @defaultValue the Host of each request
   */
  readonly publicOrigin?: string | undefined
  /** Other origins whose pages may call and read the responses (CORS). @defaultValue [] */
  readonly allowedOrigins?: readonly string[] | undefined
  /**
   * Names of query parameters that calls may have besides those of the API, for example one that a
   * gateway adds. Any other unknown name is answered with 422. @defaultValue []
   */
  readonly allowedQuery?: readonly string[] | undefined
  /**
   * Whether callers get files, and patches of files, that hold secrets: all callers, or those for
   * which the function returns true. Others are refused those files, by name, and get all others;
   * what is shown as JSON is redacted for everybody. `null` is the caller without `authorize`.
   *
   * @defaultValue false
   */
  readonly readFiles?: boolean | ((principal: Principal | null) => boolean) | undefined
  /** Serve the dashboard at `basePath + /`. @defaultValue true */
  readonly dashboard?: boolean | undefined
  /**
   * Offers a run to watch, by `POST /api/demo` and a button of the dashboard. Prepares it, such as
   * by a fresh copy of a small project, and returns its request, which is checked as any other. Not
   * called again before that run is there, or refused.
   *
   * @defaultValue none
   */
  readonly demo?:
    ((principal: Principal | null) => StartRequest | Promise<StartRequest>) | undefined
  /** Largest request body, in bytes. @defaultValue 1048576 */
  readonly maxBodyBytes?: number | undefined
  /** Keep-alive of event streams, see {@link StreamSettings}. @defaultValue as below */
  readonly streams?:
    { readonly [K in keyof StreamSettings]?: StreamSettings[K] | undefined } | undefined
  /**
   * Limits per principal, see {@link LimitSettings}, and per tenant, see {@link TenantLimits}.
   *
   * @defaultValue no limits
   */
  readonly limits?: LimitOptions | undefined
  /** Serve metrics for Prometheus at `basePath + /metrics`. @defaultValue false */
  readonly metrics?: boolean | undefined
  /** Called once for each request, ended stream and ended run; see `jsonLines()`. */
  readonly onLog?: ((line: LogLine) => void) | undefined
  /** Send events to other programs; see {@link WebhookOptions}. @defaultValue none */
  readonly webhooks?: WebhookOptions | undefined
  /**
   * Called with every error that was answered with 500.
   *
   * @defaultValue one line and the stack on standard error
   */
  readonly onError?: ((error: unknown, call: FailedCall) => void) | undefined
}

const OPTIONS: OptionKinds<RunServiceOptions> = {
  engine: 'any! an engine, or its options: { store, roots }', basePath: 'string',
  authorize: 'function', publicOrigin: 'string', allowedOrigins: 'array', allowedQuery: 'array',
  readFiles: 'any', dashboard: 'boolean', demo: 'function', maxBodyBytes: 'number',
  streams: 'object', limits: 'object', metrics: 'boolean', onLog: 'function', webhooks: 'object',
  onError: 'function',
}
const STREAMS: OptionKinds<Partial<StreamSettings>> = {
  pingMs: 'number', commentMs: 'number', stuckMs: 'number',
}
const LIMITS: OptionKinds<LimitOptions> = {
  requestsPerSecond: 'number|null', burst: 'number', concurrentRequests: 'number|null',
  openStreams: 'number|null', perTenant: 'object',
}
const TENANT_LIMITS: OptionKinds<Partial<TenantLimits>> = {
  runs: 'number|null', costUsdPerDay: 'number|null',
}

/** The options with all defaults filled in. */
export interface ServiceConfig {
  readonly basePath: string
  readonly authorize: Authorize | null
  readonly publicOrigin: string | null
  readonly allowedOrigins: ReadonlySet<string>
  readonly allowedQuery: ReadonlySet<string>
  readonly readFiles: boolean | ((principal: Principal | null) => boolean)
  readonly dashboard: boolean
  /** Null: none is offered. */
  readonly demo: NonNullable<RunServiceOptions['demo']> | null
  readonly maxBodyBytes: number
  readonly streams: StreamSettings
  /** Null sets no limits. */
  readonly limits: LimitSettings | null
  /** Null sets no limits. */
  readonly tenantLimits: TenantLimits | null
  readonly metrics: boolean
  readonly onLog: ((line: LogLine) => void) | null
  readonly onError: (error: unknown, call: FailedCall) => void
}

/** Defaults of {@link StreamSettings}. */
export const DEFAULT_STREAMS: StreamSettings = {
  pingMs: 20_000,
  commentMs: 15_000,
  stuckMs: 60_000,
}

const DEFAULT_MAX_BODY_BYTES = 1_048_576

/** The longest delay of a Node timer, in milliseconds. */
const MAX_DELAY_MS = 2 ** 31 - 1

/** True for an engine, false for the options of one. */
export function isEngine(engine: EngineOptions | ServiceEngine): engine is ServiceEngine {
  return typeof (engine as Partial<ServiceEngine>).subscribe === 'function'
}

/**
 * Fills in the defaults and checks every value.
 *
 * @throws TypeError naming the option, the expected value and the value given.
 */
export function resolveConfig(options: RunServiceOptions): ServiceConfig {
  checkOptions(options, OPTIONS, 'createRunService()')
  const { authorize, onError, onLog, publicOrigin } = options
  const { allowedOrigins = [], allowedQuery = [], maxBodyBytes = DEFAULT_MAX_BODY_BYTES } = options
  for (const origin of allowedOrigins) {
    expect(isHttpOrigin(origin), 'allowedOrigins', 'a list like https://app.example', origin)
  }
  const isObject = typeof options.engine === 'object' && options.engine !== null
  expect(isObject, 'engine', 'an engine or its options', options.engine)
  const named = allowedQuery.every((name) => typeof name === 'string')
  expect(named, 'allowedQuery', 'a list of names', allowedQuery)
  const hasOrigin = publicOrigin === undefined || isHttpOrigin(publicOrigin)
  expect(hasOrigin, 'publicOrigin', 'an origin like https://agents.example', publicOrigin)
  const { readFiles = false } = options
  const isRule = typeof readFiles === 'boolean' || typeof readFiles === 'function'
  expect(isRule, 'readFiles', 'true, false or a function', readFiles)
  return {
    basePath: checkBasePath(options.basePath ?? ''),
    authorize: authorize ?? null,
    publicOrigin: publicOrigin ?? null,
    allowedOrigins: new Set(allowedOrigins),
    allowedQuery: new Set(allowedQuery),
    readFiles,
    dashboard: options.dashboard ?? true,
    demo: options.demo ?? null,
    maxBodyBytes: checkCount('maxBodyBytes', maxBodyBytes, 2 ** 30),
    streams: resolveStreams(options.streams ?? {}),
    limits: options.limits === undefined ? null : resolveLimits(options.limits),
    tenantLimits: resolveTenantLimits(options.limits?.perTenant ?? {}),
    metrics: options.metrics ?? false,
    onLog: onLog ?? null,
    onError: onError ?? printError,
  }
}

function resolveStreams(given: NonNullable<RunServiceOptions['streams']>): StreamSettings {
  checkOptions(given, STREAMS, 'streams')
  const { pingMs, commentMs, stuckMs } = DEFAULT_STREAMS
  return {
    pingMs: checkCount('streams.pingMs', given.pingMs ?? pingMs, MAX_DELAY_MS),
    commentMs: checkCount('streams.commentMs', given.commentMs ?? commentMs, MAX_DELAY_MS),
    stuckMs: checkCount('streams.stuckMs', given.stuckMs ?? stuckMs, MAX_DELAY_MS),
  }
}

function resolveTenantLimits(
  given: NonNullable<LimitOptions['perTenant']>,
): TenantLimits | null {
  checkOptions(given, TENANT_LIMITS, 'limits.perTenant')
  const { runs = null, costUsdPerDay = null } = given
  if (runs !== null) checkCount('limits.perTenant.runs', runs, 1e6)
  if (costUsdPerDay !== null) {
    const ok = Number.isFinite(costUsdPerDay) && costUsdPerDay > 0
    expect(ok, 'limits.perTenant.costUsdPerDay', 'a number of US dollars above 0', costUsdPerDay)
  }
  return runs === null && costUsdPerDay === null ? null : { runs, costUsdPerDay }
}

function resolveLimits(given: LimitOptions): LimitSettings {
  checkOptions(given, LIMITS, 'limits')
  const { requestsPerSecond = null, burst, concurrentRequests = null, openStreams = null } = given
  if (requestsPerSecond !== null) {
    const ok =
      Number.isFinite(requestsPerSecond) && requestsPerSecond > 0 && requestsPerSecond <= 1e6
    expect(ok, 'limits.requestsPerSecond', 'a number above 0, up to 1000000', requestsPerSecond)
  }
  if (concurrentRequests !== null) checkCount('limits.concurrentRequests', concurrentRequests, 1e6)
  if (openStreams !== null) checkCount('limits.openStreams', openStreams, 1e6)
  const defaultBurst = Math.max(1, Math.ceil(2 * (requestsPerSecond ?? 1)))
  return {
    requestsPerSecond,
    burst: checkCount('limits.burst', burst ?? defaultBurst, 1e7),
    concurrentRequests,
    openStreams,
  }
}

function checkBasePath(basePath: unknown): string {
  const ok = typeof basePath === 'string' && /^(\/[A-Za-z0-9._~!$&'()*+,;=:@-]+)*$/.test(basePath)
  expect(ok, 'basePath', "'' or a path like /agents without a trailing slash", basePath)
  return basePath as string
}

function checkCount(option: string, value: unknown, max: number): number {
  const ok = Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= max
  expect(ok, option, `an integer from 1 to ${max}`, value)
  return value as number
}

function expect(ok: boolean, option: string, expected: string, got: unknown): void {
  if (ok) return
  const shown = typeof got === 'string' ? JSON.stringify(got) : String(got)
  throw new TypeError(`${option} must be ${expected}, got ${shown}`)
}

function printError(error: unknown, { method, path, requestId }: FailedCall): void {
  const { message, stack = message } = asError(error)
  const id = requestId === null ? '' : ` (request ${requestId})`
  process.stderr.write(escapeInvisible(`runwright: ${method} ${path} failed${id}: ${stack}\n`))
}
