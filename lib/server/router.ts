/**
 * Method and path to route. Paths are compared as sent, byte by byte: no percent-decoding, no dot
 * segments, no doubled or trailing slashes. So a proxy in front that guards paths sees the same
 * paths as this router, and no id or name in them needs encoding. Only the rest of a path that ends
 * with `{+path}` is the path of a file, which its route decodes.
 *
 * @module
 */
import type { Caller } from '../agent/index.js'
import type { Principal } from './access/auth.js'
import type { Operation } from './describe/operation.js'
import type { HttpRequest, Reply } from './messages/reply.js'

/** Methods of routes; a GET route answers HEAD as well. */
export type RouteMethod = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** What a route is called with. */
export interface Call {
  readonly request: HttpRequest
  /** GET for HEAD. */
  readonly method: RouteMethod
  readonly query: URLSearchParams
  /** The `{…}` part of the path; empty when it has none. */
  readonly parameter: string
  /** The `{+…}` end of the path, as sent; empty when it has none. */
  readonly rest: string
  readonly principal: Principal | null
  /** The identity to call the engine with. */
  readonly caller: Caller
  /** The media type chosen by Accept, one of {@link Route.produces}. */
  readonly mediaType: string
}

/** A {@link RouteDefinition} with its defaults. */
export interface Route extends RouteDefinition {
  readonly access: 'public' | 'caller'
  readonly produces: readonly string[]
  /** True when its path names a run. */
  readonly isOfRun: boolean
}

/** One method of one resource. */
export interface RouteDefinition {
  readonly method: RouteMethod
  /**
   * Relative to the mount, with at most one `{parameter}` segment: `/api/runs/{run_id}`. `{+path}`
   * at the end stands for one or more segments.
   */
  readonly path: string
  /** `public` routes serve no data and need no authorization. @defaultValue 'caller' */
  readonly access?: 'public' | 'caller'
  /** Media types that it can answer with, the preferred one first. @defaultValue JSON only */
  readonly produces?: readonly string[]
  /** Its description in OpenAPI; null for routes outside the API, such as the dashboard's. */
  readonly operation: Operation | null
  /** @throws `ProblemError`, or an error of the engine */
  readonly handle: (call: Call) => Reply | Promise<Reply>
}

/** Routes of one path, by method, and the values of its parameters. */
export interface Match {
  readonly byMethod: ReadonlyMap<string, Route>
  readonly parameter: string
  readonly rest: string
}

const JSON_ONLY: readonly string[] = ['application/json']

/** A node of the tree of path segments. */
interface Segment {
  readonly literals: Map<string, Segment>
  parameter: Segment | null
  rest: Segment | null
  readonly byMethod: Map<string, Route>
}

/** Finds routes by path, in time that does not grow with their number. */
export class Router {
  readonly routes: readonly Route[]
  readonly #root: Segment = createSegment()

  constructor(routes: readonly RouteDefinition[]) {
    this.routes = routes.map((route) => ({
      access: 'caller',
      produces: JSON_ONLY,
      ...route,
      isOfRun: route.path.includes('{run_id}'),
    }))
    for (const route of this.routes) this.#add(route)
  }

  #add(route: Route): void {
    let node = this.#root
    for (const segment of route.path.split('/').slice(1)) {
      if (segment.startsWith('{+')) node = node.rest ??= createSegment()
      else if (segment.startsWith('{')) node = node.parameter ??= createSegment()
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
      } else if (node.rest !== null && segment !== '') {
        return { byMethod: node.rest.byMethod, parameter, rest: path.slice(start) }
      } else return null
    }
    return node.byMethod.size === 0 ? null : { byMethod: node.byMethod, parameter, rest: '' }
  }
}

function createSegment(): Segment {
  return { literals: new Map(), parameter: null, rest: null, byMethod: new Map() }
}

/** Value of the Allow header for a resource (RFC 9110, section 10.2.1). */
export function allowOf(match: Match): string {
  const methods = [...match.byMethod.keys()]
  if (methods.includes('GET')) methods.push('HEAD')
  return [...methods, 'OPTIONS'].join(', ')
}

const RUN_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** True for a UUID in lower case, the only form of run ids. */
export function isRunId(text: string): boolean {
  return RUN_ID.test(text)
}
