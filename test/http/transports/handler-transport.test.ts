import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { test } from 'node:test'
import {
  AsyncClient,
  HandlerTransport,
  ReadTimeoutError,
  RemoteProtocolError,
} from 'runwright/http'

const clientFor = (
  handler: (request: IncomingMessage, response: ServerResponse) => unknown,
  options = {},
): AsyncClient =>
  new AsyncClient({ transport: new HandlerTransport(handler, options), baseUrl: 'http://app.test' })

test('a handler sees method, target, headers and body, and its response is read', async () => {
  await using client = clientFor(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    response.setHeader('x-host', request.headers.host ?? '')
    response.end(`${request.method} ${request.url} ${body} ${request.socket.remoteAddress}`)
  })
  const response = await client.post('/a?b=1', {
    content: (function* () {
      yield 'x'
      yield 'y'
    })(),
  })
  assert.equal(response.text, 'POST /a?b=1 xy 127.0.0.1')
  assert.equal(response.headers.get('x-host'), 'app.test')
})

for (const { name, echo } of [
  {
    name: 'pipe()',
    echo: (request: IncomingMessage, response: ServerResponse): unknown => request.pipe(response),
  },
  {
    name: 'pipeline()',
    echo: (request: IncomingMessage, response: ServerResponse): unknown =>
      pipeline(request, response),
  },
  {
    name: "'data' events",
    echo: (request: IncomingMessage, response: ServerResponse): unknown =>
      request.on('data', (chunk) => response.write(chunk)).on('end', () => response.end()),
  },
  {
    name: "'readable' events",
    echo: (request: IncomingMessage, response: ServerResponse): unknown =>
      request
        .on('readable', () => {
          for (let chunk = request.read(); chunk !== null; chunk = request.read())
            response.write(chunk)
        })
        .on('end', () => response.end()),
  },
]) {
  test(`a body sent in pieces reaches a handler that reads it by ${name}`, async () => {
    await using client = clientFor(echo)
    for (const content of [
      ['a'],
      ['ab', 'c'],
      Array.from({ length: 40 }, (_, i) => String(i % 10).repeat(9_000)),
    ]) {
      const later = async function* (): AsyncGenerator<string> {
        for (const piece of content) {
          await new Promise((resolve) => setImmediate(resolve))
          yield piece
        }
      }
      assert.equal((await client.post('/', { content })).text, content.join(''))
      assert.equal((await client.post('/', { content: later() })).text, content.join(''))
    }
  })
}

test('a handler gets drain once it can write again, not while its response is unread', async () => {
  let written = 0
  await using client = clientFor(async (_request, response) => {
    for (let i = 0; i < 200; i++) {
      written++
      if (response.write(Buffer.alloc(20_000, 'x'))) continue
      assert.equal(response.writableNeedDrain, true)
      await once(response, 'drain')
      assert.equal(response.writableNeedDrain, false)
    }
    response.end()
  })
  const response = await client.stream('GET', '/')
  for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve))
  assert.ok(written < 60, String(written))
  assert.equal((await response.read()).length, 4_000_000)
})

test("a handler's writes are readable before it ends, and it sees the client close", async () => {
  let closed: () => void
  const wasClosed = new Promise<void>((resolve) => (closed = resolve))
  await using client = clientFor((_request, response) => {
    response.on('close', () => closed())
    response.write('first')
  })
  const response = await client.stream('GET', '/')
  for await (const chunk of response.iterText()) {
    assert.equal(chunk, 'first')
    break
  }
  await wasClosed
  assert.equal(response.isClosed, true)
})

test('HEAD has no content, and trailers are not among the headers', async () => {
  await using client = clientFor((request, response) => {
    if (request.method === 'HEAD') response.setHeader('content-length', '5')
    else response.setHeader('trailer', 'x-sum')
    response.write('hello')
    if (request.method !== 'HEAD') response.addTrailers({ 'x-sum': '1' })
    response.end()
  })
  assert.equal((await client.head('/')).text, '')
  const response = await client.get('/')
  assert.equal(response.text, 'hello')
  assert.equal(response.trailers.get('x-sum'), '1')
})

test("a handler's error fails the call, or becomes a 500 if so configured", async () => {
  const failure = new Error('broken')
  const handler = async (): Promise<never> => {
    throw failure
  }
  await using raising = clientFor(handler)
  await assert.rejects(raising.get('/'), (error) => error === failure)
  await using answering = clientFor(handler, { raiseHandlerErrors: false })
  assert.equal((await answering.get('/')).statusCode, 500)
})

test('a handler that destroys its response, or never responds, fails the call', async () => {
  await using client = clientFor((request, response) => {
    if (request.url === '/destroy') response.destroy()
  })
  await assert.rejects(client.get('/destroy'), RemoteProtocolError)
  await assert.rejects(client.get('/never', { timeout: 20 }), ReadTimeoutError)
})
