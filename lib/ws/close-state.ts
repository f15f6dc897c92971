import { ConnectionLostError, type WebSocketError } from './errors.js'

/** How a connection ended. */
export interface CloseInfo {
  /** The code of the peer's Close frame; 1005 when it had none, 1006 when no such frame came. */
  readonly code: number
  /** The reason of the peer's Close frame, or an empty string. */
  readonly reason: string
  /** Whether both Close frames were exchanged and no rule was broken. */
  readonly wasClean: boolean
  /** Why this side ended the connection, or how it was lost; `null` after a plain close. */
  readonly error: WebSocketError | null
}

/** What a connection only needs once its end is in sight, or is asked about. */
export class Ending {
  /** The code of the peer's Close frame, 1005 for none; `null` until such a frame came. */
  peerCode: number | null = null
  peerReason = ''
  error: WebSocketError | null = null
  /** The end, put off until the program has taken the messages before it. */
  deferred: (() => void) | null = null
  timer: NodeJS.Timeout | undefined
  inputEnded = false
  info: CloseInfo | null = null
  closed: Promise<CloseInfo> | null = null
  resolve: ((info: CloseInfo) => void) | null = null

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
