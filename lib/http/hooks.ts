import { checkOptions, type OptionKinds } from '../internal/options.js'
import type { RetryEvent } from './diagnostics.js'
import type { Request } from './request.js'
import type { BaseResponse } from './response.js'

/** Functions called around each exchange, redirects and authentication requests included. */
export interface EventHooks<R extends BaseResponse = BaseResponse> {
  /** Called with each request before it is sent, with credentials and cookies in place. */
  readonly request: readonly ((request: Request) => unknown)[]
  /** Called with each response before its content is read. Throwing closes the response. */
  readonly response: readonly ((response: R) => unknown)[]
  /**
   * Called before a redirect is followed, with the next request, which may be changed, and the
   * redirect response. Returning `false` makes the call return that response; throwing ends it.
   */
  readonly redirect: readonly ((next: Request, response: R) => unknown)[]
  /**
   * Called before the delay of a retry. Returning `false` stops retrying: the call returns the last
   * response or throws the last error.
   */
  readonly retry: readonly ((event: RetryEvent) => unknown)[]
}

/** Any subset of {@link EventHooks}. */
export type EventHookOptions<R extends BaseResponse = BaseResponse> = {
  readonly [K in keyof EventHooks<R>]?: EventHooks<R>[K] | undefined
}

const EVENTS: OptionKinds<EventHookOptions> = {
  request: 'array', response: 'array', redirect: 'array', retry: 'array',
}

/** @internal */
export const NO_HOOKS: EventHooks<never> = { request: [], response: [], redirect: [], retry: [] }

/**
 * The inherited hooks, then those of `options`; null switches the inherited ones off.
 *
 * @throws TypeError for an unknown event or a hook that is not a function.
 */
export function resolveHooks<R extends BaseResponse>(
  options: EventHookOptions<R> | null | undefined,
  inherited: EventHooks<never>,
): EventHooks<never> {
  if (options === undefined) return inherited
  if (options === null) return NO_HOOKS
  checkOptions(options, EVENTS, 'eventHooks')
  for (const name of Object.keys(EVENTS) as (keyof EventHooks)[]) {
    if (options[name]?.some((hook) => typeof hook !== 'function') !== true) continue
    throw new TypeError(`eventHooks.${name} must be an array of functions`)
  }
  const own = options as EventHookOptions<never>
  return {
    request: [...inherited.request, ...(own.request ?? [])],
    response: [...inherited.response, ...(own.response ?? [])],
    redirect: [...inherited.redirect, ...(own.redirect ?? [])],
    retry: [...inherited.retry, ...(own.retry ?? [])],
  }
}
