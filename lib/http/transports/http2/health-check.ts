import type { Socket } from 'node:net'
import { Timer } from '../../timer-wheel.js'

/**
 * Pings a connection that was silent for `intervalMs`, and declares it dead when it stays silent
 * for as long again. An idle connection, or a stream without a read timeout, would not notice.
 */
export class HealthCheck {
  readonly #socket: Socket
  readonly #timer = new Timer((ms) => this.#check(ms))
  readonly #ping: () => void
  readonly #onDead: () => void
  #pinged = false
  #bytesSeen = 0

  /** @param intervalMs - `null` switches the check off. */
  constructor(socket: Socket, intervalMs: number | null, ping: () => void, onDead: () => void) {
    this.#socket = socket
    this.#ping = ping
    this.#onDead = onDead
    this.#timer.start(intervalMs)
  }

  stop(): void {
    this.#timer.clear()
  }

  #check(ms: number): void {
    const bytesRead = this.#socket.bytesRead
    const silent = bytesRead === this.#bytesSeen
    this.#bytesSeen = bytesRead
    if (silent && this.#pinged) return this.#onDead()
    this.#pinged = silent
    if (silent) this.#ping()
    this.#timer.start(ms)
  }
}
