import { Headers } from '../headers.js'
import { Request } from '../request.js'
import { parseHttpDate } from './http-date.js'
import type { StoredResponse } from './stored-response.js'

/** Whether the caller wrote conditions itself, and so expects a 304. */
export function hasConditions(headers: Headers): boolean {
  return headers.has('if-none-match') || headers.has('if-modified-since')
}

/** Whether the caller has the stored response already (RFC 9111, section 4.3.2). */
export function isNotModified(request: Headers, stored: StoredResponse): boolean {
  const tags = request.get('if-none-match')
  const etag = stored.headers.get('etag')
  if (tags !== null) {
    return etag !== null && (tags === '*' || entityTags(tags).includes(opaque(etag)))
  }
  const { receivedAt } = stored.facts
  const since = parseHttpDate(request.get('if-modified-since'), receivedAt)
  if (since === null) return false
  const { headers } = stored
  const modified = parseHttpDate(headers.get('last-modified') ?? headers.get('date'), receivedAt)
  return (modified ?? receivedAt) <= since
}

/** The request that asks the server whether `stored` is still right (RFC 9111, section 4.3.1). */
export function conditionalRequest(request: Request, stored: StoredResponse): Request {
  const headers = new Headers(request.headers)
  const etag = stored.headers.get('etag')
  const modified = stored.headers.get('last-modified')
  if (etag !== null) headers.set('If-None-Match', etag)
  if (modified !== null) headers.set('If-Modified-Since', modified)
  return copyRequest(request, headers, request.signal)
}

/** A request to repeat when the caller's call is over: on its own signal, without its callbacks. */
export function backgroundRequest(request: Request, signal: AbortSignal): Request {
  const copy = copyRequest(request, new Headers(request.headers), signal, {
    ...request.extensions,
    onUpload: undefined,
    onDownload: undefined,
    onInformation: undefined,
  })
  copy.deadlineAt = null
  return copy
}

function copyRequest(
  request: Request,
  headers: Headers,
  signal: AbortSignal | null,
  extensions: Request['extensions'] = request.extensions,
): Request {
  const copy = Request.fromParts(request.method, request.url, headers, null, { extensions, signal })
  copy.timeouts = request.timeouts
  copy.deadlineAt = request.deadlineAt
  copy.blocking = request.blocking
  copy.namedUrl = request.namedUrl
  return copy
}

/** The entity tags of If-None-Match, which are compared weakly (RFC 9110, section 8.8.3.2). */
function entityTags(list: string): string[] {
  return (list.match(/(?:W\/)?"[^"]*"/g) ?? [list]).map(opaque)
}

function opaque(tag: string): string {
  return tag.startsWith('W/') ? tag.slice(2) : tag
}
