/**
 * From a request to its reply.
 *
 * 1. Order of the checks: path, origin of the caller, method, identity, limits, media type, run id,
 *    names in the query.
 * 2. A request that needs no waiting is answered in the same turn of the event loop: promises cost
 *    too much on this path.
 * 3. Every error becomes a reply. Only a 500 is reported to the host.
 *
 * @module
 */
import type { Caller } from '../agent/index.js'
import type { AuthorizableRequest, Principal } from './access/auth.js'
import { checkCaller, PREFLIGHT_HEADERS } from './access/origin.js'
import { accountOf, authorized, callerFor, seesAll } from './access/principal.js'
import type { ServiceConfig } from './config.js'
import type { ServiceContext } from './context.js'
import { draining, isUnusableRun, ProblemError, unknownRun } from './errors.js'
import { chooseType } from './messages/accept.js'
import { checkQuery } from './messages/query.js'
import { problemReply, type HttpRequest, type Reply } from './messages/reply.js'
import { requestIdOf } from './messages/request-id.js'
import { failedCall, targetOf, type Target } from './messages/request-target.js'
import { allowOf, isRunId, type Call, type Match, type Route, type Router } from './router.js'

/** A request until it is answered, with what is known about it so far. */
class Exchange {
  readonly request: HttpRequest
  /** `performance.now()` at the start; 0 when nothing is measured. */
  readonly began: number
  route: Route | null = null
  runId: string | null = null
  principal: Principal | null = null
  /** Releases the limiter's slot; null when none was taken. */
  release: (() => void) | null = null

  constructor(request: HttpRequest, began: number) {
    this.request = request
    this.began = began
  }
}

/** A {@link Call} that parses its query on first use. */
class RoutedCall implements Call {
  readonly request: HttpRequest
  readonly method: Call['method']
  readonly parameter: string
  readonly rest: string
  readonly principal: Principal | null
  readonly caller: Caller
  readonly mediaType: string
  readonly #query: string
  #parsed: URLSearchParams | undefined

  constructor(
    { request, principal }: Exchange,
    { method }: Route,
    { parameter, rest }: Match,
    query: string,
    mediaType: string,
  ) {
    this.request = request
    this.method = method
    this.parameter = parameter
    this.rest = rest
    this.principal = principal
    this.caller = callerFor(principal)
    this.mediaType = mediaType
    this.#query = query
  }

  get query(): URLSearchParams {
    this.#parsed ??= new URLSearchParams(this.#query)
    return this.#parsed
  }
}

/**
 * Most requests of one connection that wait for their replies. Node stops reading when replies wait
 * for the peer, but it takes as many requests as the peer sends while none has a reply.
 */
const MAX_WAITING = 1_000

/** Finds the reply to each request of one service. */
export class Dispatcher {
  readonly #context: ServiceContext
  readonly #router: Router
  /** How many requests of each connection wait for their replies. */
  readonly #waiting = new WeakMap<object, number>()

  constructor(context: ServiceContext, router: Router) {
    this.#context = context
    this.#router = router
  }

  /** Calls `done` with the reply, or with null when the service does not serve the path. */
  answer(request: HttpRequest, done: (reply: Reply | null) => void): void {
    const began = this.#context.monitor === null ? 0 : performance.now()
    const exchange = new Exchange(request, began)
    let reply: Reply | null | Promise<Reply | null>
    try {
      reply = this.#find(exchange)
    } catch (error) {
      reply = this.#refuse(error, exchange)
    }
    if (isPromise(reply)) void this.#answerLater(exchange, reply, done)
    else done(this.#finish(exchange, reply))
  }

  /** Never rejects. */
  async #answerLater(
    exchange: Exchange,
    pending: Promise<Reply | null>,
    done: (reply: Reply | null) => void,
  ): Promise<void> {
    const replied = this.#wait(exchange.request)
    let reply: Reply | null
    try {
      reply = await pending
    } catch (error) {
      reply = this.#refuse(error, exchange)
    }
    replied()
    try {
      done(this.#finish(exchange, reply))
    } catch (error) {
      this.#context.report(error, failedCall(exchange.request))
    }
  }

  /** Counts a request that waits for its reply. Returns what to call when it has one. */
  #wait({ httpVersionMajor, socket }: HttpRequest): () => void {
    // HTTP/2 has limits of its own, and requests without a connection are made in this process.
    if (httpVersionMajor >= 2 || !socket) return () => {}
    const waiting = (this.#waiting.get(socket) ?? 0) + 1
    this.#waiting.set(socket, waiting)
    if (waiting > MAX_WAITING) socket.destroy()
    return () => void this.#waiting.set(socket, this.#waiting.get(socket)! - 1)
  }

  #find(exchange: Exchange): Reply | null | Promise<Reply> {
    const { config } = this.#context
    const target = targetOf(exchange.request, config.basePath)
    if (target === null) return null
    if (target.path === '') return config.dashboard ? toDashboard(config.basePath) : null
    const match = this.#router.match(target.path)
    if (match === null) return null
    checkCaller(exchange.request, config, false)
    return this.#dispatch(exchange, target, match)
  }

  #dispatch(exchange: Exchange, target: Target, match: Match): Reply | Promise<Reply> {
    const { config, state } = this.#context
    const { request } = exchange
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '')
    if (method === 'OPTIONS') return answerOptions(request, match, config)
    const route = match.byMethod.get(method)
    if (route === undefined) throw methodNotAllowed(match)
    exchange.route = route
    if (route.access === 'public') return this.#serve(exchange, route, target, match)
    if (state === 'closed') throw draining()
    if (config.authorize === null) return this.#admit(exchange, route, target, match)
    const principal = config.authorize(request as AuthorizableRequest & object)
    if (isPromise(principal)) {
      return Promise.resolve(principal).then((later) => {
        exchange.principal = authorized(later)
        return this.#admit(exchange, route, target, match)
      })
    }
    exchange.principal = authorized(principal)
    return this.#admit(exchange, route, target, match)
  }

  #admit(exchange: Exchange, route: Route, target: Target, match: Match): Reply | Promise<Reply> {
    const { limiter } = this.#context
    exchange.release = limiter?.admitRequest(accountOf(exchange.principal)) ?? null
    return this.#serve(exchange, route, target, match)
  }

  #serve(exchange: Exchange, route: Route, target: Target, match: Match): Reply | Promise<Reply> {
    const { accept } = exchange.request.headers
    const mediaType = route.produces.length === 0 ? '' : chooseType(accept, route.produces)
    if (route.isOfRun) {
      if (!isRunId(match.parameter)) throw unknownRun()
      exchange.runId = match.parameter
    }
    const call = new RoutedCall(exchange, route, match, target.query, mediaType)
    // Caches and probes may add parameters to what is public: files, descriptions, health.
    if (target.query !== '' && route.access === 'caller') {
      checkQuery(call.query, route.operation?.parameters ?? [], this.#context.config.allowedQuery)
    }
    return route.handle(call)
  }

  #refuse(error: unknown, { request, principal }: Exchange): Reply {
    const problem = this.#context.problemFor(error, seesAll(this.#context.config, principal))
    if (problem.status === 500 && !isUnusableRun(problem.code)) {
      this.#context.report(problem.cause ?? problem, failedCall(request))
    }
    return problemReply(problem, request)
  }

  #finish(exchange: Exchange, reply: Reply | null): Reply | null {
    exchange.release?.()
    const { monitor } = this.#context
    if (monitor === null || reply === null) return reply
    const { request, route, runId, principal, began } = exchange
    monitor.answered({
      method: request.method ?? '',
      requestId: requestIdOf(request),
      route: route?.path ?? null,
      runId,
      status: reply.status,
      principal,
      began,
    })
    return reply
  }
}

function methodNotAllowed(match: Match): ProblemError {
  const allow = allowOf(match)
  return new ProblemError(405, 'method_not_allowed', `this resource supports ${allow}`, {
    headers: { Allow: allow },
  })
}

function answerOptions(request: HttpRequest, match: Match, config: ServiceConfig): Reply {
  const allow = allowOf(match)
  const origin = request.headers.origin
  const headers: Record<string, string> = { Allow: allow }
  if (origin !== undefined && config.allowedOrigins.has(origin)) {
    Object.assign(headers, PREFLIGHT_HEADERS, { 'Access-Control-Allow-Methods': allow })
  }
  return { status: 204, headers }
}

function toDashboard(basePath: string): Reply {
  // Relative addresses of the page need the slash.
  return { status: 308, headers: { Location: `${basePath}/` } }
}

function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null)?.then === 'function'
}
