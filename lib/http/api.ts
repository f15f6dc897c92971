import { AsyncClient } from './async-client.js'
import type { AsyncResponse } from './async-response.js'
import { Client } from './client.js'
import type { RequestOptions } from './exchange.js'
import type { Response } from './sync-response.js'

/** Connections are not kept, so there is nothing to close afterwards. */
const SHORT_LIVED = { limits: { maxKeepaliveConnections: 0 } } as const

/**
 * Sends one request without a client of one's own. Use {@link AsyncClient} for more than one: it
 * keeps connections.
 */
export function request(
  method: string,
  url: string | URL,
  options?: RequestOptions,
): Promise<AsyncResponse> {
  return new AsyncClient(SHORT_LIVED).request(method, url, options)
}

/** As {@link request}, but leaves the content to be read; close the response. */
export function stream(
  method: string,
  url: string | URL,
  options?: RequestOptions,
): Promise<AsyncResponse> {
  return new AsyncClient(SHORT_LIVED).stream(method, url, options)
}

/** As {@link request}, blocking until the answer is there. */
export function requestSync(method: string, url: string | URL, options?: RequestOptions): Response {
  using client = new Client(SHORT_LIVED)
  return client.request(method, url, options)
}

/** One GET. */
export function get(url: string | URL, options?: RequestOptions): Promise<AsyncResponse> {
  return request('GET', url, options)
}

/** One POST. */
export function post(url: string | URL, options?: RequestOptions): Promise<AsyncResponse> {
  return request('POST', url, options)
}

/** One PUT. */
export function put(url: string | URL, options?: RequestOptions): Promise<AsyncResponse> {
  return request('PUT', url, options)
}

/** One PATCH. */
export function patch(url: string | URL, options?: RequestOptions): Promise<AsyncResponse> {
  return request('PATCH', url, options)
}

/** One DELETE; exported as `delete` too. */
export function del(url: string | URL, options?: RequestOptions): Promise<AsyncResponse> {
  return request('DELETE', url, options)
}

/** One HEAD. */
export function head(url: string | URL, options?: RequestOptions): Promise<AsyncResponse> {
  return request('HEAD', url, options)
}

/** One OPTIONS. */
export function options(url: string | URL, options?: RequestOptions): Promise<AsyncResponse> {
  return request('OPTIONS', url, options)
}

/** One blocking GET. */
export function getSync(url: string | URL, options?: RequestOptions): Response {
  return requestSync('GET', url, options)
}

/** One blocking POST. */
export function postSync(url: string | URL, options?: RequestOptions): Response {
  return requestSync('POST', url, options)
}

/** One blocking PUT. */
export function putSync(url: string | URL, options?: RequestOptions): Response {
  return requestSync('PUT', url, options)
}

/** One blocking PATCH. */
export function patchSync(url: string | URL, options?: RequestOptions): Response {
  return requestSync('PATCH', url, options)
}

/** One blocking DELETE. */
export function deleteSync(url: string | URL, options?: RequestOptions): Response {
  return requestSync('DELETE', url, options)
}

/** One blocking HEAD. */
export function headSync(url: string | URL, options?: RequestOptions): Response {
  return requestSync('HEAD', url, options)
}

/** One blocking OPTIONS. */
export function optionsSync(url: string | URL, options?: RequestOptions): Response {
  return requestSync('OPTIONS', url, options)
}

/** As {@link requestSync}, but leaves the content to be read; close the response. */
export function streamSync(method: string, url: string | URL, options?: RequestOptions): Response {
  const client = new Client(SHORT_LIVED)
  try {
    const response = client.stream(method, url, options)
    response.whenFinished(() => client.close())
    return response
  } catch (error) {
    client.close()
    throw error
  }
}
