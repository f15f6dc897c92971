/**
 * How much one principal may ask for: a rate of requests with a burst, requests at a time, and open
 * streams. Callers of a host without `authorize` are one principal.
 *
 * @module
 */
import { ProblemError } from '../errors.js'

/** Limits per principal; `null` is none. */
export interface LimitSettings {
  /** Requests in a second, on average. @defaultValue null */
  readonly requestsPerSecond: number | null
  /** Requests that may come at once after a pause. @defaultValue twice `requestsPerSecond` */
  readonly burst: number
  /** Requests that are being answered at a time; streams do not count. @defaultValue null */
  readonly concurrentRequests: number | null
  /** Streams that are open at a time, of both kinds. @defaultValue null */
  readonly openStreams: number | null
}

/** Principals that are remembered; of more, those who called longest ago are forgotten. */
const MAX_PRINCIPALS = 10_000
/** Seconds after which somebody with too much at a time may try again. */
const BUSY_RETRY_SECONDS = 1

/** What is known of one principal. */
interface Account {
  /** When the bucket will be full again, in ms of the clock: the one number of a token bucket. */
  fullAt: number
  requests: number
  streams: number
}

/** Holds every principal to its limits. */
export class Limiter {
  readonly #settings: LimitSettings
  readonly #now: () => number
  readonly #accounts = new Map<string, Account>()

  /** `now` tells ms of a clock that does not jump. */
  constructor(settings: LimitSettings, now: () => number = () => performance.now()) {
    this.#settings = settings
    this.#now = now
  }

  /** How many principals are remembered. */
  get size(): number {
    return this.#accounts.size
  }

  /**
   * Lets a request in; the result is called when it was answered.
   *
   * @throws {@link ProblemError} 429 with `Retry-After`.
   */
  admitRequest(principal: string): () => void {
    const { concurrentRequests } = this.#settings
    const account = this.#account(principal)
    this.#takeToken(account)
    if (concurrentRequests !== null && account.requests >= concurrentRequests) {
      throw tooMany(`${concurrentRequests} requests at a time`)
    }
    account.requests += 1
    return once(() => (account.requests -= 1))
  }

  /**
   * Lets a stream in beside its request; the result is called when it has ended.
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
      throw new ProblemError(
        429,
        'rate_limited',
        `at most ${requestsPerSecond} requests in a second`,
        {
          headers: { 'Retry-After': String(seconds) },
        },
      )
    }
    account.fullAt = fullAt
  }

  #account(principal: string): Account {
    const account = this.#accounts.get(principal) ?? { fullAt: 0, requests: 0, streams: 0 }
    // Taken out first, so that those who called longest ago stand first.
    this.#accounts.delete(principal)
    this.#accounts.set(principal, account)
    if (this.#accounts.size > MAX_PRINCIPALS) this.#forgetOne()
    return account
  }

  /** Forgets the first that is idle; when all are busy, the first: memory has a bound. */
  #forgetOne(): void {
    let looked = 0
    for (const [principal, { requests, streams }] of this.#accounts) {
      if (requests === 0 && streams === 0) return void this.#accounts.delete(principal)
      if (++looked === 100) break
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
