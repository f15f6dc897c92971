import type { Duplex } from 'node:stream'
import type { WebSocketConnectionConfig } from './config.js'
import type { TrafficCounters } from './counters.js'
import type { Deflater } from './deflate.js'
import type { Role } from './frame.js'
import type { UpgradeRequest } from './upgrade-request.js'
import type { ReceiverPool } from './receiver-pool.js'

/** What a server or client provides to all its connections. */
export interface ConnectionOwner<Connection> {
  readonly role: Role
  readonly config: WebSocketConnectionConfig
  readonly counters: TrafficCounters
  readonly receivers: ReceiverPool<Connection>
  /** The transport is gone; called before the connection's own `onClose`. */
  onClosed(connection: Connection): void
  /** A handler that the program set threw or rejected. */
  onHandlerError(error: unknown): void
}

/** The outcome of one opening handshake. */
export interface AcceptedHandshake<Context> {
  readonly socket: Duplex
  /** A string is one that `packRequest()` or `packSent()` made. */
  readonly request: UpgradeRequest | string
  readonly context: Context
  readonly protocol: string
  /** `null` without compression. */
  readonly deflater: Deflater | null
}
