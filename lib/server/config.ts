import type { EngineOptions, RunEngine } from '../agent/index.js'
import type { Authorize } from './access/auth.js'
import type { LimitSettings } from './access/limits.js'
import type { LogLine } from './monitoring/log.js'
import { isHttpOrigin } from './access/origin.js'
import type { WebhookOptions } from './webhooks/webhooks.js'

/** What the service needs of an engine. */
export type ServiceEngine = Pick<
  RunEngine,
  | 'create'
  | 'list'
  | 'get'
  | 'resume'
  | 'abort'
  | 'retry'
  | 'delete'
  | 'events'
  | 'subscribe'
  | 'models'
  | 'goals'
  | 'counts'
  | 'capacity'
  | 'check'
  | 'observe'
  | 'close'
>

/** How event streams are kept alive, and how long a stuck reader is borne. In milliseconds. */
export interface StreamSettings {
  /** Between two pings on a WebSocket. @defaultValue 20000 */
  readonly pingMs: number
  /** Between two comments on an SSE stream. @defaultValue 15000 */
  readonly commentMs: number
  /** A reader that takes nothing for this long is let go (1013). @defaultValue 60000 */
  readonly stuckMs: number
}

/** Where and for whom an unexpected error happened. */
export interface FailedCall {
  readonly method: string
  /** Path without its query, which may hold anything. */
  readonly path: string
}

/** What a host gives to `createRunService()`. */
export interface RunServiceOptions {
  /**
   * A running engine, which stays the host's to close; or the options of one, which the service
   * then opens and closes itself.
   */
  readonly engine: EngineOptions | ServiceEngine
  /**
   * Path under which the service is mounted, without a slash at the end: `/agents`. Decides
   * upgrades and links. @defaultValue ''
   */
  readonly basePath?: string | undefined
  /**
   * Tells who calls. Without it only programs on this machine may call, and only directly: see
   * `docs/rest-api.md`, "Who may call". Gates bind only with it: a run's own shell could otherwise
   * answer them.
   */
  readonly authorize?: Authorize | undefined
  /**
   * The origin that browsers see, such as `https://agents.example`, for hosts behind a proxy that
   * does not keep the Host header. @defaultValue the Host of each request
   */
  readonly publicOrigin?: string | undefined
  /** Other origins whose pages may call, and read the answers (CORS). @defaultValue [] */
  readonly allowedOrigins?: readonly string[] | undefined
  /** Serve the dashboard at `basePath + /`. @defaultValue true */
  readonly dashboard?: boolean | undefined
  /** Largest request body, in octets. @defaultValue 1048576 */
  readonly maxBodyBytes?: number | undefined
  /** See {@link StreamSettings}. */
  readonly streams?:
    { readonly [K in keyof StreamSettings]?: StreamSettings[K] | undefined } | undefined
  /** How much one principal may ask for; see {@link LimitSettings}. @defaultValue no limits */
  readonly limits?:
    { readonly [K in keyof LimitSettings]?: LimitSettings[K] | undefined } | undefined
  /** Serve numbers for Prometheus at `basePath + /metrics`. @defaultValue false */
  readonly metrics?: boolean | undefined
  /** Told one line for each request, ended stream and ended run; see `jsonLines()`. */
  readonly onLog?: ((line: LogLine) => void) | undefined
  /** Tell other programs of events; see {@link WebhookOptions}. @defaultValue none */
  readonly webhooks?: WebhookOptions | undefined
  /**
   * Told about every error that was answered with 500.
   *
   * @defaultValue one line and the stack on standard error
   */
  readonly onError?: ((error: unknown, call: FailedCall) => void) | undefined
}

/** Every setting, resolved. */
export interface ServiceConfig {
  readonly basePath: string
  readonly authorize: Authorize | null
  readonly publicOrigin: string | null
  readonly allowedOrigins: ReadonlySet<string>
  readonly dashboard: boolean
  readonly maxBodyBytes: number
  readonly streams: StreamSettings
  /** Null when nothing is limited. */
  readonly limits: LimitSettings | null
  readonly metrics: boolean
  readonly onLog: ((line: LogLine) => void) | null
  readonly onError: (error: unknown, call: FailedCall) => void
}

/** The stream settings of a host that says nothing. */
export const DEFAULT_STREAMS: StreamSettings = {
  pingMs: 20_000,
  commentMs: 15_000,
  stuckMs: 60_000,
}

/** Largest request body of a host that says nothing, in octets. */
export const DEFAULT_MAX_BODY_BYTES: number = 1_048_576

/** The longest delay that a timer of Node takes, in milliseconds. */
const MAX_DELAY_MS = 2 ** 31 - 1

/** True for an engine, false for the options of one. */
export function isEngine(engine: EngineOptions | ServiceEngine): engine is ServiceEngine {
  return typeof (engine as Partial<ServiceEngine>).subscribe === 'function'
}

/**
 * Fills in the defaults and checks every value.
 *
 * @throws TypeError naming the option, what was expected and what came.
 */
export function resolveConfig(options: RunServiceOptions): ServiceConfig {
  const { engine, authorize, onError, onLog, publicOrigin, allowedOrigins = [] } = options
  expect(
    typeof engine === 'object' && engine !== null,
    'engine',
    'an engine or its options',
    engine,
  )
  expect(isOptionalFunction(authorize), 'authorize', 'a function', authorize)
  expect(isOptionalFunction(onError), 'onError', 'a function', onError)
  expect(isOptionalFunction(onLog), 'onLog', 'a function', onLog)
  expect(Array.isArray(allowedOrigins), 'allowedOrigins', 'a list of origins', allowedOrigins)
  for (const origin of allowedOrigins) {
    expect(isHttpOrigin(origin), 'allowedOrigins', 'a list like https://app.example', origin)
  }
  expect(
    publicOrigin === undefined || isHttpOrigin(publicOrigin),
    'publicOrigin',
    'an origin like https://agents.example',
    publicOrigin,
  )
  return {
    basePath: checkBasePath(options.basePath ?? ''),
    authorize: authorize ?? null,
    publicOrigin: publicOrigin ?? null,
    allowedOrigins: new Set(allowedOrigins),
    dashboard: options.dashboard ?? true,
    maxBodyBytes: checkCount(
      'maxBodyBytes',
      options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES,
      2 ** 30,
    ),
    streams: resolveStreams(options.streams ?? {}),
    limits: options.limits === undefined ? null : resolveLimits(options.limits),
    metrics: options.metrics ?? false,
    onLog: onLog ?? null,
    onError: onError ?? printError,
  }
}

function resolveStreams(given: NonNullable<RunServiceOptions['streams']>): StreamSettings {
  const { pingMs, commentMs, stuckMs } = DEFAULT_STREAMS
  return {
    pingMs: checkCount('streams.pingMs', given.pingMs ?? pingMs, MAX_DELAY_MS),
    commentMs: checkCount('streams.commentMs', given.commentMs ?? commentMs, MAX_DELAY_MS),
    stuckMs: checkCount('streams.stuckMs', given.stuckMs ?? stuckMs, MAX_DELAY_MS),
  }
}

function resolveLimits(given: NonNullable<RunServiceOptions['limits']>): LimitSettings | null {
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
  expect(ok, 'basePath', "'' or a path like /agents without a slash at the end", basePath)
  return basePath as string
}

function checkCount(option: string, value: unknown, most: number): number {
  const ok = Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= most
  expect(ok, option, `a whole number from 1 to ${most}`, value)
  return value as number
}

function isOptionalFunction(value: unknown): boolean {
  return value === undefined || typeof value === 'function'
}

function expect(ok: boolean, option: string, expected: string, got: unknown): void {
  if (ok) return
  const shown = typeof got === 'string' ? JSON.stringify(got) : String(got)
  throw new TypeError(`${option} must be ${expected}, got ${shown}`)
}

function printError(error: unknown, { method, path }: FailedCall): void {
  const shown = error instanceof Error ? (error.stack ?? error.message) : String(error)
  process.stderr.write(`runwright: ${method} ${path} failed: ${shown}\n`)
}
