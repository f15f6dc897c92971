import { Auth, checkCredentials } from './auth.js'
import { parseChallenges, type Challenge } from './challenges.js'
import { ProtocolError, RemoteProtocolError } from './errors.js'
import type { Request } from './request.js'
import type { BaseResponse } from './response.js'
import { sameOrigin } from './url.js'

/** Best first: a server that offers several is answered with the strongest (RFC 7616, section 3.7). */
const ALGORITHMS = ['SHA-512-256', 'SHA-512', 'SHA-256', 'SHA', 'MD5'] as const
/** SHA-512 and SHA are of no standard, but some servers have them. */
const HASHES: Readonly<Record<string, string>> = {
  'SHA-512-256': 'sha512-256',
  'SHA-512': 'sha512',
  'SHA-256': 'sha256',
  SHA: 'sha1',
  MD5: 'md5',
}

/** A challenge that is being answered, kept so that later requests need no challenge of their own. */
interface Session {
  readonly origin: URL
  readonly realm: string
  readonly nonce: string
  readonly opaque: string | undefined
  /** As the server wrote it, to be sent back; undefined when it wrote none. */
  readonly algorithmText: string | undefined
  readonly hash: string
  readonly session: boolean
  readonly qop: 'auth' | 'auth-int' | null
  readonly userhash: boolean
  readonly cnonce: string
  count: number
}

/** Options of {@link DigestAuth}. */
export interface DigestAuthOptions {
  /** Makes client nonces; for tests against known answers. @defaultValue 16 random octets in hex */
  readonly cnonce?: (() => string) | undefined
}

/**
 * Digest authentication (RFC 7616): MD5, SHA-256 and SHA-512-256, each with `-sess`, quality `auth`
 * and `auth-int`, and servers without quality (RFC 2069). The nonce is used again, with a growing
 * count, until the server calls it stale. A challenge is answered only for the origin that was
 * called, and once: a second 401 is given back.
 */
export class DigestAuth extends Auth {
  /** The content is hashed for `auth-int`, and sent again with the answer to a challenge. */
  override readonly requiresRequestBody = true
  readonly #username: string
  readonly #password: string
  readonly #cnonce: () => string
  #session: Session | null = null

  constructor(username: string, password: string, options: DigestAuthOptions = {}) {
    super()
    checkCredentials('DigestAuth', username, password)
    this.#username = username
    this.#password = password
    this.#cnonce = options.cnonce ?? (() => nodeCrypto().randomBytes(16).toString('hex'))
  }

  override *authFlow(request: Request): Generator<Request, void, BaseResponse> {
    const known = this.#session
    if (known !== null && sameOrigin(known.origin, request.url)) this.#sign(request, known)
    let response = yield request
    for (let tries = 0; tries < 2; tries++) {
      const session = this.#challenged(request, response, tries)
      if (session === null) return
      this.#session = session
      this.#sign(request, session)
      response = yield request
    }
  }

  /** The session that answers the challenge of `response`, or null when it is to be given back. */
  #challenged(request: Request, response: BaseResponse, tries: number): Session | null {
    if (response.statusCode !== 401 || !sameOrigin(response.url, request.url)) return null
    const challenge = bestChallenge(parseChallenges(response.headers.getList('www-authenticate')))
    if (challenge === null) return null
    // One answer to a fresh challenge. A second one only when the first was signed with a nonce from
    // an earlier call, or when the server says that nothing but the nonce is wrong.
    const stale = challenge.params['stale']?.toLowerCase() === 'true'
    if (tries > 0 && !stale) return null
    return this.#open(request.url, challenge)
  }

  #open(origin: URL, { params }: Challenge): Session {
    const { realm, nonce, opaque, algorithm, qop } = params
    if (realm === undefined || nonce === undefined) {
      throw new RemoteProtocolError('the Digest challenge has no realm or no nonce')
    }
    const name = (algorithm ?? 'MD5').toUpperCase()
    return {
      origin,
      realm,
      nonce,
      opaque,
      algorithmText: algorithm,
      hash: HASHES[name.replace(/-SESS$/, '')]!,
      session: name.endsWith('-SESS'),
      qop: chooseQop(qop),
      userhash: params['userhash']?.toLowerCase() === 'true',
      cnonce: this.#cnonce(),
      count: 0,
    }
  }

  #sign(request: Request, session: Session): void {
    session.count++
    const { realm, nonce, qop, cnonce, opaque, algorithmText } = session
    const digest = (text: string | Uint8Array): string => nodeCrypto().createHash(session.hash).update(text).digest('hex')
    const uri = request.extensions.target ?? request.url.pathname + request.url.search
    const nc = session.count.toString(16).padStart(8, '0')
    let a1 = `${this.#username}:${realm}:${this.#password}`
    if (session.session) a1 = `${digest(a1)}:${nonce}:${cnonce}`
    let a2 = `${request.method}:${uri}`
    if (qop === 'auth-int') a2 += `:${digest(request.content)}`
    const middle = qop === null ? nonce : `${nonce}:${nc}:${cnonce}:${qop}`
    const response = digest(`${digest(a1)}:${middle}:${digest(a2)}`)
    const username = session.userhash ? digest(`${this.#username}:${realm}`) : this.#username
    const fields = [
      usernameField(username),
      `realm=${quote(realm)}`,
      `nonce=${quote(nonce)}`,
      `uri=${quote(uri)}`,
      `response="${response}"`,
    ]
    if (algorithmText !== undefined) fields.push(`algorithm=${algorithmText}`)
    if (opaque !== undefined) fields.push(`opaque=${quote(opaque)}`)
    if (qop !== null) fields.push(`qop=${qop}`, `nc=${nc}`, `cnonce="${cnonce}"`)
    // Without quality there is no place for it, yet a -sess key cannot be checked without it.
    else if (session.session) fields.push(`cnonce="${cnonce}"`)
    if (session.userhash) fields.push('userhash=true')
    request.headers.set('Authorization', `Digest ${fields.join(', ')}`)
  }
}

/** The strongest Digest challenge that can be answered; null when there is none. */
function bestChallenge(challenges: readonly Challenge[]): Challenge | null {
  const digests = challenges.filter(({ scheme }) => scheme === 'digest')
  if (digests.length === 0) return null
  for (const algorithm of ALGORITHMS) {
    const found = digests.find(({ params }) => {
      return (params['algorithm'] ?? 'MD5').toUpperCase().replace(/-SESS$/, '') === algorithm
    })
    if (found !== undefined) return found
  }
  const offered = digests.map(({ params }) => params['algorithm']).join(', ')
  throw new ProtocolError(`the server offers only unknown Digest algorithms: ${offered}`)
}

function chooseQop(offer: string | undefined): 'auth' | 'auth-int' | null {
  if (offer === undefined) return null
  const offered = offer.toLowerCase().split(',').map((part) => part.trim())
  if (offered.includes('auth')) return 'auth'
  if (offered.includes('auth-int')) return 'auth-int'
  throw new ProtocolError(`the server offers only unknown Digest qualities: ${offer}`)
}

function quote(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** Names that are not ASCII go in the extended notation (RFC 7616, section 3.4). */
function usernameField(username: string): string {
  if (/^[\x20-\x7e]*$/.test(username)) return `username=${quote(username)}`
  return `username*=UTF-8''${encodeURIComponent(username)}`
}

/** Loaded when it is needed. */
function nodeCrypto(): typeof import('node:crypto') {
  return process.getBuiltinModule('node:crypto')
}
