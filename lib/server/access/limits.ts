/**
 * Limits per principal: a rate of requests with a burst, concurrent requests, and open streams.
 * Without `authorize` all callers count as one principal.
 *
 * @module
 */
import { ProblemError } from '../errors.js'

/** Limits per principal; `null` sets no limit. */
export interface LimitSettings {
  /** Average rate. @defaultValue null */
  readonly requestsPerSecond: number | null
  /** Requests that may arrive at once after a pause. @defaultValue twice `requestsPerSecond` */
  readonly burst: number
  /** Requests being answered at the same time; streams do not count. @defaultValue null */
  readonly concurrentRequests: number | null
  /** Open streams of both kinds. @defaultValue null */
  readonly openStreams: number | null
}

/** Principals in memory; beyond it, the least recently active ones are dropped. */
const MAX_PRINCIPALS = 10_000
/** Retry-After of a principal with too many concurrent requests or streams, in seconds. */
const BUSY_RETRY_SECONDS = 1

interface Account {
  /** When the token bucket will be full again, in ms of the clock. */
  fullAt: number
  requests: number
  streams: number
}

/** Counts in memory, so several processes each grant the limits in full. */
export class Limiter {
  readonly #settings: LimitSettings
  readonly #now: () => number
  readonly #accounts = new Map<string, Account>()

  /** `now` reads a monotonic clock, in ms. */
  constructor(settings: LimitSettings, now: () => number = () => performance.now()) {
    this.#settings = settings
    this.#now = now
  }

  /** Principals in memory; read by tests. */
  get size(): number {
    return this.#accounts.size
  }

  /**
   * Admits a request. The function returned releases its slot once it is answered.
   *
   * @throws {@link ProblemError} 429 with `Retry-After`.
   */
  admitRequest(principal: string): () => void {
    const { concurrentRequests } = this.#settings
    const account = this.#account(principal)
    this.#takeToken(account)
    if (concurrentRequests !== null && account.requests >= concurrentRequests) {
      throw tooMany(`${concurrentRequests} concurrent requests`)
    }
    account.requests += 1
    return once(() => (account.requests -= 1))
  }

  /**
   * Admits a stream, besides its request. The function returned releases its slot at its end.
   *
   * @throws {@link ProblemError} 429 with `Retry-After`.
   */
  admitStream(principal: string): () => void {
    const { openStreams } = this.#settings
    const account = this.#account(principal)
    if (openStreams !== null && account.streams >= openStreams) {
      throw tooMany(`${openStreams} open streams`)
    }
    account.streams += 1
    return once(() => (account.streams -= 1))
  }

  #takeToken(account: Account): void {
    const { requestsPerSecond, burst } = this.#settings
    if (requestsPerSecond === null) return
    const now = this.#now()
    const price = 1_000 / requestsPerSecond
    const fullAt = Math.max(account.fullAt, now) + price
    const waitMs = fullAt - now - burst * price
    if (waitMs > 1e-6) {
      const seconds = Math.max(1, Math.ceil(waitMs / 1_000))
      const detail = `at most ${requestsPerSecond} requests per second`
      throw new ProblemError(429, 'rate_limited', detail, {
        headers: { 'Retry-After': String(seconds) },
      })
    }
    account.fullAt = fullAt
  }

  #account(principal: string): Account {
    const account = this.#accounts.get(principal) ?? { fullAt: 0, requests: 0, streams: 0 }
    // Deleted first, so that the least recently active principal stays first.
    this.#accounts.delete(principal)
    this.#accounts.set(principal, account)
    if (this.#accounts.size > MAX_PRINCIPALS) this.#evictOne()
    return account
  }

  /** Drops the first idle principal among the oldest 100, or else the oldest, busy or not. */
  #evictOne(): void {
    let checked = 0
    for (const [principal, { requests, streams }] of this.#accounts) {
      if (requests === 0 && streams === 0) return void this.#accounts.delete(principal)
      if (++checked === 100) break
    }
    this.#accounts.delete(this.#accounts.keys().next().value!)
  }
}

function tooMany(what: string): ProblemError {
  return new ProblemError(429, 'too_many_at_once', `at most ${what}; end some first`, {
    headers: { 'Retry-After': String(BUSY_RETRY_SECONDS) },
  })
}

function once(action: () => void): () => void {
  let done = false
  return () => {
    if (done) return
    done = true
    action()
  }
}
