import type { Http2Stream } from 'node:http2'
import type { Duplex } from 'node:stream'
import { ConnectionLostError, type WebSocketError } from './errors.js'
import { encodeClose, type Role } from './frame.js'
import type { Sender } from './sender.js'

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

/** The connection, as far as its end needs it. */
export interface ClosingConnection {
  readonly role: Role
  readonly closeTimeoutMs: number
  readonly socket: Duplex
  readonly sender: Sender
  readonly receiver: { readonly paused: boolean; discard(): void; destroy(): void }
  /** Whether the program iterates and has not taken all messages yet, or not asked for more. */
  behind(): boolean
  /** The transport is gone. */
  gone(info: CloseInfo): void
}

/**
 * The end of a connection (RFC 6455, section 7.1), as a part that exists only once something needs
 * it.
 *
 *   open ──close()──▶ closing ──both Close frames──▶ ending ──socket closed──▶ closed
 *     └──peer's Close, or a rule broken──────────────▶ ┘
 *
 * 1. At most one Close frame is sent, and nothing after it (RFC 6455, section 5.5.1).
 * 2. The server ends its side of the transport first, then discards input until the peer has ended
 *    its own: destroying a socket with unread input resets it, which could destroy the Close frame
 *    on its way (section 7.1.1). A client waits for the server's end before its own.
 *    `closeTimeoutMs` bounds each wait.
 * 3. During an async iteration, the end waits until the program has taken every message before it
 *    and asks for more, so that its replies go out first; `closeTimeoutMs` bounds this too.
 */
export class Closing {
  readonly #connection: ClosingConnection
  #state: 'open' | 'closing' | 'ending' | 'closed' = 'open'
  /** Whether this side has sent its Close frame, or will after all that was sent before. */
  #sent = false
  /** The code of the peer's Close frame, 1005 if it had no code; `null` before that frame. */
  #peerCode: number | null = null
  #peerReason = ''
  #error: WebSocketError | null = null
  /** Ends the connection; waits until the program has taken the messages before the end. */
  #deferred: (() => void) | null = null
  #timer: NodeJS.Timeout | undefined
  #inputEnded = false
  #info: CloseInfo | null = null
  #closed: Promise<CloseInfo> | null = null
  #resolve: ((info: CloseInfo) => void) | null = null

  constructor(connection: ClosingConnection) {
    this.#connection = connection
  }

  get state(): 'open' | 'closing' | 'ending' | 'closed' {
    return this.#state
  }

  /** Resolves when the transport is gone. */
  get closed(): Promise<CloseInfo> {
    if (this.#info !== null) return Promise.resolve(this.#info)
    return (this.#closed ??= new Promise((resolve) => {
      this.#resolve = resolve
    }))
  }

  /** The program closes. */
  close(frame: Buffer): void {
    // An end that waits for the program to take its messages goes first, with its own code.
    this.runDeferred()
    if (this.#state !== 'open') return
    this.#sendClose(frame)
    this.#connection.receiver.discard()
    this.#startTimer()
  }

  /** Without a closing handshake. */
  terminate(error: WebSocketError | null = null): void {
    if (this.#state === 'closed') return
    this.#error ??= error
    this.#state = 'ending'
    this.#connection.receiver.destroy()
    destroyTransport(this.#connection.socket)
    this.#startTimer()
  }

  /** Fails the connection: sends a Close frame and ignores all further input (section 7.1.7). */
  fail(error: WebSocketError): void {
    if (this.#state === 'ending' || this.#state === 'closed') return
    this.#error ??= error
    this.#connection.receiver.destroy()
    if (!this.#sent) this.#sendClose(encodeClose(error.closeCode, error.message))
    this.#endTransport()
  }

  /** The peer broke a rule. */
  received(error: WebSocketError): void {
    this.#whenTaken(() => this.fail(error))
  }

  receivedClose(code: number | null, reason: string): void {
    this.#peerCode = code ?? 1005
    this.#peerReason = reason
    if (this.#sent) return this.#endTransport()
    this.#whenTaken(() => {
      if (this.#state !== 'open') return
      this.#sendClose(encodeClose(code, ''))
      this.#endTransport()
    })
  }

  /** The peer has ended its side of the transport; input received before is still handled. */
  inputEnded(): void {
    this.#inputEnded = true
    if (this.#state === 'ending') return void this.#connection.socket.end()
    this.inputTaken()
  }

  /** No input waits any more. */
  inputTaken(): void {
    if (!this.#inputEnded || this.#connection.receiver.paused) return
    if (this.#peerCode !== null || this.#deferred !== null) return
    this.#whenTaken(() => {
      if (this.#state === 'ending' || this.#state === 'closed') return
      this.#error ??= new ConnectionLostError('the peer ended its side without a Close frame')
      this.#endTransport()
    })
  }

  /** Ends the connection now if that waited for the program. */
  runDeferred(): boolean {
    const deferred = this.#deferred
    if (deferred === null) return false
    this.#deferred = null
    deferred()
    return true
  }

  transportClosed(): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    clearTimeout(this.#timer)
    this.#deferred = null
    this.#connection.receiver.destroy()
    this.#connection.sender.destroy()
    const lost = this.#peerCode === null && this.#error === null
    if (lost) this.#error = new ConnectionLostError('the transport closed without a Close frame')
    this.#info = {
      code: this.#peerCode ?? 1006,
      reason: this.#peerReason,
      wasClean: this.#sent && this.#error === null,
      error: this.#error,
    }
    this.#resolve?.(this.#info)
    this.#connection.gone(this.#info)
  }

  /** Calls `end` once an iterating program has taken all messages before it; see invariant 3. */
  #whenTaken(end: () => void): void {
    if (this.#state !== 'open' || !this.#connection.behind()) return end()
    this.#deferred = end
    this.#startTimer()
  }

  #sendClose(frame: Buffer): void {
    this.#state = 'closing'
    this.#sent = true
    this.#connection.sender.pushClose(frame)
  }

  #endTransport(): void {
    const { receiver, role, sender, socket } = this.#connection
    this.#state = 'ending'
    receiver.destroy()
    sender.finish()
    if (role === 'server' || this.#inputEnded) socket.end()
    socket.resume()
    this.#startTimer()
  }

  #startTimer(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      if (this.runDeferred()) return
      destroyTransport(this.#connection.socket)
      // A transport that is not from Node might never report its end.
      setImmediate(() => this.transportClosed())
    }, this.#connection.closeTimeoutMs)
    this.#timer.unref()
  }
}

/** Whether `socket` is one stream of an HTTP/2 session (RFC 8441). */
function isHttp2Stream(socket: Duplex): socket is Duplex & Http2Stream {
  return 'rstCode' in socket
}

/** An error code of HTTP/2 (RFC 9113, section 7). Loading `node:http2` for it would be slow. */
const CANCEL = 0x8

/** Ends a transport at once: with CANCEL on an HTTP/2 stream (RFC 8441, section 5). */
function destroyTransport(socket: Duplex): void {
  if (isHttp2Stream(socket)) socket.close(CANCEL)
  socket.destroy()
}
