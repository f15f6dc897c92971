import { addRotatingCredential } from '../../../internal/errors.js'
import { isJsonObject } from '../../../internal/json.js'

/** What is known of the access to one server. JSON, and secret. */
export interface McpOAuthState {
  /** The authorization server that all of it belongs to. */
  readonly issuer: string
  /** The dynamically registered client; null if another one is used. */
  readonly client: McpOAuthClient | null
  readonly tokens: McpTokens | null
}

/** A client of an authorization server. */
export interface McpOAuthClient {
  readonly id: string
  /** Null for a public client. */
  readonly secret: string | null
  /** How it authenticates, if it was registered for one way. */
  readonly method: string | null
}

/** What an authorization server has granted. */
export interface McpTokens {
  readonly access: string
  readonly refresh: string | null
  /** The scopes that were asked for. */
  readonly scopes: readonly string[]
}

/** Keeps the state of one server, for example encrypted in a database. Give each server its own. */
export interface McpTokenStore {
  /** What was saved last, or null. */
  load(): McpOAuthState | null | Promise<McpOAuthState | null>
  /** Keeps a state in place of what was saved before. */
  save(state: McpOAuthState): void | Promise<void>
}

/** Registers the secrets of a state with the redaction. */
export function hideSecrets({ client, tokens }: McpOAuthState): void {
  for (const secret of [client?.secret, tokens?.access, tokens?.refresh])
    if (typeof secret === 'string') addRotatingCredential(secret)
}

/** What a store has returned, or null if that is no state. */
export function readState(value: unknown): McpOAuthState | null {
  if (!isJsonObject(value as never)) return null
  const { issuer, client, tokens } = value as Partial<McpOAuthState>
  if (typeof issuer !== 'string') return null
  return {
    issuer,
    client: typeof client?.id === 'string' ? client : null,
    tokens:
      typeof tokens?.access === 'string' && Array.isArray(tokens.scopes) ? tokens : null,
  }
}
