/** A response as a store holds it: plain data, for `structuredClone` and `v8.serialize`. */
export interface CachedResponse {
  readonly statusCode: number
  /** Null where the protocol has none: the registered phrase. */
  readonly reasonPhrase: string | null
  readonly httpVersion: string
  /** Name and value of each field; those of one connection and Set-Cookie are left out. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The content as it arrived, still in its Content-Encoding. */
  readonly body: Uint8Array
  /** The request fields that Vary names, in lower case, and what the request had: null for none. */
  readonly vary: readonly (readonly [name: string, value: string | null])[]
  /** When the request was sent, in ms since the Unix epoch. */
  readonly requestedAt: number
  /** When the response head arrived, in ms since the Unix epoch. */
  readonly receivedAt: number
}

/** What a store holds under one key: at most 8 responses, which differ by Vary, newest first. */
export interface CacheRecord {
  /** The form of this record. Records of another version are ignored. */
  readonly version: 1
  readonly variants: readonly CachedResponse[]
}

/**
 * Where a `CacheTransport` keeps responses. A `Map` is one; a file or Redis takes a few lines, with
 * `v8.serialize(record)`. Methods may return promises, but for `Client` `get` and `delete` may not.
 *
 * A store may forget any record at any time. When a method throws or rejects, or `get` returns
 * something else than a record, the request goes to the server, and the error is published on the
 * diagnostics channel `runwright.http.cache`.
 *
 * @example
 * ```ts
 * const store: CacheStore = {
 *   get: async (key) => {
 *     const bytes = await redis.getBuffer(key)
 *     return bytes === null ? null : deserialize(bytes)
 *   },
 *   set: (key, record) => redis.set(key, serialize(record)),
 *   delete: (key) => redis.del(key),
 * }
 * ```
 */
export interface CacheStore {
  /**
   * The record of a key; null or undefined for none. Keys are 64 hexadecimal digits: a hash of the
   * URL and the credentials of a request.
   */
  get(
    key: string,
  ): CacheRecord | null | undefined | PromiseLike<CacheRecord | null | undefined>
  /** Keeps the record, which is not changed afterwards, in place of what the key had. */
  set(key: string, record: CacheRecord): unknown
  /** Forgets the record of a key, if there is one. */
  delete(key: string): unknown
}

/** What a cache did for a response: its `extensions.cache`. */
export interface CacheOutcome {
  /**
   * - `hit`: from the store, and fresh;
   * - `stale`: from the store, although no longer fresh: a directive of the server or the request
   *   allowed it (stale-while-revalidate, stale-if-error, max-stale);
   * - `revalidated`: from the store, after the server answered 304;
   * - `miss`: from the server, as nothing stored could be used; 504 if the request says
   *   only-if-cached;
   * - `bypass`: from the server, as the request does not use the cache: another method than GET
   *   and HEAD, a body, no-store, a range, or conditions of its own that the store cannot answer.
   */
  readonly status: 'hit' | 'stale' | 'revalidated' | 'miss' | 'bypass'
  /** How long ago the server made or confirmed the response, in ms; null if it just did. */
  readonly ageMs: number | null
}
