import type { Socket } from 'node:net'
import { MAX_TIMER_MS } from '../../config.js'

/**
 * Pings a connection that was silent for `intervalMs`, and declares it dead when it stays silent
 * for as long again. An idle connection, or a stream without a read timeout, would not notice.
 */
export class HealthCheck {
  readonly #socket: Socket
  readonly #timer: NodeJS.Timeout | null
  readonly #ping: () => void
  readonly #onDead: () => void
  #pendingVerdict: NodeJS.Immediate | undefined
  #pinged = false
  #bytesSeen = 0

  /** @param intervalMs - `null` switches the check off. */
  constructor(socket: Socket, intervalMs: number | null, ping: () => void, onDead: () => void) {
    this.#socket = socket
    this.#ping = ping
    this.#onDead = onDead
    this.#timer =
      intervalMs === null
        ? null
        : setTimeout(() => this.#check(), Math.min(intervalMs, MAX_TIMER_MS)).unref()
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    clearImmediate(this.#pendingVerdict)
  }

  #check(): void {
    const bytesRead = this.#socket.bytesRead
    if (bytesRead !== this.#bytesSeen) {
      this.#bytesSeen = bytesRead
      this.#pinged = false
    } else if (this.#pinged) {
      // If this process was blocked, the reply may have arrived unread: read the socket first.
      this.#pendingVerdict = setImmediate(() => this.#judge())
      return
    } else {
      this.#pinged = true
      this.#ping()
    }
    this.#timer?.refresh()
  }

  #judge(): void {
    if (this.#socket.bytesRead === this.#bytesSeen) this.#onDead()
    else this.#check()
  }
}
