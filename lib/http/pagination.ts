import { checkOptions, type OptionKinds } from '../internal/options.js'
import { PageCheck } from '../internal/web.js'
import { REQUEST_OPTIONS, type RequestOptions } from './call-options.js'
import { checkCount } from './config.js'
import { RemoteProtocolError } from './errors.js'
import type { BaseResponse } from './response.js'
import { applyParams, paramPairs, sameOrigin, type ParamsInit } from './url.js'

/** Options of `paginate()`, besides those of any request. */
export interface PaginateOptions extends RequestOptions {
  /** @defaultValue 'GET' */
  readonly method?: string | undefined
  /** Most pages to request. @defaultValue 1000 */
  readonly maxPages?: number | undefined
  /** Relation type of the link to follow. @defaultValue 'next' */
  readonly rel?: string | undefined
}

const PAGINATE_OPTIONS: OptionKinds<PaginateOptions> = {
  ...REQUEST_OPTIONS, method: 'string', maxPages: 'number', rel: 'string',
}

/** So that a list without end terminates. */
const DEFAULT_MAX_PAGES = 1_000

/** A list whose pages are being followed. */
export interface Pagination {
  readonly method: string
  readonly maxPages: number
  readonly rel: string
  readonly check: PageCheck
}

/** Adds defaults. @throws TypeError naming the wrong option. */
export function resolvePagination(options: PaginateOptions): Pagination {
  checkOptions(options, PAGINATE_OPTIONS, 'paginate()')
  const { method = 'GET', maxPages = DEFAULT_MAX_PAGES, rel = 'next' } = options
  return { method, maxPages: checkCount('maxPages', maxPages, 1), rel, check: new PageCheck() }
}

/**
 * The URL of the page after `response`, or null on the last page. `defaults`, the `params` of the
 * client, supply keys that the link lacks.
 *
 * @throws {@link RemoteProtocolError} when the link or a redirect leads to another origin, which
 *   must not receive the credentials of the call, or the link to the page itself or one before.
 */
export function nextPage(
  response: BaseResponse,
  { rel, check }: Pagination,
  defaults: ParamsInit | null,
): URL | null {
  const link = response.links[rel.toLowerCase()]
  if (link === undefined) return null
  const url = linkUrl(link.url, response.url)
  // The page itself may have come from where a redirect led, without the credentials.
  if (!sameOrigin(url, response.url) || response.request.isForeign) {
    throw new RemoteProtocolError(`the next page is at another origin, ${url.origin}`)
  }
  url.hash = ''
  // Keys of the link win: the client's own `page=1` would lead back to the first page.
  const own = new Set(url.searchParams.keys())
  applyParams(url, paramPairs(defaults ?? []).filter(([key]) => !own.has(key)))
  if (url.href === response.url.href) {
    throw new RemoteProtocolError('the link to the next page leads to the same page')
  }
  const problem = check.problem(url.href, 1)
  if (problem !== null) throw new RemoteProtocolError(`the link to the next page ${problem}`)
  return url
}

function linkUrl(target: string, page: URL): URL {
  try {
    return new URL(target, page)
  } catch {
    throw new RemoteProtocolError('the link to the next page is not a valid URL')
  }
}

/** Request options for the page at this index. Later pages have their whole query in the URL. */
export function pageOptions(options: PaginateOptions, page: number): RequestOptions {
  const { method: _method, maxPages: _maxPages, rel: _rel, ...rest } = options
  return page === 0 ? rest : { ...rest, params: null }
}
