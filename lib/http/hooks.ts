import type { RetryEvent } from './diagnostics.js'
import type { Request } from './request.js'
import type { BaseResponse } from './response.js'

/** Functions to call around each exchange, redirects and authentication legs included. */
export interface EventHooks<R extends BaseResponse = BaseResponse> {
  /** Called with each request before it is sent, credentials and cookies set. */
  readonly request: readonly ((request: Request) => unknown)[]
  /** Called with each response before its content is read. An error closes the response. */
  readonly response: readonly ((response: R) => unknown)[]
  /**
   * Called before a redirect is followed, with the request that would follow, which may be changed,
   * and the response that leads to it. `false` gives the response back instead of following; an
   * error ends the call.
   */
  readonly redirect: readonly ((next: Request, response: R) => unknown)[]
  /**
   * Called before the wait for another try of the `retry` policy. `false` ends the tries: the last
   * answer is given back, or its error thrown.
   */
  readonly retry: readonly ((event: RetryEvent) => unknown)[]
}

/** Any subset of {@link EventHooks}. */
export type EventHookOptions<R extends BaseResponse = BaseResponse> = {
  readonly [K in keyof EventHooks<R>]?: EventHooks<R>[K] | undefined
}

const EVENTS = ['request', 'response', 'redirect', 'retry']

/** Copies and checks hooks. @throws TypeError for unknown events and for what is no function. */
export function resolveHooks<R extends BaseResponse>(
  options: EventHookOptions<R> | null | undefined,
): EventHooks<R> {
  if (typeof (options ?? {}) !== 'object')
    throw new TypeError('eventHooks must be an object of arrays of functions')
  for (const [name, hooks] of Object.entries(options ?? {})) {
    if (!EVENTS.includes(name)) {
      throw new TypeError(`eventHooks.${name} is not known; there are ${EVENTS.join(', ')}`)
    }
    if (hooks === undefined) continue
    if (!Array.isArray(hooks) || hooks.some((hook) => typeof hook !== 'function')) {
      throw new TypeError(`eventHooks.${name} must be an array of functions`)
    }
  }
  const { request = [], response = [], redirect = [], retry = [] } = options ?? {}
  return {
    request: [...request],
    response: [...response],
    redirect: [...redirect],
    retry: [...retry],
  }
}
