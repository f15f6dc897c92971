import assert from 'node:assert/strict'
import { PassThrough, Readable } from 'node:stream'
import { test } from 'node:test'
import { bearerKeys, type RunServiceOptions } from 'runwright/server'
import {
  checkCaller, isLoopbackAddress, isLoopbackHost, type RequestFacts,
} from '../../../lib/server/access/origin.js'
import { resolveConfig } from '../../../lib/server/config.js'
import { FakeEngine } from '../fake-engine.js'
import { openService } from '../open-service.js'

const authorize = bearerKeys({ alice: 'alice-key-0123456789' })

function codeOf(
  facts: Partial<RequestFacts>,
  options: Partial<RunServiceOptions>,
  upgrade = false,
): string {
  const config = resolveConfig({ engine: new FakeEngine(), ...options })
  const request = {
    method: 'GET',
    socket: { remoteAddress: '127.0.0.1' },
    ...facts,
  } as RequestFacts
  try {
    checkCaller(request, config, upgrade)
    return 'passes'
  } catch (error) {
    return (error as { code: string }).code
  }
}

for (const { address, loopback } of [
  { address: '127.0.0.1', loopback: true },
  { address: '127.8.9.10', loopback: true },
  { address: '::1', loopback: true },
  { address: '::ffff:127.0.0.1', loopback: true },
  { address: '::ffff:10.0.0.1', loopback: false },
  { address: '10.0.0.1', loopback: false },
  { address: '1127.0.0.1', loopback: false },
  { address: '::1%lo', loopback: false },
  { address: undefined, loopback: false },
]) {
  test(`a peer at ${address} is ${loopback ? '' : 'not '}on this machine`, () => {
    assert.equal(isLoopbackAddress(address), loopback)
    const code = codeOf({ headers: { host: 'localhost' }, socket: { remoteAddress: address } }, {})
    assert.equal(code, loopback ? 'passes' : 'forbidden_peer')
  })
}

for (const socket of [undefined, null]) {
  test(`a request whose socket is ${socket} has an unknown caller`, () => {
    const headers = { host: 'localhost', origin: 'http://localhost' }
    for (const method of ['GET', 'POST']) {
      assert.equal(codeOf({ method, headers, socket }, {}), 'forbidden_peer')
      assert.equal(codeOf({ method, headers, socket }, { authorize }), 'passes')
    }
  })
}

for (const [authorization, expected] of [
  [undefined, [403, 'forbidden_peer', /^the request has no socket, .*give .* an authorize/]],
  ['Bearer alice-key-0123456789', [200]],
] as const) {
  const what = authorization === undefined ? 'without authorize' : 'with authorize'
  test(`${what} a request without a socket is answered ${expected[0]}`, async () => {
    const options = authorization === undefined ? {} : { authorize }
    await using opened = await openService({ engine: new FakeEngine(), ...options })
    const request = Object.assign(Readable.from([]), {
      method: 'GET', url: '/api/runs', httpVersionMajor: 1, rawHeaders: [],
      headers: { host: 'localhost', ...(authorization !== undefined && { authorization }) },
    })
    const answered = await new Promise<readonly [status: number, body: string]>((resolve) => {
      let status = 0
      const response = Object.assign(new PassThrough(), {
        writeHead: (given: number) => void (status = given),
        end: (body: string) => resolve([status, body]),
      })
      opened.service.handler(request as never, response as never)
    })
    const { code, detail } = JSON.parse(answered[1]) as { code?: string; detail?: string }
    assert.equal(answered[0], expected[0])
    assert.equal(code, expected[1])
    if (expected[2] !== undefined) assert.match(detail ?? '', expected[2])
  })
}

for (const { host, loopback } of [
  { host: 'localhost', loopback: true },
  { host: 'LOCALHOST:8000', loopback: true },
  { host: '127.0.0.1:8000', loopback: true },
  { host: '[::1]:8000', loopback: true },
  { host: 'localhost.', loopback: false },
  { host: 'localhost.evil.example', loopback: false },
  { host: '127.0.0.1.evil.example', loopback: false },
  { host: 'evil.example', loopback: false },
  { host: 'localhost:8000@evil.example', loopback: false },
  { host: '127.1', loopback: false },
  { host: '0.0.0.0', loopback: false },
  { host: '[::]', loopback: false },
  { host: '[::ffff:127.0.0.1]', loopback: false },
  { host: '2130706433', loopback: false },
  { host: '0x7f.0.0.1', loopback: false },
  { host: 'app.localhost', loopback: false },
  { host: 'localhost:', loopback: false },
  { host: 'localhost:8000:1', loopback: false },
  { host: 'evil.example@localhost', loopback: false },
  { host: 'localhost, evil.example', loopback: false },
  { host: 'localhost/', loopback: false },
  { host: '', loopback: false },
  { host: undefined, loopback: false },
]) {
  const outcome = loopback ? 'accepted' : 'refused'
  test(`without authorize the Host ${host ?? '(absent)'} is ${outcome}`, () => {
    assert.equal(isLoopbackHost(host), loopback)
    assert.equal(codeOf({ headers: { host } }, {}), loopback ? 'passes' : 'forbidden_host')
    assert.equal(codeOf({ headers: { host } }, { authorize }), 'passes')
  })
}

test('without authorize a request with a sign of a proxy is refused, with it it passes', () => {
  const headers = { host: 'localhost', 'x-forwarded-for': '10.0.0.1' }
  assert.equal(codeOf({ headers }, {}), 'forbidden_proxy')
  assert.equal(codeOf({ headers }, { authorize }), 'passes')
})

for (const { rawHeaders, passes } of [
  { rawHeaders: ['Host', 'localhost'], passes: true },
  { rawHeaders: ['Host', 'localhost', 'hOST', 'agents.example'], passes: false },
  { rawHeaders: ['Host', 'agents.example', 'Host', 'localhost'], passes: false },
  { rawHeaders: [':authority', 'localhost', 'host', 'localhost'], passes: true },
  { rawHeaders: [':authority', 'localhost', 'host', 'agents.example'], passes: false },
  { rawHeaders: [':authority', 'agents.example', 'host', 'localhost'], passes: false },
]) {
  const outcome = passes ? 'accepted' : 'refused'
  test(`without authorize the header lines ${rawHeaders.join(' ')} are ${outcome}`, () => {
    // Node keeps the first of several lines.
    const headers: Record<string, string> = {}
    for (let i = 0; i < rawHeaders.length; i += 2) {
      headers[rawHeaders[i]!.toLowerCase()] ??= rawHeaders[i + 1]!
    }
    assert.equal(codeOf({ headers, rawHeaders }, {}), passes ? 'passes' : 'forbidden_host')
    // No page is of the origin of such a request.
    const ofPage = { method: 'POST', headers: { ...headers, origin: 'http://localhost' } }
    const code = codeOf({ ...ofPage, rawHeaders }, { authorize })
    assert.equal(code, passes ? 'passes' : 'forbidden_origin')
  })
}

test('without authorize HTTP/1.0 is refused, with authorize it passes', () => {
  const request = { headers: { host: 'localhost' }, httpVersion: '1.0' }
  assert.equal(codeOf(request, {}), 'forbidden_proxy')
  assert.equal(codeOf(request, { authorize }), 'passes')
  assert.equal(codeOf({ ...request, httpVersion: '1.1' }, {}), 'passes')
})

const host = 'agents.example:8443'
for (const { origin, headers = { host }, options = {}, encrypted = false, passes } of [
  { origin: 'https://agents.example:8443', passes: true },
  { origin: 'http://agents.example:8443', passes: true },
  { origin: 'http://agents.example:8443', encrypted: true, passes: false },
  { origin: 'https://agents.example:8443', encrypted: true, passes: true },
  { origin: 'https://agents.example', passes: false },
  { origin: 'https://AGENTS.example:8443', passes: false },
  { origin: 'https://evil.example', passes: false },
  { origin: 'null', passes: false },
  { origin: '', passes: false },
  { origin: 'file://', passes: false },
  { origin: 'chrome-extension://abcdefghijklmnop', passes: false },
  { origin: 'https://agents.example:8443, https://agents.example:8443', passes: false },
  { origin: 'https://user@agents.example:8443', passes: false },
  { origin: 'https://agents.example.:8443', passes: false },
  { origin: 'https://agents.example:8443/', passes: false },
  { origin: 'https://agents.example', headers: { host: 'agents.example' }, passes: true },
  { origin: 'https://agents.example', headers: { host: 'agents.example:443' }, passes: true },
  { origin: 'http://agents.example', headers: { host: 'agents.example:443' }, passes: false },
  { origin: 'https://agents.example', headers: { ':authority': 'agents.example' }, passes: true },
  { origin: 'https://agents.example', headers: {}, passes: false },
  { origin: 'https://x', headers: { host: 'agents.example/@x' }, passes: false },
  {
    origin: 'https://public.example',
    options: { publicOrigin: 'https://public.example' },
    passes: true,
  },
  {
    origin: 'https://agents.example:8443',
    options: { publicOrigin: 'https://public.example' },
    passes: false,
  },
  {
    origin: 'https://app.example',
    options: { allowedOrigins: ['https://app.example'] },
    passes: true,
  },
  {
    origin: 'https://app.example.evil',
    options: { allowedOrigins: ['https://app.example'] },
    passes: false,
  },
  { origin: undefined, passes: true },
] as {
  origin: string | undefined
  headers?: Record<string, string>
  options?: Partial<RunServiceOptions>
  encrypted?: boolean
  passes: boolean
}[]) {
  const at = JSON.stringify({ ...headers, ...options, encrypted })
  const outcome = passes ? 'passes' : 'is refused'
  test(`a write from origin ${origin ?? '(absent)'} at ${at} ${outcome}`, () => {
    const facts = {
      method: 'POST',
      headers: { ...headers, origin },
      socket: { remoteAddress: '127.0.0.1', encrypted },
    }
    const expected = passes ? 'passes' : 'forbidden_origin'
    assert.equal(codeOf(facts, { authorize, ...options }), expected)
    assert.equal(codeOf({ ...facts, method: 'DELETE' }, { authorize, ...options }), expected)
    assert.equal(codeOf({ ...facts, method: 'GET' }, { authorize, ...options }, true), expected)
    assert.equal(codeOf({ ...facts, method: 'GET' }, { authorize, ...options }), 'passes')
  })
}

test('a page from another port of this machine cannot start a run', async () => {
  const engine = new FakeEngine()
  await using opened = await openService({ engine })
  for (const origin of ['http://localhost:3000', 'http://127.0.0.1:3000', 'null']) {
    const answer = await opened.call('POST', '/api/runs', {
      headers: { origin },
      body: { goal: 'x' },
    })
    assert.equal(answer.status, 403)
    assert.equal(answer.json.code, 'forbidden_origin')
  }
  assert.deepEqual(engine.calls, [])
})

test('every route, static files included, refuses rebound names and proxies', async () => {
  const engine = new FakeEngine()
  const runId = engine.add()
  await using opened = await openService({ engine })
  const paths = [
    '/',
    '/api/runs',
    `/api/runs/${runId}`,
    `/api/runs/${runId}/events`,
    '/api/health',
    '/api/openapi.json',
  ]
  for (const path of paths) {
    const rebound = await opened.call('GET', path, { headers: { host: 'evil.example' } })
    assert.equal(rebound.json.code, 'forbidden_host', path)
    const proxied = await opened.call('GET', path, { headers: { 'x-forwarded-for': '10.0.0.1' } })
    assert.equal(proxied.json.code, 'forbidden_proxy', path)
  }
  for (const action of ['abort', 'retry', 'resume']) {
    const path = `/api/runs/${runId}/${action}`
    const answer = await opened.call('POST', path, { headers: { host: 'evil.example' }, body: {} })
    assert.equal(answer.json.code, 'forbidden_host', path)
  }
  assert.deepEqual(engine.calls, [])
})

test('no CORS header is sent unless origins are configured', async () => {
  await using opened = await openService()
  const answer = await opened.call('GET', '/api/runs', {
    headers: { origin: 'http://evil.example' },
  })
  assert.equal(answer.status, 200)
  const cors = Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'))
  assert.deepEqual(cors, [])
})

test('a configured origin may call from a page, after a preflight', async () => {
  const origin = 'https://app.example'
  await using opened = await openService({ authorize, allowedOrigins: [origin] })
  const preflight = await opened.call('OPTIONS', '/api/runs', {
    headers: { origin, 'access-control-request-method': 'POST' },
  })
  assert.equal(preflight.status, 204)
  assert.equal(preflight.headers['access-control-allow-origin'], origin)
  assert.match(preflight.headers['access-control-allow-methods'] ?? '', /POST/)
  assert.match(preflight.headers['access-control-allow-headers'] ?? '', /authorization/)
  const answer = await opened.call('POST', '/api/runs', {
    headers: { origin, authorization: 'Bearer alice-key-0123456789' },
    body: { goal: 'x' },
  })
  assert.equal(answer.status, 201)
  assert.equal(answer.headers['access-control-allow-origin'], origin)
  assert.equal(answer.headers['vary'], 'Origin')
  const other = await opened.call('OPTIONS', '/api/runs', {
    headers: { origin: 'https://evil.example' },
  })
  assert.equal(other.headers['access-control-allow-origin'], undefined)
  assert.equal(other.headers['access-control-allow-methods'], undefined)
})

test('a foreign, rebound or proxied upgrade is refused before the 101', async () => {
  const engine = new FakeEngine()
  const path = `/api/ws/${engine.add()}`
  await using opened = await openService({ engine })
  for (const { headers, code } of [
    { headers: { Origin: 'http://localhost:3000' }, code: 'forbidden_origin' },
    { headers: { Host: 'evil.example' }, code: 'forbidden_host' },
    { headers: { 'X-Forwarded-For': '127.0.0.1' }, code: 'forbidden_proxy' },
  ]) {
    using client = await opened.socket(path, headers as Record<string, string>)
    assert.equal(client.status, 403)
    assert.match(client.head, /content-type: application\/problem\+json/i)
    assert.equal((await client.problem()).code, code)
  }
  using own = await opened.socket(path, { Origin: opened.served.origin })
  assert.equal(own.status, 101)
})

for (const { site, mode = 'cors', origin, passes } of [
  { site: 'same-origin', passes: true },
  { site: 'same-origin, cross-site', passes: false },
  { site: '', passes: false },
  { site: 'cross-site', mode: 'navigate, cors', passes: false },
  { site: 'none', mode: 'navigate', passes: true },
  { site: 'cross-site', passes: false },
  { site: 'same-site', passes: false },
  { site: 'cross-site', mode: 'no-cors', passes: false },
  { site: 'cross-site', mode: 'navigate', passes: true },
  { site: 'cross-site', origin: 'https://app.example', passes: true },
  { site: 'cross-site', origin: 'https://evil.example', passes: false },
]) {
  const by = origin === undefined ? '' : ` by ${origin}`
  test(`a read that is ${site} in mode ${mode}${by} ${passes ? 'passes' : 'is refused'}`, () => {
    const headers = {
      host,
      'sec-fetch-site': site,
      'sec-fetch-mode': mode,
      ...(origin === undefined ? {} : { origin }),
    }
    const options = { authorize, allowedOrigins: ['https://app.example'] }
    assert.equal(codeOf({ headers }, options), passes ? 'passes' : 'forbidden_origin')
    assert.equal(codeOf({ headers: { host } }, options), 'passes')
  })
}
