import type { KeepAlive } from './config.js'
import { keepAliveTick, type WebSocketConnection } from './connection.js'

/** Ticks per interval: each pings the connections of one slot, so that no tick takes long. */
const KEEP_ALIVE_SLOTS = 8

/** One timer that pings all connections of a server, each once per interval. */
export class KeepAliveTimer {
  readonly #connections: ReadonlySet<WebSocketConnection>
  readonly #tickMs: number
  readonly #maxSilentIntervals: number
  #ticks = 0
  #timer: NodeJS.Timeout | undefined

  constructor(
    { intervalMs, timeoutMs }: KeepAlive,
    connections: ReadonlySet<WebSocketConnection>,
  ) {
    this.#connections = connections
    this.#tickMs = intervalMs / KEEP_ALIVE_SLOTS
    this.#maxSilentIntervals = Math.ceil(timeoutMs / intervalMs)
  }

  /** Runs while there are connections; does not keep the process alive. */
  start(): void {
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => this.#tick(), this.#tickMs)
    this.#timer.unref()
  }

  #tick(): void {
    if (this.#connections.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
      return
    }
    const slot = this.#ticks++ % KEEP_ALIVE_SLOTS
    for (const connection of this.#connections) {
      if (connection.id % KEEP_ALIVE_SLOTS !== slot) continue
      keepAliveTick(connection, this.#maxSilentIntervals)
    }
  }
}
