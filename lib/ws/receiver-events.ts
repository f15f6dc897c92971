import type { WebSocketError } from './errors.js'

/** A message as the program receives it: text as a string, binary as a Buffer it may keep. */
export type WebSocketMessage = string | Buffer

/** The callbacks of a receiver. One table serves all connections, hence the `owner` parameter. */
export interface ReceiverEvents<Owner> {
  /** A whole message. Returning `false` pauses parsing until {@link Receiver.resume}. */
  message(owner: Owner, message: WebSocketMessage): boolean
  ping(owner: Owner, payload: Buffer): void
  pong(owner: Owner, payload: Buffer): void
  /** The peer's Close frame; `null` when it had no code. The receiver is done. */
  close(owner: Owner, code: number | null, reason: string): void
  /** The peer broke a rule. The receiver is done. */
  failed(owner: Owner, error: WebSocketError): void
  /** Parsing paused or resumed: so should the socket. */
  paused(owner: Owner, paused: boolean): void
}

/** The limits of a receiver; see `WebSocketServerConfig`. */
export interface ReceiverLimits {
  readonly maxMessageBytes: number
  readonly maxFragments: number
  readonly maxControlFramesPerSecond: number | null
}
