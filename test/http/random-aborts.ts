import type { ServerResponse } from 'node:http'
import type { AsyncClient } from 'runwright/http'

interface IncomingRequest {
  readonly url?: string | undefined
  on(event: 'error', listener: () => void): unknown
}

/** Sends no response (?stage=0), half of one (1), or all of it (2). */
export function answerInStages(request: IncomingRequest, response: ServerResponse): void {
  const stage = Number(new URL(request.url!, 'http://a').searchParams.get('stage'))
  request.on('error', () => {})
  if (stage === 0) return
  response.writeHead(200, { 'content-length': 200_000 })
  response.write('x'.repeat(1000))
  if (stage === 2) response.end('x'.repeat(199_000))
}

/**
 * Makes `count` calls, GET and streamed POST, fifty at a time, and aborts each at a random moment:
 * while it waits for a connection, connects, sends, waits or reads.
 *
 * @returns the signals, which should have no listeners left.
 */
export async function abortAtRandom(client: AsyncClient, count: number): Promise<AbortSignal[]> {
  const signals: AbortSignal[] = []
  let seed = 42
  const random = (): number => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31
  const one = async (i: number): Promise<void> => {
    const controller = new AbortController()
    signals.push(controller.signal)
    const upload = i % 5 === 0
    const call = client
      .stream(upload ? 'POST' : 'GET', '/', {
        signal: controller.signal,
        params: { stage: i % 3 },
        ...(upload ? { content: [Buffer.alloc(300_000)].values() } : {}),
      })
      .then(async (response) => {
        for await (const chunk of response.iterBytes()) {
          if (chunk.length > 0 && random() < 0.3) break
        }
      })
    call.catch(() => {})
    for (let ticks = Math.floor(random() * 20); ticks > 0; ticks--) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    controller.abort()
    await call.catch(() => {})
  }
  for (let begun = 0; begun < count; begun += 50) {
    await Promise.all([...Array(50).keys()].map((i) => one(begun + i)))
  }
  return signals
}
