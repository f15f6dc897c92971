import type { Request } from './request.js'
import type { BaseResponse } from './response.js'

/** Functions to call around each exchange, redirects and authentication legs included. */
export interface EventHooks<R extends BaseResponse = BaseResponse> {
  /** Called with each request before it is sent, credentials and cookies set. */
  readonly request: readonly ((request: Request) => unknown)[]
  /** Called with each response before its content is read. An error closes the response. */
  readonly response: readonly ((response: R) => unknown)[]
}

/** Any subset of {@link EventHooks}. */
export type EventHookOptions<R extends BaseResponse = BaseResponse> = {
  readonly [K in keyof EventHooks<R>]?: EventHooks<R>[K] | undefined
}

/** Copies and checks hooks. @throws TypeError for unknown events and for what is no function. */
export function resolveHooks<R extends BaseResponse>(
  options: EventHookOptions<R> | null | undefined,
): EventHooks<R> {
  for (const [name, hooks] of Object.entries(options ?? {})) {
    if (name !== 'request' && name !== 'response') {
      throw new TypeError(`eventHooks.${name} is not known; there are request and response`)
    }
    if (hooks === undefined) continue
    if (!Array.isArray(hooks) || hooks.some((hook) => typeof hook !== 'function')) {
      throw new TypeError(`eventHooks.${name} must be an array of functions`)
    }
  }
  return { request: [...(options?.request ?? [])], response: [...(options?.response ?? [])] }
}
