import type { Duplex } from 'node:stream'
import type { WebSocketServerConfig } from './config.js'
import type { WebSocketConnection } from './connection.js'
import type { Deflater } from './deflate.js'

/** What a connection asks of the server it belongs to. */
export interface ConnectionHome {
  readonly config: WebSocketServerConfig
  onClosed(connection: WebSocketConnection): void
  onHandlerError(error: unknown): void
}

/** What the server, and nobody else, may do with a connection. */
export interface ConnectionFriend {
  open<Context>(
    home: ConnectionHome,
    socket: Duplex,
    context: Context,
    protocol: string,
    deflater: Deflater | null,
    slot: number,
  ): WebSocketConnection<Context>
  /** Begins to read; `head` came with the opening handshake. */
  start(connection: WebSocketConnection, head: Buffer): void
  /**
   * One interval of keep-alive has passed for the connections of `slot`; `patience` is how many may
   * pass in silence.
   */
  beat(connection: WebSocketConnection, slot: number, patience: number): void
}
