import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  AsyncClient,
  CloseError,
  HttpTransport,
  PoolTimeoutError,
  ReadTimeoutError,
} from 'runwright/http'
import { HeldTimers } from '../../helpers/held-timers.js'
import { serve } from '../../helpers/serve.js'

test('no more connections are opened than maxConnections; other calls wait', async () => {
  let most = 0
  let open = 0
  await using server = await serve((request, response) => {
    most = Math.max(most, ++open)
    setImmediate(() => {
      open--
      response.end(request.url)
    })
  })
  await using client = new AsyncClient({ baseUrl: server.origin, limits: { maxConnections: 3 } })
  const order: string[] = []
  await Promise.all(
    [...Array(30).keys()].map(async (i) => {
      order.push((await client.get(`/${i}`)).text)
    }),
  )
  assert.equal(order.length, 30)
  assert.ok(most <= 3, `${most} concurrent requests`)
  assert.ok(server.accepted <= 3)
})

test('a wait beyond timeout.pool is a PoolTimeoutError; the next waiter is served', async () => {
  await using server = await serve((_request, response) => response.end('x'.repeat(1_000_000)))
  await using client = new AsyncClient({ baseUrl: server.origin, limits: { maxConnections: 1 } })
  const held = await client.stream('GET', '/')
  await assert.rejects(client.get('/', { timeout: { pool: 20 } }), PoolTimeoutError)
  const waiting = client.get('/')
  await held.close()
  assert.equal((await waiting).statusCode, 200)
})

test('a waiter for another origin takes the slot of an idle connection', async () => {
  await using one = await serve((_request, response) => response.end('1'))
  await using two = await serve((_request, response) => response.end('2'))
  await using client = new AsyncClient({ limits: { maxConnections: 1 } })
  for (let i = 0; i < 3; i++) {
    assert.equal((await client.get(one.origin)).text, '1')
    assert.equal((await client.get(two.origin)).text, '2')
  }
})

test('an origin at its own limit does not block the others', async () => {
  await using slow = await serve(() => {})
  await using quick = await serve((_request, response) => response.end('ok'))
  await using client = new AsyncClient({ limits: { maxConnectionsPerOrigin: 1 } })
  const controller = new AbortController()
  const stuck = [0, 1].map(() => client.get(slow.origin, { signal: controller.signal }))
  assert.equal((await client.get(quick.origin)).text, 'ok')
  controller.abort()
  await Promise.allSettled(stuck)
})

test('idle connections are kept up to their limit, and closed when they expire', async () => {
  await using server = await serve((_request, response) => response.end('ok'))
  const transport = new HttpTransport({
    limits: { maxKeepaliveConnections: 2, keepaliveExpiry: 50 },
  })
  await using client = new AsyncClient({ transport, baseUrl: server.origin })
  await Promise.all([...Array(6).keys()].map(() => client.get('/')))
  assert.ok(transport.stats.idle <= 2)
  const closed = [...server.sockets].map((socket) => once(socket, 'close'))
  await Promise.all(closed)
  assert.deepEqual(transport.stats, { open: 0, idle: 0, waiting: 0 })
  await transport.close()
})

test('a connection is discarded before the server would close it', async () => {
  await using server = await serve((_request, response) => {
    response.setHeader('Keep-Alive', 'timeout=0')
    response.end('ok')
  })
  await using client = new AsyncClient({ baseUrl: server.origin })
  await client.get('/')
  await client.get('/')
  assert.equal(server.accepted, 2)
})

test('close() fails calls in flight with CloseError', async () => {
  await using server = await serve(() => {})
  const client = new AsyncClient({ baseUrl: server.origin })
  const call = client.get('/')
  await once(server.server, 'request')
  await client.close()
  await assert.rejects(call, CloseError)
})

test('requests go to a unix socket', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'runwright-'))
  const path = join(folder, 'socket')
  const server = createServer((request, response) => response.end(request.headers.host)).listen(
    path,
  )
  await once(server, 'listening')
  const transport = new HttpTransport({ socketPath: path })
  try {
    await using client = new AsyncClient({ transport })
    assert.equal((await client.get('http://engine/')).text, 'engine')
  } finally {
    await transport.close()
    server.close()
    rmSync(folder, { recursive: true })
  }
})

test('connections come from localAddress', async () => {
  await using server = await serve((request, response) =>
    response.end(request.socket.remoteAddress),
  )
  const transport = new HttpTransport({ localAddress: '127.0.0.7' })
  await using client = new AsyncClient({ transport })
  assert.equal((await client.get(server.origin)).text, '127.0.0.7')
  await transport.close()
})

test('a read timeout on a reused connection does not repeat the request', async () => {
  let received = 0
  let onReceived = (): void => {}
  const arrived = new Promise<void>((resolve) => (onReceived = resolve))
  await using server = await serve((request, response) => {
    if (request.url !== '/never') return void response.end('ok')
    received++
    onReceived()
  })
  await using client = new AsyncClient({ baseUrl: server.origin })
  await client.get('/')
  using silences = new HeldTimers(4_321)
  const call = client.get('/never', { timeout: { read: 4_321 } })
  await Promise.all([arrived, silences.started()])
  silences.fire()
  await assert.rejects(call, ReadTimeoutError)
  assert.equal(received, 1)
})

test('an abort in the same turn as the call takes effect and keeps the connection', async () => {
  await using server = await serve(
    (request, response) => void (request.url === '/ok' && response.end('ok')),
  )
  await using client = new AsyncClient({ baseUrl: server.origin, timeout: null })
  await client.get('/ok')
  const controller = new AbortController()
  const reason = new Error('at once')
  const call = client.get('/never', { signal: controller.signal })
  controller.abort(reason)
  await assert.rejects(call, (error) => error === reason)
  assert.equal((await client.get('/ok')).text, 'ok')
  assert.equal(server.accepted, 1)
})
