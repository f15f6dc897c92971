/**
 * Method and path to route. Paths are compared as they were sent, octet by octet: no
 * percent-decoding, no dot segments, no doubled or trailing slashes. What a proxy in front guards
 * by path is thereby exactly what is served here, and no id or name of ours needs encoding.
 *
 * @module
 */
import type { Caller } from '../agent/index.js'
import type { Principal } from './access/auth.js'
import type { HttpRequest, Reply } from './messages/reply.js'
import type { Operation } from './describe/operation.js'

/** Methods that routes have; HEAD is answered by GET. */
export type RouteMethod = 'GET' | 'POST' | 'DELETE'

/** A request on its way to its route. */
export interface Call {
  readonly request: HttpRequest
  /** GET for HEAD as well. */
  readonly method: RouteMethod
  readonly query: URLSearchParams
  /** The `{…}` part of the path; empty when it has none. */
  readonly parameter: string
  readonly principal: Principal | null
  /** On whose behalf the engine is called. */
  readonly caller: Caller
  /** The media type chosen by Accept, one of {@link Route.produces}. */
  readonly mediaType: string
}

/** A {@link RouteDefinition} as the router holds it. */
export interface Route extends RouteDefinition {
  /** True when its path names a run. */
  readonly isOfRun: boolean
}

/** One method of one resource. */
export interface RouteDefinition {
  readonly method: RouteMethod
  /** Relative to the mount, with at most one `{parameter}` segment: `/api/runs/{run_id}`. */
  readonly path: string
  /** `public` routes hold no data and are answered without asking who calls. */
  readonly access: 'public' | 'caller'
  /** Media types that it can answer with, the preferred one first. */
  readonly produces: readonly string[]
  /** How it is described in OpenAPI; null for the dashboard's files, which are no API. */
  readonly operation: Operation | null
  /** @throws `ProblemError`, or an error of the engine */
  readonly handle: (call: Call) => Reply | Promise<Reply>
}

/** Routes of one path, by method, and the value of its parameter. */
export interface Match {
  readonly byMethod: ReadonlyMap<string, Route>
  readonly parameter: string
}

/** A node of the tree of path segments. */
interface Segment {
  readonly literals: Map<string, Segment>
  parameter: Segment | null
  readonly byMethod: Map<string, Route>
}

/** Finds routes by path; the cost does not grow with their number. */
export class Router {
  readonly routes: readonly Route[]
  readonly #root: Segment = createSegment()

  constructor(routes: readonly RouteDefinition[]) {
    this.routes = routes.map((route) => ({ ...route, isOfRun: route.path.includes('{run_id}') }))
    for (const route of this.routes) this.#add(route)
  }

  #add(route: Route): void {
    let node = this.#root
    for (const segment of route.path.split('/').slice(1)) {
      if (segment.startsWith('{')) node = node.parameter ??= createSegment()
      else {
        const next = node.literals.get(segment) ?? createSegment()
        node.literals.set(segment, next)
        node = next
      }
    }
    node.byMethod.set(route.method, route)
  }

  /** The resource at `path` (no query), or null. A literal wins over a parameter. */
  match(path: string): Match | null {
    if (!path.startsWith('/')) return null
    let node = this.#root
    let parameter = ''
    for (let start = 1, end = 0; end !== -1; start = end + 1) {
      end = path.indexOf('/', start)
      const segment = end === -1 ? path.slice(start) : path.slice(start, end)
      const literal = node.literals.get(segment)
      if (literal !== undefined) node = literal
      else if (node.parameter !== null && segment !== '') {
        node = node.parameter
        parameter = segment
      } else return null
    }
    return node.byMethod.size === 0 ? null : { byMethod: node.byMethod, parameter }
  }
}

function createSegment(): Segment {
  return { literals: new Map(), parameter: null, byMethod: new Map() }
}

/** Value of the Allow header for a resource (RFC 9110, section 10.2.1). */
export function allowOf(match: Match): string {
  const methods = [...match.byMethod.keys()]
  if (methods.includes('GET')) methods.push('HEAD')
  return [...methods, 'OPTIONS'].join(', ')
}

const RUN_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** True for a UUID in lower case, the only form in which run ids are given out. */
export function isRunId(text: string): boolean {
  return RUN_ID.test(text)
}
