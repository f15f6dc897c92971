import type { Socket } from 'node:net'
import { MAX_TIMER_MS } from '../../config.js'

/**
 * Asks a connection that was silent for `intervalMs` whether it lives, and gives it up when it is
 * silent as long again: neither an idle one nor a stream without a read limit would notice.
 */
export class HealthCheck {
  readonly #socket: Socket
  readonly #timer: NodeJS.Timeout | null
  readonly #ask: () => void
  readonly #giveUp: () => void
  #verdict: NodeJS.Immediate | undefined
  #asked = false
  #heard = 0

  /** @param intervalMs - `null` never asks. */
  constructor(socket: Socket, intervalMs: number | null, ask: () => void, giveUp: () => void) {
    this.#socket = socket
    this.#ask = ask
    this.#giveUp = giveUp
    this.#timer =
      intervalMs === null
        ? null
        : setTimeout(() => this.#check(), Math.min(intervalMs, MAX_TIMER_MS)).unref()
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    clearImmediate(this.#verdict)
  }

  #check(): void {
    const heard = this.#socket.bytesRead
    if (heard !== this.#heard) {
      this.#heard = heard
      this.#asked = false
    } else if (this.#asked) {
      // Where this process was held up, the answer is there and was not read yet: it is read first.
      this.#verdict = setImmediate(() => this.#judge())
      return
    } else {
      this.#asked = true
      this.#ask()
    }
    this.#timer?.refresh()
  }

  #judge(): void {
    if (this.#socket.bytesRead === this.#heard) this.#giveUp()
    else this.#check()
  }
}
