import { RemoteProtocolError } from './errors.js'
import type { RequestOptions } from './exchange.js'
import type { BaseResponse } from './response.js'
import { parseUrl, sameOrigin } from './url.js'

/** What `paginate()` may be told besides the options of a request. */
export interface PaginateOptions extends RequestOptions {
  /** @defaultValue 'GET' */
  readonly method?: string | undefined
  /** Pages at most. @defaultValue 1000 */
  readonly maxPages?: number | undefined
  /** Relation of the link to follow. @defaultValue 'next' */
  readonly rel?: string | undefined
}

/** Pages of one iteration unless told otherwise. */
export const DEFAULT_MAX_PAGES = 1_000

/**
 * The URL of the page after `response`, or null on the last.
 *
 * @throws {@link RemoteProtocolError} when the link leads to another origin, which must not get the
 *   caller's credentials, or back to the same page.
 */
export function nextPage(response: BaseResponse, rel: string): URL | null {
  const link = response.links[rel]
  if (link === undefined) return null
  const url = parseUrl(new URL(link.url, response.url))
  if (!sameOrigin(url, response.url)) {
    throw new RemoteProtocolError(`the link to the next page leads to another origin, ${url.origin}`)
  }
  url.hash = ''
  if (url.href === response.url.href) {
    throw new RemoteProtocolError('the link to the next page leads to the page itself')
  }
  return url
}

/** The options for the first page. */
export function firstPageOptions(options: PaginateOptions): RequestOptions {
  const { method: _method, maxPages: _maxPages, rel: _rel, ...rest } = options
  return rest
}

/** The options for the pages after the first: the link has its own query. */
export function laterPageOptions(options: PaginateOptions): RequestOptions {
  const { params: _, ...rest } = firstPageOptions(options)
  return rest
}
