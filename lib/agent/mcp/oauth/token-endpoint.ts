/**
 * Requests to an authorization server: registration (RFC 7591) and tokens.
 *
 * @module
 */
import type { JsonObject } from '../../../internal/json.js'
import { McpError } from '../../errors.js'
import { clip } from '../../output.js'
import { isLoopback } from '../../../internal/web.js'
import type { AuthorizationServer } from './discovery.js'
import type { OAuthRequests } from './requests.js'
import type { McpOAuthClient, McpTokens } from './state.js'

const BASIC = 'client_secret_basic'
const POST = 'client_secret_post'
/** Characters of a token; longer ones fit into no header. */
const MAX_TOKEN = 16_384

/** Asks for tokens as one client of one authorization server. */
export class TokenEndpoint {
  readonly #server: string
  readonly #at: AuthorizationServer
  readonly #requests: OAuthRequests

  constructor(server: string, at: AuthorizationServer, requests: OAuthRequests) {
    this.#server = server
    this.#at = at
    this.#requests = requests
  }

  /** Registers a client for `redirectUrl`. */
  async register(redirectUrl: string, signal: AbortSignal): Promise<McpOAuthClient> {
    const { registrationEndpoint, authMethods } = this.#at
    if (registrationEndpoint === null) {
      const remedy = 'set oauth.clientId to that of a client that you have registered'
      throw this.#error(`the authorization server registers no clients: ${remedy}`)
    }
    const wanted = ['none', BASIC, POST].find((method) => authMethods?.includes(method)) ?? BASIC
    const json = {
      client_name: 'runwright',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: wanted,
      application_type: isLoopback(new URL(redirectUrl).hostname) ? 'native' : 'web',
    }
    const what = 'the registration of the client'
    const { status, body } = await this.#requests.post(what, registrationEndpoint, { json, signal })
    const { client_id: id, client_secret: secret, token_endpoint_auth_method: method } = body
    if (status < 200 || status > 299 || typeof id !== 'string')
      throw this.#error(`${what} failed: ${problemOf({ status, body })}`)
    return {
      id,
      secret: typeof secret === 'string' ? secret : null,
      method: typeof method === 'string' ? method : wanted,
    }
  }

  /** Tokens for a grant. Null if a refresh token is no longer valid. */
  async request(
    grant: Readonly<Record<string, string>>,
    client: McpOAuthClient,
    scopes: readonly string[],
    signal: AbortSignal,
  ): Promise<McpTokens | null> {
    const { form, headers } = this.#authentication(client)
    const data = { ...grant, resource: this.#at.resource, ...form }
    const what = 'an access token'
    const { tokenEndpoint } = this.#at
    const answer = await this.#requests.post(what, tokenEndpoint, { data, headers, signal })
    const { status, body } = answer
    const isRefresh = grant['grant_type'] === 'refresh_token'
    if (isRefresh && status === 400 && body['error'] === 'invalid_grant') return null
    const { access_token: access, refresh_token: refresh, token_type: type } = body
    if (status !== 200 || !isToken(access))
      throw this.#error(`${what} was refused: ${problemOf(answer)}`)
    if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
      throw this.#error(`${what} is of an unknown type`)
    const kept = isRefresh ? (grant['refresh_token'] ?? null) : null
    return { access, refresh: isToken(refresh) ? refresh : kept, scopes }
  }

  #authentication({ id, secret, method }: McpOAuthClient): {
    readonly form: Readonly<Record<string, string>>
    readonly headers: Readonly<Record<string, string>>
  } {
    if (secret === null || method === 'none') return { form: { client_id: id }, headers: {} }
    const ways = method === null ? (this.#at.authMethods ?? [BASIC]) : [method]
    if (ways.includes(BASIC)) {
      const pair = `${formEncoded(id)}:${formEncoded(secret)}`
      const authorization = `Basic ${Buffer.from(pair).toString('base64')}`
      return { form: {}, headers: { authorization } }
    }
    if (ways.includes(POST)) return { form: { client_id: id, client_secret: secret }, headers: {} }
    throw this.#error('the authorization server takes no client secret')
  }

  #error(detail: string): McpError {
    return new McpError(this.#server, 'unauthorized', detail)
  }
}

function isToken(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TOKEN && /^[\x21-\x7e]+$/.test(value)
}

/** The error of a response (RFC 6749, section 5.2). */
function problemOf({ status, body }: { status: number; body: JsonObject }): string {
  const { error, error_description: detail } = body
  const parts = [error, detail].filter((part) => typeof part === 'string')
  return clip([`status ${status}`, ...parts].join(', '), 300)
}

function formEncoded(text: string): string {
  return new URLSearchParams({ a: text }).toString().slice('a='.length)
}

