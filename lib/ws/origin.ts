import type { UpgradeRequest } from './upgrade-request.js'

/**
 * Which pages may connect, by the Origin header that browsers send (RFC 6455, section 10.2).
 * `same`: only pages of the host that the request is for. A list: only these origins, written as
 * `https://app.example`. A function decides itself. A request without the header does not come from
 * a browser and always passes.
 */
export type OriginPolicy =
  | 'same'
  | 'any'
  | readonly string[]
  | ((origin: string, request: UpgradeRequest) => boolean)

/** Whether the page that sent `request`, if any, may connect. */
export function originAllowed(request: UpgradeRequest, policy: OriginPolicy): boolean {
  const { origin } = request.headers
  if (origin === undefined || policy === 'any') return true
  if (typeof policy === 'function') return policy(origin, request)
  if (!URL.canParse(origin)) return false
  const url = new URL(origin)
  if (url.origin === 'null') return false
  if (policy !== 'same') return policy.includes(url.origin)
  // Behind a proxy that terminates TLS our own scheme is unknown, so the page's scheme stands in
  // for it; it only decides the default port.
  const host = request.headers[':authority'] ?? request.headers.host
  const own = `${url.protocol}//${String(host)}`
  return URL.canParse(own) && new URL(own).host === url.host
}
