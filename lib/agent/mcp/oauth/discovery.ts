/**
 * Finds out how to get access: the resource's metadata (RFC 9728), and with it the metadata of the
 * authorization server (RFC 8414, or OpenID Connect Discovery).
 *
 * @module
 */
import { parseChallenges } from '../../../internal/web.js'
import type { JsonObject, JsonValue } from '../../../internal/json.js'
import { McpError } from '../../errors.js'
import { clip } from '../../output.js'
import type { OAuthRequests } from './requests.js'

/** What a refusal of the MCP server says (RFC 6750, section 3; RFC 9728, section 5.1). */
export interface BearerChallenge {
  readonly error: string | null
  /** Null if the server names none. */
  readonly scopes: readonly string[] | null
  readonly metadataUrl: string | null
}

/** Where and how to get tokens. */
export interface AuthorizationServer {
  readonly issuer: string
  /** The resource indicator of the MCP server (RFC 8707). */
  readonly resource: string
  /** The scopes to ask for unless a challenge names some; null if the server names none. */
  readonly scopes: readonly string[] | null
  readonly tokenEndpoint: URL
  readonly authorizationEndpoint: URL | null
  readonly registrationEndpoint: URL | null
  /** Ways in which clients may authenticate; null if the server names none. */
  readonly authMethods: readonly string[] | null
  /** Whether it supports PKCE with SHA-256. */
  readonly hasPkce: boolean
  /** Whether the id of a client may be the URL of its description. */
  readonly takesClientUrls: boolean
  /** Whether it names itself in authorization responses (RFC 9207). */
  readonly namesItself: boolean
}

/** Items of a list that are read. */
const MAX_ITEMS = 200

/** Reads the challenge of a refusal; without one, everything is null. */
export function readChallenge(fields: readonly string[]): BearerChallenge {
  const params = parseChallenges(fields).find(({ scheme }) => scheme === 'bearer')?.params ?? {}
  const { error = null, scope = null, resource_metadata: metadataUrl = null } = params
  return { error, scopes: scope === null ? null : words(scope), metadataUrl }
}

/** The scopes of a list in one text, without duplicates. */
export function words(text: string): string[] {
  return [...new Set(text.split(' ').filter((word) => word !== ''))].slice(0, MAX_ITEMS)
}

/** Finds the authorization server of an MCP server. @throws McpError. */
export class Discovery {
  readonly #server: string
  readonly #endpoint: URL
  readonly #issuer: string | null
  readonly #requests: OAuthRequests

  constructor(server: string, endpoint: URL, issuer: string | null, requests: OAuthRequests) {
    this.#server = server
    this.#endpoint = endpoint
    this.#issuer = issuer
    this.#requests = requests
  }

  async find(metadataUrl: string | null, signal: AbortSignal): Promise<AuthorizationServer> {
    const metadata = await this.#resourceMetadata(metadataUrl, signal)
    const issuer = this.#issuerOf(metadata)
    const found = await this.#serverMetadata(issuer, signal)
    return {
      issuer: String(found['issuer']),
      resource: this.#resourceOf(metadata),
      scopes: texts(metadata?.['scopes_supported']),
      tokenEndpoint: this.#url('token_endpoint', found['token_endpoint']),
      authorizationEndpoint: this.#optionalUrl(found, 'authorization_endpoint'),
      registrationEndpoint: this.#optionalUrl(found, 'registration_endpoint'),
      authMethods: texts(found['token_endpoint_auth_methods_supported']),
      hasPkce: texts(found['code_challenge_methods_supported'])?.includes('S256') === true,
      takesClientUrls: found['client_id_metadata_document_supported'] === true,
      namesItself: found['authorization_response_iss_parameter_supported'] === true,
    }
  }

  /** Null for a server of the protocol's first version with OAuth, which has none. */
  async #resourceMetadata(given: string | null, signal: AbortSignal): Promise<JsonObject | null> {
    const what = 'the metadata of the resource'
    if (given !== null) {
      const place = this.#url('resource_metadata', given)
      const found = await this.#requests.document(what, place, signal)
      if (found === null) throw this.#error(`${what} is not where resource_metadata says`)
      return found
    }
    const { origin, pathname } = this.#endpoint
    const wellKnown = `${origin}/.well-known/oauth-protected-resource`
    const paths = pathname === '/' ? [wellKnown] : [`${wellKnown}${pathname}`, wellKnown]
    for (const path of paths) {
      const found = await this.#requests.document(what, new URL(path), signal)
      if (found !== null) return found
    }
    return null
  }

  /** The server may be a part of the resource, but not of another one (RFC 9728, section 3.3). */
  #resourceOf(metadata: JsonObject | null): string {
    if (metadata === null) {
      const { origin, pathname, search } = this.#endpoint
      return `${origin}${pathname}${search}`
    }
    const resource = this.#url('resource', metadata['resource'])
    const whole = resource.pathname.replace(/\/$/, '')
    const { origin, pathname } = this.#endpoint
    const within = pathname === whole || pathname.startsWith(`${whole}/`)
    if (resource.origin !== origin || !within)
      throw this.#error('the metadata of the resource is that of another server')
    return String(metadata['resource'])
  }

  #issuerOf(metadata: JsonObject | null): URL {
    const named = texts(metadata?.['authorization_servers']) ?? []
    if (this.#issuer !== null) {
      if (metadata !== null && !named.some((one) => isSame(one, this.#issuer ?? '')))
        throw this.#error('it does not name the authorization server of the option oauth.issuer')
      return new URL(this.#issuer)
    }
    if (metadata === null) return new URL(this.#endpoint.origin)
    return this.#url('authorization_servers', named[0])
  }

  async #serverMetadata(issuer: URL, signal: AbortSignal): Promise<JsonObject> {
    const { origin } = issuer
    const path = issuer.pathname.replace(/\/$/, '')
    const places = [
      `${origin}/.well-known/oauth-authorization-server${path}`,
      `${origin}/.well-known/openid-configuration${path}`,
      ...(path === '' ? [] : [`${origin}${path}/.well-known/openid-configuration`]),
    ]
    const what = 'the metadata of the authorization server'
    for (const place of places) {
      const found = await this.#requests.document(what, new URL(place), signal)
      if (found === null) continue
      // RFC 8414, section 3.3: otherwise any server could speak for any other one.
      if (!isSame(found['issuer'], issuer.href)) throw this.#error(`${what} is that of another one`)
      return found
    }
    throw this.#error(`${what} is at none of its addresses`)
  }

  #optionalUrl(found: JsonObject, name: string): URL | null {
    return found[name] === undefined ? null : this.#url(name, found[name])
  }

  #url(name: string, value: JsonValue | undefined): URL {
    if (typeof value !== 'string' || !URL.canParse(value))
      throw this.#error(`${name} of the metadata is no URL`)
    const url = new URL(value)
    if (/^https?:$/.test(url.protocol) && url.hash === '') return url
    throw this.#error(`${name} of the metadata must be an https URL: ${clip(value, 200)}`)
  }

  #error(detail: string): McpError {
    return new McpError(this.#server, 'unauthorized', detail)
  }
}

/** Identifiers are compared as they are, except for the slash after a host. */
function isSame(one: JsonValue | undefined, other: string): boolean {
  return typeof one === 'string' && one.replace(/\/$/, '') === other.replace(/\/$/, '')
}

function texts(value: JsonValue | undefined): string[] | null {
  if (!Array.isArray(value)) return null
  return value.slice(0, MAX_ITEMS).filter((one): one is string => typeof one === 'string')
}
