import { checkOptions, type OptionKinds } from '../../internal/options.js'
import type { Request } from '../request.js'
import type { BaseResponse } from '../response.js'
import { sameOrigin } from '../url.js'
import { Auth, checkCredentials } from './auth.js'
import { DigestCredentials } from './digest-credentials.js'

/** Options of {@link DigestAuth}. */
export interface DigestAuthOptions {
  /** Makes client nonces; for tests with known results. @defaultValue 16 random bytes in hex */
  readonly cnonce?: (() => string) | undefined
}

const OPTIONS: OptionKinds<DigestAuthOptions> = { cnonce: 'function' }

/**
 * Digest authentication (RFC 7616): MD5, SHA-256 and SHA-512-256, each also as `-sess`; `qop` of
 * `auth` or `auth-int`, or none (RFC 2069). A nonce is reused, with an increasing count, until the
 * server marks it as stale. Only challenges of the requested origin are answered, and only once: a
 * second 401 is returned to the caller.
 */
export class DigestAuth extends Auth {
  /** The content is hashed for `auth-int`, and sent again after a challenge. */
  override readonly requiresRequestBody = true
  readonly #credentials: DigestCredentials
  /** The origin of the last challenge. */
  #origin: URL | null = null

  constructor(username: string, password: string, options: DigestAuthOptions = {}) {
    super()
    checkCredentials('the arguments of DigestAuth', username, password)
    checkOptions(options, OPTIONS, 'new DigestAuth()')
    this.#credentials = new DigestCredentials(username, password, options.cnonce)
  }

  override *authFlow(request: Request): Generator<Request, void, BaseResponse> {
    this.#sign(request)
    let response = yield request
    for (let tries = 0; ; tries++) {
      if (response.statusCode !== 401 || !sameOrigin(response.url, request.url)) return
      if (!this.#credentials.challenged(response.headers.getList('www-authenticate'), tries)) return
      this.#origin = request.url
      this.#sign(request)
      response = yield request
    }
  }

  #sign(request: Request): void {
    if (this.#origin === null || !sameOrigin(this.#origin, request.url)) return
    const uri = request.extensions.target ?? request.url.pathname + request.url.search
    const value = this.#credentials.authorize(request.method, uri, request.content)
    if (value !== null) request.headers.set('Authorization', value)
  }
}
