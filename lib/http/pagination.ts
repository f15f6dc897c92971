import { RemoteProtocolError } from './errors.js'
import type { RequestOptions } from './exchange.js'
import type { BaseResponse } from './response.js'
import { applyParams, paramPairs, sameOrigin, type ParamsInit } from './url.js'

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
 * The URL of the page after `response`, or null on the last: that of its link, and those of the
 * client's `params` for which the link has no value of its own.
 *
 * @throws {@link RemoteProtocolError} when the link leads to another origin, which must not get the
 *   caller's credentials, or back to the same page.
 */
export function nextPage(
  response: BaseResponse,
  rel: string,
  defaults: ParamsInit | null,
): URL | null {
  const link = response.links[rel.toLowerCase()]
  if (link === undefined) return null
  const url = linkUrl(link.url, response.url)
  if (!sameOrigin(url, response.url)) {
    throw new RemoteProtocolError(
      `the link to the next page leads to another origin, ${url.origin}`,
    )
  }
  url.hash = ''
  // What the link says of a key is meant: a client's own `page=1` would lead to the first page again.
  const own = new Set(url.searchParams.keys())
  applyParams(url, paramPairs(defaults ?? []).filter(([key]) => !own.has(key)))
  if (url.href === response.url.href) {
    throw new RemoteProtocolError('the link to the next page leads to the page itself')
  }
  return url
}

function linkUrl(target: string, page: URL): URL {
  try {
    return new URL(target, page)
  } catch {
    throw new RemoteProtocolError('the link to the next page is not a URL')
  }
}

/** The options for the first page. */
export function firstPageOptions(options: PaginateOptions): RequestOptions {
  const { method: _method, maxPages: _maxPages, rel: _rel, ...rest } = options
  return rest
}

/** The options for the pages after the first: {@link nextPage} has given their URL its whole query. */
export function laterPageOptions(options: PaginateOptions): RequestOptions {
  return { ...firstPageOptions(options), params: null }
}
