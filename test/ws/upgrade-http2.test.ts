import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  createSecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { describe, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { ConnectionLostError, WebSocketServer, type WebSocketServerOptions } from 'runwright/ws'
import { certificate, key } from '../helpers/ws-certificate.js'
import {
  closeFrame,
  echo,
  frame,
  listen,
  opening,
  RawPeer,
  SAMPLE_ACCEPT,
  SAMPLE_KEY,
  stop,
  text,
} from '../helpers/ws-peer.js'

interface World extends AsyncDisposable {
  readonly server: Http2Server
  readonly sockets: WebSocketServer
  readonly session: ClientHttp2Session
  /** Sends an extended CONNECT; resolves with its stream and the head of the response. */
  ask(
    headers?: OutgoingHttpHeaders,
  ): Promise<{ stream: ClientHttp2Stream; headers: IncomingHttpHeaders }>
  open(headers?: OutgoingHttpHeaders): Promise<RawPeer>
}

async function world(
  options: WebSocketServerOptions = echo,
  server: Http2Server = createServer(),
  path?: string,
): Promise<World> {
  const sockets = new WebSocketServer({ closeTimeoutMs: 60_000, ...options })
  sockets.attach(server, { http2: true, path })
  const port = await listen(server)
  const session = connect(`http://127.0.0.1:${port}`)
  session.on('error', () => {})
  await once(session, 'remoteSettings')
  const ask = async (
    headers: OutgoingHttpHeaders = {},
  ): Promise<{ stream: ClientHttp2Stream; headers: IncomingHttpHeaders }> => {
    const stream = session.request({
      ':method': 'CONNECT',
      ':protocol': 'websocket',
      ':scheme': 'http',
      ':path': '/',
      ':authority': 'localhost',
      'sec-websocket-version': '13',
      ...headers,
    })
    stream.on('error', () => {})
    const [answer] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    return { stream, headers: answer }
  }
  return {
    server,
    sockets,
    session,
    ask,
    async open(headers) {
      const { stream, headers: answer } = await ask(headers)
      assert.equal(answer[':status'], 200)
      return new RawPeer(stream)
    },
    async [Symbol.asyncDispose]() {
      session.destroy()
      await sockets.close()
      await stop(server)
    },
  }
}

describe('extended CONNECT', () => {
  test('the setting is advertised, but only if enabled (RFC 8441 §3)', async () => {
    await using w = await world()
    assert.equal(w.session.remoteSettings.enableConnectProtocol, true)
    const plain = createServer()
    const sockets = new WebSocketServer()
    sockets.attach(plain)
    const session = connect(`http://127.0.0.1:${await listen(plain)}`)
    await once(session, 'remoteSettings')
    assert.notEqual(session.remoteSettings.enableConnectProtocol, true)
    session.destroy()
    await sockets.close()
    await stop(plain)
  })

  test('is answered 200, without Accept, Upgrade or Connection (RFC 8441 §5)', async () => {
    await using w = await world()
    const { headers } = await w.ask()
    assert.equal(headers[':status'], 200)
    for (const name of [
      'sec-websocket-accept',
      'upgrade',
      'connection',
      'sec-websocket-protocol',
    ]) {
      assert.equal(headers[name], undefined)
    }
  })

  test('a key that is sent nevertheless is answered', async () => {
    await using w = await world()
    const { headers } = await w.ask({ 'sec-websocket-key': SAMPLE_KEY })
    assert.equal(headers['sec-websocket-accept'], SAMPLE_ACCEPT)
  })

  test('messages, pings and the closing handshake work as over HTTP/1.1', async () => {
    await using w = await world()
    const peer = await w.open()
    peer.write(
      Buffer.concat([text('hello'), frame(9, 'p'), text('a', { fin: false }), frame(0, 'b')]),
    )
    assert.deepEqual(await peer.lines(3), ['text:hello', 'pong:p', 'text:ab'])
    const [connection] = w.sockets.connections
    peer.write(closeFrame(4000, 'bye'))
    assert.deepEqual(await peer.finish(), ['close:4000'])
    const info = await connection!.closed
    assert.deepEqual(info, { code: 4000, reason: 'bye', wasClean: true, error: null })
  })

  test('subprotocol, context and compression are negotiated', async () => {
    await using w = await world({ ...echo, protocols: ['v2'], deflate: true })
    const { headers } = await w.ask({
      'sec-websocket-protocol': 'v1, v2',
      'sec-websocket-extensions': 'permessage-deflate',
    })
    assert.equal(headers['sec-websocket-protocol'], 'v2')
    assert.match(String(headers['sec-websocket-extensions']), /^permessage-deflate/)
  })

  test('a large message is echoed', async () => {
    await using w = await world({ ...echo, maxMessageBytes: 2 ** 22 })
    const peer = await w.open()
    peer.write(frame(2, Buffer.alloc(2_000_000, 'x')))
    assert.equal((await peer.next())!.payload.length, 2_000_000)
  })

  test('many connections share one session', async () => {
    await using w = await world()
    const peers = await Promise.all(Array.from({ length: 20 }, () => w.open()))
    for (const [i, peer] of peers.entries()) peer.write(text(`${i}`))
    for (const [i, peer] of peers.entries()) assert.equal(await peer.line(), `text:${i}`)
  })

  test('END_STREAM without a Close is abnormal, like a FIN (RFC 8441 §5)', async () => {
    await using w = await world()
    const peer = await w.open()
    const [connection] = w.sockets.connections
    peer.socket.end()
    assert.equal(await peer.next(), null)
    const { code, wasClean, error } = await connection!.closed
    assert.deepEqual([code, wasClean], [1006, false])
    assert.ok(error instanceof ConnectionLostError)
  })

  test('RST_STREAM with CANCEL is abnormal, like a reset (RFC 8441 §5)', async () => {
    await using w = await world()
    for (const code of [constants.NGHTTP2_CANCEL, constants.NGHTTP2_PROTOCOL_ERROR]) {
      const peer = await w.open()
      const [connection] = w.sockets.connections
      ;(peer.socket as ClientHttp2Stream).close(code)
      assert.equal((await connection!.closed).code, 1006)
    }
  })

  test('terminate resets the stream with CANCEL (RFC 8441 §5)', async () => {
    await using w = await world()
    const peer = await w.open()
    const [connection] = w.sockets.connections
    const closed = once(peer.socket, 'close')
    connection!.terminate()
    await closed
    assert.equal((peer.socket as ClientHttp2Stream).rstCode, constants.NGHTTP2_CANCEL)
    await connection!.closed
  })

  test('a broken rule ends the stream with its Close, but not the session', async () => {
    await using w = await world()
    const peer = await w.open()
    peer.write(frame(1, 'x', { mask: false }))
    assert.match(await peer.line(), /^close:1002/)
    peer.socket.end()
    const again = await w.open()
    again.write(text('alive'))
    assert.equal(await again.line(), 'text:alive')
  })

  test('a lost session ends its connections', async () => {
    await using w = await world()
    await Promise.all([w.open(), w.open()])
    const ends = [...w.sockets.connections].map(({ closed }) => closed)
    w.session.destroy()
    for (const { code } of await Promise.all(ends)) assert.equal(code, 1006)
  })
})

describe('refusals', () => {
  const cases: [string, OutgoingHttpHeaders, number][] = [
    ['another :protocol is 501 (RFC 9220 §3)', { ':protocol': 'webtransport' }, 501],
    ['another path is 404', { ':path': '/other' }, 404],
    ['another version is 400', { 'sec-websocket-version': '8' }, 400],
    ['a malformed subprotocol is 400', { 'sec-websocket-protocol': 'a,,b' }, 400],
    ['a foreign origin is 403', { origin: 'https://evil.example' }, 403],
  ]
  for (const kind of ['stream', 'request']) {
    for (const [name, headers, status] of cases) {
      test(`${name}, next to a server of ${kind} listeners`, async () => {
        const server =
          kind === 'request' ? createServer((_request, response) => response.end()) : createServer()
        await using w = await world(echo, server, '/ws')
        const answer = await w.ask({ ':path': '/ws', ...headers })
        assert.equal(answer.headers[':status'], status)
        answer.stream.resume()
        const good = await w.open({ ':path': '/ws', origin: 'http://localhost' })
        good.write(text('ok'))
        assert.equal(await good.line(), 'text:ok')
      })
    }
  }

  test('authorize may refuse with any status, headers and body', async () => {
    await using w = await world({
      authorize: () => ({
        status: 404,
        headers: { 'Content-Type': 'application/problem+json' },
        body: '{"code":"unknown_run"}',
      }),
    })
    const { stream, headers } = await w.ask()
    assert.equal(headers[':status'], 404)
    assert.equal(headers['content-type'], 'application/problem+json')
    assert.equal((await new RawPeer(stream).body()).toString(), '{"code":"unknown_run"}')
  })

  test('a plain CONNECT is 405', async () => {
    await using w = await world(echo, createServer((_request, response) => response.end()))
    const stream = w.session.request({ ':method': 'CONNECT', ':authority': 'localhost:1' })
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    assert.equal(headers[':status'], 405)
    stream.resume()
  })

  test('a client that disconnects during authorize is not counted', async () => {
    let called = (): void => {}
    const waiting = new Promise<void>((resolve) => (called = resolve))
    let gone = (): void => {}
    const left = new Promise<void>((resolve) => (gone = resolve))
    await using w = await world({
      authorize: (_request, { signal }) => {
        signal.addEventListener('abort', () => gone())
        called()
        return new Promise<never>(() => {})
      },
    })
    const stream = w.session.request({
      ':method': 'CONNECT', ':protocol': 'websocket', ':scheme': 'http', ':path': '/',
      ':authority': 'localhost', 'sec-websocket-version': '13',
    })
    stream.on('error', () => {})
    await waiting
    stream.close(constants.NGHTTP2_CANCEL)
    await left
    assert.equal(w.sockets.connections.size, 0)
  })
})

test('other CONNECT listeners keep their paths', async () => {
  const server = createServer()
  server.on('stream', (stream, headers) => {
    if (headers[':path'] === '/foreign') stream.respond({ ':status': 299 }, { endStream: true })
  })
  await using w = await world(echo, server, '/ours')
  const foreign = await w.ask({ ':path': '/foreign' })
  assert.equal(foreign.headers[':status'], 299)
  foreign.stream.resume()
  await w.open({ ':path': '/ours' })
})

test('plain requests are still answered by the host', async () => {
  await using w = await world(
    echo,
    createServer((request, response) => response.end(`page ${request.url}`)),
  )
  const stream = w.session.request({ ':path': '/page' })
  stream.setEncoding('utf8')
  let body = ''
  for await (const chunk of stream) body += chunk
  assert.equal(body, 'page /page')
})

test('a secure server with allowHTTP1 serves both versions', async () => {
  const server = createSecureServer(
    { cert: certificate, key, allowHTTP1: true },
    (_request, response) => {
      response.end('page')
    },
  )
  const sockets = new WebSocketServer(echo)
  sockets.attach(server, { http2: true, path: '/ws' })
  const port = await listen(server)
  const tls = connectTls({
    port,
    host: '127.0.0.1',
    ca: certificate,
    servername: 'localhost',
    ALPNProtocols: ['http/1.1'],
  })
  const old = new RawPeer(tls)
  old.write(opening({}, { path: '/ws' }) )
  assert.equal((await old.head()).status, 101)
  old.write(text('one'))
  assert.equal(await old.line(), 'text:one')
  const session = connect(`https://127.0.0.1:${port}`, { ca: certificate })
  await once(session, 'remoteSettings')
  const stream = session.request({
    ':method': 'CONNECT',
    ':protocol': 'websocket',
    ':scheme': 'https',
    ':path': '/ws',
    ':authority': `localhost:${port}`,
    'sec-websocket-version': '13',
    origin: `https://localhost:${port}`,
  })
  const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
  assert.equal(headers[':status'], 200)
  const modern = new RawPeer(stream)
  modern.write(text('two'))
  assert.equal(await modern.line(), 'text:two')
  tls.destroy()
  session.destroy()
  await sockets.close()
  await stop(server)
})
