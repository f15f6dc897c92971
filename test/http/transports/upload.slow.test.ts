import assert from 'node:assert/strict'
import { createServer as createHttpServer, type IncomingMessage } from 'node:http'
import { createServer as createHttp2Server, type Http2ServerRequest } from 'node:http2'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { AsyncClient, type AsyncClientOptions } from 'runwright/http'
import { listen } from '../../helpers/serve.js'

/** Counts turns of the event loop until it is stopped. */
class TurnCounter {
  turns = 0
  #stopped = false

  constructor() {
    const turn = (): void => {
      this.turns++
      if (!this.#stopped) setImmediate(turn)
    }
    setImmediate(turn)
  }

  [Symbol.dispose](): void {
    this.#stopped = true
  }
}

const count = 1_000

/** The most chunks that `upload` takes from its source in one turn of the event loop. */
async function mostChunksInATurn(
  upload: (chunks: () => string | null) => Promise<void>,
): Promise<number> {
  using counter = new TurnCounter()
  let [most, inThisTurn, turn, taken] = [0, 0, -1, 0]
  await upload(() => {
    if (taken++ === count) return null
    if (counter.turns !== turn) [inThisTurn, turn] = [0, counter.turns]
    most = Math.max(most, ++inThisTurn)
    return 'x'
  })
  return most
}

function* syncSource(take: () => string | null): Generator<string, void, undefined> {
  for (let chunk = take(); chunk !== null; chunk = take()) yield chunk
}

async function* asyncSource(take: () => string | null): AsyncGenerator<string, void, undefined> {
  yield* syncSource(take)
}

const protocols = {
  'HTTP/1.1': [createHttpServer, {}],
  'HTTP/2': [createHttp2Server, { http1: false, http2: true }],
} as const satisfies Record<string, readonly [unknown, AsyncClientOptions]>

for (const [protocol, [createServer, options]] of Object.entries(protocols)) {
  test(`${protocol}: an upload of many ready chunks lets the event loop turn`, async () => {
    const server = (createServer as typeof createHttpServer)(
      (request: IncomingMessage | Http2ServerRequest, response) => {
        void text(request).then((content) => response.end(String(content.length)))
      },
    )
    await using served = await listen(server)
    await using client = new AsyncClient({ baseUrl: served.origin, ...options })
    for (const source of [syncSource, asyncSource]) {
      for (const headers of [{}, { 'content-length': String(count) }]) {
        const most = await mostChunksInATurn(async (take) => {
          const response = await client.post('/', { content: source(take), headers })
          assert.equal(response.text, String(count))
        })
        assert.ok(most <= 100, `${most} chunks in one turn`)
      }
    }
  })
}

test('an endless upload of ready chunks ends with an abort', async () => {
  const server = createHttpServer((request) => request.resume())
  await using served = await listen(server)
  await using client = new AsyncClient({ baseUrl: served.origin })
  const controller = new AbortController()
  let chunks = 0
  function* endless(): Generator<string, void, undefined> {
    for (;;) {
      if (++chunks === 1_000) setImmediate(() => controller.abort(new Error('enough')))
      assert.ok(chunks < 100_000, 'the abort came too late')
      yield 'x'
    }
  }
  const call = client.post('/', { content: endless(), signal: controller.signal })
  await assert.rejects(call, { message: 'enough' })
})
