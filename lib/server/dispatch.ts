/**
 * From a request to its reply: where it leads, who calls and whether they may, how much they may,
 * and what went wrong. What needs no waiting is answered in the turn in which the request came.
 *
 * @module
 */
import type { Caller } from '../agent/index.js'
import { chooseType } from './messages/accept.js'
import type { AuthorizableRequest, Principal } from './access/auth.js'
import type { ServiceConfig } from './config.js'
import { draining, ProblemError, toProblemError, unknownRun } from './errors.js'
import { problemReply, type HttpRequest, type Reply } from './messages/reply.js'
import type { Limiter } from './access/limits.js'
import { targetOf, type Target } from './messages/request-target.js'
import type { Monitor } from './monitoring/monitor.js'
import { checkCaller, PREFLIGHT_HEADERS } from './access/origin.js'
import { allowOf, isRunId, type Call, type Match, type Route, type Router } from './router.js'

/** What dispatching needs of the service. */
export interface DispatchHost {
  readonly config: ServiceConfig
  readonly router: Router
  readonly limiter: Limiter | null
  readonly monitor: Monitor | null
  /** `closed`: nothing but public routes is answered any more. */
  state(): 'open' | 'draining' | 'closed'
  /** Told what was answered with 500. */
  report(error: unknown, request: HttpRequest): void
}

/** On whose behalf calls are made when the host has no authorization. */
const ANYBODY: Caller = { owner: { id: null, tenant: null } }

/** One request on its way to its reply. */
class Visit {
  readonly request: HttpRequest
  readonly began: number
  route: Route | null = null
  runId: string | null = null
  principal: Principal | null = null
  /** Ends the request for the limiter. */
  release: (() => void) | null = null

  constructor(request: HttpRequest, began: number) {
    this.request = request
    this.began = began
  }
}

/** A {@link Call} whose query is parsed when somebody looks at it. */
class RoutedCall implements Call {
  readonly request: HttpRequest
  readonly method: Call['method']
  readonly parameter: string
  readonly principal: Principal | null
  readonly caller: Caller
  readonly mediaType: string
  readonly #query: string
  #parsed: URLSearchParams | undefined

  constructor(visit: Visit, route: Route, parameter: string, query: string, mediaType: string) {
    this.request = visit.request
    this.method = route.method
    this.parameter = parameter
    this.principal = visit.principal
    this.caller = callerFor(visit.principal)
    this.mediaType = mediaType
    this.#query = query
  }

  get query(): URLSearchParams {
    this.#parsed ??= new URLSearchParams(this.#query)
    return this.#parsed
  }
}

/** Finds the reply to each request of one service. */
export class Dispatcher {
  readonly #host: DispatchHost

  constructor(host: DispatchHost) {
    this.#host = host
  }

  /**
   * Calls back with the reply, or with null when the request is for somebody else: in this turn
   * where nothing has to be waited for.
   */
  answer(request: HttpRequest, done: (reply: Reply | null) => void): void {
    const visit = new Visit(request, this.#host.monitor === null ? 0 : performance.now())
    let reply: Reply | null | Promise<Reply | null>
    try {
      reply = this.#find(visit)
    } catch (error) {
      reply = this.#refusal(error, visit)
    }
    if (isPromise(reply)) void this.#answerLate(visit, reply, done)
    else done(this.#ended(visit, reply))
  }

  /** Never rejects. */
  async #answerLate(
    visit: Visit,
    pending: Promise<Reply | null>,
    done: (reply: Reply | null) => void,
  ): Promise<void> {
    let reply: Reply | null
    try {
      reply = await pending
    } catch (error) {
      reply = this.#refusal(error, visit)
    }
    try {
      done(this.#ended(visit, reply))
    } catch (error) {
      this.#host.report(error, visit.request)
    }
  }

  /** Who calls. @throws {@link ProblemError} 401 when the host does not know. */
  async authorize(request: AuthorizableRequest & object): Promise<Principal | null> {
    const { authorize } = this.#host.config
    return authorize === null ? null : known(await authorize(request))
  }

  #find(visit: Visit): Reply | null | Promise<Reply> {
    const { config, router } = this.#host
    const target = targetOf(visit.request, config.basePath)
    if (target === null) return null
    if (target.path === '') return config.dashboard ? toDashboard(config.basePath) : null
    const match = router.match(target.path)
    if (match === null) return null
    checkCaller(visit.request, config, false)
    return this.#dispatch(visit, target, match)
  }

  #dispatch(visit: Visit, target: Target, match: Match): Reply | Promise<Reply> {
    const { config, state } = this.#host
    const { request } = visit
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '')
    if (method === 'OPTIONS') return answerOptions(request, match, config)
    const route = match.byMethod.get(method)
    if (route === undefined) {
      const allow = allowOf(match)
      throw new ProblemError(405, 'method_not_allowed', `this resource takes ${allow}`, {
        headers: { Allow: allow },
      })
    }
    visit.route = route
    if (route.access === 'public') return this.#serve(visit, route, target, match)
    if (state() === 'closed') throw draining()
    if (config.authorize === null) return this.#admit(visit, route, target, match)
    const principal = config.authorize(request as AuthorizableRequest & object)
    if (isPromise(principal)) {
      return principal.then((later) => {
        visit.principal = known(later)
        return this.#admit(visit, route, target, match)
      })
    }
    visit.principal = known(principal)
    return this.#admit(visit, route, target, match)
  }

  #admit(visit: Visit, route: Route, target: Target, match: Match): Reply | Promise<Reply> {
    visit.release = this.#host.limiter?.admitRequest(accountOf(visit.principal)) ?? null
    return this.#serve(visit, route, target, match)
  }

  #serve(visit: Visit, route: Route, target: Target, match: Match): Reply | Promise<Reply> {
    const { accept } = visit.request.headers
    const mediaType = route.produces.length === 0 ? '' : chooseType(accept, route.produces)
    if (route.isOfRun) {
      if (!isRunId(match.parameter)) throw unknownRun()
      visit.runId = match.parameter
    }
    return route.handle(new RoutedCall(visit, route, match.parameter, target.query, mediaType))
  }

  #refusal(error: unknown, { request }: Visit): Reply {
    const known = toProblemError(error)
    // What a closing store no longer answers is no fault.
    const problem = known.status === 500 && this.#host.state() !== 'open' ? draining() : known
    if (problem.status === 500) this.#host.report(problem.cause ?? problem, request)
    return problemReply(problem)
  }

  #ended(visit: Visit, reply: Reply | null): Reply | null {
    visit.release?.()
    const { monitor } = this.#host
    if (monitor === null || reply === null) return reply
    const { request, route, runId, principal, began } = visit
    const method = request.method ?? ''
    monitor.answered({
      method,
      route: route?.path ?? null,
      runId,
      status: reply.status,
      principal,
      began,
    })
    return reply
  }
}

/** On whose behalf the engine is called. */
export function callerFor(principal: Principal | null): Caller {
  if (principal === null) return ANYBODY
  return { owner: { id: principal.id, tenant: principal.tenant ?? null } }
}

/** The name under which a principal's limits are kept. */
export function accountOf(principal: Principal | null): string {
  return principal === null ? '' : JSON.stringify([principal.tenant ?? null, principal.id])
}

function known(principal: Principal | null): Principal {
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
