import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AsyncResponse,
  Client,
  ClientStateError,
  HandlerTransport,
  Headers,
  MockTransport,
  PoolTimeoutError,
  Response,
  TimeoutError,
} from 'runwright/http'
import { serve } from '../helpers/serve.js'
import { origin } from './app-worker.js'

test('connections are kept between calls', () => {
  using client = new Client({ baseUrl: origin })
  const count = client.get('/connections').text
  for (let i = 0; i < 5; i++) assert.equal(client.get('/connections').text, count)
})

test('a call that gets no connection reports the pool, not the server', () => {
  using client = new Client({ baseUrl: origin, limits: { maxConnections: 1 } })
  using _response = client.stream('GET', '/bytes?n=50000000')
  assert.throws(() => client.get('/bytes?n=1', { timeout: { pool: 20 } }), (error) => {
    assert.ok(error instanceof PoolTimeoutError)
    assert.match(error.message, /1 are in use/)
    assert.doesNotMatch(error.message, /AsyncClient/)
    return true
  })
})

test('a call returns its response, not a promise', () => {
  using client = new Client({ baseUrl: origin })
  const response = client.get('/bytes?n=2')
  assert.ok(response instanceof Response)
  assert.equal(response.text, 'aa')
})

test('a call to a server on the same thread times out with an error that says why', async () => {
  await using server = await serve((_request, response) => response.end('never'))
  using client = new Client({ timeout: 100 })
  assert.throws(
    () => client.get(server.origin),
    (error) =>
      error instanceof TimeoutError && /runs on the thread that called Client/.test(error.message),
  )
})

test('two streams may be read alternately, with calls in between', () => {
  using client = new Client({ baseUrl: origin })
  const one = client.stream('GET', '/bytes?n=3000000').iterBytes({ chunkSize: 1_000_000 })
  const two = client.stream('GET', '/bytes?n=3000000').iterBytes({ chunkSize: 1_000_000 })
  for (let i = 0; i < 3; i++) {
    assert.equal(one.next().value?.length, 1_000_000)
    assert.equal(client.get('/bytes?n=1').text, 'a')
    assert.equal(two.next().value?.length, 1_000_000)
  }
  assert.equal(one.next().done, true)
})

test('an upload is pulled on demand, and may itself make calls', () => {
  using client = new Client({ baseUrl: origin })
  const content = function* (): Generator<string> {
    for (let i = 0; i < 3; i++) yield client.get('/bytes?n=2').text
  }
  assert.equal(client.post('/echo', { content: content() }).json<{ body: string }>().body, 'aaaaaa')
})

test('an error thrown by an upload ends the call with that error', () => {
  using client = new Client({ baseUrl: origin })
  const broken = new Error('no more')
  const content = function* (): Generator<string> {
    yield 'a'
    throw broken
  }
  assert.throws(() => client.post('/echo', { content: content() }), (error) => error === broken)
  assert.equal(client.get('/bytes?n=1').text, 'a')
})

test('asynchronous bodies, hooks and transports are rejected', () => {
  const rejects = (call: () => unknown): void => assert.throws(call, ClientStateError)
  using client = new Client({ baseUrl: origin })
  rejects(() => client.post('/echo', { content: (async function* () { yield 'a' })() }))
  using hooked = new Client({ baseUrl: origin, eventHooks: { request: [async () => {}] } })
  rejects(() => hooked.get('/echo'))
  using mocked = new Client({ transport: new MockTransport(async () => new AsyncResponse(200)) })
  rejects(() => mocked.get('http://a.test/'))
})

test('a blocking client needs a handler that responds synchronously', () => {
  using client = new Client({
    transport: new HandlerTransport((request, response) => {
      if (request.url === '/later') setImmediate(() => response.end())
      else response.end(`${request.method} ${request.url}`)
    }),
    baseUrl: 'http://app.test',
  })
  assert.equal(client.post('/now', { json: 1 }).text, 'POST /now')
  assert.throws(() => client.get('/later'), ClientStateError)
})

test('a proxy may be a URL and have headers of any kind, which are sent to the worker', () => {
  const basic = `Basic ${Buffer.from('u:p').toString('base64')}`
  const address = new URL(origin)
  for (const proxy of [
    address,
    { url: address, auth: ['u', 'p'] as const },
    { url: origin, headers: new Headers({ 'Proxy-Authorization': basic, 'X-Team': 'blue' }) },
  ]) {
    using client = new Client({ proxy })
    const echo = client
      .get('http://a.test/echo?x')
      .json<{ url: string; headers: Record<string, string> }>()
    assert.equal(echo.url, 'http://a.test/echo?x')
    assert.equal(echo.headers['proxy-authorization'], proxy === address ? undefined : basic)
  }
})

test('options that only the worker uses are checked at construction', () => {
  assert.throws(
    () => new Client({ limits: { maxConnections: 0 } }),
    /limits\.maxConnections must be/,
  )
  assert.throws(() => new Client({ http1: false }), /http1 and http2/)
  assert.throws(() => new Client({ proxy: 'ftp://p.test' }), /proxy must be/)
})
