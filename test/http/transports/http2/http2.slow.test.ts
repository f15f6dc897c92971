import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:http2'
import { test } from 'node:test'
import { AsyncClient, HttpTransport, ReadTimeoutError } from 'runwright/http'
import { behaviour, collect, failure, testCa, useApp } from '../../both-clients.js'
import { abortAtRandom, answerInStages } from '../../random-aborts.js'
import { listen } from '../../../helpers/serve.js'
import { verify, secureServer } from './secure-server.js'

useApp()

test('bodies larger than any window go both ways, with trailers', async () => {
  await using server = await secureServer((stream) => {
    stream.respond({ ':status': 200 }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '1' }))
    stream.pipe(stream)
  })
  await using client = new AsyncClient({ http2: true, verify })
  const content = Buffer.alloc(20_000_000, 'x')
  const whole = await client.post(server.origin, { content })
  assert.equal(whole.content.length, content.length)
  assert.equal(whole.trailers.get('x-sum'), '1')
  const chunks = async function* (): AsyncGenerator<Buffer> {
    for (let i = 0; i < 50; i++) yield content.subarray(0, 100_000)
  }
  assert.equal((await client.post(server.origin, { content: chunks() })).content.length, 5_000_000)
})

behaviour('the features of both clients work over HTTP/2', async ({ make, secureOrigin }) => {
  const client = make({ http2: true, verify: testCa, baseUrl: secureOrigin, followRedirects: true })
  interface Echo {
    readonly method: string
    readonly headers: Record<string, string>
    readonly body: string
  }
  const posted = await client.post('/echo', { json: { a: 1 }, params: { q: 1 } })
  assert.equal(posted.httpVersion, 'HTTP/2')
  assert.equal(posted.json<Echo>().body, '{"a":1}')
  const sent = await client.put('/echo', { content: ['ab', '', 'c'].values() })
  assert.equal(sent.json<Echo>().body, 'abc')
  const redirected = await client.post('/redirect', {
    params: { code: 307, to: '/echo' },
    content: 'again',
  })
  assert.deepEqual([redirected.history.length, redirected.json<Echo>().body], [1, 'again'])
  const zipped = await client.get('/encoded', {
    params: { coding: 'gzip', text: 'ab', times: 1000 },
  })
  assert.equal(zipped.text.length, 2000)
  const streamed = await client.stream('GET', '/chunks?n=3')
  assert.deepEqual(await collect(streamed.iterLines()), ['line 0', 'line 1', 'line 2'])
  assert.equal(streamed.trailers.get('x-count'), '3')
  await client.get('/cookies', { params: { set: 'k=v' } })
  assert.equal((await client.get('/cookies')).text, 'k=v')
  assert.equal((await client.head('/bytes?n=5')).text, '')
  const late = await failure(() => client.get('/never', { timeout: { read: 40 } }))
  assert.ok(late instanceof ReadTimeoutError)
  const left = await client.stream('GET', '/bytes?n=10000000')
  await left.close()
  assert.equal((await client.get('/bytes?n=3000000')).content.length, 3_000_000)
})

test('1000 random aborts over HTTP/2 keep the connection and leak no listener', async () => {
  const plain = createServer()
  plain.on('request', (request, response) => {
    // An unread upload would use up the window of the whole connection.
    request.resume()
    answerInStages(request, response as unknown as ServerResponse)
  })
  plain.on('sessionError', () => {})
  await using server = await listen(plain as never)
  const transport = new HttpTransport({ http1: false, http2: true })
  await using client = new AsyncClient({ transport, baseUrl: server.origin })
  const signals = await abortAtRandom(client, 1000)
  assert.equal((await client.get('/?stage=2')).content.length, 200_000)
  assert.equal(
    signals.reduce((sum, signal) => sum + getEventListeners(signal, 'abort').length, 0),
    0,
  )
  assert.deepEqual({ ...transport.stats, idle: 0 }, { open: 1, idle: 0, waiting: 0 })
  assert.equal(server.accepted, 1)
  await transport.close()
  assert.equal(transport.stats.open, 0)
})
