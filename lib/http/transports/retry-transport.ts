import { drive, driveSync, settle, type Flow } from '../flow.js'
import type { Request } from '../request.js'
import { resolveRetry, withRetries, type RetryOptions, type RetryPolicy } from '../retry.js'
import { sleep, sleepSync } from '../../internal/time.js'
import type { AsyncTransport, SyncByteStream, Transport, TransportResponse } from './base.js'

/**
 * Wraps a transport and repeats failed requests. The clients' own `retry` option does the same for
 * every transport; this class is for a single mount, and for transports used without a client. It
 * stops before the call's total timeout would pass, and when the call's signal aborts.
 *
 * @example
 * ```ts
 * const flaky = new RetryTransport(new HttpTransport(), { retries: 5 })
 * const client = new AsyncClient({ mounts: { 'all://flaky.example': flaky } })
 * ```
 */
export class RetryTransport<T extends AsyncTransport | Transport>
  implements AsyncTransport, Transport
{
  readonly #inner: T
  readonly #policy: RetryPolicy

  /**
   * @param transport - Makes each attempt; closed with this one.
   * @param options - A number of retries, or a policy; by default two retries.
   */
  constructor(transport: T, options: RetryOptions = {}) {
    this.#inner = transport
    this.#policy = resolveRetry(options)
  }

  handleRequest(request: Request): TransportResponse<SyncByteStream> & Promise<TransportResponse> {
    const flow = this.#flow(request)
    const answer: unknown = request.blocking ? driveSync(flow) : drive(flow)
    // Both interfaces share this method; `blocking` says which of them is in use.
    return answer as TransportResponse<SyncByteStream> & Promise<TransportResponse>
  }

  close(): Promise<void> & void {
    return this.#inner.close?.() as Promise<void> & void
  }

  #flow(request: Request): Flow<TransportResponse> {
    const inner = this.#inner
    return withRetries<TransportResponse>(this.#policy, request, {
      *attempt() {
        request.signal?.throwIfAborted()
        return yield* settle<TransportResponse>(inner.handleRequest(request))
      },
      *discard(answer) {
        yield* settle(answer.stream.close?.())
      },
      *allows({ delayMs }) {
        return request.deadlineAt === null || performance.now() + delayMs < request.deadlineAt
      },
      sleep: (ms) => settle(request.blocking ? sleepSync(ms) : sleep(ms, request.signal)),
    })
  }
}
