import type { JsonObject, JsonValue } from '../../internal/json.js'
import type { McpError } from '../errors.js'

/**
 * The seam to the transport of messages: the pipes of a child process, or HTTP. Servers are not
 * trusted: all that a channel guarantees is JSON values of a bounded size.
 */
export interface McpChannel {
  /**
   * Sends one message. Resolves once it is written or, over HTTP, once the exchange is complete;
   * the signal ends the exchange.
   *
   * @throws McpError when it could not be sent, or when the exchange ended without an answer; with
   * the problem `session` the server did nothing, since it does not know the session.
   */
  send(message: JsonObject, signal: AbortSignal): Promise<void>
  /** Called after the handshake; later messages name the negotiated version where HTTP needs it. */
  ready(protocolVersion: string): void
  /** Ends the connection, and the process if the channel started one. Idempotent. */
  close(): Promise<void>
}

export interface ChannelListener {
  /** Called with each JSON value that the server sends. */
  onMessage(value: JsonValue): void
  /** Called when the connection is lost for good. */
  onClose(error: McpError): void
  /** Called when the request with this id waits for access, which does not count as its time. */
  onWait(id: number, work: Promise<unknown>): void
}

/** The seam to what gets access tokens. */
export interface McpAuthorizer {
  /** The token to send, or null. */
  token(): Promise<string | null>
  /** Gets another token after a refusal; null if that would not help. @throws McpError. */
  answer(refusal: Refusal): Promise<void> | null
  close(): Promise<void>
}

/** A server's refusal of a request for want of access. */
export interface Refusal {
  readonly status: number
  /** The fields WWW-Authenticate. */
  readonly challenges: readonly string[]
  /** The token that was sent. */
  readonly token: string | null
}
