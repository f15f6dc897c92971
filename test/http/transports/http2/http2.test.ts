import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import {
  constants,
  createServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { connect, createServer as createTcpServer, type Socket } from 'node:net'
import { test } from 'node:test'
import {
  AsyncClient,
  HttpTransport,
  ReadError,
  ReadTimeoutError,
  RemoteProtocolError,
} from 'runwright/http'
import { useApp } from '../../both-clients.js'
import { HeldTimers } from '../../../helpers/held-timers.js'
import { listen, type Served } from '../../../helpers/serve.js'
import { verify, secureServer } from './secure-server.js'

useApp()

const answer = (stream: ServerHttp2Stream, body: string, headers = {}): void => {
  stream.respond({ ':status': 200, ...headers })
  stream.end(body)
}

test('HTTP/2 is used when both sides offer it; many calls share one connection', async () => {
  await using server = await secureServer((stream, headers) =>
    answer(stream, String(headers[':path'])),
  )
  await using client = new AsyncClient({ http2: true, verify })
  const responses = await Promise.all(
    [...Array(50).keys()].map((i) => client.get(`${server.origin}/${i}`)),
  )
  assert.deepEqual(
    responses.map((response) => response.text),
    [...Array(50).keys()].map((i) => `/${i}`),
  )
  assert.equal(responses[0]!.httpVersion, 'HTTP/2')
  assert.equal(responses[0]!.reasonPhrase, 'OK')
  assert.equal(server.accepted, 1)
})

test('without http2: true, HTTP/1.1 is used', async () => {
  await using server = await secureServer((stream) => answer(stream, ''))
  server.server.on('request', (request, response) => {
    if (request.httpVersionMajor === 1) response.end('one')
  })
  await using client = new AsyncClient({ verify })
  assert.equal((await client.get(server.origin)).httpVersion, 'HTTP/1.1')
})

test('with http1: false, HTTP/2 is used over plain TCP', async () => {
  const plain = createServer()
  plain.on('stream', (stream) => answer(stream, 'clear'))
  await using server = await listen(plain as never)
  await using client = new AsyncClient({ http1: false, http2: true })
  const response = await client.get(server.origin)
  assert.deepEqual([response.text, response.httpVersion], ['clear', 'HTTP/2'])
})

test('connection fields are not sent, and Host becomes :authority', async () => {
  let seen: Record<string, unknown> = {}
  await using server = await secureServer((stream, headers) => {
    seen = headers
    answer(stream, '')
  })
  await using client = new AsyncClient({ http2: true, verify })
  await client.get(server.origin, {
    headers: { Host: 'other.test', Connection: 'x-hop', 'X-Hop': '1', 'X-End': '2' },
  })
  assert.equal(seen[':authority'], 'other.test')
  assert.equal(seen['x-end'], '2')
  for (const name of ['connection', 'host', 'x-hop', 'transfer-encoding'])
    assert.equal(seen[name], undefined, name)
})

test('after GOAWAY the next call opens a new connection, and open streams go on', async () => {
  let session: ServerHttp2Session | undefined
  let finish: (() => void) | undefined
  await using server = await secureServer((stream, headers) => {
    session = stream.session as ServerHttp2Session
    if (headers[':path'] === '/slow') {
      stream.respond({ ':status': 200 })
      stream.write('begun')
      finish = () => stream.end(' and done')
    } else answer(stream, 'quick')
  })
  await using client = new AsyncClient({ http2: true, verify })
  const slow = await client.stream('GET', `${server.origin}/slow`)
  session!.goaway(constants.NGHTTP2_NO_ERROR)
  for (let i = 0; i < 3; i++) assert.equal((await client.get(server.origin)).text, 'quick')
  finish!()
  assert.equal((await slow.read()).toString(), 'begun and done')
  assert.equal(server.accepted, 2)
})

test('a refused stream is sent again, even a POST; any other reset is an error', async () => {
  let tries = 0
  await using server = await secureServer((stream, headers) => {
    if (headers[':path'] === '/reset') stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    else if (tries++ === 0) stream.close(constants.NGHTTP2_REFUSED_STREAM)
    else answer(stream, 'second')
  })
  await using client = new AsyncClient({ http2: true, verify })
  assert.equal((await client.post(server.origin, { content: 'x' })).text, 'second')
  await assert.rejects(client.get(`${server.origin}/reset`), RemoteProtocolError)
  assert.equal((await client.get(server.origin)).text, 'second')
})

test("the server's limit of concurrent streams is respected", async () => {
  let most = 0
  const open = new Set<ServerHttp2Stream>()
  await using server = await secureServer(
    (stream) => {
      open.add(stream)
      most = Math.max(most, open.size)
      setImmediate(() => {
        open.delete(stream)
        answer(stream, 'ok')
      })
    },
    { maxConcurrentStreams: 3 },
  )
  await using client = new AsyncClient({ http2: true, verify, limits: { maxConnections: 1 } })
  const responses = await Promise.all([...Array(30).keys()].map(() => client.get(server.origin)))
  assert.equal(responses.every((response) => response.text === 'ok'), true)
  assert.ok(most <= 3, `${most} concurrent streams`)
  assert.equal(server.accepted, 1)
})

test('a lost session fails its streams, and the next call opens another', async () => {
  await using server = await secureServer((stream, headers) => {
    if (headers[':path'] === '/lost') (stream.session as ServerHttp2Session).destroy()
    else if (headers[':path'] !== '/never') answer(stream, 'ok')
  })
  await using client = new AsyncClient({ http2: true, verify })
  await assert.rejects(client.get(`${server.origin}/lost`), RemoteProtocolError)
  await assert.rejects(
    client.get(`${server.origin}/never`, { timeout: { read: 30 } }),
    ReadTimeoutError,
  )
  assert.equal((await client.get(server.origin)).text, 'ok')
})

test('aborting a stream does not affect the others', async () => {
  await using server = await secureServer((stream, headers) => {
    if (headers[':path'] === '/a') answer(stream, 'ok')
  })
  await using client = new AsyncClient({ http2: true, verify })
  const controller = new AbortController()
  const reason = new Error('no more')
  const never = client.get(`${server.origin}/never`, { signal: controller.signal })
  const first = await client.get(`${server.origin}/a`)
  controller.abort(reason)
  await assert.rejects(never, (error) => error === reason)
  assert.equal((await client.get(`${server.origin}/a`)).text, first.text)
  assert.equal(server.accepted, 1)
})

/** Forwards bytes to `port` until `freeze()`, which drops them without closing anything. */
async function freezer(port: number): Promise<Served & {
  freeze(): void
  /** Resolves once bytes for `port` were dropped. */
  readonly withheld: Promise<void>
  readonly closed: Promise<void>
}> {
  let latest: Socket | undefined
  let onWithheld = (): void => {}
  const withheld = new Promise<void>((resolve) => (onWithheld = resolve))
  let onClosed = (): void => {}
  const closed = new Promise<void>((resolve) => (onClosed = resolve))
  let frozen = false
  const server = createTcpServer((socket) => {
    const target = connect(port, '127.0.0.1')
    for (const [from, to] of [[socket, target], [target, socket]] as const) {
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
    }
    if (latest === undefined) {
      latest = socket
      socket.on('close', onClosed)
      socket.on('data', (chunk) => void (frozen ? onWithheld() : target.write(chunk)))
      target.on('data', (chunk) => void (frozen || socket.write(chunk)))
    } else socket.pipe(target).pipe(socket)
  })
  const served = await listen(server as never)
  return Object.assign(served, { freeze: () => void (frozen = true), withheld, closed })
}

/** Collects the sockets that this process connects to `port`. */
class Connecting implements Disposable {
  readonly sockets: Socket[] = []
  readonly #note: (message: unknown) => void

  constructor(port: number) {
    this.#note = (message) => {
      const { socket } = message as { socket: Socket }
      socket.once('connect', () => void (socket.remotePort === port && this.sockets.push(socket)))
    }
    subscribe('net.client.socket', this.#note)
  }

  [Symbol.dispose](): void {
    unsubscribe('net.client.socket', this.#note)
  }
}

test('a ping detects a silent connection: safe requests are repeated, others fail', async () => {
  const plain = createServer()
  plain.on('stream', (stream, headers) => answer(stream, String(headers[':path'])))
  await using server = await listen(plain as never)
  for (const method of ['GET', 'POST']) {
    using silences = new HeldTimers(4_321)
    await using between = await freezer(server.port)
    const transport = new HttpTransport({ http1: false, http2: true, pingInterval: 4_321 })
    await using client = new AsyncClient({ transport, baseUrl: between.origin, timeout: null })
    assert.equal((await client.get('/first')).text, '/first')
    between.freeze()
    const call = client.request(method, '/second')
    await between.withheld
    // Notes the bytes before the freeze, sends the ping, gives up.
    for (let i = 0; i < 3; i++) silences.fire()
    if (method === 'GET') assert.equal((await call).text, '/second')
    else
      await assert.rejects(
        call,
        (error) => error instanceof ReadError && /ping/.test(error.message),
      )
    await between.closed
    await transport.close()
  }
})

test('a dead idle connection is closed before it is needed; a live one is kept', async () => {
  const plain = createServer()
  let pinged = (): void => assert.fail('a ping too early')
  plain.on('session', (session) => session.on('ping', () => pinged()))
  plain.on('stream', (stream) => answer(stream, 'ok'))
  await using server = await listen(plain as never)
  await using between = await freezer(server.port)
  using silences = new HeldTimers(4_321)
  const transport = new HttpTransport({
    http1: false,
    http2: true,
    pingInterval: 4_321,
    limits: { keepaliveExpiry: null },
  })
  using ours = new Connecting(between.port)
  await using client = new AsyncClient({ transport, baseUrl: between.origin })
  await client.get('/')
  silences.fire()
  for (let i = 0; i < 3; i++) {
    const asked = new Promise<void>((resolve) => (pinged = resolve))
    const answered = once(ours.sockets[0]!, 'data')
    silences.fire()
    await Promise.all([asked, answered])
    silences.fire()
    assert.equal(transport.stats.open, 1)
  }
  between.freeze()
  silences.fire()
  silences.fire()
  await between.closed
  assert.equal(transport.stats.open, 0)
  assert.equal((await client.get('/')).text, 'ok')
  await transport.close()
})

test('streams that GOAWAY does not cover are sent again, whatever their method', async () => {
  const plain = createServer()
  let sessions = 0
  plain.on('session', () => sessions++)
  const held: ServerHttp2Stream[] = []
  plain.on('stream', (stream) => {
    stream.on('error', () => {})
    if (sessions > 1) return answer(stream, `session ${sessions}`)
    held.push(stream)
    if (held.length < 3) return
    // GOAWAY covers the first stream only.
    const [first] = held as [ServerHttp2Stream]
    ;(stream.session as ServerHttp2Session).goaway(constants.NGHTTP2_NO_ERROR, first.id)
    answer(first, 'session 1')
  })
  await using server = await listen(plain as never)
  await using client = new AsyncClient({ http1: false, http2: true, baseUrl: server.origin })
  const responses = await Promise.all([1, 2, 3].map(() => client.post('/', { content: 'x' })))
  assert.deepEqual(responses.map((response) => response.text).sort(), [
    'session 1',
    'session 2',
    'session 2',
  ])
  assert.equal(server.accepted, 2)
})

test('a head larger than the limit is refused', async () => {
  await using server = await secureServer((stream) =>
    answer(stream, '', { 'x-long': 'b'.repeat(70_000) }),
  )
  await using client = new AsyncClient({ http2: true, verify, timeout: 5_000 })
  await assert.rejects(client.get(server.origin), RemoteProtocolError)
})

test('informational responses are reported, then skipped', async () => {
  await using server = await secureServer((stream) => {
    stream.additionalHeaders({ ':status': 103, link: '</a>; rel=preload' })
    answer(stream, 'ok')
  })
  await using client = new AsyncClient({ http2: true, verify })
  const seen: unknown[] = []
  const onInformation = (code: number, headers: { get(name: string): string | null }): void =>
    void seen.push(code, headers.get('link'))
  assert.equal((await client.get(server.origin, { extensions: { onInformation } })).text, 'ok')
  assert.deepEqual(seen, [103, '</a>; rel=preload'])
})
