import { ClientStateError } from '../errors.js'
import type { Request } from '../request.js'
import type { AsyncTransport, SyncByteStream, Transport, TransportResponse } from './base.js'

/** Answers a request, at once or (for `AsyncClient`) later. */
export type MockHandler = (request: Request) => TransportResponse | Promise<TransportResponse>

/**
 * A function in place of the network, for tests. It works with both clients; requests are recorded
 * in order, their bodies read.
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
    const answer = (): unknown => this.#handler(request)
    if (body === null || body.bytes !== null) {
      return answer() as TransportResponse<SyncByteStream> & Promise<TransportResponse>
    }
    if (request.blocking) {
      request.readSync()
      return answer() as TransportResponse<SyncByteStream> & Promise<TransportResponse>
    }
    return request.read().then(answer) as Promise<TransportResponse> & TransportResponse<SyncByteStream>
  }

  close(): void {
    // There is nothing to free.
  }
}

/** Refuses what a blocking client cannot wait for. @internal */
export function refuseAsync(what: string): never {
  throw new ClientStateError(`${what} returned a promise, which Client cannot wait for; use AsyncClient`)
}
