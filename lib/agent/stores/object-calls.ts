import { StoreError } from '../errors.js'
import { checkHash } from './object-checks.js'

/** The calls in flight to a store of objects: it is closed once they have ended. */
export class ObjectCalls {
  readonly #calls = new Set<Promise<unknown>>()
  readonly #checkOpen: () => void
  #isClosed = false

  /** @param checkOpen - throws while the store of runs is not open. */
  constructor(checkOpen: () => void) {
    this.#checkOpen = checkOpen
  }

  /** @throws TypeError for what is no hash; {@link StoreError} while the store is not open. */
  async run<T>(hashes: readonly string[], work: () => Promise<T>): Promise<T> {
    for (const hash of hashes) checkHash(hash)
    if (this.#isClosed) throw new StoreError('ERR_AGENT_STORE', 'the store is closed')
    this.#checkOpen()
    const call = work()
    this.#calls.add(call)
    try {
      return await call
    } finally {
      this.#calls.delete(call)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.allSettled(this.#calls)
  }
}
