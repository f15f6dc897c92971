/** Most requests in the background at once. */
const MAX_REQUESTS = 16

interface Running {
  readonly controller: AbortController
  readonly done: Promise<void>
}

/** Requests that nobody waits for: one per key, a bounded number, ended by `close()`. */
export class BackgroundRequests {
  readonly #running = new Map<string, Running>()
  #closed = false

  /** Starts `work`, which must not reject, unless it is running or too much is. */
  start(key: string, limitMs: number, work: (signal: AbortSignal) => Promise<void>): void {
    if (this.#closed || this.#running.has(key) || this.#running.size >= MAX_REQUESTS) return
    const controller = new AbortController()
    const timer = setTimeout(() => {
      controller.abort(new Error(`the request in the background took over ${limitMs} ms`))
    }, limitMs)
    timer.unref()
    const done = work(controller.signal).finally(() => {
      clearTimeout(timer)
      this.#running.delete(key)
    })
    this.#running.set(key, { controller, done })
  }

  /** Aborts what is running. Null if there is nothing to wait for. */
  close(): Promise<unknown> | null {
    this.#closed = true
    if (this.#running.size === 0) return null
    const reason = new Error('the cache transport was closed')
    for (const { controller } of this.#running.values()) controller.abort(reason)
    return Promise.all([...this.#running.values()].map(({ done }) => done))
  }
}
