/** What CacheTransport does besides the rules of freshness, which `rules.test.ts` has. */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { deserialize, serialize } from 'node:v8'
import { gzipSync } from 'node:zlib'
import {
  AsyncClient,
  CacheTransport,
  Client,
  ConnectError,
  Cookies,
  MemoryCacheStore,
  MockTransport,
  Response,
  TotalTimeoutError,
  type CacheErrorEvent,
  type CacheRecord,
} from 'runwright/http'
import { both, KINDS, START, storeOf, World, type Kind } from './world.js'
import { chunked, bytes } from './chunked-origin.js'

const FRESH = { headers: { 'Cache-Control': 'max-age=60' } }

/** The events of the channel while `work` runs. */
async function cacheErrors(work: () => Promise<void>): Promise<CacheErrorEvent[]> {
  const events: CacheErrorEvent[] = []
  const listener = (event: unknown): number => events.push(event as CacheErrorEvent)
  subscribe('runwright.http.cache', listener)
  try {
    await work()
  } finally {
    unsubscribe('runwright.http.cache', listener)
  }
  return events
}

/** Resolves once `isTrue` returns true; timers and sockets have their turn between calls. */
async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setImmediate(resolve))
}

// Credentials

for (const [name, alice, bob] of [
  ['Authorization', { Authorization: 'Bearer a' }, { Authorization: 'Bearer b' }],
  ['cookies', { Cookie: 'sid=a' }, { Cookie: 'sid=b' }],
  ['a key', { 'X-Api-Key': 'a' }, { 'X-Api-Key': 'b' }],
  ['a token', { 'X-Vault-Token': 'a' }, { 'X-Vault-Token': 'b' }],
] as const) {
  both(`responses are never shared by requests with different ${name}`, async (world) => {
    world.answers = [{ headers: { 'Cache-Control': 'public, max-age=60' } }]
    assert.equal((await world.get('/', { headers: alice })).text, 'body 1')
    assert.equal((await world.get('/', { headers: bob })).text, 'body 2')
    assert.equal((await world.get('/')).text, 'body 3')
    assert.equal((await world.get('/', { headers: alice })).text, 'body 1')
    assert.equal((await world.get('/', { headers: bob })).text, 'body 2')
    assert.equal((await world.get('/')).text, 'body 3')
  })
}

for (const kind of KINDS) {
  test(`${kind}: fields that sensitiveHeaders or an auth name are credentials too`, async () => {
    const world = new World(kind, {}, { sensitiveHeaders: ['X-User'] })
    world.answers = [FRESH]
    assert.equal((await world.get('/', { headers: { 'X-User': 'a' } })).text, 'body 1')
    assert.equal((await world.get('/', { headers: { 'X-User': 'b' } })).text, 'body 2')
    const signedAs = (user: string): { auth: (request: { headers: Headers }) => never } =>
      ({ auth: (request) => (request.headers.set('X-Signed', user), request) as never })
    assert.equal((await world.get('/', signedAs('a') as object)).text, 'body 3')
    assert.equal((await world.get('/', signedAs('b') as object)).text, 'body 4')
    assert.equal((await world.get('/', signedAs('a') as object)).text, 'body 3')
  })

  test(`${kind}: a cookie that was set once never enters another jar from the store`, async () => {
    const world = new World(kind, {}, { cookies: new Cookies() })
    world.answers = [{ headers: { 'Cache-Control': 'max-age=60', 'Set-Cookie': 'sid=alice' } }]
    await world.get()
    assert.equal(world.client.cookies.get('sid'), 'alice')
    const { transport } = world
    const cookies = new Cookies()
    const given = { transport, cookies, baseUrl: 'http://a.test' }
    const other = kind === 'Client' ? new Client(given) : new AsyncClient(given)
    const response = await other.get('/')
    assert.equal(response.extensions.cache?.status, 'hit')
    assert.equal(response.headers.has('set-cookie'), false)
    assert.equal(cookies.get('sid'), null)
  })
}

both('a cookie of a 304 is for the one who gets it', async (world) => {
  const etag = { ETag: '"1"' }
  world.answers = [{ headers: { ...etag, 'Cache-Control': 'max-age=1' } }]
  await world.get()
  world.wait(5)
  world.answers = [
    { status: 304, headers: { ...etag, 'Cache-Control': 'max-age=60', 'Set-Cookie': 'a=1' } },
  ]
  const confirmed = await world.get()
  assert.equal(confirmed.headers.get('set-cookie'), 'a=1')
  const hit = await world.get()
  assert.equal(hit.extensions.cache?.status, 'hit')
  assert.equal(hit.headers.has('set-cookie'), false)
})

both('nothing that is secret is stored, used as a key or printed', async (world, kind) => {
  const stored: unknown[] = []
  const store = storeOf({ set: (key, record) => stored.push([key, record]) })
  const inner = new World(kind, { store })
  inner.answers = [{ headers: { 'Cache-Control': 'max-age=9', Vary: 'Cookie, Authorization, X' } }]
  const headers = { Cookie: 'secret1', Authorization: 'secret2', X: 'x' }
  await inner.get('/?token=secret3', { headers })
  assert.equal(stored.length, 1)
  assert.match((stored[0] as [string])[0], /^[0-9a-f]{64}$/)
  assert.doesNotMatch(JSON.stringify(stored), /secret/)
  world.answers = [{ ...FRESH, body: 'secret4' }]
  await world.get()
  assert.doesNotMatch(inspect([world.transport, new MemoryCacheStore()], { depth: 9 }), /secret/)
  assert.equal(inspect(world.transport), '<CacheTransport>')
})

// Keys

both('what selects another resource selects another response', async (world) => {
  world.answers = [FRESH]
  const requests: (() => Promise<{ readonly text: string }>)[] = [
    () => world.get('/a'),
    () => world.get('/a?b'),
    () => world.get('http://b.test/a'),
    () => world.get('http://a.test:81/a'),
    () => world.get('/a', { headers: { Host: 'c.test' } }),
    () => world.get('/a', { extensions: { target: '*' } }),
    () => world.get('/a', { extensions: { sniHostname: 'd.test' } }),
  ]
  for (const round of [1, 2]) {
    for (const [index, request] of requests.entries()) {
      assert.equal((await request()).text, `body ${index + 1}`, `round ${round}`)
    }
  }
  assert.equal((await world.get('/a#fragment')).text, 'body 1')
})

both('a request with a body, and other methods, are not answered from the store', async (world) => {
  world.answers = [FRESH]
  await world.get()
  for (const [method, options] of [
    ['GET', { content: 'x' }],
    ['OPTIONS', {}],
    ['QUERY', { content: 'x' }],
  ] as const) {
    const response = await world.request(method, '/', options)
    assert.equal(response.extensions.cache?.status, 'bypass', method)
  }
})

both('the responses of one URL that differ by Vary are 8 at most', async (world) => {
  world.answers = [{ headers: { 'Cache-Control': 'max-age=60', Vary: 'X' } }]
  for (let x = 1; x <= 9; x++) await world.get('/', { headers: { X: String(x) } })
  for (let x = 9; x >= 2; x--) {
    assert.equal((await world.get('/', { headers: { X: String(x) } })).text, `body ${x}`)
  }
  assert.equal((await world.get('/', { headers: { X: '1' } })).text, 'body 10')
})

both('of several responses that match, the newest is used', async (world) => {
  world.answers = [
    { headers: { 'Cache-Control': 'max-age=60' } },
    { headers: { 'Cache-Control': 'max-age=60', Vary: 'X' } },
  ]
  await world.get()
  await world.get('/', { headers: { 'Cache-Control': 'no-cache' } })
  assert.equal((await world.get()).text, 'body 2')
})

// Validation

both('a validation sends both validators, and what else the request has', async (world) => {
  const validators = { ETag: '"1"', 'Last-Modified': world.date(-100) }
  world.answers = [{ headers: validators }]
  await world.get('/', { headers: { X: '1' } })
  world.answers = [{ status: 304 }]
  const { request } = await world.get('/', { headers: { X: '2' } })
  const sent = world.requests[1]!.headers
  assert.equal(sent.get('if-none-match'), '"1"')
  assert.equal(sent.get('if-modified-since'), validators['Last-Modified'])
  assert.equal(sent.get('x'), '2')
  assert.equal(request.headers.has('if-none-match'), false)
})

both('a 304 updates the stored fields, but not those of the content', async (world) => {
  const content = { ETag: '"1"', 'Content-Encoding': 'x-unknown', 'Content-Type': 'a/b' }
  world.answers = [
    { headers: { ...content, 'Cache-Control': 'max-age=1', A: '1', B: '1', Age: '9' } },
    {
      status: 304,
      headers: {
        ...{ ETag: '"2"', 'Content-Encoding': 'gzip', 'Content-Length': '0', 'Content-Type': 'c/d' },
        ...{ 'Cache-Control': 'max-age=60, no-cache="C"', A: ['2', '3'], C: '1', Connection: 'D', D: '1' },
      },
    },
  ]
  await world.get()
  world.wait(100)
  const date = world.date()
  const expected = {
    ...{ etag: '"1"', 'content-encoding': 'x-unknown', 'content-length': '6', b: '1' },
    ...{ date, 'content-type': 'c/d', 'cache-control': 'max-age=60, no-cache="C"', a: '2, 3' },
  }
  const confirmed = await world.get()
  assert.deepEqual(confirmed.headers.toJSON(), expected)
  assert.equal(confirmed.text, 'body 1')
  world.wait(30)
  const hit = await world.get()
  assert.deepEqual(hit.headers.toJSON(), { ...expected, age: '30' })
  assert.deepEqual(hit.extensions.cache, { status: 'hit', ageMs: 30_000 })
})

both('a 304 without a Date makes the response as young as it is', async (world) => {
  world.answers = [{ headers: { ETag: '"1"', 'Cache-Control': 'max-age=60' } }]
  await world.get()
  world.wait(1000)
  world.answers = [{ status: 304, headers: { Date: [] } }]
  await world.get()
  world.wait(59)
  assert.equal((await world.get()).extensions.cache?.status, 'hit')
})

both('what a validation finds replaced or gone is no longer served', async (world) => {
  const sie = 'max-age=1, stale-if-error=1000'
  const tooLarge = { headers: { ETag: '"2"' }, body: 'x'.repeat(6 * 1024 * 1024) }
  for (const answer of [{ status: 404 }, { headers: { 'Cache-Control': 'no-store' } }, tooLarge]) {
    world.answers = [{ headers: { ETag: '"1"', 'Cache-Control': sie } }, answer, { status: 503 }]
    await world.get()
    world.wait(5)
    await world.get()
    assert.equal((await world.get()).statusCode, 503)
    await world.request('DELETE')
  }
})

both('a 304 that nobody asked for is passed on', async (world) => {
  world.answers = [{ status: 304 }]
  assert.equal((await world.get()).statusCode, 304)
})

// Errors

both('stale-if-error covers lost connections, not aborts, time limits and mistakes', async (world) => {
  world.answers = [{ headers: { 'Cache-Control': 'max-age=1, stale-if-error=60' } }]
  await world.get()
  world.wait(5)
  world.answers = [{ error: new ConnectError('down') }]
  const response = await world.get()
  assert.equal(response.text, 'body 1')
  assert.deepEqual(response.extensions.cache, { status: 'stale', ageMs: 5000 })
  for (const error of [new TotalTimeoutError('late', 1), new TypeError('mistake')]) {
    world.answers = [{ error }]
    await assert.rejects(async () => world.get(), error.constructor as typeof Error)
  }
  const controller = new AbortController()
  controller.abort(new Error('enough'))
  await assert.rejects(async () => world.get('/', { signal: controller.signal }), /enough/)
})

// HEAD

both('HEAD is answered from a fresh response to GET, without its content', async (world) => {
  world.answers = [FRESH]
  await world.get()
  const response = await world.request('HEAD')
  assert.equal(response.extensions.cache?.status, 'hit')
  assert.equal(response.headers.get('content-length'), '6')
  assert.equal(response.text, '')
  assert.equal((await world.get()).text, 'body 1')
})

both('a response to HEAD updates what is stored, or shows that it has changed', async (world) => {
  for (const [etag, status] of [['"1"', 'hit'], ['"2"', 'miss']] as const) {
    world.answers = [{ headers: { ETag: '"1"', 'Cache-Control': 'max-age=1' } }]
    await world.get()
    world.wait(5)
    const headers = { ETag: etag, 'Cache-Control': 'max-age=60', 'Content-Length': '6', A: '1' }
    world.answers = [{ headers }]
    assert.equal((await world.request('HEAD')).extensions.cache?.status, 'miss')
    const response = await world.get()
    assert.equal(response.extensions.cache?.status, status)
    assert.equal(response.headers.get('a'), '1')
    await world.request('DELETE')
  }
  await world.request('HEAD', '/unknown')
  assert.equal((await world.get('/unknown')).extensions.cache?.status, 'miss')
})

// Invalidation

for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'M-SEARCH']) {
  both(`${method} invalidates its URL, Location and Content-Location of one origin`, async (world) => {
    const paths = ['/', '/location', '/content', 'http://b.test/other', '/kept']
    const headers = { Authorization: 'a' }
    world.answers = [FRESH]
    for (const path of paths) await world.get(path, { headers })
    for (const Location of ['/location', 'http://b.test/other', 'http://[']) {
      world.answers = [{ status: 201, headers: { Location, 'Content-Location': 'content' } }]
      await world.request(method, '/', { headers })
    }
    world.answers = [FRESH]
    const statuses: unknown[] = []
    for (const path of paths) {
      statuses.push((await world.get(path, { headers })).extensions.cache?.status)
    }
    assert.deepEqual(statuses, ['miss', 'miss', 'miss', 'hit', 'hit'])
  })
}

both('an unsafe request that fails invalidates nothing', async (world) => {
  world.answers = [FRESH, { status: 500 }, { status: 404 }, {}]
  await world.get()
  await world.request('POST')
  await world.request('POST')
  assert.equal((await world.get()).extensions.cache?.status, 'hit')
})

test('a response that was on its way when its URL was changed is not stored', async () => {
  const answers = new Map<string, (response: Response) => void>()
  const origin = new MockTransport((request) => {
    if (request.method === 'POST') return new Response(204)
    return new Promise((resolve) => answers.set(request.url.pathname, resolve))
  })
  await using client = new AsyncClient({
    transport: new CacheTransport(origin),
    baseUrl: 'http://a.test',
  })
  const old = [client.get('/a'), client.get('/b')]
  await until(() => answers.size === 2)
  await client.post('/a')
  for (const answer of answers.values()) answer(new Response(200, { text: 'old', ...FRESH }))
  await Promise.all(old)
  let isAnswered = false
  const again = client.get('/a').then((response) => ((isAnswered = true), response))
  await until(() => isAnswered || origin.requests.length === 4)
  answers.get('/a')!(new Response(200, { text: 'new' }))
  assert.equal((await again).text, 'new')
  assert.equal((await client.get('/b')).extensions.cache?.status, 'hit')
})

// Content

function clientOf(kind: Kind, transport: CacheTransport<MockTransport>): AsyncClient | Client {
  const options = { transport, baseUrl: 'http://a.test' }
  return kind === 'Client' ? new Client(options) : new AsyncClient(options)
}

for (const kind of KINDS) {
  test(`${kind}: content is stored when it was read to its end, and only then`, async () => {
    const broken = new ConnectError('broken')
    for (const [name, chunks, headers, stop, isStored] of [
      ['whole', [bytes(3), bytes(20_000)], {}, false, true],
      ['empty', [], {}, false, true],
      ['the reader stops', [bytes(3), bytes(4)], {}, true, false],
      ['an error', [bytes(3), broken], {}, false, false],
      ['shorter than Content-Length', [bytes(3)], { 'Content-Length': '4' }, false, false],
      ['larger than maxEntryBytes', [bytes(30_000), bytes(1)], {}, false, false],
      ['larger by Content-Length', [bytes(9)], { 'Content-Length': '30001' }, false, false],
    ] as const) {
      const { origin, pulled } = chunked(chunks, headers)
      const store = new MemoryCacheStore()
      const transport = new CacheTransport(origin, { store, maxEntryBytes: 30_000 })
      await using client = clientOf(kind, transport) as AsyncClient
      const response = await client.stream('GET', '/')
      try {
        for await (const chunk of response.iterRaw()) if (chunk.length > 0 && stop) break
      } catch (error) {
        assert.equal(error, broken)
      }
      await response.close()
      assert.equal(store.size, isStored ? 1 : 0, name)
      // Nothing was read for the sake of the store.
      if (stop) assert.equal(pulled(), 1)
    }
  })

  test(`${kind}: a response that is closed unread is not stored`, async () => {
    const { origin, closed, pulled } = chunked([bytes(3)])
    const store = new MemoryCacheStore()
    await using client = clientOf(kind, new CacheTransport(origin, { store })) as AsyncClient
    const response = await client.stream('GET', '/')
    await response.close()
    assert.deepEqual([closed(), pulled(), store.size], [1, 0, 0])
  })

  test(`${kind}: neither reader nor caller can change what is stored`, async () => {
    const { origin } = chunked([bytes(20_000), bytes(3)])
    await using client = clientOf(kind, new CacheTransport(origin)) as AsyncClient
    const response = await client.stream('GET', '/')
    for await (const chunk of response.iterRaw()) chunk.fill(0)
    for (let i = 0; i < 3; i++) {
      const hit = await client.get('/')
      assert.equal(hit.extensions.cache?.status, 'hit')
      assert.deepEqual(Buffer.from(hit.content), Buffer.from(bytes(20_003)))
      hit.content.fill(0)
      hit.headers.set('Cache-Control', 'no-store')
    }
  })

  test(`${kind}: content is stored in its coding, and decoded for each caller`, async () => {
    const { origin } = chunked([gzipSync('hello')], { 'Content-Encoding': 'gzip' })
    await using client = clientOf(kind, new CacheTransport(origin)) as AsyncClient
    for (const status of ['miss', 'hit', 'hit']) {
      const response = await client.get('/')
      assert.equal(response.extensions.cache?.status, status)
      assert.equal(response.text, 'hello')
      assert.equal(response.headers.get('content-encoding'), 'gzip')
    }
    assert.equal(origin.requests.length, 1)
  })
}

// Stores

both('a store that throws is as good as none, and its errors are published', async (world, kind) => {
  const fail = (): never => {
    throw new Error('full')
  }
  const inner = new World(kind, { store: { get: fail, set: fail, delete: fail } })
  inner.answers = [FRESH]
  const events = await cacheErrors(async () => {
    assert.equal((await inner.get()).text, 'body 1')
    assert.equal((await inner.get()).text, 'body 2')
    assert.equal((await inner.request('POST')).statusCode, 200)
  })
  const operations = events.map(({ operation }) => operation)
  assert.deepEqual(operations, ['get', 'get', 'set', 'get', 'get', 'set', 'delete'])
  assert.equal((events[0]!.error as Error).message, 'full')
  assert.equal(events[0]!.request.method, 'GET')
  assert.equal(world.requests.length, 0)
})

const good = {
  statusCode: 200, reasonPhrase: 'OK', httpVersion: 'HTTP/1.1', body: bytes(3), vary: [],
  headers: [['Cache-Control', 'max-age=60']], requestedAt: START, receivedAt: START,
}
const records: Record<string, unknown> = {
  'a string': 'x',
  'an array': [],
  'no version': { variants: [good] },
  'no variants': { version: 1 },
  'a variant that is null': { version: 1, variants: [null] },
  ...Object.fromEntries(
    Object.entries({
      statusCode: ['200', 99, 206.5, null],
      reasonPhrase: [1],
      httpVersion: [null],
      body: ['xxx', [1, 2, 3], { type: 'Buffer', data: [1] }, null],
      vary: [null, ['x'], [[1]]],
      headers: [null, ['a'], [['a']], [['a b', 'c']], [['a', 'b\r\nc: d']], [['content-length', '4']], [[1, 2]]],
      requestedAt: ['0', NaN],
      receivedAt: [Infinity, null],
    }).flatMap(([name, values]) =>
      values.map((value, index) => [
        `${name} ${index}`, { version: 1, variants: [{ ...good, [name]: value }] },
      ]),
    ),
  ),
}

both('a damaged record is a miss, is published and replaced', async (world, kind) => {
  for (const [name, record] of Object.entries(records)) {
    const store = new Map<string, unknown>() as Map<string, CacheRecord>
    const inner = new World(kind, { store })
    inner.answers = [FRESH]
    await inner.get()
    const [key] = store.keys()
    store.set(key!, record as CacheRecord)
    const events = await cacheErrors(async () => {
      assert.equal((await inner.get()).text, 'body 2', name)
    })
    assert.ok(events.length > 0, name)
    assert.ok(events.every(({ operation }) => operation === 'get'), name)
    assert.equal((await inner.get()).extensions.cache?.status, 'hit', name)
  }
  assert.equal(world.requests.length, 0)
})

both('a record of another version is a miss and no error', async (world, kind) => {
  const store = storeOf({ get: () => ({ version: 2 }) as never })
  const inner = new World(kind, { store })
  const events = await cacheErrors(async () => {
    assert.equal((await inner.get()).text, 'body 1')
  })
  assert.deepEqual(events, [])
  assert.equal(world.requests.length, 0)
})

both('a Map is a store, and records survive serialization', async (world, kind) => {
  const map = new Map<string, Buffer>()
  const store = storeOf({
    get: (key) => (map.has(key) ? (deserialize(map.get(key)!) as CacheRecord) : undefined),
    set: (key, record) => map.set(key, serialize(structuredClone(record))),
    delete: (key) => map.delete(key),
  })
  const inner = new World(kind, { store })
  inner.answers = [{ headers: { 'Cache-Control': 'max-age=60', Vary: 'X' }, body: '\0\xff' }]
  await inner.get('/', { headers: { X: '1' } })
  const restarted = new World(kind, { store })
  const hit = await restarted.get('/', { headers: { X: '1' } })
  assert.equal(hit.text, '\0\xff')
  assert.equal(hit.extensions.cache?.status, 'hit')
  assert.equal(world.requests.length, 0)
})

test('AsyncClient: a store may be asynchronous, and one that hangs does not outlast the call', async () => {
  const records = new MemoryCacheStore()
  let hangs = false
  const later = async <T>(value: () => T): Promise<T> => {
    if (hangs) await new Promise(() => {})
    return Promise.resolve().then(value)
  }
  const store = storeOf({
    get: (key) => later(() => records.get(key)),
    set: (key, record) => later(() => records.set(key, record)),
    delete: (key) => later(() => records.delete(key)),
  })
  const world = new World('AsyncClient', { store })
  world.answers = [FRESH]
  await world.get()
  assert.equal((await world.get()).extensions.cache?.status, 'hit')
  await world.request('POST')
  assert.equal((await world.get()).extensions.cache?.status, 'miss')
  hangs = true
  const controller = new AbortController()
  const call = world.get('/', { signal: controller.signal })
  setImmediate(() => controller.abort(new Error('enough')))
  await assert.rejects(call, /enough/)
})

test('Client: a store whose get is asynchronous is an error that says so', async () => {
  const world = new World('Client', { store: storeOf({ get: async () => null }) })
  await assert.rejects(world.get(), { code: 'ERR_HTTP_CLIENT_STATE' })
})

test('Client: asynchronous content is an error that says so', async () => {
  const stream = (async function* () {})()
  const init = { headers: { 'Cache-Control': 'max-age=60' }, stream: stream as never }
  const transport = new CacheTransport(new MockTransport(() => new Response(200, init)))
  using client = new Client({ transport })
  assert.throws(() => client.get('http://a.test'), { code: 'ERR_HTTP_CLIENT_STATE' })
})

test('Client: a store may write later, and errors of that are published', async () => {
  const world = new World('Client', {
    store: storeOf({ set: () => Promise.reject(new Error('full')) }),
  })
  world.answers = [FRESH]
  const events = await cacheErrors(async () => {
    assert.equal((await world.get()).text, 'body 1')
    await new Promise((resolve) => setImmediate(resolve))
  })
  assert.deepEqual(events.map(({ operation }) => operation), ['set'])
})

// stale-while-revalidate

const SWR = { 'Cache-Control': 'max-age=10, stale-while-revalidate=1000', ETag: '"1"' }

/** A cache whose stored responses are stale, over an origin that answers when the test wants. */
async function staleWorld(paths: readonly string[]): Promise<{
  client: AsyncClient
  transport: CacheTransport<MockTransport>
  requests: MockTransport['requests']
  /** What the origin does with its requests, in their order. */
  answers: ((response: Response | Error) => void)[]
}> {
  let now = START
  let isOpen = true
  const answers: ((response: Response | Error) => void)[] = []
  const origin = new MockTransport(() => {
    if (isOpen) return new Response(200, { text: 'old', headers: SWR })
    return new Promise((resolve, reject) =>
      answers.push((answer) => (answer instanceof Error ? reject(answer) : resolve(answer))),
    )
  })
  const transport = new CacheTransport(origin, { now: () => now })
  const client = new AsyncClient({ transport, baseUrl: 'http://a.test' })
  for (const path of paths) await client.get(path)
  isOpen = false
  now += 20_000
  return { client, transport, requests: origin.requests, answers }
}

test('AsyncClient: a stale response is replaced in the background, once for all callers', async () => {
  const { client, requests, answers } = await staleWorld(['/'])
  const progress: number[] = []
  const controller = new AbortController()
  const extensions = { onDownload: (received: number) => void progress.push(received), own: 1 }
  const options = { signal: controller.signal, extensions, timeout: { total: 60_000 } }
  const stale = await Promise.all([1, 2, 3].map(() => client.get('/', options)))
  assert.deepEqual(stale.map(({ text }) => text), ['old', 'old', 'old'])
  assert.ok(stale.every((response) => response.extensions.cache?.status === 'stale'))
  await until(() => answers.length > 0)
  // The caller's signal and callbacks have no part in it.
  controller.abort()
  progress.length = 0
  answers[0]!(new Response(200, { text: 'new', headers: SWR }))
  await until(async () => (await client.get('/')).text === 'new')
  assert.equal(requests.length, 2)
  assert.equal(requests[1]!.headers.get('if-none-match'), '"1"')
  assert.equal(requests[1]!.extensions['own'], 1)
  assert.deepEqual(progress, [])
})

test('AsyncClient: a 304 in the background makes the response fresh', async () => {
  const { client, answers } = await staleWorld(['/'])
  await client.get('/')
  await until(() => answers.length > 0)
  answers[0]!(new Response(304, { headers: SWR }))
  await until(async () => (await client.get('/')).extensions.cache?.status === 'hit')
})

test('AsyncClient: an error in the background is published, and the next request tries again', async () => {
  const { client, answers, requests } = await staleWorld(['/'])
  const events = await cacheErrors(async () => {
    await client.get('/')
    await until(() => answers.length > 0)
    answers[0]!(new ConnectError('down'))
    await until(async () => (await client.get('/')).text === 'old' && answers.length > 1)
  })
  assert.deepEqual(events.map(({ operation }) => operation), ['revalidate'])
  assert.equal((events[0]!.error as Error).message, 'down')
  assert.equal(requests.length, 3)
})

test('AsyncClient: at most 16 requests run in the background, and closing ends them', async () => {
  const paths = Array.from({ length: 20 }, (_, n) => `/${n}`)
  const { client, transport, requests, answers } = await staleWorld(paths)
  for (const path of paths) assert.equal((await client.get(path)).text, 'old')
  await until(() => answers.length >= 16)
  assert.equal(requests.length, 36)
  const events = await cacheErrors(async () => {
    await client.close()
    await transport.close()
    await transport.close()
  })
  assert.equal(events.length, 16)
  assert.match((events[0]!.error as Error).message, /cache transport was closed/)
})

test('a request in the background ends after the total timeout of the call', async () => {
  const { client, transport, answers } = await staleWorld(['/'])
  const events = await cacheErrors(async () => {
    await client.get('/', { timeout: { total: 20 } })
    await until(() => answers.length > 0)
    await until(async () => (await client.get('/')).text === 'old' && answers.length > 1)
  })
  assert.match((events[0]!.error as Error).message, /took over 20 ms/)
  await client.close()
  await transport.close()
})

// Both clients

test('both clients may use one transport and one store', async () => {
  const origin = new MockTransport(() => new Response(200, { text: 'x', ...FRESH }))
  const transport = new CacheTransport(origin)
  await using client = new AsyncClient({ transport, baseUrl: 'http://a.test' })
  using blocking = new Client({ transport, baseUrl: 'http://a.test' })
  assert.equal((await client.get('/')).extensions.cache?.status, 'miss')
  assert.equal(blocking.get('/').extensions.cache?.status, 'hit')
})

both('the parts of a response of the server are passed on', async (world) => {
  world.answers = [{ status: 203, ...FRESH }]
  const miss = await world.get()
  const hit = await world.get()
  for (const response of [miss, hit]) {
    assert.equal(response.statusCode, 203)
    assert.equal(response.reasonPhrase, 'Non-Authoritative Information')
    assert.equal(response.httpVersion, 'HTTP/1.1')
    assert.equal(response.timings, null)
  }
})

test('close() is synchronous where nothing runs in the background', () => {
  let closed = 0
  const inner = { handleRequest: () => new Response(200), close: () => void closed++ }
  assert.equal(new CacheTransport(inner).close(), undefined)
  assert.equal(closed, 1)
})
