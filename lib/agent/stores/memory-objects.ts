import { hash as digest } from '../../internal/checksums.js'
import { steadyNow, systemClock, type Clock } from '../../internal/clock.js'
import { StoreError } from '../errors.js'
import type { ObjectStore, StoredObject } from '../object-store.js'
import { checkHash, checkLimit } from './object-checks.js'

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
