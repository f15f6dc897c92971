import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { AsyncClient, MockTransport, Response, type Timings } from 'runwright/http'
import { decodeTimings, encodeTimings } from '../../lib/http/timings.js'
import { serve } from '../helpers/serve.js'
import { behaviour, testCa, useApp } from './both-clients.js'

useApp()

/** The names of the phases that occurred. */
function occurred(timings: Timings | null): string[] {
  return Object.entries(timings!).flatMap(([name, value]) => (value === null ? [] : [name]))
}

/** A CONNECT proxy on another thread, because a call of `Client` blocks this one. */
async function tunnelOnThread(): Promise<AsyncDisposable & { readonly url: string }> {
  const code = `
    const { connect, createServer } = require('node:net')
    const { parentPort } = require('node:worker_threads')
    const server = createServer((socket) => {
      socket.once('data', (head) => {
        const target = connect(Number(/:(\\d+) /.exec(head)[1]), '127.0.0.1', () => {
          socket.write('HTTP/1.1 200 Fine\\r\\n\\r\\n')
          socket.pipe(target).pipe(socket)
        })
        for (const end of [socket, target]) end.on('error', () => {})
      })
    })
    server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))`
  const worker = new Worker(code, { eval: true, execArgv: [] })
  const [port] = (await once(worker, 'message')) as [number]
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => void (await worker.terminate()),
  }
}

const EACH_TIME = ['send', 'wait', 'receive', 'total']

behaviour(
  'each phase of an exchange is measured, those of the connection only when it is opened',
  async ({ client }) => {
    const first = await client.get('/echo')
    assert.deepEqual(occurred(first.timings), ['tcp', ...EACH_TIME])
    const second = await client.post('/echo', { content: ['bo', 'dy'].values() })
    assert.deepEqual(occurred(second.timings), EACH_TIME)
  },
)

for (const http2 of [false, true]) {
  behaviour(
    `name resolution and TLS are separate phases over ${http2 ? 'HTTP/2' : 'HTTP/1.1'}`,
    async ({ make, secureOrigin }) => {
      const client = make({
        baseUrl: secureOrigin.replace('127.0.0.1', 'localhost'),
        verify: testCa,
        http2,
      })
      const response = await client.get('/echo')
      assert.equal(response.httpVersion, http2 ? 'HTTP/2' : 'HTTP/1.1')
      assert.deepEqual(occurred(response.timings), ['dns', 'tcp', 'tls', ...EACH_TIME])
      assert.deepEqual(occurred((await client.get('/echo')).timings), EACH_TIME)
    },
  )
}

behaviour(
  'the phases add up to the total, which does not exceed the call',
  async ({ client }) => {
    const { timings, elapsed } = await client.get('/echo')
    const { total, ...phases } = timings!
    const sum = Object.values(phases).reduce<number>((all, value) => all + (value ?? 0), 0)
    assert.ok(Object.values(phases).every((value) => value === null || value >= 0))
    assert.ok(Math.abs(total! - sum) < 1e-6)
    // Two threads read their clocks, which may differ slightly.
    assert.ok(total! > 0 && total! <= elapsed + 1, `${total} of ${elapsed}`)
  },
)

behaviour('each redirect has its own timings', async ({ client }) => {
  const response = await client.get('/redirect?to=/echo&status=302', { followRedirects: true })
  assert.equal(response.history.length, 1)
  assert.deepEqual(occurred(response.history[0]!.timings), ['tcp', ...EACH_TIME])
  assert.deepEqual(occurred(response.timings), EACH_TIME)
})

behaviour('timings are null with a transport that does not measure', async ({ make }) => {
  const client = make({
    transport: new MockTransport(() => new Response(204)),
    baseUrl: 'http://a.test',
  })
  assert.equal((await client.get('/')).timings, null)
})

test('receive and total are null while a response is open', async () => {
  await using server = await serve((_request, response) => {
    response.write('some')
    setImmediate(() => response.end())
  })
  await using client = new AsyncClient({ baseUrl: server.origin })
  const response = await client.stream('GET', '/')
  assert.deepEqual([response.timings!.receive, response.timings!.total], [null, null])
  await response.read()
  assert.ok(response.timings!.receive! >= 0)
})

test('waiting for a connection is a phase', async () => {
  await using server = await serve((_request, response) => response.end())
  await using client = new AsyncClient({ baseUrl: server.origin, limits: { maxConnections: 1 } })
  const [, waited] = await Promise.all([client.get('/'), client.get('/')])
  assert.deepEqual(occurred(waited.timings), ['pool', ...EACH_TIME])
})

behaviour('connecting through a proxy is a phase', async ({ make, secureOrigin }) => {
  await using proxy = await tunnelOnThread()
  const client = make({ proxy: proxy.url, verify: testCa })
  const response = await client.get(`${secureOrigin}/echo`)
  assert.deepEqual(occurred(response.timings), ['tcp', 'proxy', 'tls', ...EACH_TIME])
})

test('timings are sent between threads as whole microseconds', () => {
  const timings = {
    pool: null,
    dns: 1.25,
    tcp: 0.5,
    proxy: null,
    tls: null,
    send: 0.0301,
    wait: 12,
  }
  assert.deepEqual(encodeTimings(timings), [null, 1250, 500, null, null, 30, 12_000])
  assert.deepEqual(decodeTimings(encodeTimings(timings)), { ...timings, send: 0.03 })
})
