import { hash as digest } from '../../internal/hash.js'
import { cautiousTime, type Clock, inSlices, steadyNow, systemClock } from '../../internal/time.js'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import { StoreError } from '../errors.js'
import { isTerminal, type RunOwner, type RunRecord, type RunStatus } from '../events.js'
import type { HoldoutStore } from '../holdout-store.js'
import { copyHead, foldHead } from '../log/head.js'
import type { ObjectStore, StoredObject } from '../object-store.js'
import type { RunHead } from '../run-details.js'
import type { RunPage, RunQuery, RunStore } from '../store.js'
import { checkAppend, checkPage } from './append-checks.js'
import { indexFields, type IndexedRun } from './indexed-run.js'
import { checkHash, checkLimit } from './object-checks.js'
import { checkRetention, type Retention } from './retention.js'
import { RunIndex } from './run-index.js'

/** Options of {@link MemoryStore}. */
export interface MemoryStoreOptions {
  /** Which ended runs are kept. @defaultValue the newest 10 000 */
  readonly retain?: Retention | undefined
  /** The time against which `retain.days` counts. @defaultValue the system's clock */
  readonly clock?: Clock | undefined
}

const OPTIONS: OptionKinds<MemoryStoreOptions> = { retain: 'object', clock: 'object' }

interface MemoryRun extends IndexedRun {
  readonly head: RunHead
  readonly records: RunRecord[]
}

/**
 * Keeps runs in the memory of this process only: for tests, and for hosts whose runs need not
 * outlive them. Appends resolve immediately, as nothing is made durable.
 */
export class MemoryStore implements RunStore {
  readonly objects: ObjectStore
  readonly holdouts: HoldoutStore = {
    put: async (runId, content) => {
      this.#checkOpen()
      this.#holdouts.set(runId, content.slice())
    },
    get: async (runId) => {
      this.#checkOpen()
      return this.#holdouts.get(runId) ?? null
    },
    remove: async (runId) => void this.#holdouts.delete(runId),
  }
  readonly #holdouts = new Map<string, Uint8Array>()
  readonly #index = new RunIndex<MemoryRun>()
  readonly #retain: Retention
  /** For ages: a run is not dropped early because the time of day was set. */
  readonly #now: () => number
  #onRemoved: (here: boolean) => void = () => undefined
  #state: 'new' | 'open' | 'closed' = 'new'

  constructor(options: MemoryStoreOptions = {}) {
    checkOptions(options, OPTIONS, 'new MemoryStore()')
    this.#retain = checkRetention(options.retain ?? { runs: 10_000 })
    const { clock = systemClock } = options
    this.#now = cautiousTime(clock)
    this.objects = new MemoryObjects(clock)
  }

  async open(): Promise<void> {
    if (this.#state === 'closed') this.#checkOpen()
    this.#state = 'open'
  }

  async append(runId: string, records: readonly RunRecord[]): Promise<void> {
    this.#checkOpen()
    const run = this.#index.get(runId)
    checkAppend(runId, records, run?.records.length ?? 0)
    if (run === undefined) {
      const [first, ...others] = records as [RunRecord, ...RunRecord[]]
      const head = others.reduce(foldHead, foldHead(null, first))
      this.#index.add({ ...indexFields(head), head, records: [...records] })
    } else {
      for (const record of records) {
        run.records.push(record)
        foldHead(run.head, record)
      }
      this.#index.update(run, run.head)
    }
    if (run === undefined || isTerminal(run.status)) this.#dropExpired()
  }

  async read(runId: string, after: number, limit: number): Promise<readonly RunRecord[]> {
    this.#checkOpen()
    checkPage(after, limit)
    return this.#index.get(runId)?.records.slice(after, after + limit) ?? []
  }

  async head(runId: string): Promise<RunHead | null> {
    this.#checkOpen()
    const run = this.#index.get(runId)
    return run === undefined ? null : copyHead(run.head)
  }

  async list(query: RunQuery): Promise<RunPage> {
    this.#checkOpen()
    return await inSlices(this.#page(query))
  }

  /** The heads are copied before anything can change them. */
  *#page(query: RunQuery): Generator<void, RunPage> {
    const { runs, next } = yield* this.#index.page(query)
    return { heads: runs.map(({ head }) => copyHead(head)), next }
  }

  async counts(): Promise<Readonly<Record<RunStatus, number>>> {
    this.#checkOpen()
    return this.#index.counts()
  }

  async findByKey(owner: RunOwner, key: string, since: number): Promise<RunHead | null> {
    this.#checkOpen()
    const run = this.#index.findByKey(owner, key, since)
    return run === undefined ? null : copyHead(run.head)
  }

  async hasForeignRun(folder: string, tenant: string | null): Promise<boolean> {
    this.#checkOpen()
    return this.#index.hasForeignRun(folder, tenant)
  }

  async operating(): Promise<readonly string[]> {
    this.#checkOpen()
    return this.#index.operating()
  }

  async delete(runId: string): Promise<void> {
    this.#checkOpen()
    const run = this.#index.get(runId)
    if (run !== undefined) this.#remove([run])
  }

  onRemoved(listener: (here: boolean) => void): void {
    this.#onRemoved = listener
  }

  #remove(runs: readonly MemoryRun[]): void {
    for (const run of runs) {
      this.#index.remove(run)
      this.#holdouts.delete(run.runId)
    }
    if (runs.length > 0) this.#onRemoved(true)
  }

  async close(): Promise<void> {
    this.#state = 'closed'
    await this.objects.close?.()
  }

  /** For `await using`; the same as `close()`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #dropExpired(): void {
    this.#remove(this.#index.expired(this.#retain, this.#now()).flat())
  }

  #checkOpen(): void {
    if (this.#state === 'open') return
    const what = this.#state === 'new' ? 'is not open yet; call open() first' : 'is closed'
    throw new StoreError('ERR_AGENT_STORE', `the store ${what}`)
  }
}

interface MemoryObject {
  readonly content: Uint8Array
  /** Milliseconds by the steady clock. */
  usedAt: number
}

/** How blobs are divided by the first digits of their hash: a page of hashes sorts few of them. */
const DIGITS = 2
const PARTS = 16 ** DIGITS

/** Keeps blobs in the memory of this process. */
export class MemoryObjects implements ObjectStore {
  readonly exclusive = true
  readonly #parts: Map<string, MemoryObject>[] = []
  readonly #clock: Clock
  #closed = false

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
  }

  async put(objects: readonly StoredObject[]): Promise<void> {
    this.#checkOpen()
    for (const { hash } of objects) checkHash(hash)
    const usedAt = steadyNow(this.#clock)
    for (const { hash, content } of objects) {
      const part = (this.#parts[partOf(hash)] ??= new Map())
      const known = part.get(hash)
      if (known !== undefined) known.usedAt = usedAt
      // Copied, because the caller may go on to use its buffer.
      else part.set(hash, { content: Uint8Array.from(content), usedAt })
    }
  }

  async get(hash: string): Promise<Uint8Array | null> {
    this.#checkOpen()
    checkHash(hash)
    const content = this.#find(hash)?.content
    if (content === undefined) return null
    if (digest('sha256', content) === hash) return content
    const problem = `the content of object ${hash} is not what was stored`
    throw new StoreError('ERR_AGENT_STORE_CORRUPT', problem)
  }

  async has(hashes: readonly string[]): Promise<ReadonlySet<string>> {
    this.#checkOpen()
    for (const hash of hashes) checkHash(hash)
    const usedAt = steadyNow(this.#clock)
    const found = new Set<string>()
    for (const hash of hashes) {
      const known = this.#find(hash)
      if (known === undefined) continue
      known.usedAt = usedAt
      found.add(hash)
    }
    return found
  }

  async list(after: string | null, limit: number): Promise<readonly string[]> {
    this.#checkOpen()
    if (after !== null) checkHash(after)
    checkLimit(limit)
    const page: string[] = []
    for (let i = after === null ? 0 : partOf(after); i < PARTS && page.length < limit; i++) {
      const hashes = [...(this.#parts[i]?.keys() ?? [])]
      const rest = after === null ? hashes : hashes.filter((hash) => hash > after)
      page.push(...rest.sort().slice(0, limit - page.length))
    }
    return page
  }

  async delete(hashes: readonly string[], unusedMs: number): Promise<void> {
    this.#checkOpen()
    for (const hash of hashes) checkHash(hash)
    const usedBefore = steadyNow(this.#clock) - unusedMs
    for (const hash of hashes) {
      const known = this.#find(hash)
      if (known === undefined || known.usedAt > usedBefore) continue
      this.#parts[partOf(hash)]?.delete(hash)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#parts.length = 0
  }

  #find(hash: string): MemoryObject | undefined {
    return this.#parts[partOf(hash)]?.get(hash)
  }

  #checkOpen(): void {
    if (this.#closed) throw new StoreError('ERR_AGENT_STORE', 'the object store is closed')
  }
}

function partOf(hash: string): number {
  return Number.parseInt(hash.slice(0, DIGITS), 16)
}
