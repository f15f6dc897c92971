import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { RunEngine } from '../agent/index.js'
import type { AttachableServer, UpgradeRequest } from '../ws/index.js'
import type { Principal } from './access/auth.js'
import {
  isEngine,
  resolveConfig,
  type RunServiceOptions,
  type ServiceConfig,
  type ServiceEngine,
} from './config.js'
import { dashboardRoutes } from './dashboard/routes.js'
import { accountOf, callerFor, Dispatcher } from './dispatch.js'
import { draining, ProblemError } from './errors.js'
import {
  problemReply,
  writeReply,
  type HttpRequest,
  type HttpResponse,
  type Reply,
} from './messages/reply.js'
import { Limiter } from './access/limits.js'
import type { PumpEnd } from './streams/pump.js'
import type { StreamKind } from './monitoring/log.js'
import { Monitor } from './monitoring/monitor.js'
import { checkCaller, corsHeaders } from './access/origin.js'
import { Router } from './router.js'
import type { RouteContext } from './routes/route-context.js'
import { eventRoutes } from './routes/events.js'
import { gateRoutes } from './routes/gates.js'
import { metaRoutes } from './routes/meta.js'
import { runRoutes } from './routes/runs.js'
import { RunSockets, type StreamCaller } from './streams/websocket.js'
import { SseStreams } from './streams/sse.js'
import { Webhooks } from './webhooks/webhooks.js'

/** Called when a request is not for the service, or when it failed before it could be answered. */
export type NextFunction = (error?: unknown) => void

/** The run service, ready to be mounted. */
export interface RunService extends AsyncDisposable {
  /**
   * Answers a request. Fits `http.createServer(service.handler)`, HTTP/2 with its compatibility
   * API, and Connect-style `app.use(basePath, service.handler)`. Requests for paths that it does
   * not serve go to `next`; without one they are answered with 404. Bound: may be passed around.
   */
  readonly handler: (request: HttpRequest, response: HttpResponse, next?: NextFunction) => void
  /**
   * Takes over an upgrade to WebSocket, for hosts that route upgrades themselves. Paths other than
   * `basePath + /api/ws/` are answered with 404. Bound: may be passed around.
   */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
  /**
   * Serves the upgrades below `basePath + /api/ws/` of a server, and leaves all others to the
   * server's other listeners. With HTTP/2 that is extended CONNECT
   * (RFC 8441) as well. Ends with {@link RunService.close}.
   */
  readonly attach: (server: AttachableServer) => void
  /** The engine behind the service. */
  readonly engine: ServiceEngine
  /** Where the service is mounted, as `createRunService()` was told. */
  readonly basePath: string
  /**
   * Drains: takes no more runs, gives those that are live `graceMs` to end, leaves the rest to be
   * taken up again, then ends all streams (WebSockets with 1001). An engine that the host opened
   * itself is left open. Calling it twice is harmless.
   *
   * @param options.graceMs - in milliseconds. Default: 10000.
   */
  readonly close: (options?: { readonly graceMs?: number | undefined }) => Promise<void>
}

/** Milliseconds that live runs get to end when the service closes. */
const DEFAULT_GRACE_MS = 10_000

/**
 * Makes the service of one engine: REST interface, event streams and dashboard behind one handler.
 *
 * @throws TypeError for a bad option; what the engine throws when it cannot be opened.
 * @example
 * ```ts
 * import { createServer } from 'node:http'
 * import { MemoryStore } from 'runwright/agent'
 * import { createRunService } from 'runwright/server'
 *
 * const service = await createRunService({
 *   engine: { store: new MemoryStore(), roots: [process.cwd()] },
 * })
 * const server = createServer(service.handler)
 * service.attach(server)
 * server.listen(8000, '127.0.0.1')
 * ```
 */
export async function createRunService(options: RunServiceOptions): Promise<RunService> {
  const config = resolveConfig(options)
  const given = options.engine
  const ownsEngine = !isEngine(given)
  const engine = isEngine(given) ? given : await RunEngine.open(given)
  if (options.webhooks === undefined) return new Service(engine, config, ownsEngine, null)
  try {
    const webhooks = await Webhooks.open(engine, options.webhooks)
    return new Service(engine, config, ownsEngine, webhooks)
  } catch (error) {
    if (ownsEngine) await engine.close()
    throw error
  }
}

class Service implements RunService {
  readonly engine: ServiceEngine
  readonly basePath: string
  readonly #config: ServiceConfig
  readonly #ownsEngine: boolean
  readonly #webhooks: Webhooks | null
  readonly #dispatcher: Dispatcher
  readonly #limiter: Limiter | null
  readonly #monitor: Monitor | null
  readonly #sse: SseStreams
  readonly #sockets: RunSockets
  #state: 'open' | 'draining' | 'closed' = 'open'
  #closing: Promise<void> | undefined

  constructor(
    engine: ServiceEngine,
    config: ServiceConfig,
    ownsEngine: boolean,
    webhooks: Webhooks | null,
  ) {
    this.engine = engine
    this.basePath = config.basePath
    this.#config = config
    this.#ownsEngine = ownsEngine
    this.#webhooks = webhooks
    this.#sse = new SseStreams(config.streams.commentMs, (error) =>
      config.onError(error, { method: 'GET', path: `${config.basePath}/api/runs/{run_id}/events` }),
    )
    this.#limiter = config.limits === null ? null : new Limiter(config.limits)
    const watched = config.metrics || config.onLog !== null
    this.#monitor = watched ? new Monitor(engine, config.onLog) : null
    const context: RouteContext = {
      engine,
      config,
      sse: this.#sse,
      monitor: this.#monitor,
      openStream: (kind, runId, principal) => this.#openStream(kind, runId, principal),
      isDraining: () => this.#state !== 'open',
    }
    this.#sockets = new RunSockets(engine, config, {
      callerOf: (request) => this.#callerOf(request),
      openStream: context.openStream,
      answered: (answered) => this.#monitor?.answered(answered),
    })
    const router: Router = new Router([
      ...runRoutes(context),
      ...gateRoutes(context),
      ...eventRoutes(context),
      ...metaRoutes(context, () => router.routes),
      ...(config.dashboard ? dashboardRoutes() : []),
    ])
    this.#dispatcher = new Dispatcher({
      config,
      router,
      limiter: this.#limiter,
      monitor: this.#monitor,
      state: () => this.#state,
      report: (error, request) => this.#report(error, request),
    })
  }

  readonly handler = (request: HttpRequest, response: HttpResponse, next?: NextFunction): void => {
    if (request.httpVersionMajor >= 2) {
      // A peer that is gone ends these with errors, which nobody needs to hear of. Those of HTTP/1.1
      // do so only when somebody listens, or writes to them later, as streams do.
      request.on('error', ignore)
      response.on('error', ignore)
    }
    this.#dispatcher.answer(request, (reply) => {
      if (reply !== null) this.#write(request, response, reply)
      else if (next !== undefined) next()
      else this.#write(request, response, problemReply(notFound()))
    })
  }

  readonly upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    this.#sockets.upgrade(request, socket, head)
  }

  readonly attach = (server: AttachableServer): void => {
    this.#sockets.attach(server)
  }

  readonly close = (options: { readonly graceMs?: number | undefined } = {}): Promise<void> => {
    this.#closing ??= this.#close(options.graceMs ?? DEFAULT_GRACE_MS)
    return this.#closing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #close(graceMs: number): Promise<void> {
    this.#state = 'draining'
    try {
      if (this.#ownsEngine) await this.engine.close({ graceMs })
    } finally {
      this.#state = 'closed'
      this.#monitor?.close()
      await this.#webhooks?.close()
      this.#sse.close()
      await this.#sockets.close()
    }
  }

  /** For upgrades: all checks on who calls at once. */
  async #callerOf(request: UpgradeRequest): Promise<StreamCaller> {
    checkCaller(request, this.#config, true)
    if (this.#state === 'closed') throw draining()
    const principal = await this.#dispatcher.authorize(request)
    // An upgrade is answered at once: it counts towards the rate only.
    this.#limiter?.admitRequest(accountOf(principal))()
    return { principal, caller: callerFor(principal) }
  }

  #openStream(
    kind: StreamKind,
    runId: string,
    principal: Principal | null,
  ): (end: PumpEnd | 'failed') => void {
    const release = this.#limiter?.admitStream(accountOf(principal))
    const told = this.#monitor?.streamOpened(kind, runId)
    return (end) => {
      release?.()
      told?.(end)
    }
  }

  #write(request: HttpRequest, response: HttpResponse, reply: Reply): void {
    try {
      const cors = this.#config.allowedOrigins.size > 0 ? corsHeaders(request, this.#config) : null
      // While draining no connection is kept, so that the server can close (HTTP/2: by GOAWAY).
      const isLast = this.#state !== 'open' && request.httpVersionMajor < 2
      const extra = isLast ? { ...cors, Connection: 'close' } : cors
      writeReply(request, response, reply, extra)
    } catch (error) {
      this.#report(error, request)
      response.destroy()
    }
  }

  #report(error: unknown, request: HttpRequest): void {
    const path = (request.url ?? '').replace(/[?#].*$/s, '')
    try {
      this.#config.onError(error, { method: request.method ?? '', path })
    } catch {
      // A log that fails must not take the service with it.
    }
  }
}

function notFound(): ProblemError {
  return new ProblemError(404, 'not_found', 'there is no such resource; see /api/openapi.json')
}

function ignore(): void {}
