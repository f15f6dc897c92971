import type { Request } from '../request.js'
import type { AsyncTransport, SyncByteStream, Transport, TransportResponse } from './base.js'

/** Makes the response to a request; a promise is for `AsyncClient` only. */
export type MockHandler = (request: Request) => TransportResponse | Promise<TransportResponse>

/**
 * A function in place of the network, for tests. It works with both clients. Requests are recorded
 * in order, and their bodies are read. A call that is aborted, or passes its total timeout, does
 * not wait for the handler's promise.
 *
 * @example
 * ```ts
 * const transport = new MockTransport(() => new Response(200, { json: { ok: true } }))
 * const client = new AsyncClient({ transport, baseUrl: 'http://a.test' })
 * ```
 */
export class MockTransport implements AsyncTransport, Transport {
  /** The requests received so far, oldest first. */
  readonly requests: Request[] = []
  readonly #handler: MockHandler

  constructor(handler: MockHandler) {
    this.#handler = handler
  }

  handleRequest(request: Request): TransportResponse<SyncByteStream> & Promise<TransportResponse> {
    this.requests.push(request)
    const { body } = request
    // Both interfaces share this method; what the handler returns decides which of them it is.
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

/** `answer`; where it is a promise, one that rejects early when `signal` aborts. */
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
