import { ProtocolError, RemoteProtocolError } from '../errors.js'
import { parseChallenges, type Challenge } from '../../internal/web.js'

/**
 * Hashes by algorithm. The strongest is first, and preferred (RFC 7616, section 3.7). SHA-512 and
 * SHA are non-standard, but some servers use them.
 */
const HASHES: Readonly<Record<string, string>> = {
  'SHA-512-256': 'sha512-256',
  'SHA-512': 'sha512',
  'SHA-256': 'sha256',
  SHA: 'sha1',
  MD5: 'md5',
}

/** An answered challenge, kept so that later requests need not be challenged. */
interface Session {
  readonly realm: string
  readonly nonce: string
  readonly opaque: string | undefined
  /** `algorithm` as the server wrote it, to be sent back; undefined if it sent none. */
  readonly algorithmText: string | undefined
  readonly hash: string
  /** Whether the algorithm is a `-sess` variant. */
  readonly session: boolean
  readonly qop: 'auth' | 'auth-int' | null
  readonly userhash: boolean
  readonly cnonce: string
  /** How often the nonce was used: `nc` of the last request. */
  count: number
}

function randomCnonce(): string {
  return nodeCrypto().randomBytes(16).toString('hex')
}

/**
 * Answers the challenges of one server or proxy (RFC 7616). A nonce is reused, with an increasing
 * count, until the next challenge.
 */
export class DigestCredentials {
  readonly #username: string
  readonly #password: string
  readonly #cnonce: () => string
  #session: Session | null = null

  constructor(
    username: string,
    password: string,
    cnonce: (() => string) | undefined = randomCnonce,
  ) {
    this.#username = username
    this.#password = password
    this.#cnonce = cnonce
  }

  /**
   * Takes the challenges of a 401 or 407. Returns whether to sign the request and send it again.
   *
   * @param fields - The values of WWW-Authenticate or Proxy-Authenticate.
   * @param tries - How many challenges of this request were answered before. A second one is
   *   answered only if the server marks the nonce as stale.
   * @throws {@link ProtocolError} when the server offers only unknown Digest variants.
   */
  challenged(fields: readonly string[], tries: number): boolean {
    const challenge = bestChallenge(parseChallenges(fields))
    if (challenge === null || tries > 1) return false
    if (tries > 0 && challenge.params['stale']?.toLowerCase() !== 'true') return false
    this.#session = this.#open(challenge)
    return true
  }

  /**
   * The value of Authorization or Proxy-Authorization; null before the first challenge, and when
   * the content must be signed but is unknown.
   */
  authorize(method: string, uri: string, content: Uint8Array | null): string | null {
    const session = this.#session
    if (session === null || (session.qop === 'auth-int' && content === null)) return null
    session.count++
    const { realm, nonce, qop, cnonce, opaque, algorithmText } = session
    const digest = (text: string | Uint8Array): string =>
      nodeCrypto().createHash(session.hash).update(text).digest('hex')
    const nc = session.count.toString(16).padStart(8, '0')
    let a1 = `${this.#username}:${realm}:${this.#password}`
    if (session.session) a1 = `${digest(a1)}:${nonce}:${cnonce}`
    let a2 = `${method}:${uri}`
    if (qop === 'auth-int') a2 += `:${digest(content!)}`
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
    // RFC 2069 has no cnonce, but the server cannot check a -sess key without it.
    else if (session.session) fields.push(`cnonce="${cnonce}"`)
    if (session.userhash) fields.push('userhash=true')
    return `Digest ${fields.join(', ')}`
  }

  #open({ params }: Challenge): Session {
    const { realm, nonce, opaque, algorithm, qop } = params
    if (realm === undefined || nonce === undefined) {
      throw new RemoteProtocolError('the Digest challenge lacks a realm or a nonce')
    }
    const name = (algorithm ?? 'MD5').toUpperCase()
    return {
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
}

/** The strongest supported Digest challenge; null if no challenge is Digest. */
function bestChallenge(challenges: readonly Challenge[]): Challenge | null {
  const digests = challenges.filter(({ scheme }) => scheme === 'digest')
  if (digests.length === 0) return null
  for (const algorithm of Object.keys(HASHES)) {
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
  throw new ProtocolError(`the server offers only unknown values of Digest qop: ${offer}`)
}

function quote(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** Names outside ASCII use the extended notation (RFC 7616, section 3.4). */
function usernameField(username: string): string {
  if (/^[\x20-\x7e]*$/.test(username)) return `username=${quote(username)}`
  return `username*=UTF-8''${encodeURIComponent(username)}`
}

/** Loads node:crypto when it is first needed. */
function nodeCrypto(): typeof import('node:crypto') {
  return process.getBuiltinModule('node:crypto')
}
