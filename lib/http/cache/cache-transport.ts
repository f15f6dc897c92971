import { raceAbort } from '../../internal/time.js'
import { checkOptions, type OptionKinds } from '../../internal/options.js'
import { checkCount } from '../config.js'
import { cacheErrorChannel, type CacheErrorEvent } from '../diagnostics.js'
import {
  ClientStateError,
  LocalProtocolError,
  TotalTimeoutError,
  TransportError,
} from '../errors.js'
import { drive, driveSync, settle, type Flow } from '../flow.js'
import { Headers } from '../headers.js'
import { printAs } from '../inspect.js'
import type { Request } from '../request.js'
import type {
  AsyncTransport,
  SyncByteStream,
  Transport,
  TransportResponse,
} from '../transports/base.js'
import { sameOrigin } from '../url.js'
import { BackgroundRequests } from './background.js'
import { AsyncStoringStream, BodyCopy, SyncStoringStream, type OpenBytes } from './body-copy.js'
import { cacheKey, Invalidations } from './cache-key.js'
import {
  backgroundRequest, CacheWishes, conditionalRequest, freshenedFields, hasConditions, isNotModified,
  isOutage, isSafe, isStorable, judge, mayHideError, storedFields, usesCache,
} from './rules.js'
import { MemoryCacheStore } from './memory-cache-store.js'
import {
  checkRecord,
  selectVariant,
  StoredResponse,
  varyOf,
  withVariant,
} from './stored-response.js'
import type { CachedResponse, CacheOutcome, CacheRecord, CacheStore } from './store.js'

/** Options of {@link CacheTransport}. */
export interface CacheTransportOptions {
  /** Where responses are kept. @defaultValue a new `MemoryCacheStore` */
  readonly store?: CacheStore | undefined
  /** Largest content that is stored, in bytes. @defaultValue 5 MiB */
  readonly maxEntryBytes?: number | undefined
  /**
   * Whether a response without explicit freshness is fresh for a tenth of the time since its
   * Last-Modified, at most a day (RFC 9111, section 4.2.2). @defaultValue false
   */
  readonly heuristic?: boolean | undefined
  /** Returns the time in ms since the Unix epoch. @defaultValue Date.now */
  readonly now?: (() => number) | undefined
}

const OPTIONS: OptionKinds<CacheTransportOptions> = {
  store: 'object', maxEntryBytes: 'number', heuristic: 'boolean', now: 'function',
}
const DEFAULT_MAX_ENTRY_BYTES = 5 * 1024 * 1024
/** Longest time for a request in the background, in ms. */
const BACKGROUND_MS = 60_000

/** One look at the cache: a request that it may answer. */
interface Lookup {
  readonly request: Request
  readonly key: string
  readonly wishes: CacheWishes
  /** The last invalidation before the server is asked. */
  readonly since: number
}

/**
 * Wraps a transport with a private HTTP cache (RFC 9111, RFC 5861): it answers GET and HEAD from
 * a store while that is fresh, and otherwise asks the server whether the stored response is still
 * right. It works with both clients, and what it did is in `response.extensions.cache`.
 *
 * Requests with other credentials (cookies, Authorization, and every field that is masked when
 * printed) never share a response. Transports that share a store share what is in it, so those with
 * different client certificates need different stores. Set-Cookie is not stored.
 *
 * A response is stored when it was read to its end. The body of a response larger than
 * `maxEntryBytes` passes through.
 *
 * @example
 * ```ts
 * const transport = new CacheTransport(new HttpTransport())
 * await using client = new AsyncClient({ transport })
 * const response = await client.get('https://api.example/items')
 * response.extensions.cache?.status // 'miss', and with the next call 'hit'
 * ```
 */
export class CacheTransport<T extends AsyncTransport | Transport>
  implements AsyncTransport, Transport
{
  readonly #inner: T
  readonly #store: CacheStore
  readonly #maxEntryBytes: number
  readonly #heuristic: boolean
  readonly #now: () => number
  readonly #background = new BackgroundRequests()
  readonly #invalidations = new Invalidations()
  readonly #openBytes: OpenBytes = { count: 0 }
  /** What was parsed already, for stores that return the same object again. */
  readonly #parsed = new WeakMap<CachedResponse, StoredResponse>()

  /**
   * @param transport - Makes the requests; closed with this one.
   * @throws TypeError naming the wrong option.
   */
  constructor(transport: T, options: CacheTransportOptions = {}) {
    checkOptions(options, OPTIONS, 'new CacheTransport()')
    const { store, maxEntryBytes, heuristic, now } = options
    this.#inner = transport
    this.#store = store ?? new MemoryCacheStore()
    this.#maxEntryBytes = checkCount('maxEntryBytes', maxEntryBytes ?? DEFAULT_MAX_ENTRY_BYTES, 0)
    this.#heuristic = heuristic ?? false
    this.#now = now ?? Date.now
  }

  handleRequest(request: Request): TransportResponse<SyncByteStream> & Promise<TransportResponse> {
    const flow = this.#answer(request)
    const answer: unknown = request.blocking ? driveSync(flow) : drive(flow)
    // Both interfaces share this method; `blocking` says which of them is in use.
    return answer as TransportResponse<SyncByteStream> & Promise<TransportResponse>
  }

  /** Ends requests in the background, and closes the transport that it wraps, but not the store. */
  close(): Promise<void> & void {
    const ended = this.#background.close()
    const close = (): unknown => this.#inner.close?.()
    return (ended === null ? close() : ended.then(close)) as Promise<void> & void
  }

  static {
    printAs(CacheTransport, () => '<CacheTransport>')
  }

  *#answer(request: Request): Flow<TransportResponse> {
    request.signal?.throwIfAborted()
    const wishes = new CacheWishes(request.headers)
    if (!usesCache(request, wishes)) return yield* this.#bypass(request)
    const key = cacheKey(request.url, request.headers, request.extensions)
    const stored = yield* this.#find(key, request)
    const lookup = { request, key, wishes, since: this.#invalidations.now }
    if (stored !== null) {
      const served = this.#serve(lookup, stored)
      if (served !== null) return served
    }
    if (wishes.onlyIfCached) return gatewayTimeout()
    if (hasConditions(request.headers)) return yield* this.#bypass(request)
    if (request.method === 'HEAD') return yield* this.#head(lookup, stored)
    return yield* this.#fetch(lookup, stored, true)
  }

  /** The stored response, if it can be used at once. */
  #serve(lookup: Lookup, stored: StoredResponse): TransportResponse | null {
    const { request, wishes } = lookup
    const now = this.#now()
    const verdict = judge(stored, wishes, now)
    if (verdict === 'validate') return null
    if (verdict !== 'refresh') {
      return fromStore(request, stored, verdict === 'fresh' ? 'hit' : 'stale', now)
    }
    if (request.blocking || request.method === 'HEAD' || wishes.onlyIfCached) return null
    this.#refresh(lookup, stored)
    return fromStore(request, stored, 'stale', now)
  }

  /** A request that the cache has no part in, but for what it invalidates. */
  *#bypass(request: Request): Flow<TransportResponse> {
    const raw = yield* settle<TransportResponse>(this.#inner.handleRequest(request))
    if (!isSafe(request.method) && raw.statusCode >= 200 && raw.statusCode < 400) {
      yield* this.#invalidate(request, raw.headers)
    }
    return withOutcome(raw, { status: 'bypass', ageMs: null })
  }

  /** Forgets what a request has changed (RFC 9111, section 4.4). */
  *#invalidate(request: Request, response: Headers): Flow<void> {
    const { url, headers, extensions } = request
    const keys = new Set([cacheKey(url, headers, extensions), cacheKey(url, null, {})])
    for (const name of ['location', 'content-location']) {
      const value = response.get(name)
      if (value === null || !URL.canParse(value, url.href)) continue
      const other = new URL(value, url)
      if (!sameOrigin(other, url)) continue
      keys.add(cacheKey(other, headers, {})).add(cacheKey(other, null, {}))
    }
    for (const key of keys) yield* this.#forget(key, request)
  }

  *#forget(key: string, request: Request): Flow<void> {
    this.#invalidations.add(key)
    yield* this.#ask('delete', request, () => this.#store.delete(key))
  }

  *#head(lookup: Lookup, stored: StoredResponse | null): Flow<TransportResponse> {
    const { request, key } = lookup
    const requestedAt = this.#now()
    const raw = yield* settle<TransportResponse>(this.#inner.handleRequest(request))
    if (stored !== null && raw.statusCode === stored.facts.statusCode) {
      // RFC 9111, section 4.3.5.
      const isSame = ['etag', 'last-modified', 'content-length'].every((name) => {
        return !raw.headers.has(name) || raw.headers.get(name) === stored.headers.get(name)
      })
      if (isSame) yield* this.#freshen(lookup, stored, raw, requestedAt)
      else yield* this.#forget(key, request)
    }
    return withOutcome(raw, { status: 'miss', ageMs: null })
  }

  /**
   * Asks the server, with the validators of what is stored.
   *
   * @param hidesErrors - whether stale-if-error applies.
   */
  *#fetch(
    lookup: Lookup,
    stored: StoredResponse | null,
    hidesErrors: boolean,
  ): Flow<TransportResponse> {
    const { request, wishes } = lookup
    const mayHide = (): boolean =>
      hidesErrors && stored !== null && mayHideError(stored, wishes, this.#now())
    const validates = stored?.canBeValidated === true
    const outgoing = validates ? conditionalRequest(request, stored) : request
    const requestedAt = this.#now()
    let raw: TransportResponse
    try {
      raw = yield* settle<TransportResponse>(this.#inner.handleRequest(outgoing))
    } catch (error) {
      if (!isFailureOfServer(error) || !mayHide()) throw error
      return fromStore(request, stored!, 'stale', this.#now())
    }
    if (validates && raw.statusCode === 304) {
      yield* settle(raw.stream.close?.())
      const fresh = yield* this.#freshen(lookup, stored, raw, requestedAt)
      return fromStore(request, fresh, 'revalidated', this.#now(), raw)
    }
    if (isOutage(raw.statusCode) && mayHide()) {
      yield* settle(raw.stream.close?.())
      return fromStore(request, stored!, 'stale', this.#now())
    }
    return yield* this.#received(lookup, stored, raw, requestedAt)
  }

  /** A response of the server, which is stored as it is read. */
  *#received(
    lookup: Lookup,
    stored: StoredResponse | null,
    raw: TransportResponse,
    requestedAt: number,
  ): Flow<TransportResponse> {
    const { request, key } = lookup
    const outcome = { status: 'miss', ageMs: null } as const
    const facts = this.#factsOf(request, raw, requestedAt)
    const length = Number(raw.headers.get('content-length') ?? 0)
    if (facts === null || length > this.#maxEntryBytes) {
      // An error may pass; anything else shows that the stored response is no longer right.
      if (stored !== null && raw.statusCode < 500) yield* this.#forget(key, request)
      return withOutcome(raw, outcome)
    }
    // Client refuses asynchronous content, and says so.
    if (request.blocking && !(Symbol.iterator in raw.stream)) return withOutcome(raw, outcome)
    const copy = new BodyCopy(this.#maxEntryBytes, this.#openBytes)
    const save = (body: Uint8Array): Flow<void> => this.#save(lookup, { ...facts, body })
    const stream = request.blocking
      ? new SyncStoringStream(raw.stream as SyncByteStream, copy, (body) => driveSync(save(body)))
      : new AsyncStoringStream(raw.stream, copy, (body) => drive(save(body)))
    return { ...withOutcome(raw, outcome), stream }
  }

  /** What is to be stored of a response, without its body; null if it may not be. */
  #factsOf(request: Request, raw: TransportResponse, requestedAt: number): CachedResponse | null {
    const { statusCode, headers } = raw
    const vary = varyOf(headers, request.headers)
    if (vary === null) return null
    const facts: CachedResponse = {
      statusCode,
      reasonPhrase: raw.reasonPhrase ?? null,
      httpVersion: raw.httpVersion ?? 'HTTP/1.1',
      headers: storedFields(headers),
      body: NO_BYTES,
      vary,
      requestedAt,
      receivedAt: this.#now(),
    }
    const setsCookies = headers.has('set-cookie') || headers.has('set-cookie2')
    return isStorable(new StoredResponse(facts, this.#heuristic), setsCookies) ? facts : null
  }

  /** Updates a stored response by the fields of `raw`, and stores it again. */
  *#freshen(
    lookup: Lookup,
    stored: StoredResponse,
    raw: TransportResponse,
    requestedAt: number,
  ): Flow<StoredResponse> {
    const headers = freshenedFields(stored.facts, raw.headers)
    const vary = varyOf(new Headers(headers), lookup.request.headers)
    const receivedAt = this.#now()
    const facts = { ...stored.facts, headers, vary: vary ?? [], requestedAt, receivedAt }
    const fresh = new StoredResponse(facts, this.#heuristic)
    if (vary !== null && isStorable(fresh, false)) yield* this.#save(lookup, facts)
    else yield* this.#forget(lookup.key, lookup.request)
    return fresh
  }

  *#save({ request, key, since }: Lookup, facts: CachedResponse): Flow<void> {
    const length = facts.headers.find(([name]) => name.toLowerCase() === 'content-length')?.[1]
    if (length !== undefined && length !== String(facts.body.length)) return
    // Again, as it may have changed while the response was on its way.
    const record = yield* this.#read(key, request)
    if (this.#invalidations.since(since, key)) return
    yield* this.#ask('set', request, () => this.#store.set(key, withVariant(record, facts)))
  }

  *#find(key: string, request: Request): Flow<StoredResponse | null> {
    const record = yield* this.#read(key, request)
    if (record === null) return null
    return yield* this.#ask('get', request, () =>
      selectVariant(record, request.headers, (facts) => this.#parse(facts)),
    )
  }

  *#read(key: string, request: Request): Flow<CacheRecord | null> {
    const found = yield* this.#ask('get', request, () => this.#store.get(key))
    return found === null ? null : yield* this.#ask('get', request, () => checkRecord(found))
  }

  #parse(facts: CachedResponse): StoredResponse {
    let stored = this.#parsed.get(facts)
    if (stored === undefined) {
      this.#parsed.set(facts, (stored = new StoredResponse(facts, this.#heuristic)))
    }
    return stored
  }

  /** Calls the store; null when it fails, which is published. */
  *#ask<R>(
    operation: CacheErrorEvent['operation'],
    request: Request,
    call: () => R | PromiseLike<R>,
  ): Flow<R | null> {
    try {
      const result = call()
      if (!isPromise(result)) return result ?? null
      const work = Promise.resolve(result)
      if (request.blocking && operation === 'set') {
        work.catch((error: unknown) => publish(operation, request, error))
        return null
      }
      const { signal } = request
      return (yield* settle<R>(signal === null ? work : raceAbort(work, signal))) ?? null
    } catch (error) {
      // A store that is asynchronous in a client that is not: an error of the program.
      if (error instanceof ClientStateError) throw error
      request.signal?.throwIfAborted()
      publish(operation, request, error)
      return null
    }
  }

  /** Replaces `stored` in the background (RFC 5861, section 3). */
  #refresh({ request, key, wishes, since }: Lookup, stored: StoredResponse): void {
    const limitMs = request.timeouts?.total ?? BACKGROUND_MS
    this.#background.start(key, limitMs, async (signal) => {
      const again = backgroundRequest(request, signal)
      try {
        const lookup = { request: again, key, wishes, since }
        const { stream } = await drive(this.#fetch(lookup, stored, false))
        if (stream instanceof AsyncStoringStream) await stream.drain()
        else await stream.close?.()
      } catch (error) {
        publish('revalidate', again, error)
      }
    })
  }
}

const NO_BYTES = new Uint8Array(0)

/** Whether no response came for a reason that stale-if-error covers. */
function isFailureOfServer(error: unknown): boolean {
  if (error instanceof TotalTimeoutError || error instanceof LocalProtocolError) return false
  return error instanceof TransportError
}

function publish(
  operation: CacheErrorEvent['operation'],
  request: Request,
  error: unknown,
): void {
  if (!cacheErrorChannel.hasSubscribers) return
  cacheErrorChannel.publish({ operation, request, error } satisfies CacheErrorEvent)
}

function isPromise<R>(value: R | PromiseLike<R>): value is PromiseLike<R> {
  return typeof (value as PromiseLike<R> | null | undefined)?.then === 'function'
}

/** A stored response for a request; a 304 if the caller has it already. */
function fromStore(
  request: Request,
  stored: StoredResponse,
  status: CacheOutcome['status'],
  now: number,
  confirmation: TransportResponse | null = null,
): TransportResponse {
  const { statusCode, httpVersion, body } = stored.facts
  const reasonPhrase = stored.facts.reasonPhrase ?? undefined
  const headers = new Headers(stored.headers)
  const ageMs = stored.ageAt(now)
  // The cookies of a 304 are for the one who gets it, and are not stored.
  for (const cookie of confirmation?.headers.getList('set-cookie') ?? []) {
    headers.append('Set-Cookie', cookie)
  }
  if (confirmation === null) headers.set('Age', String(Math.floor(ageMs / 1000)))
  const extensions = { ...confirmation?.extensions, cache: { status, ageMs } }
  if (isNotModified(request.headers, stored)) {
    headers.delete('content-length')
    const phrase = 'Not Modified'
    return { statusCode: 304, reasonPhrase: phrase, httpVersion, headers, stream: [], extensions }
  }
  // A copy, so that callers cannot change what is stored.
  const stream = request.method === 'HEAD' || body.length === 0 ? [] : [new Uint8Array(body)]
  const timings = confirmation?.timings
  return { statusCode, reasonPhrase, httpVersion, headers, stream, extensions, timings }
}

/** For only-if-cached (RFC 9111, section 5.2.1.7). */
function gatewayTimeout(): TransportResponse {
  return {
    statusCode: 504,
    reasonPhrase: 'Gateway Timeout',
    headers: new Headers(),
    stream: [],
    extensions: { cache: { status: 'miss', ageMs: null } satisfies CacheOutcome },
  }
}

function withOutcome(raw: TransportResponse, cache: CacheOutcome): TransportResponse {
  const { statusCode, reasonPhrase, httpVersion, headers, stream, trailers, timings } = raw
  const extensions = { ...raw.extensions, cache }
  return { statusCode, reasonPhrase, httpVersion, headers, stream, trailers, extensions, timings }
}
