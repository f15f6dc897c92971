import { abortListeners } from '../internal/abort.js'
import type { WebSocketMessage } from './receiver.js'

/** Added to the size of each message, so that a flood of empty ones is bounded too. */
const MESSAGE_OVERHEAD_BYTES = 64

interface Waiter {
  resolve(result: IteratorResult<WebSocketMessage, undefined>): void
  reject(reason: unknown): void
}

/** Received messages that the program has not taken yet, oldest first. */
export class MessageQueue {
  readonly #limitBytes: number
  readonly #onTake: () => void
  readonly #queue: WebSocketMessage[] = []
  readonly #waiters: Waiter[] = []
  #bytes = 0
  #ended = false

  /** `onTake` is called when the program takes a message and when it starts to wait for one. */
  constructor(limitBytes: number, onTake: () => void) {
    this.#limitBytes = limitBytes
    this.#onTake = onTake
  }

  /** Whether a {@link take} is waiting for the next message. */
  get awaited(): boolean {
    return this.#waiters.length > 0
  }

  get hasRoom(): boolean {
    return this.#bytes < this.#limitBytes
  }

  /** Adds a message; false when the queue is full, so that reading should pause. */
  push(message: WebSocketMessage): boolean {
    const waiter = this.#waiters.shift()
    if (waiter !== undefined) {
      waiter.resolve({ done: false, value: message })
      return true
    }
    this.#queue.push(message)
    this.#bytes += weigh(message)
    return this.hasRoom
  }

  /** Takes the oldest message, waiting for one if need be; `done` after the end. */
  take(signal?: AbortSignal): Promise<IteratorResult<WebSocketMessage, undefined>> {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error)
    const message = this.#shift()
    if (message !== undefined) {
      this.#onTake()
      return Promise.resolve({ done: false, value: message })
    }
    if (this.#ended) return Promise.resolve({ done: true, value: undefined })
    const next = this.#wait(signal)
    this.#onTake()
    return next
  }

  /** Empties the queue into `take`, without calling `onTake`. */
  drain(take: (message: WebSocketMessage) => void): void {
    for (let message = this.#shift(); message !== undefined; message = this.#shift()) take(message)
  }

  /** No message will follow: {@link take} returns what is left, then `done`. */
  end(): void {
    this.#ended = true
    for (const waiter of this.#waiters.splice(0)) waiter.resolve({ done: true, value: undefined })
  }

  #shift(): WebSocketMessage | undefined {
    const message = this.#queue.shift()
    if (message !== undefined) this.#bytes -= weigh(message)
    return message
  }

  #wait(signal: AbortSignal | undefined): Promise<IteratorResult<WebSocketMessage, undefined>> {
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject }
      this.#waiters.push(waiter)
      if (signal === undefined) return
      // One signal may serve many connections, so they share its event listener.
      const aborts = abortListeners(signal)
      const abort = (reason: unknown): void => {
        const at = this.#waiters.indexOf(waiter)
        if (at !== -1) this.#waiters.splice(at, 1)
        reject(reason as Error)
      }
      aborts.add(abort)
      waiter.resolve = (result) => {
        aborts.delete(abort)
        resolve(result)
      }
    })
  }
}

function weigh(message: WebSocketMessage): number {
  return message.length + MESSAGE_OVERHEAD_BYTES
}
