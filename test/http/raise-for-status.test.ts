import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import {
  DigestAuth,
  HttpStatusError,
  MockTransport,
  ReadError,
  Response,
  type BaseResponse,
} from 'runwright/http'
import { behaviour, collect, failure, useApp, type AnyClient } from './both-clients.js'

useApp()

/** The response of the error with which `call` ends, which must be for its status. */
async function refused(call: () => unknown): Promise<BaseResponse> {
  const error = await failure(call)
  assert.ok(error instanceof HttpStatusError, String(error))
  assert.equal(error.code, 'ERR_HTTP_STATUS')
  return error.response
}

/** The number of connections that the server still has. */
async function openConnections(client: AnyClient): Promise<string> {
  return (await client.get('/open', { params: { most: 1 }, raiseForStatus: false })).text
}

behaviour('raiseForStatus throws for what is not 2xx, content read', async ({ make, origin }) => {
  const raising = make({ baseUrl: origin, raiseForStatus: true })
  for (const code of [200, 201, 204, 300, 302, 304, 400, 404, 500, 503]) {
    const call = (): unknown => raising.get('/status', { params: { code, body: `b${code}` } })
    const expected = [204, 304].includes(code) ? '' : `b${code}`
    if (code < 300) assert.equal(((await call()) as BaseResponse).text, expected)
    else {
      const response = await refused(call)
      assert.deepEqual([response.statusCode, response.text], [code, expected])
      assert.equal(response.isClosed, true)
    }
  }
  const plain = await raising.get('/status', { params: { code: 404 }, raiseForStatus: false })
  assert.equal(plain.statusCode, 404)
})

behaviour('a call, a built request and a streamed one can ask to raise', async ({ client }) => {
  const params = { code: 418, body: '{"a":1}' }
  assert.equal((await client.get('/status', { params })).statusCode, 418)
  const options = { params, raiseForStatus: true }
  assert.deepEqual((await refused(() => client.get('/status', options))).json(), { a: 1 })
  const built = client.buildRequest('GET', '/status', { params })
  const sent = await refused(() => client.send(built, { raiseForStatus: true }))
  assert.deepEqual(sent.json(), { a: 1 })
  const streamed = await refused(() => client.stream('GET', '/status', options))
  assert.deepEqual(streamed.json(), { a: 1 })
  const encoded = { coding: 'gzip', text: 'x' }
  const good = await client.stream('GET', '/encoded', { params: encoded, raiseForStatus: true })
  assert.equal(good.isClosed, false)
  assert.deepEqual((await collect(good.iterText())).join(''), 'x')
})

behaviour('the content of a streamed error is read up to a bound', async ({ client, make }) => {
  const statuses = [
    [1024 * 1024, true],
    [1024 * 1024 + 1, false],
  ] as const
  for (const [bytes, readable] of statuses) {
    let closed = 0
    const stream = Object.assign([Buffer.alloc(bytes, 'a')], { close: () => void closed++ })
    const transport = new MockTransport(() => new Response(500, { stream }))
    const mocked = make({ transport, baseUrl: 'http://a.test', maxResponseBytes: null })
    const options = { raiseForStatus: true }
    const response = await refused(() => mocked.stream('GET', '/', options))
    if (readable) assert.equal(response.content.length, bytes)
    else assert.throws(() => response.content, { code: 'ERR_HTTP_RESPONSE_NOT_READ' })
    assert.deepEqual([response.isClosed, closed], [true, 1])
  }
  for (let i = 0; i < 5; i++) {
    const url = '/status?code=500&body=' + 'x'.repeat(10_000)
    await refused(() => client.stream('GET', url, { raiseForStatus: true }))
  }
  assert.equal(await openConnections(client), '1')
})

behaviour('a streamed error whose content fails has its status', async ({ make }) => {
  function* broken(): Generator<Uint8Array> {
    yield Buffer.from('begin')
    throw new ReadError('reset')
  }
  const mocked = (): AnyClient => {
    const transport = new MockTransport(() => new Response(502, { stream: broken() }))
    return make({ transport, baseUrl: 'http://a.test', raiseForStatus: true })
  }
  assert.equal((await refused(() => mocked().stream('GET', '/'))).statusCode, 502)
  // An ordinary call has no content to show.
  assert.ok((await failure(() => mocked().get('/'))) instanceof ReadError)
})

behaviour('an abort while the error is read ends the call with its reason', async ({ make }) => {
  const controller = new AbortController()
  function* aborting(): Generator<Uint8Array> {
    yield Buffer.from('begin')
    controller.abort(new Error('enough'))
    yield Buffer.from('end')
  }
  const transport = new MockTransport(() => new Response(502, { stream: aborting() }))
  const client = make({ transport, baseUrl: 'http://a.test', raiseForStatus: true })
  const { signal } = controller
  assert.equal((await failure(() => client.stream('GET', '/', { signal }))).message, 'enough')
})

behaviour('retries, authentication and redirects come first', async ({ make, origin }) => {
  const retry = { retries: 2, backoffMs: 1 }
  const client = make({ baseUrl: origin, raiseForStatus: true, retry, followRedirects: true })
  const flaky = (fail: number): object => ({ params: { key: randomUUID(), fail } })
  assert.equal((await client.get('/flaky', flaky(2))).text, '3 ')
  assert.equal((await refused(() => client.get('/flaky', flaky(3)))).text, 'later')

  const auth = (password: string): object => ({ auth: new DigestAuth('u', password) })
  assert.match((await client.get('/digest?qop=auth', auth('p'))).text, /^welcome/)
  const denied = await refused(() => client.get('/digest?qop=auth', auth('wrong')))
  assert.deepEqual([denied.statusCode, denied.authHistory.length], [401, 1])

  const to = (target: string): object => ({ params: { to: target } })
  assert.equal((await client.get('/redirect', to('/status?code=200&body=a'))).text, 'a')
  const gone = await refused(() => client.get('/redirect', to('/status?code=410&body=b')))
  assert.deepEqual([gone.statusCode, gone.text, gone.history.length], [410, 'b', 1])
  const options = { ...to('/echo'), followRedirects: false }
  const stays = await refused(() => client.get('/redirect', options))
  assert.deepEqual([stays.statusCode, stays.text], [302, 'redirecting'])
  assert.equal(stays.nextRequest?.url.href, `${origin}/echo`)
})

behaviour('pages and events end with the error of a status', async ({ make, origin }) => {
  const client = make({ baseUrl: origin, raiseForStatus: true })
  const pages: string[] = []
  const url = '/pages?link=' + encodeURIComponent('/status?code=404&body=none')
  const lost = await refused(async () => {
    for await (const page of client.paginate(url)) pages.push(page.text)
  })
  assert.deepEqual([pages, lost.text], [['page 1 '], 'none'])
  const failed = await refused(() => collect(client.sse('/status?code=404', { reconnect: false })))
  assert.equal(failed.statusCode, 404)
})
