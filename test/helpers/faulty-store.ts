import { MemoryStore, StoreError, type ObjectStore, type RunRecord } from 'runwright/agent'

export const FULL = 'the disk is full; free some space'

function unavailable(): StoreError {
  return new StoreError('ERR_AGENT_STORE_UNAVAILABLE', FULL)
}

/** A memory store that refuses appends, can be taken over, and survives a close. */
export class FaultyStore extends MemoryStore {
  /** Records of each append that was tried, and of those that succeeded. */
  readonly tried: (readonly RunRecord[])[] = []
  readonly stored: (readonly RunRecord[])[] = []
  /** Runs whose records were read. */
  readonly reads: string[] = []
  /** Refuse this append? */
  refuses: (runId: string, records: readonly RunRecord[]) => boolean = () => false
  readonly #lost = new AbortController()
  #onTry: (() => void)[] = []

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /** Another process takes the store over: every later call fails. */
  lose(): void {
    const message = 'another process has taken over the data directory'
    this.#lost.abort(new StoreError('ERR_AGENT_STORE_LOCKED', message))
  }

  override async append(runId: string, records: readonly RunRecord[]): Promise<void> {
    this.tried.push(records)
    for (const resolve of this.#onTry.splice(0)) resolve()
    this.#lost.signal.throwIfAborted()
    if (this.refuses(runId, records)) throw unavailable()
    await super.append(runId, records)
    this.stored.push(records)
  }

  override async read(
    runId: string,
    after: number,
    limit: number,
  ): Promise<readonly RunRecord[]> {
    this.#lost.signal.throwIfAborted()
    this.reads.push(runId)
    return await super.read(runId, after, limit)
  }

  async check(): Promise<void> {
    this.#lost.signal.throwIfAborted()
  }

  override async close(): Promise<void> {}

  /** Resolves when `condition` holds after some append was tried. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#onTry.push(resolve))
  }
}

/** Returns the objects of a store with some calls replaced. */
export function withCalls(objects: ObjectStore, calls: Partial<ObjectStore>): ObjectStore {
  return {
    put: (all) => objects.put(all),
    get: (hash) => objects.get(hash),
    has: (hashes) => objects.has(hashes),
    list: (after, limit) => objects.list(after, limit),
    delete: (hashes, unusedMs) => objects.delete(hashes, unusedMs),
    ...calls,
  }
}
