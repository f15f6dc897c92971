/**
 * The request for an authorization code, and its answer, both of which go through a browser.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import { hash } from '../../../internal/checksums.js'
import { addRotatingCredential } from '../../../internal/credentials.js'
import { clip } from '../../output.js'
import type { AuthorizationServer } from './discovery.js'

/** A request that waits for its answer. */
export interface CodeRequest {
  /** The page to open. */
  readonly url: string
  /** Sent with the code, which is of no use to others without it (RFC 7636). */
  readonly verifier: string
  /** Returned by the answer to this request, and by no other. */
  readonly state: string
  readonly redirectUrl: string
}

/** Parameters of an answer, each of which it has once at most (RFC 6749, section 3.1). */
const PARAMETERS = ['state', 'iss', 'error', 'error_description', 'code'] as const

/** Builds the request. */
export function buildCodeRequest(
  endpoint: URL,
  server: AuthorizationServer,
  clientId: string,
  redirectUrl: string,
  scopes: readonly string[],
): CodeRequest {
  const verifier = randomBytes(32).toString('base64url')
  const state = randomBytes(16).toString('base64url')
  addRotatingCredential(verifier)
  const url = new URL(endpoint)
  const params = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUrl,
    code_challenge: hash('sha256', verifier, 'base64url'),
    code_challenge_method: 'S256',
    state,
    resource: server.resource,
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
  }
  for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value)
  return { url: url.href, verifier, state, redirectUrl }
}

/** The code in the URL to which the browser was sent, or why there is none. */
export function readCodeAnswer(
  answer: unknown,
  request: CodeRequest,
  server: AuthorizationServer,
): { readonly code: string } | { readonly problem: string } {
  if (typeof answer !== 'string' || !URL.canParse(answer))
    return { problem: 'authorize must return the URL to which the browser was sent' }
  const url = new URL(answer)
  if (addressOf(url) !== addressOf(new URL(request.redirectUrl))) {
    // Without its query, which may have a code.
    const returned = clip(addressOf(url), 200)
    return { problem: `authorize has returned ${returned}, which is not oauth.redirectUrl` }
  }
  const params = url.searchParams
  const twice = PARAMETERS.find((name) => params.getAll(name).length > 1)
  if (twice !== undefined)
    return { problem: `the answer to the authorization has ${twice} more than once` }
  if (params.get('state') !== request.state)
    return { problem: 'the answer to the authorization belongs to another request' }
  // An answer of another server would send the code to the wrong one (RFC 9207, section 2.4).
  const issuer = params.get('iss')
  if (issuer === null ? server.namesItself : issuer !== server.issuer)
    return { problem: 'the answer to the authorization is that of another server' }
  const error = params.get('error')
  if (error !== null) {
    const detail = params.get('error_description') ?? ''
    return { problem: `access was not granted: ${clip(`${error} ${detail}`.trim(), 300)}` }
  }
  const code = params.get('code')
  if (code === null || code === '')
    return { problem: 'the answer to the authorization has no code' }
  addRotatingCredential(code)
  return { code }
}

function addressOf({ origin, pathname }: URL): string {
  return origin + pathname
}
