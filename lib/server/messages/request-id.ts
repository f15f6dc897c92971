/**
 * The id of a request: in its response, in problem details, and in what the host is told. A caller
 * or proxy may choose it with `X-Request-Id`.
 *
 * @module
 */
import { randomUUID } from 'node:crypto'

export const REQUEST_ID = 'X-Request-Id'

/** Long enough for ids of proxies and traces; nothing that a header, log or page could misread. */
const SANE = /^[\w.~+/=:@-]{1,128}$/

interface Identified {
  readonly headers: { readonly [name: string]: string | readonly string[] | undefined }
}

const ids = new WeakMap<object, string>()

/** The same for each call with a request: its own header, or if that is no sane id, a new UUID. */
export function requestIdOf(request: Identified): string {
  const known = ids.get(request)
  if (known !== undefined) return known
  const given = request.headers['x-request-id']
  const id = typeof given === 'string' && SANE.test(given) ? given : randomUUID()
  ids.set(request, id)
  return id
}
