/**
 * Gets access tokens for one MCP server, when the server asks for them:
 *
 * 1. A token is sent until the server refuses it. It is then refreshed or, if that is not possible,
 *    granted again; if scopes are missing, those that the server names are asked for in addition.
 * 2. Requests that are refused meanwhile wait for the same grant.
 * 3. Nothing is asked for twice: not scopes that were asked for, not a token in place of one that
 *    is a few seconds old, and nothing for a minute after a failure.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import type { AsyncTransport } from '../../../http/index.js'
import { type Clock, raceAbort, steadyNow } from '../../../internal/time.js'
import { hash } from '../../../internal/hash.js'
import { addRotatingCredential } from '../../../internal/errors.js'
import { McpError } from '../../errors.js'
import { clip } from '../../output.js'
import type { McpAuthorizer, Refusal } from '../channel.js'
import { refuseUrl } from './allowed-url.js'
import {
  type AuthorizationServer, type BearerChallenge, Discovery, readChallenge,
} from './discovery.js'
import type { McpOAuthOptions } from './options.js'
import { OAuthRequests } from './requests.js'
import {
  hideSecrets, type McpOAuthClient, type McpOAuthState, type McpTokens, readState,
} from './state.js'
import { TokenEndpoint } from './token-endpoint.js'

/** Milliseconds for a person to grant access. */
const PERSON_MS = 10 * 60_000
/** Milliseconds after a grant in which a refusal of its token is final. */
const FRESH_MS = 10_000
/** Milliseconds after a failure in which nothing is asked for. */
const PAUSE_MS = 60_000

/** The server that tokens are for. */
export interface ProtectedServer {
  readonly name: string
  readonly clock: Clock
  readonly url: string
  readonly transport: AsyncTransport | undefined
}

export class OAuthAuthorizer implements McpAuthorizer {
  readonly #server: ProtectedServer
  readonly #endpoint: URL
  readonly #options: McpOAuthOptions
  readonly #requests: OAuthRequests
  readonly #discovery: Discovery
  readonly #closed = new AbortController()
  #state: McpOAuthState | null | undefined
  #work: Promise<void> | null = null
  #grantedAt = -Infinity
  #failure: { readonly until: number; readonly error: unknown } | null = null

  constructor(server: ProtectedServer, options: McpOAuthOptions) {
    const { name, url, transport } = server
    this.#server = server
    this.#options = options
    this.#endpoint = new URL(url)
    this.#requests = new OAuthRequests(name, this.#endpoint, transport)
    const issuer = options.issuer ?? null
    this.#discovery = new Discovery(name, this.#endpoint, issuer, this.#requests)
  }

  async token(): Promise<string | null> {
    return (await this.#load())?.tokens?.access ?? null
  }

  answer(refusal: Refusal): Promise<void> | null {
    const challenge = readChallenge(refusal.challenges)
    if (refusal.status === 403 && challenge.error !== 'insufficient_scope') return null
    return this.#answer(refusal, challenge)
  }

  async close(): Promise<void> {
    this.#closed.abort()
    await this.#requests.close()
  }

  async #answer(refusal: Refusal, challenge: BearerChallenge): Promise<void> {
    // Another request may have got a token since.
    if (this.#work === null && (await this.token()) !== refusal.token) return
    this.#work ??= this.#renew(refusal.status, challenge).finally(() => {
      this.#work = null
    })
    await this.#work
  }

  async #renew(status: number, challenge: BearerChallenge): Promise<void> {
    const { clock } = this.#server
    if (this.#failure !== null && steadyNow(clock) < this.#failure.until) throw this.#failure.error
    try {
      await this.#grant(status, challenge)
      this.#grantedAt = steadyNow(clock)
      this.#failure = null
    } catch (error) {
      this.#failure = { until: steadyNow(clock) + PAUSE_MS, error }
      throw error
    }
  }

  async #grant(status: number, challenge: BearerChallenge): Promise<void> {
    const { signal } = this.#closed
    const held = (await this.#load())?.tokens ?? null
    const isFresh = steadyNow(this.#server.clock) < this.#grantedAt + FRESH_MS
    if (status === 401 && held !== null && isFresh)
      throw this.#error('it refuses the token that it was just granted')
    const missing = status === 403 ? (challenge.scopes ?? []) : []
    if (status === 403 && missing.every((scope) => held?.scopes.includes(scope))) {
      const which = clip(missing.join(' '), 300)
      throw this.#error(`it says that scopes are missing that were asked for: ${which}`)
    }
    const at = await this.#discovery.find(challenge.metadataUrl, signal)
    const known = await this.#load()
    // What another server has issued is not for this one.
    const kept = known !== null && known.issuer === at.issuer ? known : null
    const endpoint = new TokenEndpoint(this.#server.name, at, this.#requests)
    const client = await this.#client(at, endpoint, kept)
    const registered = client === kept?.client || this.#given(at) === null ? client : null
    const scopes =
      status === 403
        ? [...new Set([...(held?.scopes ?? []), ...missing])]
        : (challenge.scopes ?? at.scopes ?? [])
    const tokens =
      (status === 401 ? await this.#refresh(endpoint, client, kept?.tokens ?? null) : null) ??
      (await this.#tokens(at, endpoint, client, scopes))
    await this.#save({ issuer: at.issuer, client: registered, tokens })
  }

  /** The client that the options name, for this authorization server. */
  #given(at: AuthorizationServer): McpOAuthClient | null {
    const { clientId, clientSecret = null, clientMetadataUrl } = this.#options
    if (clientId !== undefined) return { id: clientId, secret: clientSecret, method: null }
    if (clientMetadataUrl === undefined || !at.takesClientUrls) return null
    return { id: clientMetadataUrl, secret: null, method: 'none' }
  }

  async #client(
    at: AuthorizationServer,
    endpoint: TokenEndpoint,
    kept: McpOAuthState | null,
  ): Promise<McpOAuthClient> {
    const client = this.#given(at) ?? kept?.client
    if (client !== null && client !== undefined) return client
    const made = await endpoint.register(this.#options.redirectUrl ?? '', this.#closed.signal)
    // A client that was registered is not lost if nobody grants it access.
    await this.#save({ issuer: at.issuer, client: made, tokens: null })
    return made
  }

  async #refresh(
    endpoint: TokenEndpoint,
    client: McpOAuthClient,
    held: McpTokens | null,
  ): Promise<McpTokens | null> {
    if (held === null || held.refresh === null) return null
    const grant = { grant_type: 'refresh_token', refresh_token: held.refresh }
    return await endpoint.request(grant, client, held.scopes, this.#closed.signal)
  }

  async #tokens(
    at: AuthorizationServer,
    endpoint: TokenEndpoint,
    client: McpOAuthClient,
    scopes: readonly string[],
  ): Promise<McpTokens | null> {
    const { signal } = this.#closed
    const scope: Record<string, string> = scopes.length > 0 ? { scope: scopes.join(' ') } : {}
    const { authorize, redirectUrl = '' } = this.#options
    if (authorize === undefined) {
      const grant = { grant_type: 'client_credentials', ...scope }
      return await endpoint.request(grant, client, scopes, signal)
    }
    if (at.authorizationEndpoint === null || !at.hasPkce)
      throw this.#error('the authorization server does not support codes with PKCE (S256)')
    const refused = await refuseUrl(at.authorizationEndpoint, this.#endpoint)
    if (refused !== null)
      throw this.#error(`authorization_endpoint has an unusable address: ${refused}`)
    const { authorizationEndpoint } = at
    const request = buildCodeRequest(authorizationEndpoint, at, client.id, redirectUrl, scopes)
    const answer = readCodeAnswer(await this.#ask(authorize, request.url), request, at)
    if ('problem' in answer) throw this.#error(answer.problem)
    const grant = {
      grant_type: 'authorization_code',
      code: answer.code,
      code_verifier: request.verifier,
      redirect_uri: redirectUrl,
    }
    return await endpoint.request(grant, client, scopes, signal)
  }

  /** Lets a person decide; in time. */
  async #ask(authorize: NonNullable<McpOAuthOptions['authorize']>, url: string): Promise<unknown> {
    const late = new AbortController()
    const timer = this.#server.clock.setTimeout(
      () => late.abort(this.#error('nobody has granted access in time')),
      PERSON_MS,
    )
    const signal = AbortSignal.any([this.#closed.signal, late.signal])
    try {
      const asked = Promise.resolve(authorize({ server: this.#server.name, url, signal }))
      return await raceAbort(asked, signal)
    } catch (error) {
      if (error instanceof McpError || this.#closed.signal.aborted) throw error
      // Its message may hold the address of the page, which is for one person only.
      const detail = 'authorize has failed'
      throw new McpError(this.#server.name, 'unauthorized', detail, { cause: error })
    } finally {
      timer.cancel()
    }
  }

  async #load(): Promise<McpOAuthState | null> {
    if (this.#state === undefined) {
      const state = readState(await this.#stored(() => this.#options.store?.load()))
      if (state !== null) hideSecrets(state)
      this.#state ??= state
    }
    return this.#state
  }

  async #save(state: McpOAuthState): Promise<void> {
    hideSecrets(state)
    this.#state = state
    await this.#stored(() => this.#options.store?.save(state))
  }

  /** What the host's store does; the message of its error may hold what it was given. */
  async #stored<T>(call: () => T): Promise<Awaited<T>> {
    try {
      return await call()
    } catch (error) {
      const detail = 'the token store has failed'
      throw new McpError(this.#server.name, 'unauthorized', detail, { cause: error })
    }
  }

  #error(detail: string): McpError {
    return new McpError(this.#server.name, 'unauthorized', detail)
  }
}

/**
 * The authorization request and response, which a browser carries.
 */

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

/** Response parameters; none may occur twice (RFC 6749, section 3.1). */
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
