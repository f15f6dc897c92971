import type { FailedCall } from '../config.js'
import { ProblemError } from '../errors.js'
import type { HttpRequest } from './reply.js'
import { requestIdOf } from './request-id.js'

/** The part of a request that holds its target. */
export interface Located {
  readonly url?: string | undefined
}

/** A request target, relative to where the service is mounted. */
export interface Target {
  readonly path: string
  readonly query: string
}

/**
 * The target of a request, relative to `basePath`; null when it lies elsewhere.
 *
 * Connect-style routers cut the mount path off `url` and keep the whole in `originalUrl`. The part
 * cut off must then be `basePath`: links and event streams are built from it and would otherwise
 * lead nowhere.
 *
 * @throws {@link ProblemError} 500 `mount_mismatch` when they differ.
 */
export function targetOf(request: Located, basePath: string): Target | null {
  const url = request.url ?? ''
  const original = (request as { readonly originalUrl?: unknown }).originalUrl
  const whole = typeof original === 'string' ? original : url
  const target = below(whole, basePath)
  if (typeof original === 'string' && original !== url) {
    const mounted = split(url)
    if (target === null || !samePath(target.path, mounted.path)) {
      const detail = mismatch(original, url, basePath)
      throw new ProblemError(500, 'mount_mismatch', detail, { cause: new Error(detail) })
    }
  }
  return target
}

/** A request as `onError` names it: without the query, which may contain secrets. */
export function failedCall(request: HttpRequest): FailedCall {
  const path = (request.url ?? '').split(/[?#]/, 1)[0]!
  return { method: request.method ?? '', path, requestId: requestIdOf(request) }
}

function mismatch(original: string, url: string, basePath: string): string {
  const [whole, rest] = [split(original).path, split(url).path]
  const mount = whole.endsWith(rest) ? whole.slice(0, whole.length - rest.length) : whole
  const created = `was created with basePath "${basePath}"; make them the same`
  return `the service is mounted at "${mount}" but ${created}`
}

/** Mounted at `/agents`, the target `/agents` arrives as `url` = `/`, with a slash added. */
function samePath(path: string, mounted: string): boolean {
  return path === mounted || (path === '' && mounted === '/')
}

function below(whole: string, basePath: string): Target | null {
  const { path, query } = split(whole)
  if (!path.startsWith(basePath)) return null
  const rest = path.slice(basePath.length)
  return rest === '' || rest.startsWith('/') ? { path: rest, query } : null
}

function split(target: string): Target {
  // A request to a proxy names the scheme and host as well (RFC 9112, section 3.2.2).
  const local = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?#]*/i, '')
  const end = local.search(/[?#]/)
  if (end === -1) return { path: local, query: '' }
  return { path: local.slice(0, end), query: local[end] === '?' ? local.slice(end + 1) : '' }
}
