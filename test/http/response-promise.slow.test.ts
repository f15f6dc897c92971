import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { inspect } from 'node:util'
import * as http from 'runwright/http'
import { AsyncClient, HttpStatusError, MockTransport, Response } from 'runwright/http'
import { serve } from '../helpers/serve.js'
import { failure } from './both-clients.js'

const transport = new MockTransport(({ url, method }) => {
  if (url.pathname === '/down') throw new http.ConnectError('down')
  return new Response(Number(url.searchParams.get('status') ?? 200), { json: { method } })
})
const client = new AsyncClient({ transport, baseUrl: 'http://a.test' })
const verbs = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options'] as const

test('every call has short ways to its content', async () => {
  for (const verb of verbs) {
    const content = { method: verb.toUpperCase() }
    assert.deepEqual(await client[verb]('/').json(), content)
    assert.equal(await client[verb]('/').text(), JSON.stringify(content))
    assert.deepEqual(await client[verb]('/').bytes(), Buffer.from(JSON.stringify(content)))
    assert.equal((await client[verb]('/')).statusCode, 200)
  }
  const call = client.request('GET', '/')
  assert.deepEqual([await call.json(), await call.text()], [{ method: 'GET' }, '{"method":"GET"}'])
  assert.equal((await call).statusCode, 200)
})

test('the short ways look at the status only with raiseForStatus', async () => {
  assert.deepEqual(await client.get('/?status=404').json(), { method: 'GET' })
  const raising = client.extend({ raiseForStatus: true })
  for (const way of ['json', 'text', 'bytes'] as const) {
    const error = await failure(() => raising.get('/?status=404')[way]())
    assert.ok(error instanceof HttpStatusError)
    assert.equal(error.response.text, '{"method":"GET"}')
    assert.ok((await failure(() => client.get('/down')[way]())) instanceof http.ConnectError)
    assert.match((await failure(() => client.get('http://')[way]())).message, /URL/)
  }
})

test('a call is awaited like a plain promise', async () => {
  const call = client.get('/')
  assert.ok(call instanceof Promise)
  assert.equal(call.constructor, Promise)
  assert.equal(Promise.resolve(call), call)
  for (const derived of [call.then(), call.catch(() => {}), call.finally(() => {}), call.json()]) {
    assert.equal(Object.getPrototypeOf(derived), Promise.prototype)
    await derived
  }
  assert.match(inspect(call), /^Promise \{/)
  // No turn more than a plain promise takes: both were settled before, so they end in order.
  const order: string[] = []
  const settled = Promise.resolve()
  const mine = (async () => void (await call, order.push('call')))()
  const plain = (async () => void (await settled, order.push('plain')))()
  const other = (async () => void (await call, order.push('call again')))()
  await Promise.all([mine, plain, other])
  assert.deepEqual(order, ['call', 'plain', 'call again'])
})

test('the functions without a client have the short ways too', async () => {
  await using server = await serve((request, response) => response.end(`"${request.method}"`))
  assert.equal(await http.request('GET', server.origin).json(), 'GET')
  for (const verb of ['get', 'post', 'put', 'patch', 'del', 'options'] as const) {
    const expected = verb === 'del' ? 'DELETE' : verb.toUpperCase()
    assert.equal(await http[verb](server.origin).json(), expected)
  }
  assert.equal(await http.head(server.origin).text(), '')
})

test('a failure that nobody handles is reported once', () => {
  const script = `
    import { AsyncClient, MockTransport } from 'runwright/http'
    const transport = new MockTransport(() => { throw new Error('down') })
    const client = new AsyncClient({ transport })
    process.on('unhandledRejection', (error) => console.log('unhandled', error.message))
    client.get('http://a.test/')
    client.get('http://a.test/').json()
    client.get('relative').text()
    const handled = client.get('http://a.test/')
    handled.json().catch(() => console.log('handled'))
  `
  const args = ['--conditions=runwright-source', '--import', 'tsx', '--input-type=module']
  const { stdout } = spawnSync(process.execPath, [...args, '-e', script], { encoding: 'utf8' })
  const lines = stdout.trim().split('\n').sort()
  assert.equal(lines.length, 4, stdout)
  assert.equal(lines[0], 'handled')
  assert.equal(lines.filter((line) => line === 'unhandled down').length, 2)
})
