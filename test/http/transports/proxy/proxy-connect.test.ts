import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer as createHttps } from 'node:https'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { proxyConnect, ProxyError, tlsConnectOptions } from 'runwright/http'
import { WebSocketClient, WebSocketServer } from 'runwright/ws'
import { RawPeer, rawServer } from '../../../helpers/raw-peer.js'
import { echo, listen, stop, world } from '../../../helpers/ws-peer.js'

const pathOf = (name: string): string =>
  fileURLToPath(new URL(`../../../fixtures/http/certs/${name}.pem`, import.meta.url))

function splice(peer: RawPeer, port: number): void {
  const target = connect(port, '127.0.0.1')
  peer.socket.removeAllListeners('data')
  if (peer.received.length > 0) target.write(peer.received)
  peer.socket.pipe(target).pipe(peer.socket)
  target.on('error', () => peer.socket.destroy())
  peer.socket.on('close', () => target.destroy())
}

/** A proxy that answers CONNECT after the refusals given, and leads everywhere to this machine. */
const connectProxy = (heads: string[], refusals: string[] = []) => async (peer: RawPeer) => {
  const head = await peer.takeUntil('\r\n\r\n')
  heads.push(head)
  const refusal = refusals.shift()
  if (refusal !== undefined) return peer.write(refusal)
  peer.write('HTTP/1.1 200 Fine\r\nVia: a proxy\r\n\r\n')
  splice(peer, Number(/^CONNECT [^ ]*:(\d+) /.exec(head)![1]))
}

async function echoThrough(client: WebSocketClient, url: string): Promise<void> {
  await using connection = await client.connect(url)
  connection.send('through')
  assert.equal((await connection.messages().next()).value, 'through')
}

/** Sets variables for one test; those of proxies that it does not name are removed. */
function setEnvironment(t: TestContext, variables: Record<string, string>): void {
  const before = { ...process.env }
  t.after(() => void (process.env = before))
  process.env = Object.fromEntries(
    Object.entries(before).filter(([name]) => !/_proxy$|^ssl_/i.test(name)),
  )
  Object.assign(process.env, variables)
}

test('a WebSocket goes through CONNECT, ws: as well as wss:', async () => {
  const heads: string[] = []
  await using proxy = await rawServer(connectProxy(heads))
  await using w = await world(echo)
  const via = proxyConnect(`http://us%65r:pw@127.0.0.1:${proxy.port}`)
  const headers = { Authorization: 'Bearer origin' }
  await echoThrough(new WebSocketClient({ connect: via, headers }), `ws://h.example:${w.port}/`)
  const basic = Buffer.from('user:pw').toString('base64')
  assert.match(heads[0]!, new RegExp(`^CONNECT h\\.example:${w.port} HTTP/1\\.1\r\n`))
  assert.match(heads[0]!, new RegExp(`Proxy-Authorization: Basic ${basic}\r\n`))
  assert.doesNotMatch(heads[0]!, /Bearer/)

  const server = createHttps({
    cert: readFileSync(pathOf('server')), key: readFileSync(pathOf('server-key')),
  })
  const sockets = new WebSocketServer(echo)
  sockets.attach(server)
  const port = await listen(server)
  const tls = tlsConnectOptions({ verify: pathOf('ca') })
  await echoThrough(new WebSocketClient({ connect: via, tls }), `wss://localhost:${port}/`)
  assert.match(heads[1]!, new RegExp(`^CONNECT localhost:${port} HTTP/1\\.1\r\n`))
  const untrusting = new WebSocketClient({ connect: via })
  await assert.rejects(untrusting.connect(`wss://localhost:${port}/`), { code: 'ERR_WS_CONNECT' })
  await sockets.close()
  await stop(server)
})

test('a Digest challenge is answered over a new connection', async () => {
  const heads: string[] = []
  const challenge =
    'HTTP/1.1 407 x\r\nProxy-Authenticate: Digest realm="r", nonce="n", qop="auth"\r\n\r\n'
  await using proxy = await rawServer(connectProxy(heads, [challenge]))
  await using w = await world(echo)
  const connect = proxyConnect({
    url: `http://127.0.0.1:${proxy.port}`, auth: ['user', 'pw'], authScheme: 'digest',
  })
  await echoThrough(new WebSocketClient({ connect }), `ws://127.0.0.1:${w.port}/`)
  assert.match(heads[1]!, /Proxy-Authorization: Digest username="user"/)
})

test('the environment names the proxy, by the scheme and NO_PROXY', async (t) => {
  const heads: string[] = []
  await using proxy = await rawServer(connectProxy(heads))
  await using w = await world(echo)
  setEnvironment(t, { HTTP_PROXY: `127.0.0.1:${proxy.port}`, NO_PROXY: '127.0.0.1' })
  const connect = proxyConnect()
  await echoThrough(new WebSocketClient({ connect }), `ws://h.example:${w.port}/`)
  await echoThrough(new WebSocketClient({ connect }), `ws://127.0.0.1:${w.port}/`)
  assert.equal(heads.length, 1)
  const untrusting = proxyConnect(null, { trustEnv: false })
  const direct = new WebSocketClient({ connect: untrusting }).connect('ws://h.invalid/')
  await assert.rejects(direct, /cannot connect to h\.invalid:80: .*getaddrinfo/)
})

test('a refusal, a vanished proxy and a time limit are errors of this module', async () => {
  const refusing = ['HTTP/1.1 403 Forbidden\r\n\r\n']
  await using proxy = await rawServer(connectProxy([], refusing))
  const connect = proxyConnect(`http://127.0.0.1:${proxy.port}`)
  await assert.rejects(new WebSocketClient({ connect }).connect('ws://h:1/'), (error: Error) => {
    assert.match(error.message, /^cannot connect to h:1: the proxy refused to connect: 403 /)
    assert.ok(error.cause instanceof ProxyError)
    assert.equal(error.cause.statusCode, 403)
    return true
  })
  await using closing = await rawServer((peer) => void peer.socket.destroy())
  const vanished = proxyConnect(`socks5://127.0.0.1:${closing.port}`)
  const target = { host: '127.0.0.1', port: 1, secure: false }
  await assert.rejects(vanished(target), { code: 'ERR_HTTP_PROXY' })
  let closed = 0
  await using silent = await rawServer((peer) => void peer.ended().then(() => closed++))
  const slow = proxyConnect(`http://127.0.0.1:${silent.port}`, { timeout: 30 })
  await assert.rejects(slow(target), { code: 'ERR_HTTP_CONNECT_TIMEOUT' })
  const controller = new AbortController()
  const aborted = proxyConnect(`http://127.0.0.1:${silent.port}`)(target, controller.signal)
  controller.abort(new Error('enough'))
  await assert.rejects(aborted, /enough/)
  while (closed < silent.accepted) await new Promise(setImmediate)
})

test('invalid proxies and options are refused at once', () => {
  assert.throws(() => proxyConnect('ftp://h'), /proxy must be/)
  assert.throws(() => proxyConnect('http://h', { timeout: 0 }), /timeout must be/)
  assert.throws(() => proxyConnect('http://h', { verfy: true } as never), /use verify/)
  assert.throws(() => tlsConnectOptions({ verify: '/no/such/file' }), /verify: ENOENT/)
})
