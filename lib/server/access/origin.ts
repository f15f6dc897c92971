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
function hostOf({ headers, rawHeaders = [] }: RequestFacts): string | undefined {
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

/**
 * Signs that a request came through a proxy, behind which every caller looks local. They matter
 * without `authorize` only, and some proxies give none: see "Behind a reverse proxy" in
 * `docs/mounting.md`.
 */

/** What the rules about callers read; requests of all Node servers have it. */
export interface RequestFacts {
  readonly method?: string | undefined
  readonly url?: string | undefined
  /** `1.0`, `1.1` or `2.0`; absent when unknown. */
  readonly httpVersion?: string | undefined
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** Names and values alternately, as sent. */
  readonly rawHeaders?: readonly string[] | undefined
  /** Absent in requests that no server of Node has made, such as mocks. */
  readonly socket?:
    | { readonly remoteAddress?: string | undefined; readonly encrypted?: boolean }
    | null
    | undefined
}

/** Words that tell of a proxy wherever a header name has them: `X-Http-Forwarded-For`. */
const WORDS: ReadonlySet<string> = new Set(
  (
    'forwarded forward forwarder forwarding proxied proxy via qvia connecting addr ' +
    'ip ips ipv4 ipv6 clientip socketip userip cliip'
  ).split(' '),
)

/**
 * First words of the header names that proxies, tunnels, CDNs and platforms add, after any `x-`:
 * `CF-Ray`, `X-Envoy-…`.
 */
const FIRST_WORDS: ReadonlySet<string> = new Set(
  (
    'original originally originating real remote cluster rewrite gateway ingress backend lb ' +
    'loadbalancer tunnel edge geo geoip ssl surrogate proxyuser cdn ' +
    'envoy nginx accel arr haproxy varnish traefik kong istio l5d wl bluecoat imforwards zscaler ' +
    'netscaler citrix cuda tinyproxy xroxy litespeed lscache passenger apigee tyk oathkeeper ' +
    'vouch pomerium authentik teleport bfe ' +
    'cf cloudfront amzn azure appengine appservice waws akamai edgeconnect edgescape fastly ' +
    'incap sucuri cdn77 azion llnw ali alicdn slb eagleeye tencent daa ' +
    'fly heroku railway render rndr replit vercel nf netlify vcap koyeb ' +
    'ngrok tailscale pagekite inlets zrok pinggy hass'
  ).split(' '),
)

/** Other header names that these add, whose words local programs use too. */
const NAMES: ReadonlySet<string> = new Set(
  (
    'client-cert client-cert-chain x-client-cert x-client-verify x-client-scheme x-clientside ' +
    'x-host x-port x-proto x-protocol x-scheme x-url-scheme x-https front-end-https ' +
    'x-script-name x-matched-path x-invoke-path x-middleware-rewrite x-middleware-subrequest ' +
    'x-http-destinationurl x-coming-from coming-from x-from-where bypass-tunnel-reminder ' +
    'disguised-host x-cloud-trace-context x-amz-cf-id x-request-start connect-time ' +
    'total-route-time x-unique-id x-auth-request-user x-auth-request-email ' +
    'x-auth-request-groups x-auth-request-preferred-username x-auth-request-access-token ' +
    'x-auth-request-redirect x-consumer-id x-consumer-username x-consumer-custom-id ' +
    'x-credential-identifier x-anonymous-consumer sm-user sm-universalid sm-serversessionid ' +
    'x-ms-client-principal x-ms-client-principal-id x-ms-client-principal-name ' +
    'x-ms-client-principal-idp ms-aspnetcore-token ms-aspnetcore-clientcert x-fd-healthprobe ' +
    'x-goog-iap-jwt-assertion x-goog-authenticated-user-email x-goog-authenticated-user-id ' +
    'x-country x-country-code early-data max-forwards'
  ).split(' '),
)

function isProxyHeader(name: string): boolean {
  const key = name.replaceAll('_', '-')
  const words = key.split('-')
  const first = words[words[0] === 'x' ? 1 : 0] ?? ''
  return FIRST_WORDS.has(first) || NAMES.has(key) || words.some((word) => WORDS.has(word))
}

/** What shows that a request came through a proxy, or null. */
export function signOfProxy(request: RequestFacts): string | null {
  const { headers, httpVersion, rawHeaders = [] } = request
  // A framework may remove the headers of proxies that it does not trust; sent they were.
  const sent = rawHeaders.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase())
  const added = [...Object.keys(headers), ...sent].find(isProxyHeader)
  if (added !== undefined) return `the header ${added} comes from a proxy`
  // No current browser or client uses it, but nginx did towards its upstreams up to version 1.29.6.
  if (httpVersion === '1.0') return 'HTTP/1.0 indicates a proxy'
  const target = (request as { readonly originalUrl?: unknown }).originalUrl ?? request.url
  // RFC 9112, section 3.2.2.
  if (typeof target === 'string' && /^[a-z][a-z\d+.-]*:/i.test(target)) {
    return 'a request target with a scheme is meant for a proxy'
  }
  const connection = String(headers['connection'] ?? '').toLowerCase()
  // nginx, as its guide to WebSocket has it, sends this with every request.
  if (headers['upgrade'] === undefined && /(^|,)[ \t]*upgrade[ \t]*(,|$)/.test(connection)) {
    return 'Connection: upgrade without an Upgrade header comes from a proxy'
  }
  if (!isOrderOfNginx(rawHeaders, connection)) return null
  return `Connection: ${connection} at the top of the header section comes from a proxy`
}

/**
 * nginx writes the lines that it sets, and then those of its caller. Programs that close the
 * connection write that line last, or write Host in lower case, or below lines of their own.
 */
function isOrderOfNginx(rawHeaders: readonly string[], connection: string): boolean {
  if (connection !== 'close' && connection !== 'upgrade') return false
  const names = rawHeaders.slice(0, 8).filter((_, index) => index % 2 === 0)
  const top = names.join(' ')
  if (/^(upgrade )?connection host( |$)/i.test(top)) return true
  // Node without keep-alive sends these two, and the length of a body.
  if (connection === 'upgrade') return false
  return /^Host Connection (?!(Content-Length|Transfer-Encoding)$)/.test(top)
}
