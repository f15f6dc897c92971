import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { RunEngine, type Caller } from '../agent/index.js'
import type { AttachableServer, UpgradeRequest } from '../ws/index.js'
import { chooseType } from './accept.js'
import type { AuthorizableRequest, Principal } from './auth.js'
import {
  isEngine,
  resolveConfig,
  type RunServiceOptions,
  type ServiceConfig,
  type ServiceEngine,
} from './config.js'
import { dashboardRoutes } from './dashboard/files.js'
import { draining, ProblemError, toProblemError, unknownRun } from './errors.js'
import {
  problemReply,
  writeReply,
  type HttpRequest,
  type HttpResponse,
  type Reply,
} from './http.js'
import { targetOf, type Target } from './mount.js'
import { checkCaller, corsHeaders, PREFLIGHT_HEADERS } from './origin.js'
import { allowOf, isRunId, Router, type Match } from './router.js'
import type { RouteContext } from './routes/context.js'
import { eventRoutes } from './routes/events.js'
import { gateRoutes } from './routes/gates.js'
import { metaRoutes } from './routes/meta.js'
import { runRoutes } from './routes/runs.js'
import { RunSockets } from './socket.js'
import { SseStreams } from './sse.js'

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

/** On whose behalf calls are made when the host has no authorization. */
const ANYBODY: Caller = { owner: { id: null, tenant: null } }

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
  if (isEngine(given)) return new Service(given, config, false)
  return new Service(await RunEngine.open(given), config, true)
}

class Service implements RunService {
  readonly engine: ServiceEngine
  readonly basePath: string
  readonly #config: ServiceConfig
  readonly #ownsEngine: boolean
  readonly #router: Router
  readonly #sse: SseStreams
  readonly #sockets: RunSockets
  #state: 'open' | 'draining' | 'closed' = 'open'
  #closing: Promise<void> | undefined

  constructor(engine: ServiceEngine, config: ServiceConfig, ownsEngine: boolean) {
    this.engine = engine
    this.basePath = config.basePath
    this.#config = config
    this.#ownsEngine = ownsEngine
    this.#sse = new SseStreams(config.streams.commentMs, (error) =>
      config.onError(error, { method: 'GET', path: `${config.basePath}/api/runs/{run_id}/events` }),
    )
    const context: RouteContext = {
      engine,
      config,
      sse: this.#sse,
      isDraining: () => this.#state !== 'open',
    }
    this.#sockets = new RunSockets(engine, config, (request) => this.#callerOf(request))
    this.#router = new Router([
      ...runRoutes(context),
      ...gateRoutes(context),
      ...eventRoutes(context),
      ...metaRoutes(context, () => this.#router.routes),
      ...(config.dashboard ? dashboardRoutes() : []),
    ])
  }

  readonly handler = (request: HttpRequest, response: HttpResponse, next?: NextFunction): void => {
    // A peer that is gone ends its request and response with errors, which nobody needs to hear of.
    request.on('error', ignore)
    response.on('error', ignore)
    this.#answer(request)
      .then((reply) => {
        if (reply !== null) this.#write(request, response, reply)
        else if (next !== undefined) next()
        else this.#write(request, response, problemReply(notFound()))
      })
      .catch((error: unknown) => {
        this.#report(error, request)
        response.destroy()
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
      this.#sse.close()
      await this.#sockets.close()
    }
  }

  /** The reply to a request; null when it is for somebody else. Never rejects. */
  async #answer(request: HttpRequest): Promise<Reply | null> {
    try {
      const target = targetOf(request, this.#config.basePath)
      if (target === null) return null
      if (target.path === '') return this.#config.dashboard ? this.#toDashboard() : null
      const match = this.#router.match(target.path)
      if (match === null) return null
      checkCaller(request, this.#config, false)
      return await this.#dispatch(request, target, match)
    } catch (error) {
      const known = toProblemError(error)
      // What a closing store no longer answers is no fault.
      const problem = known.status === 500 && this.#state !== 'open' ? draining() : known
      if (problem.status === 500) this.#report(problem.cause ?? problem, request)
      return problemReply(problem)
    }
  }

  async #dispatch(request: HttpRequest, target: Target, match: Match): Promise<Reply> {
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '')
    if (method === 'OPTIONS') return this.#options(request, match)
    const route = match.byMethod.get(method)
    if (route === undefined) {
      const allow = allowOf(match)
      throw new ProblemError(405, 'method_not_allowed', `this resource takes ${allow}`, {
        headers: { Allow: allow },
      })
    }
    if (this.#state === 'closed' && route.access === 'caller') throw draining()
    const principal = route.access === 'public' ? null : await this.#authorize(request)
    const mediaType =
      route.produces.length === 0 ? '' : chooseType(request.headers.accept, route.produces)
    if (route.path.includes('{run_id}') && !isRunId(match.parameter)) throw unknownRun()
    return route.handle({
      request,
      method: route.method,
      query: new URLSearchParams(target.query),
      parameter: match.parameter,
      principal,
      caller: callerFor(principal),
      mediaType,
    })
  }

  #options(request: HttpRequest, match: Match): Reply {
    const allow = allowOf(match)
    const origin = request.headers.origin
    const headers: Record<string, string> = { Allow: allow }
    if (origin !== undefined && this.#config.allowedOrigins.has(origin)) {
      Object.assign(headers, PREFLIGHT_HEADERS, { 'Access-Control-Allow-Methods': allow })
    }
    return { status: 204, headers }
  }

  #toDashboard(): Reply {
    // Relative addresses of the page need the slash.
    return { status: 308, headers: { Location: `${this.#config.basePath}/` } }
  }

  /** Who calls. @throws {@link ProblemError} 401 when the host does not know. */
  async #authorize(request: AuthorizableRequest & object): Promise<Principal | null> {
    const { authorize } = this.#config
    if (authorize === null) return null
    const principal = await authorize(request)
    if (principal !== null) return principal
    throw new ProblemError(
      401,
      'unauthorized',
      'a valid key is needed: Authorization: Bearer <key>',
      {
        headers: { 'WWW-Authenticate': 'Bearer realm="runwright"' },
      },
    )
  }

  /** For upgrades: all checks on who calls at once. */
  async #callerOf(request: UpgradeRequest): Promise<Caller> {
    checkCaller(request, this.#config, true)
    if (this.#state === 'closed') throw draining()
    return callerFor(await this.#authorize(request))
  }

  #write(request: HttpRequest, response: HttpResponse, reply: Reply): void {
    const extra: Record<string, string> = { ...corsHeaders(request, this.#config) }
    // While draining no connection is kept, so that the server can close (HTTP/2: by GOAWAY).
    if (this.#state !== 'open' && request.httpVersionMajor < 2) extra['Connection'] = 'close'
    writeReply(request, response, reply, extra)
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

function callerFor(principal: Principal | null): Caller {
  if (principal === null) return ANYBODY
  return { owner: { id: principal.id, tenant: principal.tenant ?? null } }
}

function notFound(): ProblemError {
  return new ProblemError(404, 'not_found', 'there is no such resource; see /api/openapi.json')
}

function ignore(): void {}
