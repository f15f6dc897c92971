import { MockTransport, Response } from 'runwright/http'

/** A transport with one response of these chunks, the last of which may be an error. */
export function chunked(
  chunks: readonly (Uint8Array | Error)[],
  headers: Record<string, string> = {},
): { origin: MockTransport; pulled: () => number; closed: () => number } {
  let pulled = 0
  let closed = 0
  const origin = new MockTransport((request) => {
    function* sync(): Generator<Uint8Array, void, undefined> {
      for (const chunk of chunks) {
        pulled++
        if (chunk instanceof Error) throw chunk
        yield new Uint8Array(chunk)
      }
    }
    async function* later(): AsyncGenerator<Uint8Array, void, undefined> {
      yield* sync()
    }
    const source = request.blocking ? sync() : later()
    const stream = Object.assign(source, { close: () => void closed++ })
    const init = { headers: { 'Cache-Control': 'max-age=60', ...headers } }
    return new Response(200, { ...init, stream: stream as never })
  })
  return { origin, pulled: () => pulled, closed: () => closed }
}

export const bytes = (size: number, value = 120): Uint8Array => new Uint8Array(size).fill(value)
