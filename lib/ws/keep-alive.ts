import type { KeepAlive as KeepAliveConfig } from './config.js'
import { friend, type WebSocketConnection } from './connection.js'

/** The pings of an interval are spread over so many turns of the timer, so that none is long. */
export const KEEP_ALIVE_SLOTS = 8

/** One timer that pings all connections of a server, each once per interval. */
export class KeepAlive {
  readonly #connections: ReadonlySet<WebSocketConnection>
  readonly #everyMs: number
  readonly #patience: number
  #turn = 0
  #timer: NodeJS.Timeout | undefined

  constructor(
    { intervalMs, timeoutMs }: KeepAliveConfig,
    connections: ReadonlySet<WebSocketConnection>,
  ) {
    this.#connections = connections
    this.#everyMs = intervalMs / KEEP_ALIVE_SLOTS
    this.#patience = Math.ceil(timeoutMs / intervalMs)
  }

  /** Runs for as long as there are connections; does not keep the process alive. */
  start(): void {
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => this.#beat(), this.#everyMs)
    this.#timer.unref()
  }

  #beat(): void {
    if (this.#connections.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
      return
    }
    const slot = this.#turn++ % KEEP_ALIVE_SLOTS
    for (const connection of this.#connections) friend.beat(connection, slot, this.#patience)
  }
}
