import { parseChallenges, type Challenge } from './challenges.js'
import { ProtocolError, RemoteProtocolError } from '../errors.js'

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

function randomCnonce(): string {
  return nodeCrypto().randomBytes(16).toString('hex')
}

/**
 * Answers the challenges of one server or proxy (RFC 7616). A nonce is used again, with a growing
 * count, until another challenge comes.
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
   * Takes a refusal's challenges. True when the request is to be sent again, signed.
   *
   * @param fields - The values of WWW-Authenticate or Proxy-Authenticate.
   * @param tries - How many challenges to this request were answered before: there is one answer, and
   *   another only when the server says that nothing but the nonce was wrong.
   * @throws {@link ProtocolError} when only unknown kinds of Digest are offered.
   */
  challenged(fields: readonly string[], tries: number): boolean {
    const challenge = bestChallenge(parseChallenges(fields))
    if (challenge === null || tries > 1) return false
    if (tries > 0 && challenge.params['stale']?.toLowerCase() !== 'true') return false
    this.#session = this.#open(challenge)
    return true
  }

  /**
   * The value of Authorization or Proxy-Authorization; null before the first challenge, and where the
   * content has to be signed and is not known.
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
    // Without quality there is no place for it, yet a -sess key cannot be checked without it.
    else if (session.session) fields.push(`cnonce="${cnonce}"`)
    if (session.userhash) fields.push('userhash=true')
    return `Digest ${fields.join(', ')}`
  }

  #open({ params }: Challenge): Session {
    const { realm, nonce, opaque, algorithm, qop } = params
    if (realm === undefined || nonce === undefined) {
      throw new RemoteProtocolError('the Digest challenge has no realm or no nonce')
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
