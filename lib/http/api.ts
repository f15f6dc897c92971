import { AsyncClient } from './async-client.js'
import type { AsyncResponse } from './async-response.js'
import type { RequestOptions } from './call-options.js'
import { Client } from './client.js'
import type { ResponsePromise } from './response-promise.js'
import type { Response } from './sync-response.js'

/** Without idle connections, nothing is left to close after a call. */
const SHORT_LIVED = { limits: { maxKeepaliveConnections: 0 } } as const

/**
 * Sends one request without a client and reads the content of the response. For several requests
 * use {@link AsyncClient}, which keeps connections.
 */
export function request(
  method: string,
  url: string | URL,
  options?: RequestOptions,
): ResponsePromise {
  return new AsyncClient(SHORT_LIVED).request(method, url, options)
}

/** As {@link request}, but leaves the content unread; close the response. */
export function stream(
  method: string,
  url: string | URL,
  options?: RequestOptions,
): Promise<AsyncResponse> {
  return new AsyncClient(SHORT_LIVED).stream(method, url, options)
}

/** Blocking counterpart of {@link request}. */
export function requestSync(method: string, url: string | URL, options?: RequestOptions): Response {
  using client = new Client(SHORT_LIVED)
  return client.request(method, url, options)
}

/** Sends one GET request; see {@link request}. */
export function get(url: string | URL, options?: RequestOptions): ResponsePromise {
  return request('GET', url, options)
}

/** Sends one POST request; see {@link request}. */
export function post(url: string | URL, options?: RequestOptions): ResponsePromise {
  return request('POST', url, options)
}

/** Sends one PUT request; see {@link request}. */
export function put(url: string | URL, options?: RequestOptions): ResponsePromise {
  return request('PUT', url, options)
}

/** Sends one PATCH request; see {@link request}. */
export function patch(url: string | URL, options?: RequestOptions): ResponsePromise {
  return request('PATCH', url, options)
}

/** Sends one DELETE request; also exported as `delete`. */
export function del(url: string | URL, options?: RequestOptions): ResponsePromise {
  return request('DELETE', url, options)
}

/** Sends one HEAD request; see {@link request}. */
export function head(url: string | URL, options?: RequestOptions): ResponsePromise {
  return request('HEAD', url, options)
}

/** Sends one OPTIONS request; see {@link request}. */
export function options(url: string | URL, options?: RequestOptions): ResponsePromise {
  return request('OPTIONS', url, options)
}

/** Sends one GET request, blocking; see {@link requestSync}. */
export function getSync(url: string | URL, options?: RequestOptions): Response {
  return requestSync('GET', url, options)
}

/** Sends one POST request, blocking; see {@link requestSync}. */
export function postSync(url: string | URL, options?: RequestOptions): Response {
  return requestSync('POST', url, options)
}

/** Sends one PUT request, blocking; see {@link requestSync}. */
export function putSync(url: string | URL, options?: RequestOptions): Response {
  return requestSync('PUT', url, options)
}

/** Sends one PATCH request, blocking; see {@link requestSync}. */
export function patchSync(url: string | URL, options?: RequestOptions): Response {
  return requestSync('PATCH', url, options)
}

/** Sends one DELETE request, blocking; see {@link requestSync}. */
export function deleteSync(url: string | URL, options?: RequestOptions): Response {
  return requestSync('DELETE', url, options)
}

/** Sends one HEAD request, blocking; see {@link requestSync}. */
export function headSync(url: string | URL, options?: RequestOptions): Response {
  return requestSync('HEAD', url, options)
}

/** Sends one OPTIONS request, blocking; see {@link requestSync}. */
export function optionsSync(url: string | URL, options?: RequestOptions): Response {
  return requestSync('OPTIONS', url, options)
}

/** As {@link requestSync}, but leaves the content unread; close the response. */
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
