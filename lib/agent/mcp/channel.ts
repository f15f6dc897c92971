import type { JsonObject, JsonValue } from '../../internal/json.js'
import type { McpError } from '../errors.js'

/**
 * The seam to how messages travel: over the pipes of a child process, or over HTTP. What arrives is
 * from a party that nobody vouches for: JSON of a bounded size, and nothing else is known of it.
 */
export interface McpChannel {
  /**
   * Sends one message. Resolves once it is on its way or, where an exchange belongs to it, once
   * that is over; the signal ends the exchange.
   *
   * @throws McpError when it could not be sent, or when its exchange ended without its answer.
   */
  send(message: JsonObject, signal: AbortSignal): Promise<void>
  /** The handshake is over: what is sent from now on may name the version agreed upon. */
  ready(protocolVersion: string): void
  /** Ends the connection, and the server if it is ours. Calling it twice is harmless. */
  close(): Promise<void>
}

/** Whom a channel tells. */
export interface ChannelListener {
  /** One JSON value that the server sent. */
  onMessage(value: JsonValue): void
  /** The connection is gone and does not come back by itself. */
  onClose(error: McpError): void
}
