import { LocalProtocolError } from '../errors.js'
import type { Request } from '../request.js'
import type { BaseResponse } from '../response.js'

/** Yields the requests of one authentication; each is sent, and its response passed to `next()`. */
export type AuthFlow =
  | Generator<Request, void, BaseResponse>
  | AsyncGenerator<Request, void, BaseResponse>

/**
 * Authenticates requests. The flow changes the request, usually its headers, yields it, is resumed
 * with the response, and may yield again. Only `AsyncClient` supports asynchronous generators.
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
  /** Whether a streaming request body is read into memory before the flow begins. */
  readonly requiresRequestBody: boolean = false
  /** Whether each response is read before it is passed to the flow. */
  readonly requiresResponseBody: boolean = false
  /** Yields `request`, authenticated, and any further requests that this takes. */
  abstract authFlow(request: Request): AuthFlow
}

/** The `auth` option: an {@link Auth}, `[username, password]` for Basic, or a signing function. */
export type AuthInit =
  | Auth
  | readonly [username: string, password: string]
  | ((request: Request) => Request | void)

/** Turns the `auth` option into an {@link Auth}. @throws TypeError for anything else. */
export function resolveAuth(init: AuthInit): Auth {
  if (init instanceof Auth) return init
  if (typeof init === 'function') return new FunctionAuth(init)
  if (Array.isArray(init) && init.length === 2) return new BasicAuth(init[0], init[1])
  throw new TypeError('auth must be an Auth, [username, password], a function or null')
}

/** An Authorization value of the Basic scheme, in UTF-8 (RFC 7617). */
export function basicCredentials(username: string, password: string): string {
  if (username.includes(':')) {
    throw new LocalProtocolError('a Basic user name must not contain ":"')
  }
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}

/** Rejects values that would be sent as "undefined" or "[object Object]". @internal */
export function checkCredentials(what: string, ...parts: readonly unknown[]): void {
  if (parts.every((part) => typeof part === 'string')) return
  const got = parts.map((part) => (part === null ? 'null' : typeof part)).join(', ')
  throw new TypeError(`${what} must be strings, got ${got}`)
}

/** Sends user name and password with each request (RFC 7617). Use it over TLS only. */
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

/** Sends a bearer token with each request (RFC 6750). */
export class BearerAuth extends Auth {
  readonly #value: string

  constructor(token: string) {
    super()
    checkCredentials('the arguments of BearerAuth', token)
    this.#value = `Bearer ${token}`
  }

  override *authFlow(request: Request): Generator<Request, void, BaseResponse> {
    request.headers.set('Authorization', this.#value)
    yield request
  }
}

/** Authenticates with a function that changes the request or returns another. */
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
