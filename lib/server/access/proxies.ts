/**
 * Signs that a request came through a proxy, behind which every caller looks local. They matter
 * without `authorize` only, and some proxies give none: see "Behind a reverse proxy" in
 * `docs/mounting.md`.
 *
 * @module
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
  readonly socket: { readonly remoteAddress?: string | undefined; readonly encrypted?: boolean }
}

/** First words of the header names that proxies add, after any `x-`: `CF-Ray`, `X-Envoy-…`. */
const PROXY_WORDS: ReadonlySet<string> = new Set(
  (
    'forwarded forward original originating real via cluster remote proxy proxyuser envoy nginx ' +
    'accel arr haproxy varnish traefik kong istio l5d wl bluecoat imforwards zscaler surrogate ' +
    'cdn cf cloudfront amzn azure appengine akamai edgeconnect fastly incap sucuri fly heroku ' +
    'railway render rndr replit vercel nf ngrok tailscale pomerium authentik ssl'
  ).split(' '),
)

/** Other header names that proxies add, whose first words local programs use too. */
const PROXY_NAMES: ReadonlySet<string> = new Set(
  (
    'client-ip x-client-ip true-client-ip x-true-client-ip client-cert client-cert-chain ' +
    'x-client-cert x-client-verify x-host x-scheme x-url-scheme x-https front-end-https ' +
    'disguised-host x-cloud-trace-context x-amz-cf-id x-request-start x-unique-id ' +
    'x-auth-request-user x-auth-request-email x-goog-iap-jwt-assertion early-data max-forwards'
  ).split(' '),
)

function isProxyHeader(name: string): boolean {
  const start = name.startsWith('x-') ? 2 : 0
  const end = name.indexOf('-', start)
  return PROXY_WORDS.has(name.slice(start, end === -1 ? undefined : end)) || PROXY_NAMES.has(name)
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
