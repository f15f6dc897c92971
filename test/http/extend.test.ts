import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import { test } from 'node:test'
import {
  AsyncClient,
  Client,
  ClientStateError,
  CloseError,
  Cookies,
  MockTransport,
  Response,
  type Request,
} from 'runwright/http'
import { serve } from '../helpers/serve.js'
import { behaviour, failure, useApp } from './both-clients.js'
import type { AnyClient, AnyClientOptions } from './both-clients.js'

useApp()

interface Echo {
  url: string
  headers: Record<string, string>
}

async function echo(client: AnyClient, options: object = {}): Promise<Echo> {
  return (await client.get('/echo', options)).json<Echo>()
}

const accepted = async (client: AnyClient): Promise<number> => {
  return Number((await client.get('/connections')).text)
}

/** Extends a client of either kind. */
const extend = (client: AnyClient, options: AnyClientOptions = {}): AnyClient => {
  return client.extend(options as object)
}

behaviour('headers, params and hooks are merged', async ({ make, origin }) => {
  const log: string[] = []
  const hooks = (name: string): object => ({
    eventHooks: { request: [() => void log.push(name)] },
  })
  const parent = make({
    baseUrl: origin,
    headers: { 'X-A': 'parent', 'X-B': 'parent' },
    params: { a: '1', b: '1' },
    ...hooks('parent'),
  })
  const child = extend(parent, {
    headers: { 'x-b': 'child', 'X-C': 'child', 'user-agent': null },
    params: { b: '2', c: '2' },
    ...hooks('child'),
  })
  const seen = await echo(child, { headers: { 'X-C': 'call' }, params: { c: '3' } })
  assert.deepEqual(log, ['parent', 'child'])
  assert.equal(seen.url, '/echo?a=1&b=2&c=3')
  const { headers } = seen
  const names = ['x-a', 'x-b', 'x-c', 'user-agent', 'accept-encoding'] as const
  assert.deepEqual(
    names.map((name) => headers[name] !== undefined && headers[name]),
    ['parent', 'child', 'call', false, headers['accept-encoding']],
  )
  const bare = extend(child, { headers: null, params: null, eventHooks: null })
  const plain = await echo(bare)
  assert.deepEqual([plain.url, plain.headers['x-a'], log.length], ['/echo', undefined, 2])
  assert.match(plain.headers['user-agent']!, /^runwright/)
  assert.equal((await echo(parent)).headers['x-b'], 'parent')
})

behaviour('other options replace, and null switches off', async ({ make, origin }) => {
  const parent = make({
    baseUrl: `${origin}/none`,
    auth: ['u', 'p'],
    followRedirects: true,
    raiseForStatus: true,
    retry: 3,
    timeout: { read: 1234, total: 60_000 },
    sensitiveHeaders: ['x-mine'],
  })
  const child = extend(parent, { baseUrl: origin, timeout: { connect: 77 } })
  const seen = await echo(child)
  assert.match(seen.headers['authorization']!, /^Basic/)
  const built = child.buildRequest('GET', '/', { headers: { 'X-Mine': 'a', 'X-Too': 'b' } })
  assert.deepEqual(
    [built.timeouts?.read, built.timeouts?.connect, built.timeouts?.total],
    [1234, 77, 60_000],
  )
  const grandchild = extend(child, { auth: null, sensitiveHeaders: ['x-too'], retry: null })
  assert.equal((await echo(grandchild)).headers['authorization'], undefined)
  const headers = { 'X-Mine': 'secret1', 'X-Too': 'secret2' }
  assert.doesNotMatch(inspect(grandchild.buildRequest('GET', '/', { headers }).headers), /secret\d/)
  const status = await failure(() => grandchild.get('/status?code=404'))
  assert.equal(status.code, 'ERR_HTTP_STATUS')
  const moved = await extend(child, { followRedirects: false, raiseForStatus: false }).get(
    '/redirect?to=/echo',
  )
  assert.equal(moved.statusCode, 302)
})

behaviour('the jar is shared unless cookies are given', async ({ make, origin }) => {
  const parent = make({ baseUrl: origin, cookies: { first: '1' } })
  const child = extend(parent)
  assert.equal(child.cookies, parent.cookies)
  await child.get('/cookies', { params: { set: 'login=yes' } })
  assert.equal((await parent.get('/cookies')).text, 'first=1; login=yes')
  const own = extend(parent, { cookies: { extra: 'e', first: '2' } })
  assert.notEqual(own.cookies, parent.cookies)
  assert.deepEqual([...own.cookies].map(({ name, value }) => `${name}=${value}`).sort(), [
    'extra=e',
    'first=2',
    'login=yes',
  ])
  assert.deepEqual([parent.cookies.get('extra'), parent.cookies.get('first')], [null, '1'])
  const jar = new Cookies()
  assert.equal(extend(parent, { cookies: jar }).cookies, jar)
  assert.equal(extend(parent, { cookies: null as never }).cookies.size, 0)
})

behaviour('connections are shared; only the parent closes them', async ({ make, origin }) => {
  const parent = make({ baseUrl: origin })
  const before = await accepted(parent)
  const child = extend(extend(parent, { headers: { 'x-a': '1' } }), { timeout: 9000 })
  assert.equal(await accepted(child), before)
  await child.close()
  assert.equal(child.isClosed, true)
  assert.match(inspect(child), /closed/)
  assert.ok((await failure(() => child.get('/echo'))) instanceof ClientStateError)
  assert.ok((await failure(() => extend(child))) instanceof ClientStateError)
  assert.equal(parent.isClosed, false)
  assert.equal(await accepted(parent), before)

  const other = extend(parent)
  await parent.close()
  assert.equal(other.isClosed, true)
  assert.match(inspect(other), /closed/)
  assert.ok((await failure(() => other.get('/echo'))) instanceof ClientStateError)
})

behaviour('an option of the pool gives the client its own', async ({ make, origin }) => {
  const parent = make({ baseUrl: origin })
  const before = await accepted(parent)
  for (const options of [
    { limits: { maxConnections: 3 } },
    { verify: false },
    { trustEnv: false },
    { http2: true },
    { localAddress: '127.0.0.1' },
    { proxy: null },
    { mounts: {} },
  ]) {
    const child = extend(parent, options)
    assert.ok((await accepted(child)) > before, Object.keys(options)[0])
    await child.close()
    assert.equal((await parent.get('/echo')).statusCode, 200)
  }
  const child = extend(parent, { limits: { maxConnections: 3 } })
  await parent.close()
  assert.equal(child.isClosed, false)
  assert.equal((await child.get('/echo')).statusCode, 200)
  await child.close()
})

behaviour('transports that were passed in stay the caller’s', async ({ make }) => {
  let closed = 0
  const mock = (name: string): MockTransport => {
    const transport = new MockTransport(() => new Response(200, { text: name }))
    return Object.assign(transport, { close: () => void closed++ })
  }
  const parent = make({ transport: mock('parent'), baseUrl: 'http://a.test' })
  const verified = extend(parent, { verify: false })
  assert.equal((await verified.get('/')).text, 'parent')
  const other = extend(parent, { transport: mock('child') })
  assert.equal((await other.get('/')).text, 'child')
  const mounted = extend(other, { mounts: { 'http://b.test': mock('mounted') } })
  assert.equal((await mounted.get('http://b.test/')).text, 'mounted')
  assert.equal((await mounted.get('http://c.test/')).text, 'child')
  for (const client of [verified, mounted, other, parent]) await client.close()
  assert.equal(closed, 0)
})

behaviour('a wrong option of extend() is refused', async ({ client }) => {
  const wrong: [unknown, RegExp][] = [
    [{ header: {} }, /header is not an option of a client; use headers/],
    [{ followRedirects: 1 }, /followRedirects must be/],
    [{ localAddress: 'localhost' }, /localAddress must be an IP address/],
    ['x', /must be an object/],
    [null, /must be an object/],
    [{ raiseForStatus: 'yes' }, /raiseForStatus must be true or false/],
  ]
  for (const [options, message] of wrong) {
    assert.throws(() => client.extend(options as object), { name: 'TypeError', message })
  }
})

test('closing a client fails the calls of those that share its connections', async () => {
  await using server = await serve(() => {})
  const parent = new AsyncClient({ baseUrl: server.origin })
  const child = parent.extend()
  const inFlight = failure(() => child.get('/'))
  await new Promise((resolve) => server.server.once('request', resolve))
  await parent.close()
  assert.ok((await inFlight) instanceof CloseError)
})

test('a call in flight of a closed child comes to its end', async () => {
  let answer = (): void => {}
  await using server = await serve((_, response) => (answer = () => response.end('late')))
  await using parent = new AsyncClient({ baseUrl: server.origin })
  const child = parent.extend()
  const inFlight = child.get('/')
  await new Promise((resolve) => server.server.once('request', resolve))
  await child.close()
  answer()
  assert.equal((await inFlight).text, 'late')
})

test('a client of the network extends to one with a transport, and a jar keeps its rules', () => {
  const isPublicSuffix = (name: string): boolean => name === 'shop.test'
  const cookies = new Cookies(null, { publicSuffixes: isPublicSuffix, persist: false })
  using client = new Client({ cookies })
  const child = client.extend({ cookies: { a: '1' } })
  assert.equal(child.cookies.persist, false)
  const answer = new Response(200, { headers: { 'set-cookie': 'b=2; Domain=shop.test' } })
  child.cookies.extract(new URL('https://a.shop.test'), answer.headers)
  assert.equal(child.cookies.get('b'), null)
  const seen: Request[] = []
  const transport = new MockTransport((request) => {
    seen.push(request)
    return new Response(200)
  })
  client.extend({ transport }).get('http://a.test/')
  assert.equal(seen.length, 1)
  assert.throws(() => client.extend({ lookup: () => {} } as object), /lookup cannot be used/)
})
