import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer as createSecure } from 'node:https'
import { connect, type Socket } from 'node:net'
import { createServer as createTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { AsyncClient, MockTransport, Proxy, ProxyError, Response } from 'runwright/http'
import {
  isNoProxy, parseNoProxy, proxiesFromEnvironment,
} from '../../../../lib/http/environment.js'
import { RawPeer, rawServer } from '../../../helpers/raw-peer.js'
import { listen, serve, type Served } from '../../../helpers/serve.js'

const file = (name: string): Buffer =>
  readFileSync(fileURLToPath(new URL(`../../../fixtures/http/certs/${name}.pem`, import.meta.url)))
const verify = { ca: file('ca').toString() }
const keys = { cert: file('server'), key: file('server-key') }

const secureOrigin = (): Promise<Served> =>
  listen(
    createSecure(keys, (request, response) =>
      response.end(JSON.stringify(request.headers)),
    ) as never,
    'https',
  )

function splice(peer: RawPeer, port: number): void {
  const target = connect(port, '127.0.0.1')
  peer.socket.removeAllListeners('data')
  if (peer.received.length > 0) target.write(peer.received)
  peer.socket.pipe(target).pipe(peer.socket)
  target.on('error', () => peer.socket.destroy())
  peer.socket.on('close', () => target.destroy())
}

interface Tunnelled {
  readonly heads: string[]
}

/** Answers CONNECT, and connects to the requested port on this machine. */
const connectProxy = (seen: Tunnelled) => async (peer: RawPeer): Promise<void> => {
  const head = await peer.takeUntil('\r\n\r\n')
  seen.heads.push(head)
  const port = Number(/^CONNECT [^ ]*:(\d+) /.exec(head)![1])
  peer.write('HTTP/1.1 200 Fine\r\n\r\n')
  splice(peer, port)
}

test('a proxy that sends informational responses only is refused', async () => {
  await using origin = await secureOrigin()
  await using proxy = await rawServer(async (peer) => {
    await peer.takeUntil('\r\n\r\n')
    peer.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(200))
  })
  await using client = new AsyncClient({ verify, proxy: `http://127.0.0.1:${proxy.port}` })
  await assert.rejects(client.get(origin.origin), (error) => {
    assert.ok(error instanceof ProxyError)
    assert.match(error.message, /more than 100 informational/)
    return true
  })
})

test('https goes through CONNECT; credentials go to the proxy only', async () => {
  const seen: Tunnelled = { heads: [] }
  await using origin = await secureOrigin()
  await using proxy = await rawServer(connectProxy(seen))
  await using client = new AsyncClient({
    verify,
    proxy: `http://us%65r:pw@127.0.0.1:${proxy.port}`,
  })
  const headers = { Authorization: 'Bearer origin' }
  const received = (await client.get(origin.origin, { headers })).json<Record<string, string>>()
  assert.equal(received['proxy-authorization'], undefined)
  assert.equal(received['authorization'], 'Bearer origin')
  const basic = `Basic ${Buffer.from('user:pw').toString('base64')}`
  assert.match(seen.heads[0]!, new RegExp(`^CONNECT 127\\.0\\.0\\.1:${origin.port} HTTP/1\\.1\r\n`))
  assert.match(seen.heads[0]!, new RegExp(`Proxy-Authorization: ${basic}`))
  assert.doesNotMatch(seen.heads[0]!, /Bearer/)
  await client.get(origin.origin)
  assert.equal(proxy.accepted, 1)
})

test('a proxy may itself be reached over TLS', async () => {
  const seen: Tunnelled = { heads: [] }
  await using origin = await secureOrigin()
  const server = createTls(
    keys,
    (socket: Socket) => void connectProxy(seen)(new RawPeer(socket)).catch(() => {}),
  )
  await using proxy = await listen(server as never, 'https')
  await using client = new AsyncClient({ verify, proxy: proxy.origin })
  assert.equal((await client.get(origin.origin)).statusCode, 200)
  assert.equal(seen.heads.length, 1)
})

test('http goes to the proxy in absolute form, with its own headers', async () => {
  await using proxy = await serve((request, response) => {
    response.end(
      `${request.url} ${request.headers['proxy-authorization']} ${request.headers['x-team']}`,
    )
  })
  await using client = new AsyncClient({
    proxy: { url: proxy.origin, auth: ['u', 'p'], headers: { 'X-Team': 'blue' } },
  })
  const basic = `Basic ${Buffer.from('u:p').toString('base64')}`
  assert.equal((await client.get('http://a.test/x?y#z')).text, `http://a.test/x?y ${basic} blue`)
  assert.equal((await client.get('http://b.test:81/')).text, `http://b.test:81/ ${basic} blue`)
  assert.equal(proxy.accepted, 1)
})

for (const { answer, pattern } of [
  { answer: 'HTTP/1.1 407 Proxy Authentication Required\r\n\r\n', pattern: /407.*user name/ },
  { answer: 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n', pattern: /502 Bad Gateway/ },
  { answer: 'SSH-2.0\r\n\r\n', pattern: /does not speak HTTP/ },
  { answer: '', pattern: /closed the connection/ },
]) {
  const start = JSON.stringify(answer.slice(0, 20))
  test(`the answer ${start} to CONNECT is a ProxyError`, async () => {
    await using proxy = await rawServer(async (peer) => {
      await peer.takeUntil('\r\n\r\n')
      peer.end(answer)
    })
    await using client = new AsyncClient({ proxy: `http://127.0.0.1:${proxy.port}` })
    await assert.rejects(
      client.get('https://a.test/'),
      (error) => error instanceof ProxyError && pattern.test(error.message),
    )
  })
}

test('a 407 to a forwarded request is returned', async () => {
  await using proxy = await serve((_request, response) => {
    response.statusCode = 407
    response.end()
  })
  await using client = new AsyncClient({ proxy: proxy.origin })
  assert.equal((await client.get('http://a.test/')).statusCode, 407)
})

/** A SOCKS5 server for one connection; records credentials and address in `seen`. */
const socksProxy =
  (seen: unknown[], port: () => number, credentials: boolean, reply = 0) =>
  async (peer: RawPeer): Promise<void> => {
    const [, count] = await peer.take(2)
    await peer.take(count!)
    peer.write(Buffer.from([5, credentials ? 2 : 0]))
    if (credentials) {
      const [, length] = await peer.take(2)
      const name = await peer.take(length!)
      const password = await peer.take((await peer.take(1))[0]!)
      seen.push(`${name}:${password}`)
      peer.write(Buffer.from([1, password.toString() === 'pw' ? 0 : 1]))
      if (password.toString() !== 'pw') return peer.end()
    }
    const [, , , type] = await peer.take(4)
    const length = type === 3 ? (await peer.take(1))[0]! : type === 4 ? 16 : 4
    const address = await peer.take(length)
    await peer.take(2)
    seen.push(type, type === 3 ? address.toString() : [...address].join('.'))
    peer.write(Buffer.from([5, reply, 0, 1, 0, 0, 0, 0, 0, 0]))
    if (reply === 0) splice(peer, port())
    else peer.end()
  }

for (const scheme of ['socks5', 'socks5h']) {
  const resolver = scheme === 'socks5' ? 'the client' : 'the proxy'
  test(`${scheme}: ${resolver} resolves names`, async () => {
    const seen: unknown[] = []
    await using origin = await secureOrigin()
    await using proxy = await rawServer(socksProxy(seen, () => origin.port, true))
    await using client = new AsyncClient({
      verify,
      proxy: `${scheme}://user:pw@127.0.0.1:${proxy.port}`,
    })
    assert.equal((await client.get(`https://localhost:${origin.port}/`)).statusCode, 200)
    assert.equal(seen[0], 'user:pw')
    if (scheme === 'socks5h') assert.deepEqual(seen.slice(1), [3, 'localhost'])
    else assert.notEqual(seen[1], 3)
  })

  test(`${scheme}: plain http goes through the proxy as well`, async () => {
    await using origin = await serve((request, response) => response.end(request.url))
    await using proxy = await rawServer(socksProxy([], () => origin.port, false))
    await using client = new AsyncClient({ proxy: `${scheme}://127.0.0.1:${proxy.port}` })
    assert.equal((await client.get(`${origin.origin}/x`)).text, '/x')
  })
}

test('a refusal of a SOCKS5 proxy is a ProxyError with the reason', async () => {
  for (const { reply, credentials, pattern } of [
    { reply: 5, credentials: false, pattern: /connection refused/ },
    { reply: 0, credentials: true, pattern: /requires authentication|refused the user name/ },
  ]) {
    await using proxy = await rawServer(socksProxy([], () => 1, credentials, reply))
    for (const user of credentials ? ['', 'user:bad@'] : ['']) {
      await using client = new AsyncClient({ proxy: `socks5h://${user}127.0.0.1:${proxy.port}` })
      await assert.rejects(
        client.get('http://a.test/'),
        (error) => error instanceof ProxyError && pattern.test(error.message),
      )
    }
  }
})

for (const { env, url, proxy } of [
  { env: { HTTP_PROXY: 'http://p:1' }, url: 'http://a.test/', proxy: 'http://p:1' },
  { env: { HTTP_PROXY: 'http://p:1' }, url: 'https://a.test/', proxy: null },
  {
    env: { HTTP_PROXY: 'http://p:1', http_proxy: 'http://q:2' },
    url: 'http://a.test/',
    proxy: 'http://q:2',
  },
  { env: { HTTP_PROXY: 'http://p:1', REQUEST_METHOD: 'GET' }, url: 'http://a.test/', proxy: null },
  {
    env: { http_proxy: 'http://p:1', REQUEST_METHOD: 'GET' },
    url: 'http://a.test/',
    proxy: 'http://p:1',
  },
  { env: { HTTP_PROXY: 'http://p:1', http_proxy: '' }, url: 'http://a.test/', proxy: null },
  {
    env: { HTTP_PROXY: 'http://p:1', NO_PROXY: 'a.test', no_proxy: '' },
    url: 'http://a.test/',
    proxy: 'http://p:1',
  },
  { env: { HTTPS_PROXY: 'p:1' }, url: 'https://a.test/', proxy: 'http://p:1' },
  { env: { ALL_PROXY: 'socks5://p:1' }, url: 'https://a.test/', proxy: 'socks5://p:1' },
  { env: { ALL_PROXY: 'http://p:1', NO_PROXY: 'a.test' }, url: 'https://a.test/', proxy: null },
]) {
  test(`${JSON.stringify(env)}: ${url} uses ${proxy ?? 'no proxy'}`, () => {
    assert.equal(proxiesFromEnvironment(env)?.proxyFor(new URL(url)) ?? null, proxy)
  })
}

for (const { list, url, direct } of [
  { list: '*', url: 'http://a.test/', direct: true },
  { list: 'a.test', url: 'http://b.a.test/', direct: true },
  { list: 'a.test', url: 'http://ba.test/', direct: false },
  { list: '.a.test', url: 'http://a.test/', direct: false },
  { list: '.a.test', url: 'http://b.a.test/', direct: true },
  { list: 'x, a.test:8080', url: 'http://a.test:8080/', direct: true },
  { list: 'a.test:8080', url: 'http://a.test/', direct: false },
  { list: '10.0.0.0/8', url: 'http://10.1.2.3/', direct: true },
  { list: '10.0.0.0/8', url: 'http://11.1.2.3/', direct: false },
  { list: 'fd00::/8', url: 'http://[fd12::1]/', direct: true },
  { list: '::1', url: 'http://[::1]:3000/', direct: true },
  { list: '[::1]:3000', url: 'http://[::1]:3000/', direct: true },
  { list: 'https://a.test', url: 'http://a.test/', direct: false },
  { list: '10.0.0.0/8', url: 'http://a.test/', direct: false },
]) {
  test(`NO_PROXY=${list}: ${url} ${direct ? 'bypasses the proxy' : 'uses the proxy'}`, () => {
    assert.equal(isNoProxy(new URL(url), parseNoProxy(list)), direct)
  })
}

test('proxies from the environment are used only with trustEnv', async () => {
  await using proxy = await serve((request, response) => response.end(request.url))
  process.env['http_proxy'] = proxy.origin
  try {
    await using trusting = new AsyncClient()
    assert.equal((await trusting.get('http://a.test/')).text, 'http://a.test/')
    await using direct = new AsyncClient({ trustEnv: false })
    assert.equal((await direct.get(`${proxy.origin}/x`)).text, '/x')
  } finally {
    delete process.env['http_proxy']
  }
})

test('mounts: the most specific pattern wins, and null means the default transport', async () => {
  const named = (name: string): MockTransport =>
    new MockTransport(() => new Response(200, { text: name }))
  await using client = new AsyncClient({
    transport: named('default'),
    mounts: {
      'all://': named('all'),
      'https://': named('https'),
      'all://*.a.test': named('below a'),
      'http://*b.test': named('b and below'),
      'all://c.test:8080': named('c 8080'),
      'all://local': null,
    },
  })
  for (const [url, name] of [
    ['http://x.test/', 'all'],
    ['https://x.test/', 'https'],
    ['http://a.test/', 'all'],
    ['https://x.a.test/', 'below a'],
    ['http://b.test/', 'b and below'],
    ['http://x.b.test/', 'b and below'],
    ['http://xb.test/', 'all'],
    ['http://c.test:8080/', 'c 8080'],
    ['http://c.test/', 'all'],
    ['http://local/', 'default'],
  ] as const) {
    assert.equal((await client.get(url)).text, name, url)
  }
  assert.throws(() => new AsyncClient({ mounts: { http: null } }), /not a URL pattern/)
})

test('printing a proxy shows no password', () => {
  const proxy = new Proxy('http://user:hush@p.test:1')
  assert.doesNotMatch(inspect(proxy) + JSON.stringify(proxy), /hush/)
})
