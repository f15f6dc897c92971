import { ConnectionLostError, type WebSocketError } from './errors.js'

/** How a connection ended, as `closed` and `onClose` report it. */
export interface CloseInfo {
  /** The code of the peer's Close frame: 1005 if it had no code, 1006 without a Close frame. */
  readonly code: number
  /** The reason of the peer's Close frame, or an empty string. */
  readonly reason: string
  /** Whether both Close frames were exchanged and the peer broke no rule. */
  readonly wasClean: boolean
  /** Why this side ended the connection, or how it was lost; `null` after a plain close. */
  readonly error: WebSocketError | null
}

/** The part of a connection's state that is only created when it closes or `closed` is read. */
export class CloseState {
  /** The code of the peer's Close frame, 1005 if it had no code; `null` before that frame. */
  peerCode: number | null = null
  peerReason = ''
  error: WebSocketError | null = null
  /** Ends the connection; waits until the program has taken the messages before the end. */
  deferred: (() => void) | null = null
  timer: NodeJS.Timeout | undefined
  inputEnded = false
  info: CloseInfo | null = null
  closed: Promise<CloseInfo> | null = null
  resolve: ((info: CloseInfo) => void) | null = null

  /** Called once, when the transport is gone. */
  finish(closeSent: boolean): CloseInfo {
    const lost = this.peerCode === null && this.error === null
    if (lost) this.error = new ConnectionLostError('the transport closed without a Close frame')
    this.info = {
      code: this.peerCode ?? 1006,
      reason: this.peerReason,
      wasClean: closeSent && this.error === null,
      error: this.error,
    }
    this.resolve?.(this.info)
    return this.info
  }
}
