import type { OptionKinds } from '../internal/options.js'
import {
  checkDelay,
  checkProtocols,
  CONNECTION_SETTINGS,
  DEFAULT_CONNECTION_CONFIG,
  resolveSettings,
  type WebSocketConnectionConfig,
  type WebSocketSettings,
} from './config.js'

/** All settings of a client, with defaults filled in. */
export interface WebSocketClientConfig extends WebSocketConnectionConfig {
  /** Subprotocols to offer, preferred first (RFC 6455, section 1.9). @defaultValue [] */
  readonly protocols: readonly string[]
  /**
   * Milliseconds for the transport: name resolution, TCP, proxy and TLS. @defaultValue 10000
   */
  readonly connectTimeoutMs: number
  /** Milliseconds from then until the server's response. @defaultValue 10000 */
  readonly handshakeTimeoutMs: number
}

/** The settings a caller may pass: any subset of {@link WebSocketClientConfig}. */
export type WebSocketClientSettings = WebSocketSettings<WebSocketClientConfig>

/** For `checkOptions()`. */
export const CLIENT_SETTINGS: OptionKinds<WebSocketClientSettings> = {
  ...CONNECTION_SETTINGS, protocols: 'array', connectTimeoutMs: 'number',
  handshakeTimeoutMs: 'number',
}

const DEFAULTS: WebSocketClientConfig = {
  ...DEFAULT_CONNECTION_CONFIG,
  protocols: [],
  connectTimeoutMs: 10_000,
  handshakeTimeoutMs: 10_000,
}

/** Fills in the defaults. @throws TypeError naming the invalid option. */
export function resolveClientConfig(settings: WebSocketClientSettings): WebSocketClientConfig {
  const config = resolveSettings(DEFAULTS, settings)
  checkDelay('connectTimeoutMs', config.connectTimeoutMs)
  checkDelay('handshakeTimeoutMs', config.handshakeTimeoutMs)
  return { ...config, protocols: checkOffer(config.protocols) }
}

/** @throws TypeError unless all are different tokens (RFC 6455, section 4.1, item 10). */
export function checkOffer(protocols: readonly string[]): readonly string[] {
  const checked = checkProtocols(protocols)
  if (new Set(checked).size === checked.length) return checked
  throw new TypeError('protocols must not name a subprotocol twice')
}
