/**
 * Which hosts and paths a cookie belongs to (RFC 6265, section 5.1).
 *
 * @module
 */
import { isIP } from 'node:net'

/** The host of `url` as cookies compare it: without the dot that may end a full name. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/\.$/, '')
}

/** Whether `host` is `domain` or a subdomain; an address matches only itself (section 5.1.3). */
export function domainMatches(host: string, domain: string): boolean {
  if (host === domain) return true
  return host.endsWith(`.${domain}`) && isIP(host) === 0
}

/** Whether `path` is `prefix` or below it, by whole segments (section 5.1.4). */
export function pathMatches(path: string, prefix: string): boolean {
  if (path === prefix) return true
  return path.startsWith(prefix) && (prefix.endsWith('/') || path[prefix.length] === '/')
}

/** The path of a cookie that has no Path attribute (section 5.1.4). */
export function defaultPath(url: URL): string {
  const last = url.pathname.lastIndexOf('/')
  return last <= 0 ? '/' : url.pathname.slice(0, last)
}
