import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { checkOptions, type OptionKinds } from '../internal/options.js'
import { RunEngine } from '../agent/index.js'
import type { AttachableServer } from '../ws/index.js'
import { corsHeaders } from './access/origin.js'
import {
  isEngine,
  resolveConfig,
  type RunServiceOptions,
  type ServiceConfig,
  type ServiceEngine,
} from './config.js'
import { ServiceContext } from './context.js'
import { dashboardRoutes } from './dashboard/routes.js'
import { Dispatcher } from './dispatch.js'
import {
  problemReply,
  writeReply,
  type HttpRequest,
  type HttpResponse,
  type Reply,
} from './messages/reply.js'
import { notFound } from './messages/not-found.js'
import { failedCall } from './messages/request-target.js'
import { Router } from './router.js'
import { demoRoutes } from './routes/demo.js'
import { eventRoutes } from './routes/events.js'
import { fileRoutes } from './routes/files.js'
import { imageRoutes } from './routes/images.js'
import { forkRoutes } from './routes/forks.js'
import { gateRoutes } from './routes/gates.js'
import { messageRoutes } from './routes/messages.js'
import { metaRoutes } from './routes/meta.js'
import { offerRoutes } from './routes/offers.js'
import { runRoutes } from './routes/runs.js'
import { workspaceRoutes } from './routes/workspaces.js'
import { SseStreams } from './streams/sse.js'
import { RunSockets } from './streams/websocket.js'
import { checkWebhooks } from './webhooks/options.js'
import { Webhooks } from './webhooks/webhooks.js'

/** The host's next handler, called for a path that the service does not serve. */
export type NextFunction = (error?: unknown) => void

/** The run service, ready to be mounted. */
export interface RunService extends AsyncDisposable {
  /**
   * Answers a request. Fits `http.createServer(service.handler)`, HTTP/2 with its compatibility
   * API, and Connect-style `app.use(basePath, service.handler)`. A request for a path that it does
   * not serve goes to `next`, or is answered with 404 without one. Bound to the service.
   */
  readonly handler: (request: HttpRequest, response: HttpResponse, next?: NextFunction) => void
  /**
   * Takes over an upgrade to WebSocket, for hosts that route upgrades themselves. Paths other than
   * `basePath + /api/ws/` are answered with 404. Bound to the service.
   */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
  /**
   * Serves a server's upgrades below `basePath + /api/ws/`, extended CONNECT of HTTP/2 (RFC 8441)
   * included, until {@link RunService.close}. All others are left to the server's other listeners.
   */
  readonly attach: (server: AttachableServer) => void
  /** The engine given, or the one that the service opened and closes. */
  readonly engine: ServiceEngine
  /** The option of the same name, or `''`. */
  readonly basePath: string
  /**
   * Drains: starts no more runs, gives live ones `graceMs` to end and leaves the rest to be resumed
   * by the next process, then ends all streams (WebSockets with 1001). An engine that the host
   * opened itself stays open. Calling it twice is harmless.
   *
   * @param options.graceMs - in milliseconds. Default: 10000.
   */
  readonly close: (options?: { readonly graceMs?: number | undefined }) => Promise<void>
}

const CLOSE: OptionKinds<{ graceMs?: number }> = { graceMs: 'number' }
const DEFAULT_GRACE_MS = 10_000

/**
 * Creates the service of one engine: REST API, event streams and dashboard behind one handler.
 *
 * @throws TypeError for an invalid option; what the engine throws when it cannot be opened.
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
  if (options.webhooks !== undefined) checkWebhooks(options.webhooks)
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
  readonly #context: ServiceContext
  readonly #ownsEngine: boolean
  readonly #webhooks: Webhooks | null
  readonly #router: Router
  readonly #dispatcher: Dispatcher
  readonly #sse: SseStreams
  readonly #sockets: RunSockets
  #closing: Promise<void> | undefined

  constructor(
    engine: ServiceEngine,
    config: ServiceConfig,
    ownsEngine: boolean,
    webhooks: Webhooks | null,
  ) {
    this.engine = engine
    this.basePath = config.basePath
    this.#ownsEngine = ownsEngine
    this.#webhooks = webhooks
    const context = new ServiceContext(engine, config)
    this.#context = context
    this.#sse = new SseStreams(context)
    this.#sockets = new RunSockets(context)
    const router: Router = new Router([
      ...runRoutes(context),
      ...gateRoutes(context),
      ...eventRoutes(context, this.#sse),
      ...messageRoutes(context),
      ...workspaceRoutes(context),
      ...fileRoutes(context),
      ...imageRoutes(context),
      ...forkRoutes(context),
      ...offerRoutes(context),
      ...(config.demo === null ? [] : demoRoutes(context, config.demo)),
      ...metaRoutes(context, () => router.routes),
      ...(config.dashboard ? dashboardRoutes() : []),
    ])
    this.#router = router
    this.#dispatcher = new Dispatcher(context, router)
  }

  readonly handler = (request: HttpRequest, response: HttpResponse, next?: NextFunction): void => {
    if (request.httpVersionMajor >= 2) {
      // A lost peer is no error worth reporting. HTTP/1.1 emits it only to listeners and writers.
      request.on('error', ignore)
      response.on('error', ignore)
    }
    this.#dispatcher.answer(request, (reply) => {
      if (reply !== null) this.#write(request, response, reply)
      else if (next !== undefined) next()
      else {
        const problem = notFound(request, this.basePath, this.#router)
        this.#write(request, response, problemReply(problem, request))
      }
    })
  }

  readonly upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    this.#sockets.upgrade(request, socket, head)
  }

  readonly attach = (server: AttachableServer): void => {
    this.#sockets.attach(server)
  }

  readonly close = (options: { readonly graceMs?: number | undefined } = {}): Promise<void> => {
    checkOptions(options, CLOSE, 'close()')
    this.#closing ??= this.#close(options.graceMs ?? DEFAULT_GRACE_MS)
    return this.#closing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #close(graceMs: number): Promise<void> {
    this.#context.state = 'draining'
    try {
      if (this.#ownsEngine) await this.engine.close({ graceMs })
    } finally {
      this.#context.state = 'closed'
      this.#context.monitor?.close()
      await this.#webhooks?.close()
      this.#sse.close()
      await this.#sockets.close()
    }
  }

  #write(request: HttpRequest, response: HttpResponse, reply: Reply): void {
    const { config, state } = this.#context
    try {
      const cors = config.allowedOrigins.size > 0 ? corsHeaders(request, config) : null
      // While draining no connection is kept, so that the server can close (HTTP/2: by GOAWAY).
      const isLast = state !== 'open' && request.httpVersionMajor < 2
      writeReply(request, response, reply, isLast ? { ...cors, Connection: 'close' } : cors)
    } catch (error) {
      this.#context.report(error, failedCall(request))
      response.destroy()
    }
  }
}

function ignore(): void {}
