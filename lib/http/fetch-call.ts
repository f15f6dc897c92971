import type { AsyncResponse } from './async-response.js'
import type { RequestOptions, SendOptions } from './call-options.js'
import type { ClientSettings } from './options.js'
import type { Request } from './request.js'
import { resolveUrl } from './url.js'

/** The parts of a client that `fetch()` uses. @internal */
export interface FetchClient {
  buildRequest(method: string, url: string, options: RequestOptions): Request
  send(request: Request, options: SendOptions): Promise<AsyncResponse>
}

/** One call of `fetch()`, as its arguments were at that time. @internal */
export interface FetchCall {
  readonly request: globalThis.Request
  /** The body as it was given, which shows its length; null if a Request was given alone. */
  readonly body: unknown
  readonly signal: AbortSignal | null
}

type Fetch = typeof globalThis.fetch
type FetchArguments = Parameters<Fetch>

/** A `fetch()` that sends by `client`. @internal */
export function makeFetch(client: FetchClient, settings: ClientSettings): Fetch {
  const fetch = async (...[input, init]: FetchArguments): Promise<globalThis.Response> => {
    // Before anything is awaited: the caller may use its arguments again.
    const call = fetchCall(input, init, settings.baseUrl)
    const { fetchWith } = await import('./fetch.js')
    return await fetchWith(client, settings, call)
  }
  return fetch
}

function fetchCall(input: FetchArguments[0], init: FetchArguments[1], base: URL | null): FetchCall {
  const isRelative = typeof input === 'string' && base !== null
  const request = new globalThis.Request(isRelative ? resolveUrl(input, base) : input, init)
  if (request.integrity !== '') throw new TypeError('fetch of a client does not check integrity')
  if (((init ?? {}) as { dispatcher?: unknown }).dispatcher !== undefined) {
    throw new TypeError('fetch of a client takes no dispatcher; set proxy or verify of the client')
  }
  const inherited = input instanceof globalThis.Request ? input.signal : null
  return {
    request,
    body: init?.body ?? null,
    signal: init?.signal === undefined ? inherited : init.signal,
  }
}
