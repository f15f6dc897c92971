import { checkOptions, type OptionKinds } from '../internal/options.js'
import type { AuthInit } from './auth/auth.js'
import type { TimeoutOptions } from './config.js'
import type { CookiesInit } from './cookies/jar.js'
import { REQUEST_INIT, type RequestInit } from './request.js'
import type { RetryOptions } from './retry.js'

/** Options of one call. Omitted ones are inherited from the client; `null` switches off. */
export interface RequestOptions extends RequestInit {
  /** Authentication of this call; `null` for none. */
  readonly auth?: AuthInit | null | undefined
  /** Cookies for this call, besides those of the client; `null` sends no cookie at all. */
  readonly cookies?: CookiesInit | null | undefined
  /** Time limits in ms, merged over those of the client; `null` for none. */
  readonly timeout?: TimeoutOptions | undefined
  readonly followRedirects?: boolean | undefined
  /** Retries of this call; `null` for none. */
  readonly retry?: RetryOptions | null | undefined
  /**
   * Whether every status but 2xx is an {@link HttpStatusError}, whose `response` has its content;
   * of `stream()`, if that has at most 1 MiB. Omitted: as the client is set.
   */
  readonly raiseForStatus?: boolean | undefined
}

/** Options for sending a request that is already built. */
export interface SendOptions {
  /** Authentication of this call; `null` for none. */
  readonly auth?: AuthInit | null | undefined
  /** Omitted: as the client is set. */
  readonly followRedirects?: boolean | undefined
  /** Time limits in ms, merged over those with which the request was built. */
  readonly timeout?: TimeoutOptions | undefined
  /** Retries of this call; `null` for none. */
  readonly retry?: RetryOptions | null | undefined
  /** Whether every status but 2xx is an {@link HttpStatusError}. Omitted: as the client is set. */
  readonly raiseForStatus?: boolean | undefined
  /** Whether the caller reads the content, and then must close the response. */
  readonly stream?: boolean | undefined
}

/** For {@link checkOptions}. */
export const REQUEST_OPTIONS: OptionKinds<RequestOptions> = {
  ...REQUEST_INIT, auth: 'any', cookies: 'any', timeout: 'any', followRedirects: 'boolean',
  retry: 'any', raiseForStatus: 'boolean',
}
const SEND_OPTIONS: OptionKinds<SendOptions> = {
  auth: 'any', followRedirects: 'boolean', timeout: 'any', retry: 'any', raiseForStatus: 'boolean',
  stream: 'boolean',
}

/** @throws TypeError for an invalid option of `send()`. */
export function checkSendOptions(options: SendOptions): void {
  checkOptions(options, SEND_OPTIONS, 'send()')
}
