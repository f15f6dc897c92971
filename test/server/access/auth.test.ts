import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { bearerKeys, bearerToken, ProblemError, type AuthorizableRequest } from 'runwright/server'
import { openService } from '../open-service.js'
import { FakeEngine } from '../fake-engine.js'

const ALICE = 'alice-key-0123456789'
const BOB = 'bob-key-9876543210+/='
const authorize = bearerKeys({
  alice: ALICE,
  bob: { key: [BOB, 'bob-second-key-0000'], tenant: 'acme' },
})
const as = (key: string): { headers: Record<string, string> } => ({
  headers: { authorization: `Bearer ${key}` },
})
const protocol = (key: string): string => `bearer.${Buffer.from(key).toString('base64url')}`

for (const { headers, token } of [
  { headers: { authorization: `Bearer ${ALICE}` }, token: ALICE },
  { headers: { authorization: `bearer   ${ALICE} ` }, token: ALICE },
  { headers: { authorization: `Bearer ${BOB}` }, token: BOB },
  { headers: { authorization: 'Basic YTpi' }, token: null },
  { headers: { authorization: 'Bearer' }, token: null },
  { headers: { authorization: 'Bearer a b' }, token: null },
  { headers: {}, token: null },
  {
    headers: { upgrade: 'websocket', 'sec-websocket-protocol': `runwright.v1, ${protocol(BOB)}` },
    token: BOB,
  },
  { headers: { upgrade: 'websocket', 'sec-websocket-protocol': 'bearer.' }, token: null },
  { headers: { upgrade: 'websocket', 'sec-websocket-protocol': 'bearer.***' }, token: null },
  { headers: { 'sec-websocket-protocol': protocol(ALICE) }, token: null },
]) {
  test(`the token of ${JSON.stringify(headers)} is ${token}`, () => {
    assert.equal(bearerToken({ headers } as AuthorizableRequest), token)
  })
}

for (const { name, keys, message } of [
  { name: 'no key', keys: {}, message: /at least one/ },
  {
    name: 'a short key',
    keys: { a: 'short-secret' },
    message: /the key of a must have at least 16/,
  },
  { name: 'a key with a space', keys: { a: 'secret-secret secret' }, message: /may contain only/ },
  {
    name: 'a key that is not text',
    keys: { a: undefined as unknown as string },
    message: /the key of a/,
  },
  { name: 'an empty id', keys: { '': ALICE }, message: /must not be empty/ },
  { name: 'one key for two principals', keys: { a: ALICE, b: ALICE }, message: /given twice/ },
]) {
  test(`bearerKeys refuses ${name} without quoting it`, () => {
    assert.throws(
      () => bearerKeys(keys),
      (error: Error) =>
        error instanceof TypeError &&
        message.test(error.message) &&
        !/secret|alice-key/.test(error.message),
    )
  })
}

test('the function that checks keys does not expose them', () => {
  assert.doesNotMatch(inspect(authorize, { showHidden: true, depth: 10 }), /alice-key|bob-key/)
})

test('without a valid key, data is answered with 401 and how to send a key', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine, authorize })
  for (const path of [
    '/api/runs',
    `/api/runs/${runId}`,
    `/api/runs/${runId}/events`,
    '/api/models',
    '/api/goals',
    '/api/folders',
  ]) {
    for (const headers of [{}, { authorization: 'Bearer wrong-key-0123456789' }]) {
      const answer = await opened.call('GET', path, { headers })
      assert.equal(answer.status, 401, path)
      assert.equal(answer.headers['www-authenticate'], 'Bearer realm="runwright"')
      assert.equal(answer.json.code, 'unauthorized')
    }
  }
  const write = await opened.call('POST', '/api/runs', { body: { goal: 'x' } })
  assert.equal(write.status, 401)
  assert.equal((await opened.call('POST', '/api/resolve', { body: { goal: 'x' } })).status, 401)
  assert.deepEqual(engine.calls, [])
})

test('the engine receives the caller and the tenant', async () => {
  const engine = new FakeEngine()
  await using opened = await openService({ engine, authorize })
  await opened.call('POST', '/api/runs', { ...as(BOB), body: { goal: 'x' } })
  const [, , options] = engine.calls[0] as [string, object, { caller: object }]
  assert.deepEqual(options.caller, { owner: { id: 'bob', tenant: 'acme' } })
  await opened.call('GET', '/api/runs', as(ALICE))
  assert.equal((engine.calls[1] as [string, { tenant: null }])[1].tenant, null)
})

test("another tenant's run is 404 on every route", async () => {
  const engine = new FakeEngine()
  const runId = engine.add('acme')
  await using opened = await openService({ engine, authorize })
  for (const [method, path] of [
    ['GET', ''],
    ['DELETE', ''],
    ['GET', '/events'],
    ['POST', '/abort'],
    ['POST', '/retry'],
    ['POST', '/resume'],
  ] as const) {
    const body = path === '/resume' ? { decision: 'approve' } : undefined
    const answer = await opened.call(method, `/api/runs/${runId}${path}`, {
      ...as(ALICE),
      ...(body === undefined ? {} : { body }),
    })
    assert.equal(answer.status, 404, `${method} ${path}`)
    assert.equal(answer.json.code, 'run_not_found')
  }
  using socket = await opened.socket(`/api/ws/${runId}`, { Authorization: `Bearer ${ALICE}` })
  assert.equal(socket.status, 404)
  assert.deepEqual((await opened.call('GET', '/api/runs', as(ALICE))).json, [])
  assert.equal((await opened.call('GET', `/api/runs/${runId}`, as(BOB))).status, 200)
})

test('a page may offer its key as a subprotocol, which is never selected', async () => {
  const engine = new FakeEngine()
  const path = `/api/ws/${engine.add('acme')}`
  await using opened = await openService({ engine, authorize })
  using client = await opened.socket(path, {
    'Sec-WebSocket-Protocol': `runwright.v1, ${protocol('bob-second-key-0000')}`,
  })
  assert.equal(client.status, 101)
  assert.match(client.head, /\r\nsec-websocket-protocol: runwright\.v1\r\n/i)
  assert.doesNotMatch(client.head, /bearer/)
  using wrong = await opened.socket(path, {
    'Sec-WebSocket-Protocol': `runwright.v1, ${protocol('x')}`,
  })
  assert.equal(wrong.status, 401)
  assert.equal((await wrong.problem()).code, 'unauthorized')
})

test('static files, health (status only) and the description need no key', async () => {
  await using opened = await openService({ authorize })
  assert.equal((await opened.call('GET', '/api/openapi.json')).status, 200)
  assert.deepEqual((await opened.call('GET', '/api/health')).json, { status: 'ok' })
  assert.deepEqual((await opened.call('GET', '/api/health', as(BOB))).json, { status: 'ok' })
  const full = (await opened.call('GET', '/api/health', as(ALICE))).json
  assert.deepEqual(Object.keys(full), ['status', 'version', 'problem', 'runs'])
})

test('authorize may throw a problem of its own, and its other errors reveal nothing', async () => {
  await using refusing = await openService({
    authorize: () => {
      throw new ProblemError(403, 'no_access', 'this key may only read')
    },
  })
  const refused = await refusing.call('GET', '/api/runs')
  assert.deepEqual([refused.status, refused.json.code], [403, 'no_access'])
  await using failing = await openService({
    authorize: () => Promise.reject(new Error('password is hunter2')),
  })
  const failed = await failing.call('GET', '/api/runs')
  assert.equal(failed.status, 500)
  assert.doesNotMatch(failed.text, /hunter2/)
  assert.match(String(failing.errors[0]), /hunter2/)
})

const NO_PRINCIPALS: Record<string, unknown> = {
  nothing: undefined,
  false: false,
  true: true,
  'a number': 1,
  'a string': 'alice',
  'an array': ['alice'],
  'a function': () => null,
  'an object without id': { sub: 'alice' },
  'an id that is no string': { id: 7 },
  'an empty id': { id: '' },
  'an id with NUL': { id: 'alice\0' },
  'a tenant with half of a character': { id: 'alice', tenant: '\ud800' },
  'a tenant that is no string': { id: 'alice', tenant: 7 },
  'a misspelt tenant': { id: 'alice', tennant: 'acme' },
  'a tenant in another case': { id: 'alice', Tenant: 'acme' },
  'the id of a tenant': { id: 'alice', tenant_id: 'acme' },
  'an inherited misspelt tenant': Object.create({ id: 'alice', tenants: ['acme'] }),
  'a promise of false': Promise.resolve(false),
  'an object that throws': {
    get id(): string {
      throw new Error('no id today')
    },
  },
}

for (const [name, result] of Object.entries(NO_PRINCIPALS)) {
  test(`${name} as the result of authorize opens nothing and is a 500 for onError`, async () => {
    const engine = new FakeEngine()
    const runId = engine.add()
    await using opened = await openService({ engine, authorize: () => result as null })
    const write = await opened.call('POST', '/api/runs', { body: { goal: 'x' } })
    assert.equal(write.status, 500)
    assert.equal(write.json.code, 'internal_error')
    assert.equal((await opened.call('GET', `/api/runs/${runId}/events`)).status, 500)
    using socket = await opened.socket(`/api/ws/${runId}`)
    assert.equal(socket.status, 500)
    assert.equal(opened.errors.length, 3)
    const health = await opened.call('GET', '/api/health')
    assert.equal(health.json.version, undefined)
    assert.deepEqual(engine.calls, [])
  })
}

test('the principal is read once, so it cannot change its tenant on the way', async () => {
  const engine = new FakeEngine()
  let reads = 0
  const principal = {
    id: 'alice',
    name: 'fields of the host are left alone',
    get tenant(): string {
      reads += 1
      return reads === 1 ? 'acme' : 'globex'
    },
  }
  await using opened = await openService({ engine, authorize: () => principal })
  await opened.call('GET', '/api/runs')
  assert.equal(reads, 1)
  assert.equal((engine.calls[0] as [string, { tenant: string }])[1].tenant, 'acme')
})
