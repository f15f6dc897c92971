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
