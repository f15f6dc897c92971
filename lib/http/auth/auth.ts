import { LocalProtocolError } from '../errors.js'
import type { BaseResponse } from '../response.js'
import type { Request } from '../request.js'

/** The requests of one authentication: each is sent, and its response handed back. */
export type AuthFlow =
  | Generator<Request, void, BaseResponse>
  | AsyncGenerator<Request, void, BaseResponse>

/**
 * How requests prove who sends them. The flow changes the request (usually its headers), yields
 * it, is resumed with the response, and may yield again. An asynchronous generator will do for
 * `AsyncClient` only.
 *
 * @example
 * ```ts
 * class TokenAuth extends Auth {
 *   override *authFlow(request: Request) {
 *     request.headers.set('Authorization', 'Bearer ' + readToken())
 *     const response = yield request
 *     if (response.statusCode === 401) {
 *       request.headers.set('Authorization', 'Bearer ' + refreshToken())
 *       yield request
 *     }
 *   }
 * }
 * ```
 */
export abstract class Auth {
  /** Whether `request.content` is read before the flow begins. */
  readonly requiresRequestBody: boolean = false
  /** Whether each response is read before it is handed to the flow. */
  readonly requiresResponseBody: boolean = false
  /** The authentication of one request. */
  abstract authFlow(request: Request): AuthFlow
}

/** What `auth` may be: an {@link Auth}, `[username, password]`, or a function that signs. */
export type AuthInit =
  | Auth
  | readonly [username: string, password: string]
  | ((request: Request) => Request | void)

/** Turns what callers write into an {@link Auth}. */
export function resolveAuth(init: AuthInit): Auth {
  if (init instanceof Auth) return init
  if (typeof init === 'function') return new FunctionAuth(init)
  if (Array.isArray(init) && init.length === 2) return new BasicAuth(init[0], init[1])
  throw new TypeError('auth must be an Auth, [username, password], a function or null')
}

/** The value of an Authorization header of the Basic scheme, in UTF-8 (RFC 7617). */
export function basicCredentials(username: string, password: string): string {
  if (username.includes(':')) {
    throw new LocalProtocolError('a user name for Basic authentication must not contain ":"')
  }
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}

/** Refuses what would be sent as "undefined" or "[object Object]". @internal */
export function checkCredentials(what: string, ...parts: readonly unknown[]): void {
  if (parts.every((part) => typeof part === 'string')) return
  throw new TypeError(
    `${what} takes strings, got ${parts.map((part) => (part === null ? 'null' : typeof part)).join(', ')}`,
  )
}

/** User name and password in each request, in UTF-8 (RFC 7617). Use it over TLS only. */
export class BasicAuth extends Auth {
  readonly #value: string

  constructor(username: string, password: string) {
    super()
    checkCredentials('auth: [username, password]', username, password)
    this.#value = basicCredentials(username, password)
  }

  override *authFlow(request: Request): Generator<Request, void, BaseResponse> {
    request.headers.set('Authorization', this.#value)
    yield request
  }
}

/** A token in each request (RFC 6750). */
export class BearerAuth extends Auth {
  readonly #value: string

  constructor(token: string) {
    super()
    checkCredentials('BearerAuth', token)
    this.#value = `Bearer ${token}`
  }

  override *authFlow(request: Request): Generator<Request, void, BaseResponse> {
    request.headers.set('Authorization', this.#value)
    yield request
  }
}

/** A function that changes the request, or returns another. */
export class FunctionAuth extends Auth {
  readonly #sign: (request: Request) => Request | void

  constructor(sign: (request: Request) => Request | void) {
    super()
    this.#sign = sign
  }

  override *authFlow(request: Request): Generator<Request, void, BaseResponse> {
    yield this.#sign(request) ?? request
  }
}
