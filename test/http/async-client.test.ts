import assert from 'node:assert/strict'
import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import { test } from 'node:test'
import {
  AsyncClient,
  ConnectError,
  HttpStatusError,
  parseSse,
  ReadTimeoutError,
  TotalTimeoutError,
} from 'runwright/http'
import { serve } from '../helpers/serve.js'

test('a JSON body is sent and a JSON response read', async () => {
  await using server = await serve((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      response.setHeader('content-type', 'application/json')
      const { 'content-type': type, 'content-length': length } = request.headers
      response.end(
        JSON.stringify({ url: request.url, type, length, body: Buffer.concat(chunks).toString() }),
      )
    })
  })
  await using client = new AsyncClient({ baseUrl: `${server.origin}/v1`, params: { a: 1 } })
  const response = await client.post('/items', { json: { name: 'ü' }, params: { b: true } })
  assert.equal(response.statusCode, 200)
  assert.equal(response.httpVersion, 'HTTP/1.1')
  assert.deepEqual(response.json(), {
    url: '/v1/items?a=1&b=true',
    type: 'application/json',
    length: '13',
    body: '{"name":"ü"}',
  })
})

test('consecutive calls share a connection', async () => {
  await using server = await serve((_request, response) => response.end('ok'))
  await using client = new AsyncClient()
  for (let i = 0; i < 5; i++) assert.equal((await client.get(server.origin)).text, 'ok')
  assert.equal(server.accepted, 1)
})

test('a streamed response is read while the server writes it', async () => {
  await using server = await serve((_request, response) => {
    response.write('data: a\n\nda')
    response.write('ta: b\n\n')
    response.end()
  })
  await using client = new AsyncClient()
  await using response = await client.stream('GET', server.origin)
  const data: string[] = []
  for await (const event of parseSse(response.iterBytes())) data.push(event.data)
  assert.deepEqual(data, ['a', 'b'])
})

test('gzip content is decoded', async () => {
  await using server = await serve((_request, response) => {
    response.setHeader('content-encoding', 'gzip')
    response.end(gzipSync('hello'))
  })
  await using client = new AsyncClient()
  assert.equal((await client.get(server.origin)).text, 'hello')
  const pieces: string[] = []
  for await (const text of (await client.stream('GET', server.origin)).iterText()) pieces.push(text)
  assert.equal(pieces.join(''), 'hello')
})

test('a server that does not respond causes a ReadTimeoutError or TotalTimeoutError', async () => {
  await using server = await serve(() => {})
  await using client = new AsyncClient()
  await assert.rejects(client.get(server.origin, { timeout: { read: 30 } }), ReadTimeoutError)
  await assert.rejects(client.get(server.origin, { timeout: { total: 30 } }), TotalTimeoutError)
})

test('an aborted call ends with the reason of its signal', async () => {
  await using server = await serve(() => {})
  await using client = new AsyncClient()
  const controller = new AbortController()
  const call = client.get(server.origin, { signal: controller.signal })
  await once(server.server, 'request')
  const reason = new Error('enough')
  controller.abort(reason)
  await assert.rejects(call, (error) => error === reason)
})

test('raiseForStatus() throws for a 404, and masks secrets of the URL', async () => {
  await using server = await serve((_request, response) => {
    response.statusCode = 404
    response.end()
  })
  await using client = new AsyncClient()
  const response = await client.get(`${server.origin}/x?token=abc`)
  assert.throws(
    () => response.raiseForStatus(),
    (error) => error instanceof HttpStatusError && !error.message.includes('abc'),
  )
})

test('a refused connection is a ConnectError', async () => {
  const server = await serve(() => {})
  await server.close()
  await using client = new AsyncClient()
  await assert.rejects(client.get(server.origin), ConnectError)
})
