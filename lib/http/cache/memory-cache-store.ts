import { checkOptions, type OptionKinds } from '../../internal/options.js'
import { checkCount } from '../config.js'
import { printAs } from '../inspect.js'
import type { CacheRecord, CachedResponse, CacheStore } from './store.js'

/** Options of {@link MemoryCacheStore}. */
export interface MemoryCacheStoreOptions {
  /** Most bytes to hold, with an estimate of what objects take. @defaultValue 64 MiB */
  readonly maxBytes?: number | undefined
}

const OPTIONS: OptionKinds<MemoryCacheStoreOptions> = { maxBytes: 'number' }
const DEFAULT_MAX_BYTES = 64 * 1024 * 1024

/** Bytes of the objects around a record, a response and a field, roughly as V8 has them. */
const RECORD_BYTES = 400
const RESPONSE_BYTES = 1500
const FIELD_BYTES = 150

/**
 * Holds responses in memory, up to a number of bytes. What was used longest ago is forgotten first;
 * a record larger than the limit is not kept.
 *
 * @example
 * ```ts
 * const store = new MemoryCacheStore({ maxBytes: 16 * 1024 * 1024 })
 * const transport = new CacheTransport(new HttpTransport(), { store })
 * ```
 */
export class MemoryCacheStore implements CacheStore {
  readonly #maxBytes: number
  /** In the order of use, oldest first. */
  readonly #records = new Map<string, { readonly record: CacheRecord; readonly bytes: number }>()
  #bytes = 0

  /** @throws TypeError naming the wrong option. */
  constructor(options: MemoryCacheStoreOptions = {}) {
    checkOptions(options, OPTIONS, 'new MemoryCacheStore()')
    this.#maxBytes = checkCount('maxBytes', options.maxBytes ?? DEFAULT_MAX_BYTES, 0)
  }

  /** Bytes that are held, at most `maxBytes`. */
  get bytes(): number {
    return this.#bytes
  }

  /** The number of records: URLs, counted once for each set of credentials. */
  get size(): number {
    return this.#records.size
  }

  get(key: string): CacheRecord | null {
    const held = this.#records.get(key)
    if (held === undefined) return null
    this.#records.delete(key)
    this.#records.set(key, held)
    return held.record
  }

  set(key: string, record: CacheRecord): void {
    this.delete(key)
    const bytes = bytesOf(key, record)
    if (bytes > this.#maxBytes) return
    this.#records.set(key, { record, bytes })
    this.#bytes += bytes
    for (const oldest of this.#records.keys()) {
      if (this.#bytes <= this.#maxBytes) return
      this.delete(oldest)
    }
  }

  delete(key: string): void {
    this.#bytes -= this.#records.get(key)?.bytes ?? 0
    this.#records.delete(key)
  }

  /** Forgets everything. */
  clear(): void {
    this.#records.clear()
    this.#bytes = 0
  }

  static {
    printAs(MemoryCacheStore, (self) => {
      return `<MemoryCacheStore [${self.size} records, ${self.bytes} of ${self.#maxBytes} bytes]>`
    })
  }
}

function bytesOf(key: string, record: CacheRecord): number {
  const responses = record.variants.reduce((sum, response) => sum + responseBytes(response), 0)
  return RECORD_BYTES + key.length + responses
}

function responseBytes({ headers, vary, body }: CachedResponse): number {
  let bytes = RESPONSE_BYTES + body.buffer.byteLength
  for (const [name, value] of [...headers, ...vary]) {
    bytes += FIELD_BYTES + name.length + (value?.length ?? 0)
  }
  return bytes
}
