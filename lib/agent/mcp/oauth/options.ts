import { addCredential } from '../../../internal/errors.js'
import { isLoopback } from '../../../internal/web.js'
import { checkOptions, type OptionKinds } from '../../../internal/options.js'
import type { McpTokenStore } from './state.js'

/** What a host gets to let a person authorize access. */
export interface McpAuthorizationRequest {
  /** Name of the MCP server. */
  readonly server: string
  /** The page to open in the person's browser: https, or http on this machine. */
  readonly url: string
  /** Aborts after ten minutes, and when the server is closed. */
  readonly signal: AbortSignal
}

/**
 * How to get access tokens for a server over HTTP (OAuth 2.1 as the protocol specifies it).
 *
 * With `authorize` a person grants access (authorization code with PKCE); without, the client has
 * access by itself (client credentials), which needs `clientId`, `clientSecret` and `issuer`.
 */
export interface McpOAuthOptions {
  /** The client, as it was registered with the authorization server beforehand. */
  readonly clientId?: string | undefined
  /** Needs `issuer`, since the MCP server could name another one to get the secret. */
  readonly clientSecret?: string | undefined
  /**
   * The https URL of a document that describes the client, which is its id where the authorization
   * server supports that. Without it and without `clientId` the client is registered dynamically.
   */
  readonly clientMetadataUrl?: string | undefined
  /** Where the authorization server sends the browser: https, or http on this machine. */
  readonly redirectUrl?: string | undefined
  /**
   * Opens the page, and resolves with the URL to which the browser was sent at last: `redirectUrl`
   * with a query. Another origin or path is refused. Called when access is needed, at most once at
   * a time; after a failure not again for a minute.
   */
  readonly authorize?: ((request: McpAuthorizationRequest) => string | Promise<string>) | undefined
  /** The authorization server to use. @defaultValue the first one that the server names */
  readonly issuer?: string | undefined
  /** Keeps tokens and the registered client. @defaultValue memory */
  readonly store?: McpTokenStore | undefined
}

const KINDS: OptionKinds<McpOAuthOptions> = {
  clientId: 'string', clientSecret: 'string', clientMetadataUrl: 'string', redirectUrl: 'string',
  authorize: 'function', issuer: 'string', store: 'object',
}

/** Checks the options for a server at `url`, and registers the secret with the redaction. */
export function resolveOAuth(
  options: McpOAuthOptions,
  url: URL,
  invalid: (what: string) => TypeError,
): McpOAuthOptions {
  checkOptions(options, KINDS, 'oauth')
  if (!isSafe(url)) throw invalid('with oauth, url must be https, or http on this machine')
  const { clientId, clientSecret, clientMetadataUrl, redirectUrl, authorize, issuer } = options
  for (const [name, value] of Object.entries({ redirectUrl, issuer })) {
    if (value !== undefined && !(URL.canParse(value) && isSafe(new URL(value))))
      throw invalid(`oauth.${name} must be an https URL, or http on this machine`)
  }
  if (clientMetadataUrl !== undefined && !isDocument(clientMetadataUrl))
    throw invalid('oauth.clientMetadataUrl must be an https URL with a path')
  if (authorize === undefined && (clientId === undefined || clientSecret === undefined))
    throw invalid('oauth needs authorize, or clientId, clientSecret and issuer')
  if (authorize !== undefined && redirectUrl === undefined)
    throw invalid('oauth.redirectUrl is missing: the address to which authorize gets its answer')
  if (clientSecret !== undefined) {
    if (clientId === undefined || issuer === undefined)
      throw invalid('oauth.clientSecret needs clientId, and issuer, which alone gets the secret')
    addCredential(clientSecret)
  }
  return { ...options }
}

function isDocument(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, pathname } = new URL(text)
  return protocol === 'https:' && pathname !== '/'
}

function isSafe({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))
}
