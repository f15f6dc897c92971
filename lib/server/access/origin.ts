/**
 * Which requests are accepted at all, before the caller is identified. A web page can make the
 * browser on this machine send requests anywhere, but it cannot choose the headers Host and Origin,
 * nor omit Origin from a write or an upgrade.
 *
 * 1. Writes and upgrades with an Origin: it must be the service's own or an allowed one.
 * 2. Requests that the browser marks as initiated by another site: the same for their origin, which
 *    must be an allowed one. Links may be followed.
 * 3. Without `authorize`: the peer is a loopback address, the Host is a loopback name (a rebound
 *    DNS name is not), and nothing reveals a proxy, behind which every peer looks local.
 *
 * @module
 */
import { ProblemError } from '../errors.js'
import type { Authorize } from './auth.js'
import { signOfProxy, type RequestFacts } from './proxies.js'

/** The settings that these rules depend on. */
export interface AccessRules {
  /** Null serves only callers on this machine. */
  readonly authorize: Authorize | null
  /** The origin that browsers see; null derives it from the Host of each request. */
  readonly publicOrigin: string | null
  /** Other origins whose pages may call. */
  readonly allowedOrigins: ReadonlySet<string>
}

const REMEDY = 'give createRunService() an authorize function to serve others'

/** Methods that change nothing (RFC 9110, section 9.2.1). */
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Checks a request against the rules.
 *
 * @throws {@link ProblemError} 403 with the reason.
 */
export function checkCaller(request: RequestFacts, config: AccessRules, upgrade: boolean): void {
  if (config.authorize === null) checkLocal(request)
  const changes = upgrade || !SAFE_METHODS.has(request.method ?? 'GET')
  if (changes) checkOrigin(request, config)
  checkSite(request, config, changes)
}

function checkLocal(request: RequestFacts): void {
  if (!request.socket) {
    const detail = `the request has no socket, so its caller is unknown; ${REMEDY}`
    throw new ProblemError(403, 'forbidden_peer', detail)
  }
  if (!isLoopbackAddress(request.socket.remoteAddress)) {
    const detail = `without authorize only callers on this machine are served; ${REMEDY}`
    throw new ProblemError(403, 'forbidden_peer', detail)
  }
  const sign = signOfProxy(request)
  if (sign !== null) {
    const detail = `${sign}, behind which every caller looks local; ${REMEDY}`
    throw new ProblemError(403, 'forbidden_proxy', detail)
  }
  if (!isLoopbackHost(hostOf(request))) {
    const detail = 'without authorize the Host must be localhost, 127.0.0.1 or [::1]'
    throw new ProblemError(403, 'forbidden_host', detail)
  }
}

function checkOrigin(request: RequestFacts, config: AccessRules): void {
  const origin = request.headers['origin']
  if (origin === undefined) return
  if (typeof origin === 'string' && isOwnOrigin(origin, request, config)) return
  if (typeof origin === 'string' && config.allowedOrigins.has(origin)) return
  throw forbiddenOrigin()
}

function forbiddenOrigin(): ProblemError {
  return new ProblemError(
    403,
    'forbidden_origin',
    'pages of this origin may not call; see publicOrigin and allowedOrigins of createRunService()',
  )
}

/**
 * Refuses what a page of another site has initiated, which browsers mark (W3C Fetch Metadata); an
 * unknown mark counts as another site. For reads, browsers also hide the response from that page.
 */
function checkSite({ headers }: RequestFacts, config: AccessRules, changes: boolean): void {
  const site = headers['sec-fetch-site']
  if (site === undefined || site === 'same-origin' || site === 'none') return
  if (!changes && headers['sec-fetch-mode'] === 'navigate') return
  const origin = headers['origin']
  if (typeof origin === 'string' && config.allowedOrigins.has(origin)) return
  throw forbiddenOrigin()
}

/** True when `origin` is the origin of the service's own pages. */
function isOwnOrigin(origin: string, request: RequestFacts, config: AccessRules): boolean {
  if (config.publicOrigin !== null) return origin === config.publicOrigin
  if (!isHttpOrigin(origin)) return false
  const { protocol, host } = new URL(origin)
  // Over TLS a page from http:// is another site. Without TLS, a proxy may have terminated it.
  if (request.socket?.encrypted === true && protocol !== 'https:') return false
  const own = hostOf(request)
  if (own === undefined || !URL.canParse(`${protocol}//${own}`)) return false
  return new URL(`${protocol}//${own}`).host === host
}

/** The authority of a request, port included; undefined without one, or with several. */
export function hostOf({ headers, rawHeaders = [] }: RequestFacts): string | undefined {
  // HTTP/2 has :authority in place of Host, or beside it (RFC 9113, section 8.3.1).
  const authority = headers[':authority'] ?? headers['host']
  // Node keeps the first of several lines.
  const sent = rawHeaders.filter(
    (_, at) => at % 2 === 1 && /^(:authority|host)$/i.test(rawHeaders[at - 1]!),
  )
  const isOne = typeof authority === 'string' && sent.every((host) => host === authority)
  return isOne ? authority : undefined
}

/** True for 127.0.0.0/8 and ::1, in the notation of a socket's `remoteAddress`. */
export function isLoopbackAddress(address: string | undefined): boolean {
  if (address === undefined) return false
  const plain = address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address
  return plain === '::1' || /^127(\.\d{1,3}){3}$/.test(plain)
}

/** True for a Host that always means this machine, with or without a port. */
export function isLoopbackHost(host: string | undefined): boolean {
  return host !== undefined && /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i.test(host)
}

/** True for an origin as browsers write it: `https://app.example`, no path, lower case. */
export function isHttpOrigin(origin: unknown): origin is string {
  if (typeof origin !== 'string' || !/^https?:\/\//.test(origin)) return false
  return URL.canParse(origin) && new URL(origin).origin === origin
}

/** CORS headers of the response (WHATWG Fetch, section 3.3); none unless configured. */
export function corsHeaders(
  request: RequestFacts,
  config: AccessRules,
): Readonly<Record<string, string>> {
  if (config.allowedOrigins.size === 0) return {}
  const origin = request.headers['origin']
  if (typeof origin !== 'string' || !config.allowedOrigins.has(origin)) return { Vary: 'Origin' }
  return {
    Vary: 'Origin',
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Expose-Headers': 
      'Location, Link, Retry-After, WWW-Authenticate, X-Request-Id',
    'Cross-Origin-Resource-Policy': 'cross-origin',
  }
}

/** Headers of the response to a preflight request, besides {@link corsHeaders}. */
export const PREFLIGHT_HEADERS: Readonly<Record<string, string>> = {
  'Access-Control-Allow-Headers':
    'authorization, content-type, idempotency-key, last-event-id, x-request-id',
  'Access-Control-Max-Age': '600',
}
