import type { Request } from '../request.js'
import type { AsyncTransport, SyncByteStream, Transport, TransportResponse } from './base.js'

/** Answers a request, at once or (for `AsyncClient`) later. */
export type MockHandler = (request: Request) => TransportResponse | Promise<TransportResponse>

/**
 * A function in place of the network, for tests. It works with both clients; requests are recorded
 * in order, their bodies read. A promise that is still open when the call is aborted, or passes its
 * total limit, is not waited for.
 *
 * @example
 * ```ts
 * const transport = new MockTransport(() => new Response(200, { json: { ok: true } }))
 * const client = new AsyncClient({ transport, baseUrl: 'http://a.test' })
 * ```
 */
export class MockTransport implements AsyncTransport, Transport {
  /** The requests received so far. */
  readonly requests: Request[] = []
  readonly #handler: MockHandler

  constructor(handler: MockHandler) {
    this.#handler = handler
  }

  handleRequest(request: Request): TransportResponse<SyncByteStream> & Promise<TransportResponse> {
    this.requests.push(request)
    const { body } = request
    // The types of both seams at once: which of them it is shows in what the handler returns.
    const answer = (): unknown => orAborted(this.#handler(request), request.signal)
    if (body === null || body.bytes !== null) {
      return answer() as TransportResponse<SyncByteStream> & Promise<TransportResponse>
    }
    if (request.blocking) {
      request.readSync()
      return answer() as TransportResponse<SyncByteStream> & Promise<TransportResponse>
    }
    return orAborted(request.read().then(answer), request.signal) as Promise<TransportResponse> &
      TransportResponse<SyncByteStream>
  }

  close(): void {
    // There is nothing to free.
  }
}

/** What is answered, unless `signal` aborts before it is there. */
function orAborted(answer: unknown, signal: AbortSignal | null): unknown {
  if (signal === null || typeof (answer as PromiseLike<unknown> | undefined)?.then !== 'function')
    return answer
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    const done = (): void => signal.removeEventListener('abort', onAbort)
    ;(answer as PromiseLike<unknown>).then(resolve, reject).then(done, done)
  })
}
